"""The folded normal law: what a magnitude says about a sum whose sign is hidden.

    y = |μ + g|,   g ~ N(0, v)

μ is what is known of an encoding, g what is not: noise, or private vectors nobody has found yet.
Every room that weighs hidden signs asks one of these questions, and asks it here:

    log p(y)       = log[N(y; μ, v) + N(y; −μ, v)]     `log_density`: how likely is y?
    E[± y | y]     = y·tanh(yμ/v)                      `signed`: y with its sign, as sure as that is
    y²/v·sech²(yμ/v)                                   `lost`: what hiding the sign takes away of
                                                       what y says about μ; with the sign it is 1

The most likely unknowns x behind μ come from expectation–maximisation, whose hidden variable is the
sign of y (`maximise`): y ← `signed`, x ← least squares on it, v ← the mean square of what is left.
The likelihood never falls on the way.

Arrays first; below, the same for the inside of kernels, value by value in float32. Where signs of
several pixels or encodings hang together, there is more to it: `paper.overlap_engine`,
`paper.tree_law`, `images.fields`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

Array = NDArray[Any]
"""float32 or float64: results have the precision of what comes in."""

PLAIN = 40.0
"""Signs are certain far below: cosh would overflow where y·μ/v is in the hundreds."""


def log_density(y: Array, mean: Array | float, variance: Array | float) -> Array:
    """log of the density of |N(mean, variance)| at magnitudes y."""
    size = np.abs(mean)
    # The larger of both terms is taken out, so that no exponential overflows.
    out = np.asarray(y * size / variance)
    out *= -2
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out -= np.square(y - size) / (2 * variance)
    scale = 0.5 * np.log(2 * np.pi * variance)
    # A plain number must not make doubles of float32.
    out -= scale if isinstance(scale, np.ndarray) else float(scale)
    return out


def signed(y: Array, mean: Array | float, variance: Any = None) -> Array:
    """E[± y]: magnitudes y with the mean of both signs, each as likely as it is; variance None:
    1."""
    out = np.asarray(y * mean if variance is None else y * mean / variance)
    # In place: these arrays are large, and each is made anew in every step.
    np.tanh(out, out=out)
    out *= y
    return out


def expected_square(y: Array, mean: Array, variance: Any) -> Array:
    """E[(±y − mean)²] over both signs, value by value. A sum of two terms that are not negative:
    y² − 2·E[±y]·μ + μ² can come out below zero in float32."""
    size = np.abs(mean)
    unsure = 1 - np.tanh(y * size / variance)
    return np.asarray((y - size) ** 2 + 2 * y * size * unsure)


def lost(y: Array, mean: Array, variance: Array | float) -> Array:
    """What hidden signs take away, value by value, of the information 1 of a signed y."""
    z = np.minimum(y * np.abs(mean) / variance, PLAIN)
    return np.asarray(y * y / variance / np.cosh(z) ** 2)


def information(y: Array, mean: Array, variance: Array | float) -> float:
    """What a magnitude says of its sum, on average, to what it says with its sign: from 1, where
    signs are plain, down to 0."""
    return float(np.clip(1 - np.mean(lost(y, mean, variance), dtype=np.float64), 0.0, 1.0))


def maximise(
    y: Array,
    x: Array,
    variance: Any,
    mean: Callable[[Array], Array],
    fit: Callable[[Array, Any], Array],
    steps: int,
    left: Callable[[Array, Array], Any] | None = None,
) -> tuple[Array, Any]:
    """(x, variance) after `steps` of expectation–maximisation from x and `variance`.

    mean: x → μ; fit: (signed y, variance) → x, least squares; left: (signed y, μ) → variance, the
    mean square of what is left, or None where the variance is known
    """
    mu = mean(x)
    for _ in range(steps):
        likely = signed(y, mu, variance)
        x = fit(likely, variance)
        mu = mean(x)
        if left is not None:
            variance = left(likely, mu)
    return x, variance


@njit(fastmath=True, inline="always")
def tanh32(x):  # type: ignore[no-untyped-def]
    """tanh to float32 by a rational function: several times faster than the library's, and it
    vectorises.

    x·p(x²)/q(x²), fitted to tanh on [−7.9, 7.9]; beyond, tanh is 1 to float32.
    """
    x = min(max(x, float32(-7.9)), float32(7.9))  # where the fit ends
    u = x * x
    # Horner's scheme, the highest power first.
    p = float32(-2.76076847742355e-16)  # p, u⁶
    p = p * u + float32(2.00018790482477e-13)  # p, u⁵
    p = p * u + float32(-8.60467152213735e-11)  # p, u⁴
    p = p * u + float32(5.12229709037114e-08)  # p, u³
    p = p * u + float32(1.48572235717979e-05)  # p, u²
    p = p * u + float32(6.37261928875436e-04)  # p, u¹
    p = p * u + float32(4.89352455891786e-03)  # p, u⁰
    q = float32(1.19825839466702e-06)  # q, u³
    q = q * u + float32(1.18534705686654e-04)  # q, u²
    q = q * u + float32(2.26843463243900e-03)  # q, u¹
    q = q * u + float32(4.89352518554385e-03)  # q, u⁰
    return x * p / q


@njit(fastmath=True, inline="always")
def fold32(y, mu, precision):  # type: ignore[no-untyped-def]
    """Sum of `log_density` over one encoding y (d,) around mu (d,), precision = 1/v."""
    d = len(y)
    total = 0.0
    for j in range(d):
        m = abs(mu[j])
        e = y[j] - m
        total += float32(-0.5) * e * e * precision + np.log(
            float32(1) + np.exp(float32(-2) * m * y[j] * precision)
        )
    return total - 0.5 * d * np.log(2 * np.pi / precision)
