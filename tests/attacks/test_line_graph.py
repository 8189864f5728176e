"""The line-graph attack: all vectors from exact and from misread overlaps, doubt where the root
leaves it, nothing wrong."""

import sys
from pathlib import Path

import numpy as np
import pytest

import unveil
from unveil import Encodings, Overlaps, Scheme, recover, score, simulate
from unveil.attacks.line_graph import line_graph
from unveil.checks import InputError
from unveil.records import AMBIGUOUS, UNRESOLVED

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
hostile = pytest.importorskip(
    "benchmarks.hostile", reason="benchmarks/ is not part of an installed package"
)


def overlaps_of(pairs):
    W = np.zeros((len(pairs), int(np.max(pairs)) + 1), int)
    np.put_along_axis(W, np.asarray(pairs), 1, axis=1)
    return Overlaps.from_array(W @ W.T, 2)


def encoded(pairs, d, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((int(np.max(pairs)) + 1, d)).astype(np.float32)
    y = np.abs(
        x[np.asarray(pairs)].sum(axis=1) / np.sqrt(2) + noise * rng.standard_normal((len(pairs), d))
    )
    return x, Encodings(y.astype(np.float32), Scheme(2))


@pytest.mark.parametrize("seed", range(3))
def test_every_vector_comes_back_with_its_encodings(seed):
    sim = simulate(Scheme(2), 20, m=120, d=2000, rng=seed)
    recovery = line_graph(sim.encodings, rng=0)
    found = score(recovery, sim.private)
    assert (found.exact, found.wrong) == (20, 0)
    truth = np.zeros((120, 20), bool)
    np.put_along_axis(truth, sim.selection.private, True, axis=1)
    np.testing.assert_array_equal(recovery.members.toarray(), truth[:, found.matches])
    assert recovery.evidence["contradicted_overlaps"] == 0


def test_a_public_part_is_learned_once_and_gives_signs():
    sim = simulate(Scheme(2, 2), 12, n_public=30, m=70, d=1000, rng=1)
    recovery = recover(sim.encodings, sim.public, attack="line-graph", rng=0)
    found = score(recovery, sim.private)
    assert recovery.signed
    assert (found.exact, found.wrong) == (12, 0)


def test_many_encodings_are_peeled():
    sim = simulate(Scheme(2), 300, m=2100, d=1200, rng=2)
    recovery = line_graph(sim.encodings, rng=0)
    found = score(recovery, sim.private)
    assert (found.exact, found.wrong) == (300, 0)
    assert recovery.evidence["encodings_explained"] >= 2095


def test_misread_overlaps_are_outvoted_and_said():
    """Too few pixels to read overlaps well: a component of them is no line graph."""
    sim = simulate(Scheme(2), 100, m=700, d=400, rng=3)
    recovery = line_graph(sim.encodings, rng=0)
    found = score(recovery, sim.private)
    assert found.wrong == 0
    assert found.exact >= 99
    assert recovery.evidence["components_not_line_graphs"] == 1
    assert "overlaps are no line graph in 1 of 1 components, e.g. encoding" in recovery.explanation


def test_given_overlaps_make_up_for_pixels():
    sim = simulate(Scheme(2), 30, m=200, d=60, rng=4)
    with_them = line_graph(sim.encodings, overlaps=overlaps_of(sim.selection.private), rng=0)
    found = score(with_them, sim.private)
    assert (found.exact, found.wrong) == (30, 0)
    assert score(line_graph(sim.encodings, rng=0), sim.private).wrong == 0


@pytest.mark.parametrize("small", ["triangle", "star", "paw", "diamond", "K4"])
@pytest.mark.parametrize("k_public", [0, 2])
def test_vectors_of_components_with_two_roots_are_ambiguous(small, k_public):
    """A component of its own beside a large one; with a public part nothing but the root casts
    doubt on some of them."""
    rest = {
        "triangle": [[0, 1], [1, 2], [0, 2]],
        "star": [[0, 1], [0, 2], [0, 3]],
        "paw": [[0, 1], [1, 2], [0, 2], [0, 3]],
        "diamond": [[0, 1], [1, 2], [0, 2], [0, 3], [1, 3]],
        "K4": [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]],
    }[small]
    pairs = np.vstack([rest, 4 + simulate(Scheme(2), 12, m=60, d=2, rng=0).selection.private])
    rng = np.random.default_rng(0)
    x, P = (
        rng.standard_normal((16, 300)).astype(np.float32),
        rng.standard_normal((20, 300)).astype(np.float32),
    )
    chosen = np.argsort(rng.random((len(pairs), 20)), axis=1)[:, :k_public]
    scheme = Scheme(2, k_public)
    total = (x[pairs].sum(axis=1) + P[chosen].sum(axis=1)) * scheme.private_weight
    public = P if k_public else None
    recovery = line_graph(
        Encodings(np.abs(total), scheme), public, overlaps=overlaps_of(pairs), rng=0
    )
    found = score(recovery, x)
    assert (found.exact, found.wrong) == (12, 0)
    assert (found.matches[recovery.verified] >= 4).all()
    assert recovery.evidence["encodings_with_two_roots"] == len(rest)
    assert f"{len(rest)} encodings are in components with two roots" in recovery.explanation
    there = recovery.members[: len(rest)].indices
    assert (recovery.status[there] == AMBIGUOUS).all()


