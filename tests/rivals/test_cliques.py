"""Cliques and flow: every vector where overlaps can be read, near ones with a public part, nothing
where there is nothing."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import unveil
from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.records import UNRESOLVED, Overlaps
from unveil.rivals.cliques import cliques_and_flow

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
hostile = pytest.importorskip(
    "benchmarks.hostile", reason="benchmarks/ is not part of an installed package"
)


def true_overlaps(sim, wrong=0.0, seed=0):
    m, k = sim.selection.private.shape
    W = np.zeros((m, len(sim.private)), int)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    draw = np.random.default_rng(seed)
    M = np.triu(np.where(draw.random((m, m)) < wrong, draw.integers(0, k + 1, (m, m)), W @ W.T))
    return M + np.triu(M, 1).T


def test_every_vector_comes_back_exactly():
    sim = unveil.simulate(unveil.Scheme(2), 25, m=200, d=500, rng=2)
    recovery = unveil.recover(sim.encodings, attack="cliques", rng=0)
    scores = unveil.score(recovery, sim.private)
    assert (scores.exact, scores.wrong) == (25, 0)
    assert recovery.evidence["cliques"] == 25


@pytest.mark.parametrize(("k", "m"), [(3, 600), (4, 700)])
def test_so_it_does_for_larger_subsets_where_few_encodings_overlap(k, m):
    sim = unveil.simulate(unveil.Scheme(k), 100, m=m, d=100, rng=k)
    recovery = cliques_and_flow(
        sim.encodings, overlaps=Overlaps.from_array(true_overlaps(sim), k), rng=0
    )
    scores = unveil.score(recovery, sim.private)
    assert scores.exact >= 95
    assert scores.wrong == 0


def test_one_percent_of_wrong_overlaps_and_duplicates_are_borne():
    sim = unveil.simulate(unveil.Scheme(2), 25, m=250, d=100, rng=1)
    twice = Encodings(
        np.vstack([sim.encodings.values, sim.encodings.values[:20]]), unveil.Scheme(2)
    )
    M = true_overlaps(sim, 0.01)
    rows = np.r_[np.arange(250), np.arange(20)]
    recovery = cliques_and_flow(
        twice, overlaps=Overlaps.from_array(M[np.ix_(rows, rows)], 2), rng=0
    )
    scores = unveil.score(recovery, sim.private)
    assert (scores.exact, scores.wrong) == (25, 0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_any_similarity_will_do(form):
    """On a scale of its own; the dense one with a level and noise, and not symmetric."""
    sim = unveil.simulate(unveil.Scheme(2), 20, m=200, d=60, rng=2)
    S = 7.0 * true_overlaps(sim)
    if form is np.asarray:
        S = S + 100 + np.random.default_rng(0).standard_normal(S.shape)
    scores = unveil.score(cliques_and_flow(sim.encodings, similarity=form(S), rng=0), sim.private)
    assert (scores.exact, scores.wrong) == (20, 0)


def test_with_a_public_part_vectors_are_near_and_none_is_verified():
    sim = unveil.simulate(unveil.Scheme(2, 2), 20, n_public=2000, m=800, d=500, rng=3)
    recovery = unveil.recover(sim.encodings, attack="cliques", rng=0)  # public vectors unknown
    assert set(recovery.status) == {UNRESOLVED}
    assert all("public part is taken for noise" in why for why in recovery.reasons)
    V, X = recovery.vectors, sim.private
    likeness = (
        np.abs(V) @ np.abs(X).T / np.outer(np.linalg.norm(V, axis=1), np.linalg.norm(X, axis=1))
    )
    near = likeness.argmax(axis=1)
    assert len(set(near.tolist())) >= 19
    V = V * np.where((V * X[near]).sum(axis=0) < 0, -1, 1)
    assert np.median(np.sqrt(np.mean((V - X[near]) ** 2, axis=1))) < 0.5
    assert (recovery.members.sum(axis=1) == 2).all()


def test_noise_alone_verifies_nothing_and_is_declined_where_overlaps_are_read():
    """With a public part noise may come back as vectors, unresolved: chance cliques can explain as
    much as real ones must."""
    Y = np.abs(np.random.default_rng(0).standard_normal((150, 200)))
    assert len(unveil.recover(Encodings(Y, unveil.Scheme(2)), attack="cliques", rng=0)) == 0
    assert not unveil.recover(
        Encodings(Y, unveil.Scheme(2, 2)), attack="cliques", rng=0
    ).verified.any()


def test_too_few_encodings_are_declined():
    sim = unveil.simulate(unveil.Scheme(2), 40, m=15, d=500, rng=5)
    recovery = unveil.recover(sim.encodings, attack="cliques", rng=0)
    assert len(recovery) == 0
    assert recovery.explanation


def test_what_it_cannot_take_on_is_refused():
    sim = unveil.simulate(unveil.Scheme(2), 10, m=20, d=30, rng=6)
    run = cliques_and_flow
    with pytest.raises(InputError, match="use attack='exact'"):
        run(Encodings(np.ones((5, 5)), unveil.Scheme(1)))
    M = Overlaps.from_array(true_overlaps(sim), 2)
    with pytest.raises(InputError, match="give one of them"):
        run(sim.encodings, overlaps=M, similarity=np.eye(20))
    with pytest.raises(InputError, match="20 by 20"):
        run(sim.encodings, similarity=np.eye(19))
    with pytest.raises(InputError, match="NaN"):
        run(sim.encodings, similarity=np.full((20, 20), np.nan))
    with pytest.raises(InputError, match="n_private=1"):
        run(sim.encodings, n_private=1)
    with pytest.raises(InputError, match="raise memory_limit"):
        run(sim.encodings, similarity=np.eye(20), memory_limit=100)


def test_the_same_seed_gives_the_same_bytes():
    sim = unveil.simulate(unveil.Scheme(2, 1), 12, n_public=500, m=200, d=150, rng=7)
    one, other = (unveil.recover(sim.encodings, attack="cliques", rng=3) for _ in range(2))
    np.testing.assert_array_equal(one.vectors, other.vectors)


@pytest.mark.parametrize(
    "kind", [kind for kind in hostile.KINDS if "public" not in kind]
)  # with one nothing is verified
def test_no_wrong_vector_is_verified(kind):
    for seed in range(2):
        _, wrong = hostile.spring(hostile.trap(kind, 7000 + seed), "cliques")
        assert wrong == 0
