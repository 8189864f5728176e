"""A certificate is found where a mixture is the only one, and none where another has the same
magnitudes."""

import numpy as np
import pytest

from unveil.certify.mixtures import only_mixture

RNG = np.random.default_rng(0)


def mixtures(n, count, k=3):
    W = np.zeros((count, n))
    for row in W:
        row[RNG.choice(n, k, replace=False)] = RNG.uniform(0.3, 1, k)
    return W


@pytest.mark.parametrize(("n", "d"), [(5, 40), (20, 80), (40, 160), (40, 800)])
def test_gaussian_vectors_have_one_mixture_from_four_pixels_each_on(n, d):
    V, W = RNG.standard_normal((n, d)), mixtures(n, 6)
    np.testing.assert_array_equal(
        only_mixture(V, W, np.full(6, 1e-6)).any(axis=0), (W != 0).any(axis=0)
    )


def test_vectors_of_very_different_sizes_that_are_alike():
    V = RNG.standard_normal((10, 300)) * 10.0 ** RNG.uniform(-2, 2, (10, 1)) + RNG.standard_normal(
        300
    )
    W = mixtures(10, 1)
    assert only_mixture(V, W, np.array([1e-9]))[0].sum() == 3


def test_vectors_with_the_same_magnitudes_are_in_doubt_and_no_others():
    V = RNG.standard_normal((12, 200))
    V[1] = V[0] * RNG.choice([-1, 1], 200)
    proved = only_mixture(V, np.eye(12), np.full(12, 1e-6))
    assert np.flatnonzero(~proved.any(axis=0)).tolist() == [0, 1]


def test_two_mixtures_of_the_same_magnitudes():
    """p1 + p2 at some pixels is p3 + p4, and −(p3 + p4) at the others."""
    V = RNG.standard_normal((12, 200))
    V[3] = RNG.choice([-1, 1], 200) * (V[0] + V[1]) - V[2]
    W = np.zeros((2, 12))
    W[0, [0, 1]] = W[1, [2, 3]] = 1
    np.testing.assert_allclose(np.abs(W[0] @ V), np.abs(W[1] @ V))
    assert not only_mixture(V, W, np.full(2, 1e-6)).any()


def test_too_few_pixels_prove_nothing():
    assert not only_mixture(RNG.standard_normal((20, 30)), mixtures(20, 3), np.full(3, 1e-6)).any()


def test_a_residual_as_large_as_the_weights_proves_nothing():
    assert not only_mixture(RNG.standard_normal((5, 100)), mixtures(5, 1), np.array([1.0])).any()
