"""Combinations of other vectors, private and public."""

import numpy as np
import pytest

import unveil
from unveil.certify.aliases import _all_eigenvalues_above, dependent, made_of_public


def gaussian(n, d=60, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_a_sum_of_others_is_dependent_and_so_are_they():
    x = gaussian(8)
    x[7] = x[0] + x[1] - x[2]
    members = np.array([[i, (i + 1) % 8] for i in range(8)])
    found = dependent(members, x, np.ones(8, bool), np.zeros(60))
    np.testing.assert_array_equal(found, [True] * 3 + [False] * 4 + [True])
    assert not dependent(members, gaussian(8), np.ones(8, bool), np.zeros(60)).any()


def test_with_few_pixels_the_sum_of_the_partners_is_looked_at():
    """The triangle ab, bc, ca is also the star za, zb, zc with z = −(a + b + c) … of these alone."""
    x = gaussian(12, d=6)
    x[3] = -(x[0] + x[1] + x[2])
    members = np.array([[3, 0], [3, 1], [3, 2], *([i, i + 1] for i in range(4, 11)), [4, 11]])
    found = dependent(members, x, np.ones(12, bool), np.zeros(6))
    assert found[3]
    assert not found[5:11].any()


def test_public_vectors_count_among_the_others():
    x, public = gaussian(5), gaussian(4, seed=1).astype(np.float32)
    x[1], x[2] = public[0] - 2 * public[3], x[0] + public[1]
    np.testing.assert_array_equal(made_of_public(x, public), [True, True, True, False, False])
    # More vectors than pixels: multiples of one public vector alone.
    x[1] = -3 * public[2]
    few = made_of_public(x[:, :7], public[:, :7])
    np.testing.assert_array_equal(few, [False, True, False, False, False])
    # Squares of these are beyond single precision; a vector of zeros is nobody's multiple.
    public[1] = 0
    large = made_of_public(x[:, :7], public[:, :7] * np.float32(1e18))
    np.testing.assert_array_equal(large, few)
    x[1] += 0.05 * x[0]
    assert not made_of_public(x[:, :7], public[:, :7]).any()


def test_eigenvalues_above_a_bound_are_told_by_cholesky():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 200))
    assert _all_eigenvalues_above(x @ x.T, 1e-3)
    x[7] = x[3] - x[5]
    assert not _all_eigenvalues_above(x @ x.T, 1e-3)


@pytest.mark.parametrize("signs", ["absolute", "kept"])
def test_encodings_of_one_record_are_no_proof_of_zeros(signs):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((14, 60)).astype(np.float32)
    rows = np.array([rng.choice(14, 2, replace=False) for _ in range(90)])
    Z = np.vstack([X[rows].sum(axis=1), X[rng.integers(0, 14, 6)]]) / np.sqrt(2)
    values = np.abs(Z) if signs == "absolute" else Z
    recovery = unveil.recover(unveil.Encodings(values, unveil.Scheme(2, signs=signs), None), rng=0)
    scores = unveil.score(recovery, X)
    assert (scores.exact, scores.wrong) == (14, 0)
