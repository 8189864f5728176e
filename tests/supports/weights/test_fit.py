"""Fitted weights: a stationary point that scipy cannot improve, recovered truth, empty slots,
signs."""

import numpy as np
import pytest
from scipy.optimize import minimize

from unveil.supports.weights.fit import _products, fit_weights


def instance(signed=False, d=4000, m=6, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((8, d)).astype(np.float32)
    supports = np.array([rng.choice(8, 3, replace=False) for _ in range(m)])
    weights = rng.uniform(0.4, 1.0, (m, 3)) * (rng.choice([-1, 1], (m, 3)) if signed else 1)
    Y = np.abs(
        np.einsum("mk,mkd->md", weights, P[supports]) + 0.5 * rng.standard_normal((m, d))
    ).astype(np.float32)
    return Y, P, np.arange(m), supports, weights


def test_no_optimiser_does_better():
    Y, P, rows, supports, _ = instance(d=300)
    w, v, L = fit_weights(
        Y, P, rows, supports, np.full(supports.shape, 0.4), np.full(len(rows), 0.7)
    )

    def loss(x, y, X):
        mu, s2 = x[:3] @ X, np.exp(x[3])
        return -np.sum(
            np.logaddexp(-((y - mu) ** 2) / (2 * s2), -((y + mu) ** 2) / (2 * s2))
            - 0.5 * np.log(2 * np.pi * s2)
        )

    for t in rows:
        y, X = Y[t].astype(np.float64), P[supports[t]].astype(np.float64)
        x = np.append(w[t], np.log(v[t]))
        assert -loss(x, y, X) == pytest.approx(L[t], abs=1e-2)
        assert -minimize(loss, x, (y, X)).fun < L[t] + 0.02


@pytest.mark.parametrize("signed", [False, True])
def test_weights_and_variance_of_the_truth_come_back(signed):
    # Standard error of a weight about 0.5/√4000 = 0.008; 24 numbers within six of them.
    Y, P, rows, supports, truth = instance(signed)
    start = 0.3 * np.sign(truth)
    w, v, _ = fit_weights(Y, P, rows, supports, start, np.full(len(rows), 1.0), signed=signed)
    np.testing.assert_allclose(w, truth, atol=0.05)
    np.testing.assert_allclose(v, 0.25, atol=0.06)


def test_empty_slots_stay_empty_and_an_encoding_of_zeros_does_no_harm():
    Y, P, rows, supports, truth = instance()
    Y[1] = 0
    supports[0] = -1
    supports[2, 1] = -1
    w, v, L = fit_weights(
        Y, P, rows, supports, np.where(supports >= 0, truth, 0.0), np.full(len(rows), 1.0)
    )
    assert v[0] == pytest.approx(float(np.mean(Y[0].astype(np.float64) ** 2)), rel=1e-4)
    assert w[2, 1] == 0
    assert np.isfinite(w).all()
    assert np.isfinite(v).all()
    assert np.isfinite(L).all()


def test_products_equal_the_matrix_product():
    rng = np.random.default_rng(0)
    X, h, out = (
        rng.standard_normal((4, 50)).astype(np.float32),
        rng.random(50).astype(np.float32),
        np.empty((4, 4)),
    )
    _products(X, h, out)
    np.testing.assert_allclose(out, (X * h) @ X.T, atol=1e-4)
