"""The likelihood of a pair: what two encodings say about their overlap when every pixel is weighed
as it deserves.

|a| and |b| of two standard normal variables with correlation z have the log density, up to what
does not depend on z,

    −½·log(1 − z²) − (a² + b²)·z²/(2(1 − z²)) + log cosh(z·a·b/(1 − z²)).

Its difference between neighbouring lattice points is the most powerful statistic there is for that
question (Neyman and Pearson). It needs 10 to 40% fewer pixels than the folded covariance, but is no
matrix product: it is worth its price only for pairs that a product left in doubt. Cost: two
exponentials per pixel and pair; logarithms are saved by multiplying first.

Pairs at the top of the lattice (z = 1) have no density; their question is left to the product,
which answers it easily.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from unveil.folded import log_2cosh
from unveil.gram.levels import Array, lattice, polar_nodes
from unveil.scheme import Scheme

STEP = 1e-4
"""Of the central difference: its error is 1e-8, rounding leaves 1e-12."""
CHUNK = 256
"""Factors of at most 2 multiplied before a logarithm is taken: 2²⁵⁶ is far below the largest
double."""
LARGEST = 0.999
"""Correlations from here on are not told apart by density."""


@lru_cache(maxsize=64)
def ratio_thresholds(scheme: Scheme) -> Array:
    """(k_public+1, k_private): the balanced threshold of the log-likelihood ratio of q+1 against q,
    for one pixel; NaN where there is no density."""
    z = lattice(scheme)
    out = np.full((z.shape[0], z.shape[1] - 1), np.nan)
    for p, q in np.ndindex(*out.shape):
        low, high = float(z[p, q]), float(z[p, q + 1])
        if high < LARGEST:
            # As many standard deviations from either mean.
            (m0, s0), (m1, s1) = (_ratio_moments(low, high, truth) for truth in (low, high))
            out[p, q] = (m0 * s1 + m1 * s0) / (s0 + s1)
    return out


def _ratio_moments(low: float, high: float, truth: float) -> tuple[float, float]:
    """Mean and standard deviation of the ratio over one pixel, a and b divided by the root mean
    square of their rows.

    That division adds −κ·(a² − 1)/2 to first order, κ the derivative of the mean when a is
    stretched.
    """

    def ratio(a: Array, b: Array) -> Array:
        return log_density(a, b, high) - log_density(a, b, low)

    a, b, w = polar_nodes(truth)
    value, step = ratio(a, b), STEP
    mean = float((w * value).sum())
    stretch = float((w * (ratio(a * (1 + step), b) - ratio(a * (1 - step), b))).sum()) / (2 * step)
    u = value - mean - stretch * (a * a + b * b - 2) / 2
    return mean, float(np.sqrt((w * u * u).sum()))


def log_density(a: Array, b: Array, z: float) -> Array:
    """Log density of (|a|, |b|) up to a term without z."""
    s = 1 - z * z
    x = z * np.abs(a * b) / s
    return np.asarray(
        -0.5 * np.log(s) - (a * a + b * b) * (z * z / (2 * s)) + log_2cosh(x) - np.log(2)
    )


@njit(cache=True, nogil=True)
def log_ratios(A, B, offset_a, offset_b, rows, columns, low, high):  # type: ignore[no-untyped-def]
    """Log-likelihood ratio, z = high against z = low, of the pairs (rows, columns) of folded
    features A and B.

    Features are (|a| − mean)/(rms·√d); `offset` = mean/rms gives |a|/rms back. log Π(1 + e^{−2x})
    is taken once per CHUNK pixels.
    """
    d = A.shape[1]
    root = np.sqrt(d)
    out = np.empty(len(rows), np.float64)
    for t in range(len(rows)):
        i, j = rows[t], columns[t]
        s0, s1 = 1 - low[t] * low[t], 1 - high[t] * high[t]
        quadratic = high[t] * high[t] / (2 * s1) - low[t] * low[t] / (2 * s0)
        x0, x1 = low[t] / s0, high[t] / s1
        total = -0.5 * d * (np.log(s1) - np.log(s0))
        # log cosh(x) = x + log(1 + e^(−2x)) − log 2; logarithms are slow, so products come first.
        for start in range(0, d, CHUNK):
            above, below = 1.0, 1.0
            for x in range(start, min(start + CHUNK, d)):
                a = A[i, x] * root + offset_a[i]
                b = B[j, x] * root + offset_b[j]
                product = a * b
                total += (x1 - x0) * product - quadratic * (a * a + b * b)
                above *= 1 + np.exp(-2 * x1 * product)
                below *= 1 + np.exp(-2 * x0 * product)
            total += np.log(above) - np.log(below)
        out[t] = total
    return out
