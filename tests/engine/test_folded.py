"""The folded normal law: its density as scipy has it, derivatives by differences, kernels against their
twins."""

import numpy as np
import pytest
from numba import njit
from scipy.integrate import quad
from scipy.stats import foldnorm

from unveil.engine.folded import (
    expected_square,
    fold32,
    information,
    log_density,
    lost,
    maximise,
    signed,
    tanh32,
)

CASES = [(0.0, 1.0), (1.5, 0.3), (-2.0, 2.0)]
"""(mean, variance)."""


def magnitudes(mean, variance, size=200, seed=0):
    rng = np.random.default_rng(seed)
    return np.abs(mean + np.sqrt(variance) * rng.standard_normal(size))


@pytest.mark.parametrize("variance", [0.01, 1.0, 7.5])
def test_the_density_is_the_folded_normal_of_scipy(variance):
    rng = np.random.default_rng(0)
    y, mean = np.abs(rng.standard_normal(200)), 2 * rng.standard_normal(200)
    scale = np.sqrt(variance)
    with np.errstate(divide="ignore"):
        expected = foldnorm.logpdf(y, np.abs(mean) / scale, scale=scale)
    usable = np.isfinite(expected)
    assert usable.sum() > 50
    found = log_density(y, mean, variance)[usable]
    np.testing.assert_allclose(found, expected[usable], rtol=1e-8)


@pytest.mark.parametrize(("mean", "variance"), CASES)
def test_the_density_integrates_to_one(mean, variance):
    def density(y):
        return np.exp(log_density(np.array(y), np.array(mean), variance))

    assert quad(density, 0, 30, limit=200, points=[abs(mean)])[0] == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(("mean", "variance"), CASES)
def test_signed_is_the_mean_of_both_signs_and_the_slope_of_the_density(mean, variance):
    y = magnitudes(mean, variance)
    up, down = (np.exp(-((y - s * mean) ** 2) / (2 * variance)) for s in (1, -1))
    posterior = y * (up - down) / (up + down)
    np.testing.assert_allclose(signed(y, mean, variance), posterior, atol=1e-12)
    h = 1e-5
    slope = (log_density(y, mean + h, variance) - log_density(y, mean - h, variance)) / (2 * h)
    np.testing.assert_allclose((posterior - mean) / variance, slope, atol=1e-7)


@pytest.mark.parametrize(("mean", "variance"), CASES)
def test_the_square_that_is_left_is_the_mean_over_both_signs(mean, variance):
    y = magnitudes(mean, variance)
    up, down = (np.exp(-((y - s * mean) ** 2) / (2 * variance)) for s in (1, -1))
    plain = (up * (y - mean) ** 2 + down * (y + mean) ** 2) / (up + down)
    np.testing.assert_allclose(expected_square(y, mean, variance), plain, atol=1e-12)
    # In float32 the shorter formula is below zero here.
    far = np.float32(1234.567)
    assert expected_square(far, far, np.float32(1e-4)) >= 0


def test_without_a_variance_it_is_one_and_what_comes_in_stays_as_it_is():
    y = magnitudes(1.0, 1.0).astype(np.float32)
    kept = y.copy()
    np.testing.assert_array_equal(signed(y, np.float32(0.7)), signed(y, np.float32(0.7), 1.0))
    np.testing.assert_array_equal(y, kept)
    assert signed(y, np.float32(0.7)).dtype == np.float32
    assert signed(y, np.full(len(y), 0.7)).dtype == np.float64
    assert log_density(y, np.float32(0.7), 1.0).dtype == np.float32
    assert log_density(y, np.full(len(y), 0.7), 1.0).dtype == np.float64


@pytest.mark.parametrize(("mean", "variance"), CASES)
def test_what_hidden_signs_take_away_is_missing_from_the_curvature(mean, variance):
    y, h = magnitudes(mean, variance), 1e-3
    mu = np.full(y.shape, mean)
    ahead, here, behind = (log_density(y, mu + e, variance) for e in (h, 0.0, -h))
    curvature = -(ahead - 2 * here + behind) / h**2 * variance
    np.testing.assert_allclose(1 - lost(y, mu, variance), curvature, atol=1e-4)
    told = np.clip(curvature.mean(), 0, 1)
    assert information(y, mu, variance) == pytest.approx(told, abs=1e-4)


@pytest.mark.filterwarnings("error")
def test_nothing_overflows_where_signs_are_plain():
    far = log_density(np.array([0.0, 1e4, 1e4]), np.array([1e4, 0.0, -1e4]), 1e-3)
    assert np.isfinite(far).all()
    y = np.array([1e3, 1e4], np.float32)
    assert np.isfinite(log_density(y, y, np.float32(1e-4))).all()
    assert information(y, y, np.float32(1e-2)) == 1.0
    np.testing.assert_array_equal(signed(y, -y, np.float32(1e-4)), -y)


@pytest.mark.parametrize("known", [True, False])
def test_expectation_maximisation_never_loses_and_ends_where_the_slope_is_zero(known):
    rng = np.random.default_rng(1)
    W = (rng.random((80, 5)) < 0.4).astype(float)
    truth = rng.standard_normal((5, 3))
    y = np.abs(W @ truth + 0.3 * rng.standard_normal((80, 3)))
    pinv = np.linalg.pinv(W)

    def left(likely, mu):
        return np.mean(y**2 - 2 * likely * mu + mu**2, axis=0)

    def steps(x, variance, count):
        rest = None if known else left
        return maximise(y, x, variance, lambda x: W @ x, lambda s, _: pinv @ s, count, rest)

    x, variance = truth + 0.5 * rng.standard_normal(truth.shape), np.full(3, 0.09)
    before = log_density(y, W @ x, variance).sum()
    for _ in range(30):
        x, variance = steps(x, variance, 1)
        after = log_density(y, W @ x, variance).sum()
        assert after >= before - 1e-9
        before = after
    x, variance = steps(x, variance, 500)
    assert (variance == 0.09).all() == known
    np.testing.assert_allclose(W.T @ (signed(y, W @ x, variance) - W @ x), 0, atol=1e-6)


def test_the_kernels_are_right_to_float32():
    @njit
    def every(x, y, mu, precision):
        tanh = np.empty_like(x)
        for i in range(len(x)):
            tanh[i] = tanh32(x[i])
        return tanh, fold32(y, mu, precision)

    x = np.linspace(-20, 20, 4001).astype(np.float32)
    mu = np.random.default_rng(0).standard_normal(len(x)).astype(np.float32)
    y = magnitudes(mu, 0.5, len(x)).astype(np.float32)
    tanh, fold = every(x, y, mu, np.float32(2.0))
    y, mu = y.astype(float), mu.astype(float)
    np.testing.assert_allclose(tanh, np.tanh(x.astype(float)), atol=3e-7)
    assert fold == pytest.approx(log_density(y, mu, 0.5).sum(), abs=5e-3)
