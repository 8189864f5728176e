"""From overlaps to subsets for all vectors at once: exact overlaps give exact subsets, noisy ones
too."""

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.factor.all_vectors import factor_overlaps, row_scores, take_best


def incidence(k, n, m, seed=0):
    W = np.zeros((m, n))
    np.put_along_axis(W, simulate(Scheme(k), n, m=m, d=1, rng=seed).selection.private, 1, axis=1)
    return W


def same_columns(A, B):
    """Whether A is B with its columns in another order."""
    return sorted(map(tuple, A.T.tolist())) == sorted(map(tuple, B.T.tolist()))


@pytest.mark.parametrize(("k", "n", "m"), [(2, 30, 210), (3, 30, 210), (4, 25, 200), (6, 25, 250)])
def test_exact_overlaps_give_the_exact_subsets(k, n, m):
    W = incidence(k, n, m)
    assert same_columns(factor_overlaps(W @ W.T, k, n).W, W)


@pytest.mark.parametrize("k", [2, 3])
def test_noise_that_no_single_entry_survives_does_not_matter(k):
    W = incidence(k, 25, 250)
    noise = np.random.default_rng(0).normal(0, 0.4, (250, 250))
    S = W @ W.T + (noise + noise.T) / np.sqrt(2)
    rounded = np.rint(S)
    assert (rounded != W @ W.T)[~np.eye(250, dtype=bool)].mean() > 0.1
    assert same_columns(factor_overlaps(S, k, 25).W, W)


def test_every_row_has_k_ones_and_the_input_is_left_alone():
    W = incidence(3, 20, 150)
    S = W @ W.T + np.random.default_rng(0).normal(0, 1, (150, 150))
    S = (S + S.T) / 2
    before = S.copy()
    out = factor_overlaps(S, 3, 22)
    np.testing.assert_array_equal(S, before)
    assert (out.W.sum(axis=1) == 3).all()
    assert set(np.unique(out.W)) <= {0.0, 1.0}
    assert out.scores.shape == out.W.shape


def test_scores_are_ridge_regression_with_the_own_part_taken_out():
    W = incidence(2, 8, 40)
    S = W @ W.T
    np.fill_diagonal(S, 0)
    scores = row_scores(S, W)
    for i in range(40):
        plain = np.linalg.lstsq(
            np.vstack([W, np.sqrt(0.5) * np.eye(8)]),
            np.concatenate([S[:, i], np.zeros(8)]),
            rcond=None,
        )[0]
        for c in range(8):
            size = W[:, c].sum()
            expected = plain[c] * size / (size - 1) if W[i, c] else plain[c]
            assert scores[i, c] == pytest.approx(expected, abs=1e-9)


def test_members_score_about_1_and_others_about_0():
    W = incidence(3, 20, 300)
    scores = factor_overlaps(W @ W.T, 3, 20).scores
    ordered = -np.sort(-scores, axis=1)
    assert abs(ordered[:, :3].mean() - 1) < 0.1
    assert abs(ordered[:, 3:].mean()) < 0.1


def test_the_best_k_of_each_row_are_taken():
    scores = np.array([[0.3, 0.9, 0.1, 0.5], [4.0, -1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(take_best(scores, 2), [[0, 1, 0, 1], [1, 0, 0, 1]])
    np.testing.assert_array_equal(take_best(scores[:, :1], 2), [[1], [1]])