def test_noise_leaves_nothing_verified_and_values_near():
    pairs = simulate(Scheme(2), 15, m=120, d=2, rng=0).selection.private
    x, encodings = encoded(pairs, 500, noise=0.02)
    recovery = line_graph(encodings, overlaps=overlaps_of(pairs), rng=0)
    assert set(recovery.status) == {UNRESOLVED}
    assert score(recovery, x).error.max() < 0.5


@pytest.mark.parametrize(
    "pairs", [[[0, 1]], [[0, 1], [2, 3]], [[0, 1], [1, 2], [2, 3]], [[0, 1]] * 12]
)
def test_too_few_encodings_are_declined(pairs):
    _, encodings = encoded(pairs, 300)
    recovery = line_graph(encodings, overlaps=overlaps_of(pairs))
    assert not recovery.verified.any()
    assert recovery.explanation


def test_what_it_does_not_apply_to_is_refused_with_another_attack():
    with pytest.raises(
        InputError,
        match="k_private=3: overlaps are a line graph for k_private=2 only; use attack='full'",
    ):
        line_graph(Encodings(np.ones((9, 9)), Scheme(3)))
    with pytest.raises(InputError, match="weights of its own; use attack='full'"):
        line_graph(Encodings(np.ones((9, 9)), Scheme(2, weighting="half-normal")))
    with pytest.raises(InputError, match="overlaps of 3 encodings"):
        line_graph(Encodings(np.ones((9, 9)), Scheme(2)), overlaps=overlaps_of([[0, 1]] * 3))


def test_permuted_encodings_and_pixels_and_the_same_seed():
    sim = simulate(Scheme(2), 15, m=90, d=1500, rng=6)
    rng = np.random.default_rng(0)
    rows, pixels = rng.permutation(90), rng.permutation(1500)
    moved = line_graph(Encodings(sim.encodings.values[rows][:, pixels], Scheme(2)), rng=0)
    assert score(moved, sim.private[:, pixels]).exact == 15
    one, two = line_graph(sim.encodings, rng=3), line_graph(sim.encodings, rng=3)
    assert one.vectors.tobytes() == two.vectors.tobytes()


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_no_wrong_vector_is_verified(kind):
    for seed in range(4):
        _, wrong = hostile.spring(hostile.trap(kind, 7000 + seed), "line-graph")
        assert wrong == 0


def test_wrong_overlaps_given_on_purpose_verify_nothing_wrong():
    """The other root of an exception, pairs at random, and a vector's name given to another, for
    encodings that are exact."""
    rng = np.random.default_rng(0)
    for trial in range(8):
        sim = simulate(Scheme(2), 10, m=40, d=100, rng=trial)
        pairs = sim.selection.private.copy()
        if trial % 2:
            pairs = np.sort(np.argsort(rng.random((40, 10)), axis=1)[:, :2], axis=1)
        else:
            pairs[pairs == 0] = 10 + rng.integers(0, 2)
            pairs[rng.integers(0, 40, 6)] = [0, 1]
        recovery = line_graph(sim.encodings, overlaps=overlaps_of(pairs), rng=0)
        assert unveil.score(recovery, sim.private).wrong == 0
