"""The moment matrix against a double loop, and its expectation 2·wwᵀ/σ² (the paper prints ½ in
`lem:population`)."""

import numpy as np
import pytest

from unveil.encode import simulate
from unveil.records import FIXED_WEIGHTINGS, Scheme
from unveil.supports.paper.moment import moment_matrix, moment_weights


def plain(y, public):
    n, d = public.shape
    sigma2 = sum(float(v) ** 2 for v in y) / d
    M = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            for j in range(d):
                M[a, b] += (
                    (float(y[j]) ** 2 / sigma2 - 1)
                    * (float(public[a, j]) * float(public[b, j]) - (a == b))
                    / d
                )
    return M


@pytest.mark.parametrize("weighting", FIXED_WEIGHTINGS)
def test_the_moment_matrix_equals_the_plain_double_loop(weighting):
    sim = simulate(Scheme(2, 2, weighting), 6, n_public=7, m=3, d=60, rng=0)
    for y in sim.encodings.values:
        M = moment_matrix(y, sim.public)
        np.testing.assert_allclose(M, plain(y, sim.public), atol=1e-5)
        np.testing.assert_allclose(M, M.T, atol=1e-6)


@pytest.mark.parametrize("weighting", FIXED_WEIGHTINGS)
def test_the_expectation_is_two_w_w_transposed_over_sigma_squared(weighting):
    # 80 independent instances of 3,000 pixels with the same selection; the mean against twice the
    # outer product.
    scheme = Scheme(2, 2, weighting)
    rng = np.random.default_rng(0)
    n, batches = 5, []
    w = np.zeros(n)
    w[[1, 3]] = scheme.public_weight
    for _ in range(80):
        P = rng.standard_normal((n, 3000)).astype(np.float32)
        private = scheme.private_weight * rng.standard_normal((2, 3000)).sum(axis=0)
        batches.append(moment_matrix(np.abs(w @ P + private).astype(np.float32), P))
    expected = 2 * np.outer(w, w) / (scheme.public_variance + scheme.private_variance)
    error = np.std(batches, axis=0, ddof=1) / np.sqrt(80)
    assert error.max() < 0.02
    # 15 entries, Student's t with 79 degrees of freedom beyond 7: 15·7e-10 = 1e-8. Dividing by the
    # empirical mean of y² biases by O(1/3000), a twentieth of a standard error.
    assert (np.abs(np.mean(batches, axis=0) - expected) < 7 * error).all()


def test_scaling_the_encoding_changes_nothing():
    sim = simulate(Scheme(2, 2), 6, n_public=7, m=1, d=200, rng=1)
    y = sim.encodings.values[0]
    np.testing.assert_allclose(
        moment_matrix(y * 64, sim.public), moment_matrix(y, sim.public), rtol=1e-6
    )


def test_weights_have_mean_zero_and_an_encoding_of_zeros_says_nothing():
    y = np.abs(np.random.default_rng(0).standard_normal((3, 50))).astype(np.float32)
    y[1] = 0
    z = moment_weights(y)
    np.testing.assert_allclose(z.mean(axis=1), 0, atol=1e-12)
    assert (z[1] == 0).all()
    assert (z[0] != 0).any()
    assert (moment_matrix(y[1], y) == 0).all()
