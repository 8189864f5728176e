"""The tensor attack, end to end: every vector where it must, nothing wrong anywhere, refusals in
words."""

import sys
from pathlib import Path

import numpy as np
import pytest

import unveil
from unveil import Overlaps, Scheme, recover, score, simulate
from unveil.encode import selection_matrix
from unveil.records import VERIFIED

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
hostile = pytest.importorskip(
    "benchmarks.hostile", reason="benchmarks/ is not part of an installed package"
)


def true_overlaps(sim):
    W = selection_matrix(sim.selection.private, len(sim.private))
    return Overlaps.from_array((W @ W.T).astype(int), sim.encodings.scheme.k_private)


@pytest.mark.parametrize(("k", "n", "m", "d"), [(2, 20, 120, 3000), (3, 20, 100, 6000)])
def test_every_vector_from_encodings_alone(k, n, m, d):
    sim = simulate(Scheme(k), n, m=m, d=d, rng=k)
    recovery = recover(sim.encodings, attack="tensor", rng=0)
    scores = score(recovery, sim.private)
    assert (scores.exact, scores.wrong, scores.missing) == (n, 0, 0)
    assert recovery.evidence["estimated_n_private"] == n
    assert recovery.evidence["encodings_explained"] == m


@pytest.mark.parametrize("k", [2, 3, 5])
def test_every_vector_from_given_overlaps_and_few_pixels(k):
    sim = simulate(Scheme(k), 20, m=100, d=80, rng=k)
    recovery = recover(sim.encodings, attack="tensor", overlaps=true_overlaps(sim), rng=0)
    assert (score(recovery, sim.private).exact, score(recovery, sim.private).wrong) == (20, 0)


def test_a_public_part_gives_signs():
    sim = simulate(Scheme(2, 2), 15, n_public=40, m=120, d=2000, rng=1)
    recovery = recover(sim.encodings, sim.public, attack="tensor", rng=0)
    assert recovery.signed
    assert (score(recovery, sim.private).exact, score(recovery, sim.private).wrong) == (15, 0)


def test_wrong_overlaps_do_no_harm():
    sim = simulate(Scheme(3), 25, m=200, d=100, rng=3)
    M = true_overlaps(sim).toarray()
    rng = np.random.default_rng(0)
    for _ in range(400):  # two in a hundred
        i, j = rng.choice(200, 2, replace=False)
        M[i, j] = M[j, i] = abs(M[i, j] - 1)
    recovery = recover(sim.encodings, attack="tensor", overlaps=Overlaps.from_array(M, 3), rng=0)
    assert (score(recovery, sim.private).exact, score(recovery, sim.private).wrong) == (25, 0)


def test_noise_is_told_and_nothing_verified():
    sim = simulate(Scheme(2), 15, m=100, d=200, rng=4, noise=0.03)
    recovery = recover(sim.encodings, attack="tensor", overlaps=true_overlaps(sim), rng=0)
    assert len(recovery) == 15
    assert not recovery.verified.any()
    assert "noise" in recovery.explanation


@pytest.mark.parametrize(
    ("k", "n", "m", "d"),
    [(2, 60, 40, 2000), (3, 20, 5, 2000), (2, 20, 120, 30), (2, 3, 40, 500)],
    ids=[
        "fewer encodings than vectors",
        "a handful of encodings",
        "too few pixels",
        "three vectors",
    ],
)
def test_what_cannot_be_decomposed_is_declined(k, n, m, d):
    sim = simulate(Scheme(k), n, m=m, d=d, rng=5)
    recovery = recover(sim.encodings, attack="tensor", rng=0)
    assert not recovery.verified.any()
    assert recovery.explanation


def test_dependent_columns_lose_a_vector_and_verify_nothing():
    """A bipartite graph of pairs: to add to one side what the other gives changes no encoding."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((20, 200)).astype(np.float32)
    pairs = np.column_stack([rng.integers(0, 10, 150), rng.integers(10, 20, 150)])
    encodings = unveil.Encodings(np.abs(x[pairs].sum(axis=1)) / np.sqrt(2), Scheme(2))
    W = selection_matrix(pairs, 20)
    recovery = recover(
        encodings, attack="tensor", overlaps=Overlaps.from_array((W @ W.T).astype(int), 2), rng=0
    )
    assert not recovery.verified.any()
    assert recovery.evidence.get("encodings_explained", 0) < 150


def test_encodings_of_one_vector_twice_are_left_over_or_explained():
    sim = simulate(Scheme(2, pairing="epochs"), 20, m=200, d=2500, rng=7)
    assert (sim.selection.private[:, 0] == sim.selection.private[:, 1]).any()
    scores = score(recover(sim.encodings, attack="tensor", rng=0), sim.private)
    assert scores.wrong == 0
    assert scores.exact >= 15


@pytest.mark.parametrize(
    ("scheme", "why"),
    [
        (Scheme(1), "takes 2 to 24 .* use attack='exact'"),
        (Scheme(25), "takes 2 to 24"),
        (Scheme(2, weighting="half-normal"), "weights of its own; use attack='mixing'"),
        (Scheme(2, 2), "no public vectors"),
    ],
    ids=str,
)
def test_what_it_is_not_made_for_is_refused(scheme, why):
    encodings = unveil.Encodings(np.ones((30, 20)), scheme)
    with pytest.raises(unveil.InputError, match=why):
        recover(encodings, attack="tensor")


def test_overlaps_of_other_encodings_are_refused():
    sim = simulate(Scheme(2), 10, m=30, d=50, rng=0)
    with pytest.raises(unveil.InputError, match="are not those of these 30"):
        recover(
            sim.encodings,
            attack="tensor",
            overlaps=Overlaps.from_array(2 * np.eye(20, dtype=int), 2),
        )


def test_the_same_seed_gives_the_same_bytes():
    sim = simulate(Scheme(2), 15, m=100, d=2000, rng=8)
    first, second = (recover(sim.encodings, attack="tensor", rng=3) for _ in range(2))
    np.testing.assert_array_equal(first.vectors, second.vectors)
    assert first.status.tolist() == second.status.tolist() == [VERIFIED] * 15


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_no_wrong_vector_is_verified(kind):
    traps = [hostile.trap(kind, 6000 + seed) for seed in range(10)]
    small = [trap for trap in traps if trap.encodings.values.size < 3_000]
    assert small
    assert sum(hostile.spring(trap, "tensor")[1] for trap in small) == 0


def test_permuted_pixels_verify_nothing():
    """Every encoding with its own order of pixels, under overlaps as true as they were."""
    sim = simulate(Scheme(2), 15, m=100, d=200, rng=9)
    values = np.random.default_rng(0).permuted(sim.encodings.values, axis=1)
    recovery = recover(
        unveil.Encodings(values, Scheme(2)), attack="tensor", overlaps=true_overlaps(sim), rng=0
    )
    assert not recovery.verified.any()
