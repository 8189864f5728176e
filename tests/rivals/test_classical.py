"""Classical phase retrieval: each method solves what its papers say it does, and starts are as good
as theory says."""

import numpy as np
import pytest

from unveil.rivals.classical import (
    METHODS,
    STARTS,
    preprocessed,
    refine,
    retrieve_weights,
    spectral,
)

N, M = 40, 24


def instance(ratio, seed=0, n=N, m=M):
    rng = np.random.default_rng(seed)
    d = int(ratio * n)
    P = rng.standard_normal((n, d)).astype(np.float32)
    w = rng.standard_normal((m, n))
    return np.abs(w @ P).astype(np.float32), P, w


def rng():
    return np.random.default_rng(1)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_solves_what_has_eight_equations_per_unknown(method):
    Y, P, w = instance(8)
    found, residual = retrieve_weights(Y, P, rng(), method=method)
    solved = residual < 1e-4
    assert solved.mean() > 0.9
    found *= np.sign((found * w).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found[solved], w[solved], atol=1e-4)


def test_amplitude_flow_needs_least_and_nothing_works_below_two():
    """The claim of Wang et al.: exact recovery from about 2 to 3 equations per unknown."""
    share = {
        (method, ratio): float(
            (retrieve_weights(*instance(ratio)[:2], rng(), method=method)[1] < 1e-4).mean()
        )
        for method in METHODS
        for ratio in (1.5, 3)
    }
    assert share["amplitude", 3] > 0.9
    assert share["amplitude", 3] > share["alternating", 3]
    assert max(share[method, 1.5] for method in METHODS) < 0.3


def test_the_optimal_preprocessing_is_the_best_start():
    Y, P, w = instance(4, n=100, m=40)
    Y = (Y / np.sqrt(np.mean(Y**2, axis=1, keepdims=True))).astype(np.float64)
    unit = w / np.linalg.norm(w, axis=1, keepdims=True)
    likeness = {
        s: float(np.abs((spectral(Y, P.astype(np.float64), s, rng()) * unit).sum(axis=1)).mean())
        for s in STARTS
    }
    assert likeness["optimal"] > likeness["truncated"] - 0.01
    assert likeness["optimal"] > likeness["plain"]
    assert likeness["optimal"] > 0.85


@pytest.mark.parametrize("start", STARTS)
def test_power_iterations_find_the_leading_eigenvector(start):
    """Against a dense eigendecomposition."""
    Y, P, _ = instance(6, m=5)
    Y = (Y / np.sqrt(np.mean(Y**2, axis=1, keepdims=True))).astype(np.float64)
    A = P.astype(np.float64)
    found = spectral(Y, A, start, rng())
    for v, y in zip(found, Y, strict=True):
        top = np.linalg.eigh((A * preprocessed(y**2, start)) @ A.T)[1][:, -1]
        assert abs(v @ top) > 0.999


@pytest.mark.parametrize("method", METHODS)
def test_the_truth_is_a_fixed_point(method):
    Y, P, w = instance(5)
    scale = np.sqrt(np.mean(Y**2, axis=1, keepdims=True))
    start = w / scale
    np.testing.assert_allclose(
        refine((Y / scale).astype(np.float64), P.astype(np.float64), start.copy(), method),
        start,
        atol=1e-4,
    )


def test_correlated_vectors_are_whitened():
    rng_ = np.random.default_rng(3)
    P = (rng_.standard_normal((N, N)) @ rng_.standard_normal((N, 6 * N)) + 20).astype(np.float32)
    w = rng_.standard_normal((6, N))
    assert (retrieve_weights(np.abs(w @ P), P, rng())[1] < 1e-3).mean() > 0.9


def test_zeros_do_no_harm():
    Y, P, _ = instance(4, m=3)
    Y[0] = 0
    assert np.isfinite(retrieve_weights(Y, P, rng())[0]).all()
