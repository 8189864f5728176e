"""Maximum likelihood weights and private variance of the folded model on given supports.

    maximise  Σ_j log[N(y_j; μ_j, s²) + N(y_j; −μ_j, s²)]   over w and s²,   μ = Σ_i w_i p_i

EM steps, w ← w + (XXᵀ)⁻¹Xr, which never lose; a Newton step on the observed information X·diag(1 −
y²sech²(yμ/s²)/s²)·Xᵀ instead wherever that is positive and gains. About five steps to 1e-3 nats.
"""

from __future__ import annotations

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

from unveil.folded import fold32, tanh32
from unveil.supports.folded.likelihood import Floats, Indices

SMALLEST = 1e-6
"""Smallest share of mean y² that the private variance is given."""
EMPTY = 1e-20
"""Added to mean squares, so that an encoding or a vector of zeros divides by something."""
RIDGE = 1e-6
"""Share of the mean square that is added to the diagonal: equal vectors leave the system
singular."""
LEAST_WEIGHT = 1e-4
"""Least weight of a member, in units of the encoding per vector: at 0 the likelihood is flat in it,
and no step would leave."""
CURVED = 0.05
"""Least eigenvalue of the information, per mean square of a vector, at which a Newton step is
tried; below, it goes far astray."""
LOST, GAINED = 1e-2, 1e-3
"""Nats a step may lose to rounding, and the gain below which the fit has ended."""
NOTHING = -1e300
"""Before anything was tried."""


def fit_weights(
    magnitudes: Floats,
    public: Floats,
    rows: Indices,
    supports: Indices,
    weights: NDArray[np.float64],
    variance: NDArray[np.float64],
    *,
    steps: int = 30,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """From `weights` (N, k) and `variance` (N,): both fitted to encoding rows[t] on supports[t],
    and L; members < 0 are empty. Weights are kept positive.
    """
    weights, variance, likelihood = weights.copy(), variance.copy(), np.empty(len(rows))
    _fit(magnitudes, public, rows, supports, weights, variance, likelihood, steps, SMALLEST)
    return weights, variance, likelihood


@njit(fastmath=True, cache=True, nogil=True)
def _fit(  # type: ignore[no-untyped-def]
    Y, P, rows, supports, weights, variance, likelihood, steps, smallest
):
    d = Y.shape[1]
    mu = np.empty(d, np.float32)
    trial_mu = np.empty(d, np.float32)
    r = np.empty(d, np.float32)
    h = np.empty(d, np.float32)
    for t in range(len(rows)):
        # 1. The encoding and its members; without members all is private.
        y = Y[rows[t]]
        slots = np.flatnonzero(supports[t] >= 0)
        q = len(slots)
        total = EMPTY
        for j in range(d):
            total += y[j] * y[j] / d
        if q == 0:
            mu[:] = 0
            variance[t] = total
            likelihood[t] = fold32(y, mu, float32(1 / total))
            continue
        X = np.empty((q, d), np.float32)
        w = np.empty(q)
        for i in range(q):
            # Value by value: Numba takes seconds to compile one array written into another.
            for j in range(d):
                X[i, j] = P[supports[t, slots[i]], j]
            w[i] = weights[t, slots[i]]
        # 2. What does not change: the products of members, for EM steps; bounds; where we start.
        G = np.empty((q, q))
        _products(X, np.ones(d, np.float32), G)
        size = np.trace(G) / q + EMPTY
        for i in range(q):
            G[i, i] += RIDGE * size
        floor = LEAST_WEIGHT * np.sqrt(total * d / size)
        v = max(variance[t], smallest * total)
        _mean(X, w, mu)
        current = fold32(y, mu, float32(1 / v))
        H = np.empty((q, q))
        g = np.empty(q)
        for _ in range(steps):
            # 3. Residual, information per pixel, and what they are on the members.
            precision = float32(1 / v)
            for j in range(d):
                th = tanh32(y[j] * mu[j] * precision)
                r[j] = y[j] * th - mu[j]
                h[j] = float32(1) - y[j] * y[j] * (float32(1) - th * th) * precision
            for i in range(q):
                s = float32(0)
                for j in range(d):
                    s += r[j] * X[i, j]
                g[i] = s
            _products(X, h, H)
            # 4. A Newton step where it may be trusted, else or if it loses an EM step.
            best = NOTHING
            best_w = w
            best_v = v
            for newton in (True, False):
                if newton and np.linalg.eigvalsh(H)[0] < CURVED * size:
                    continue
                trial = np.maximum(w + np.linalg.solve(H if newton else G, g), floor)
                _mean(X, trial, trial_mu)
                # The variance that goes with it: the expected square of what is left.
                s = float32(0)
                for j in range(d):
                    m = trial_mu[j]
                    s += y[j] * y[j] - 2 * y[j] * m * tanh32(y[j] * m * precision) + m * m
                trial_v = max(s / d, smallest * total)
                x = fold32(y, trial_mu, float32(1 / trial_v))
                if x > best:
                    best = x
                    best_w = trial
                    best_v = trial_v
                if best > current:
                    break
            # 5. Stop where nothing is gained.
            if best < current - LOST:
                break
            gain = best - current
            w = best_w
            v = best_v
            current = best
            _mean(X, w, mu)
            if gain < GAINED:
                break
        for i in range(q):
            weights[t, slots[i]] = w[i]
        variance[t] = v
        likelihood[t] = current


@njit(fastmath=True, cache=True, nogil=True)
def _products(X, h, out):  # type: ignore[no-untyped-def]
    """X·diag(h)·Xᵀ."""
    for i in range(len(X)):
        for k in range(i + 1):
            s = float32(0)
            for j in range(X.shape[1]):
                s += h[j] * X[i, j] * X[k, j]
            out[i, k] = s
            out[k, i] = s


@njit(fastmath=True, cache=True, nogil=True)
def _mean(X, w, mu):  # type: ignore[no-untyped-def]
    mu[:] = 0
    for i in range(len(X)):
        for j in range(X.shape[1]):
            mu[j] += float32(w[i]) * X[i, j]
