"""How sure is a support? Three questions, and the rule for "certain".

Swap margin (`supports.folded.swaps`): L(S) less the best L one swap away, or of another local
optimum met. It is no confidence by itself: where pixels are few, supports that share little with S
win by their number.

Evidence margin: all supports that share exactly A ⊂ S with S, C(n−k, k−|A|) of them, have together
the expected likelihood

    C(n−k, k−|A|)·L(μ_A; s² + (k−|A|)·a²),

since a vector nobody knows is Gaussian noise. L(S) must stand above that for A of sizes 0, 1 and
k−1.

Fit: under the true support the law of L is known. Most of its fluctuation is explained by the pixel
means of y, y², |μ| and μ² (control variates, fitted under the model). What is left has standard
deviation 0.39 per pixel instead of 0.68 when public and private part are equally strong, so that a
wrong support stands out almost twice as far. z is L standardised so; about standard normal under
the truth.

Certain means: both margins are at least 10 nats (odds of e⁻¹⁰ = 5e-5 against) and z > −4.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, lgamma

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray
from scipy.stats import norm

from unveil.folded import fold32, log_density
from unveil.supports.folded.likelihood import Floats, Indices, Model, mix32
from unveil.supports.folded.survey import Public

MARGIN = 10.0
"""Nats by which a certain support leads: odds of e⁻¹⁰ = 5e-5 against it."""
FIT = -4.0
"""Least fit of a certain support: the truth is below it once in 30,000 times."""


def is_certain(margin: NDArray[np.float64], fit: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The rule: a margin of 10 nats, and a fit the model does not refuse."""
    return np.asarray((margin >= MARGIN) & (fit > FIT))


def confidence(
    margin: NDArray[np.float64], fit: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """The probability 1/(1 + e^−margin) that the support is right, if the model is.

    Below z = −4 the model itself is in doubt: there the probability of so low a z, as a share of
    that of −4, is the cap.
    """
    sure = 1 / (1 + np.exp(-np.clip(margin, -700, 700)))  # e^±709 is the range of a double
    return np.asarray(
        sure
        if fit is None
        else np.minimum(sure, np.exp(norm.logcdf(fit) - norm.logcdf(FIT)).clip(0, 1))
    )


def evidence_margin(
    magnitudes: Floats,
    public: Public,
    rows: Indices,
    supports: Indices,
    likelihood: NDArray[np.float64],
    model: Model,
) -> NDArray[np.float64]:
    """L(S) less the log of the summed expected likelihood of all supports that share 0, 1 or k−1
    members with S."""
    k, others = model.k, public.count - model.k
    number = np.array([_log_binomial(others, r) for r in range(k + 1)])
    out = np.empty(len(rows))
    a, v, spread = np.float32(model.weight), np.float32(model.variance), np.float32(model.spread)
    _evidence(magnitudes, public.vectors, rows, supports, a, v, spread, number, out)
    return likelihood - out


def fit_of(
    magnitudes: Floats,
    public: Public,
    rows: Indices,
    supports: Indices,
    likelihood: NDArray[np.float64],
    model: Model,
) -> NDArray[np.float64]:
    """z (N,) of L at supports[t]."""
    law = _law(model.k * model.spread, model.variance)
    d = magnitudes.shape[1]
    means = np.empty((len(rows), 4))
    _pixel_means(
        magnitudes,
        public.vectors,
        rows,
        supports,
        np.full(supports.shape, model.weight, np.float32),
        means,
    )
    return np.asarray((likelihood / d - means @ law[:4] - law[4]) * np.sqrt(d) / law[5])


@lru_cache(maxsize=64)
def _law(public_variance: float, private_variance: float) -> NDArray[np.float64]:
    """Regression of the log density of a pixel on y, y², |μ|, μ² and 1, and the standard deviation
    left over.

    By quadrature over μ ≥ 0 and the private part; steps of 0.03 standard deviations leave errors of
    1e-4.
    """
    t = np.linspace(-6, 6, 401)
    mu = np.sqrt(public_variance) * t[t >= 0]
    g = np.sqrt(private_variance) * t
    weight = np.outer(np.exp(-0.5 * t[t >= 0] ** 2), np.exp(-0.5 * t**2))
    weight[0] /= 2  # μ = 0 stands for both signs
    mu, y = np.broadcast_arrays(mu[:, None], np.abs(mu[:, None] + g))
    density = log_density(y, mu, private_variance)
    columns = np.stack([y, y * y, mu, mu * mu, np.ones(y.shape)], axis=-1).reshape(-1, 5)
    weight, density = weight.ravel() / weight.sum(), density.ravel()
    # Least squares under the law of the pixels: rows weighted by the root of their probability.
    root = np.sqrt(weight)
    law = np.linalg.lstsq(columns * root[:, None], density * root, rcond=None)[0]
    left = np.sqrt(weight @ (density - columns @ law) ** 2)
    return np.append(law, left)


def _log_binomial(n: int, r: int) -> float:
    return lgamma(n + 1) - lgamma(r + 1) - lgamma(n - r + 1) if 0 <= r <= n else -inf


@njit(cache=True, nogil=True)
def _evidence(Y, P, rows, supports, a, v, spread, number, out):  # type: ignore[no-untyped-def]
    d = Y.shape[1]
    k = supports.shape[1]
    mu = np.empty(d, np.float32)
    total = np.empty(d, np.float32)
    for t in range(len(rows)):
        y = Y[rows[t]]
        # 1. No member in common: the whole public part is noise.
        mu[:] = 0
        best = fold32(y, mu, float32(1) / (v + float32(k) * spread)) + number[k]
        # 2. One member in common, each in turn.
        if k > 1:
            for q in range(k):
                p = P[supports[t, q]]
                for j in range(d):
                    mu[j] = a * p[j]
                best = max(
                    best, fold32(y, mu, float32(1) / (v + float32(k - 1) * spread)) + number[k - 1]
                )
        # 3. All but one in common.
        if k > 2:
            total[:] = 0
            for q in range(k):
                p = P[supports[t, q]]
                for j in range(d):
                    total[j] += a * p[j]
            for q in range(k):
                p = P[supports[t, q]]
                for j in range(d):
                    mu[j] = total[j] - a * p[j]
                best = max(best, fold32(y, mu, float32(1) / (v + spread)) + number[1])
        out[t] = best


@njit(fastmath=True, cache=True, nogil=True)
def _pixel_means(Y, P, rows, supports, weights, out):  # type: ignore[no-untyped-def]
    """Pixel means of y, y², |μ|, μ²."""
    d = Y.shape[1]
    mu = np.empty(d, np.float32)
    for t in range(len(rows)):
        y = Y[rows[t]]
        mix32(P, supports[t], weights[t], mu)
        s0 = float32(0)
        s1 = float32(0)
        s2 = float32(0)
        s3 = float32(0)
        for j in range(d):
            s0 += y[j]
            s1 += y[j] * y[j]
            s2 += abs(mu[j])
            s3 += mu[j] * mu[j]
        out[t, 0] = s0 / d
        out[t, 1] = s1 / d
        out[t, 2] = s2 / d
        out[t, 3] = s3 / d
