"""The folded-normal likelihood: plain NumPy twins in float64, the gradient by
differences."""

import numpy as np
import pytest

from unveil.supports.folded.likelihood import Model, gradient, log_likelihood


def instance(seed=0, m=4, n=9, d=300, k=3):
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((n, d)).astype(np.float32)
    Y = np.abs(rng.standard_normal((m, d))).astype(np.float32)
    supports = np.array([rng.choice(n, k, replace=False) for _ in range(m)])
    weights = rng.uniform(0.2, 0.8, (m, k))
    return Y, P, np.arange(m), supports, weights


def plain(y, mu, s2):
    y, mu = y.astype(np.float64), mu.astype(np.float64)
    density = np.exp(-((y - mu) ** 2) / (2 * s2)) + np.exp(-((y + mu) ** 2) / (2 * s2))
    return float(np.log(density / np.sqrt(2 * np.pi * s2)).sum())


@pytest.mark.parametrize("s2", [0.25, 1.0, 3.0])
def test_the_log_likelihood_equals_the_density_written_out(s2):
    Y, P, rows, supports, weights = instance()
    L = log_likelihood(Y, P, rows, supports, weights, s2)
    for t in rows:
        assert L[t] == pytest.approx(plain(Y[t], weights[t] @ P[supports[t]], s2), abs=2e-3)


def test_the_gradient_is_that_of_the_likelihood_and_the_information_its_curvature():
    Y, P, rows, supports, weights = instance()
    s2 = 0.7
    at = gradient(Y, P, rows, supports, weights, s2)
    np.testing.assert_allclose(at.log_likelihood, log_likelihood(Y, P, rows, supports, weights, s2))
    for t in rows:
        mu = weights[t] @ P[supports[t]].astype(np.float64)
        y = Y[t].astype(np.float64)
        th = np.tanh(y * mu / s2)
        np.testing.assert_allclose(at.residual[t], y * th - mu, atol=2e-5)
        assert at.information[t] == pytest.approx(1 - np.mean(y**2 * (1 - th**2)) / s2, abs=1e-5)
        np.testing.assert_allclose(at.members[t], P[supports[t]] @ (y * th - mu), atol=2e-3)
        p, h = P[supports[t][0]].astype(np.float64), 1e-4
        slope = (plain(y, mu + h * p, s2) - plain(y, mu - h * p, s2)) / (2 * h)
        assert at.members[t, 0] / s2 == pytest.approx(slope, abs=5e-3)


def test_negative_members_are_left_out_and_rows_pick_their_encoding():
    Y, P, _, supports, weights = instance()
    gaps = supports.copy()
    gaps[:, 1] = -1
    rows = np.array([3, 0, 0, 2])
    L = log_likelihood(Y, P, rows, gaps, weights, 1.0)
    kept = log_likelihood(
        Y, P, rows, np.delete(gaps, 1, axis=1), np.delete(weights, 1, axis=1), 1.0
    )
    np.testing.assert_array_equal(L, kept)
    at = gradient(Y, P, rows, gaps, weights, np.full(4, 1.0))
    assert (at.members[:, 1] == 0).all()
    np.testing.assert_allclose(at.log_likelihood, L)


def test_far_tails_stay_finite():
    Y = np.full((1, 50), 1e4, np.float32)
    P = np.ones((2, 50), np.float32)
    L = log_likelihood(Y, P, np.array([0]), np.array([[0, 1]]), 0.5, 1e-2)
    assert np.isfinite(L).all()


def test_an_unknown_member_adds_its_weight_squared_times_the_power():
    assert Model(3, 0.5, 1.0, 4.0).spread == 1.0
