"""The folded-normal likelihood: what an encoding says about its public part when the private part
is Gaussian noise.

Inside the modulus the private part is Gaussian, y = |μ + g| with μ = Σ_i w_i p_i and g ~ N(0, s²)
at every pixel, so

    L(μ) = Σ_j log[N(y_j; μ_j, s²) + N(y_j; −μ_j, s²)]     log-likelihood of a public part
    r    = y·tanh(yμ/s²) − μ,    ∂L/∂w_i = ⟨r, p_i⟩/s²     posterior mean of the signed y, less μ
    J    = 1 − mean(y²·sech²(yμ/s²))/s²                    information per pixel, times s²

J is what the lost signs cost: 1 where they are obvious, near 0 where μ is small. Pixels are
float32, sums over them are float32 within a vector lane; a log-likelihood is right to about 1e-6 of
itself, far below one nat. The formulas themselves are in `unveil.folded`; here they are put to many
encodings and supports at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

from unveil.folded import fold32, tanh32

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Model:
    """k members of one weight among public vectors of mean square `power`, and a private part of
    `variance` per pixel."""

    k: int
    weight: float
    variance: float
    power: float = 1.0

    @property
    def spread(self) -> float:
        """What one member adds to the variance of a pixel as long as nobody knows which vector it
        is."""
        return self.weight**2 * self.power


class Gradient(NamedTuple):
    """At N supports: residual (N, d), information (N,), log-likelihood (N,), ⟨residual, member⟩ (N,
    k)."""

    residual: Floats
    information: Floats
    log_likelihood: NDArray[np.float64]
    members: Floats


def log_likelihood(
    magnitudes: Floats,
    public: Floats,
    rows: Indices,
    supports: Indices,
    weights: float | NDArray[np.floating],
    variance: float,
) -> NDArray[np.float64]:
    """L of encoding rows[t] at supports[t] (N, k), for all t; members < 0 are left out."""
    out = np.empty(len(rows))
    _log_likelihoods(
        magnitudes,
        public,
        rows,
        supports,
        _full(weights, supports.shape),
        _full(variance, rows.shape),
        out,
    )
    return out


def gradient(
    magnitudes: Floats,
    public: Floats,
    rows: Indices,
    supports: Indices,
    weights: float | NDArray[np.floating],
    variance: float | NDArray[np.floating],
) -> Gradient:
    """Residual, information and log-likelihood of encoding rows[t] at supports[t]; members < 0 are
    left out."""
    n, k = supports.shape
    out = Gradient(
        np.empty((n, magnitudes.shape[1]), np.float32),
        np.empty(n, np.float32),
        np.empty(n),
        np.empty((n, k), np.float32),
    )
    _gradients(
        magnitudes,
        public,
        rows,
        supports,
        _full(weights, supports.shape),
        _full(variance, rows.shape),
        *out,
    )
    return out


def _full(value: float | NDArray[np.floating], shape: tuple[int, ...]) -> Floats:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, np.float32), shape))


@njit(fastmath=True, inline="always")
def mix32(P, support, weights, mu):  # type: ignore[no-untyped-def]
    """mu = Σ weights·P[support] in place."""
    for j in range(len(mu)):
        mu[j] = float32(0)
    for q in range(len(support)):
        if support[q] >= 0:
            p = P[support[q]]
            w = weights[q]
            for j in range(len(mu)):
                mu[j] += w * p[j]


@njit(fastmath=True, cache=True, nogil=True)
def _log_likelihoods(Y, P, rows, supports, weights, variance, out):  # type: ignore[no-untyped-def]
    mu = np.empty(Y.shape[1], np.float32)
    for t in range(len(rows)):
        mix32(P, supports[t], weights[t], mu)
        out[t] = fold32(Y[rows[t]], mu, float32(1) / variance[t])


@njit(fastmath=True, cache=True, nogil=True)
def _gradients(  # type: ignore[no-untyped-def]
    Y, P, rows, supports, weights, variance, residual, information, likelihood, members
):
    d = Y.shape[1]
    mu = np.empty(d, np.float32)
    for t in range(len(rows)):
        y = Y[rows[t]]
        r = residual[t]
        precision = float32(1) / variance[t]
        mix32(P, supports[t], weights[t], mu)
        lost = float32(0)
        for j in range(d):
            th = tanh32(y[j] * mu[j] * precision)
            r[j] = y[j] * th - mu[j]
            lost += y[j] * y[j] * (float32(1) - th * th)
        information[t] = 1 - lost * precision / d
        likelihood[t] = fold32(y, mu, precision)
        for q in range(supports.shape[1]):
            s = float32(0)
            if supports[t, q] >= 0:
                p = P[supports[t, q]]
                for j in range(d):
                    s += r[j] * p[j]
            members[t, q] = s
