"""Similarity without rounding: its levels, and the number of vectors it implies."""

import numpy as np
import pytest

from unveil import Scheme, learn_public, simulate
from unveil.gram.similarity import assisted_similarity, estimate_vectors, moments, similarity


def overlaps(sim):
    W = np.zeros((sim.encodings.m, len(sim.private)))
    np.put_along_axis(W, sim.selection.private, 1.0, axis=1)
    return W @ W.T


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_disjoint_encodings_have_mean_zero_and_one_shared_vector_mean_one(k):
    sim = simulate(Scheme(k), 60, m=250, d=2000, rng=k)
    S, M = similarity(sim.encodings.magnitudes(), k), overlaps(sim)
    np.fill_diagonal(M, -1)
    # Thousands of pairs of each kind; pixels are shared, so the error is that of 60 vectors with
    # 2000 pixels: well below 0.1.
    assert abs(S[M == 0].mean()) < 0.1
    assert abs(S[M == 1].mean() - 1) < 0.15
    assert S[M == 2].mean() > 2


@pytest.mark.parametrize(("k", "n"), [(2, 40), (3, 60), (4, 50), (6, 100)])
def test_the_number_of_vectors_is_estimated_within_a_fifth(k, n):
    sim = simulate(Scheme(k), n, m=7 * n, d=1000, rng=1)
    assert abs(estimate_vectors(similarity(sim.encodings.magnitudes(), k), k) - n) <= 0.2 * n


def test_constant_and_zero_encodings_are_similar_to_nothing():
    Y = np.abs(np.random.default_rng(0).standard_normal((5, 100))).astype(np.float32)
    Y[0], Y[1] = 0, 3
    for k in (2, 4):
        assert np.isfinite(similarity(Y, k)).all()
        assert np.abs(similarity(Y, k)[:2]).max() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(("k", "k_public"), [(2, 2), (3, 1)])
def test_with_a_public_part_the_similarity_is_the_overlap_itself(k, k_public):
    sim = simulate(Scheme(k, k_public), 30, n_public=50, m=200, d=2000, rng=k)
    S, M = (
        assisted_similarity(sim.encodings, sim.public, learn_public(sim.encodings, sim.public)),
        overlaps(sim),
    )
    np.fill_diagonal(M, -1)
    for q in range(3):
        assert abs(S[q == M].mean() - q) < 0.1 + 0.05 * q
    assert abs(estimate_vectors(S, k, linear=True) - 30) <= 3


@pytest.mark.parametrize(("k", "q"), [(3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (6, 3)])
def test_moments_are_those_of_pairs_that_share_so_many(k, q):
    pairs, d, rng = 400, 500, np.random.default_rng(k)
    first, own = rng.standard_normal((2, pairs, d), dtype=np.float32)
    second = q / k * first + np.sqrt(1 - (q / k) ** 2, dtype=np.float32) * own
    found = np.diag(similarity(np.abs(np.vstack([first, second])), k), pairs)
    mean, variance = moments(k)
    assert found.mean() == pytest.approx(mean[q], abs=4 * np.sqrt(variance[q] / d / pairs) + 0.02)
    # Rows are divided by their own power, which takes some of the scatter.
    assert 0.5 * variance[q] < d * found.var() < 1.3 * variance[q]
