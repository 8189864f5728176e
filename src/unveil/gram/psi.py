"""The folded-Gaussian covariance Ψ, its inverse and its noise (`lem:kr17`, `cor:kr17`, `lem:lip`).

For standard normal a, b with correlation z,

    Ψ(z) = Cov(|a|, |b|) = (2/π)(z·arcsin z + √(1 − z²) − 1),     Ψ(0) = 0,  Ψ(1) = 1 − 2/π.

The paper prints 1 for the diagonal; the variance of |a| is Ψ(1) = 1 − 2/π.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

TOP = 1 - 2 / np.pi
"""Ψ(1), the variance of |a|."""


def psi(z: ArrayLike) -> NDArray[np.float64]:
    """Ψ, even in z, for |z| ≤ 1."""
    z = np.asarray(z, dtype=np.float64)
    return np.asarray(2 / np.pi * (z * np.arcsin(z) + np.sqrt(1 - z * z) - 1))


def psi_inverse(covariance: ArrayLike, floor: float = 0.0) -> NDArray[np.float64]:
    """Ψ⁻¹ on [0, 1], after clipping to [floor, Ψ(1)] (the paper's clip_η*). Newton from √(π·c), a
    few steps.

    Ψ is convex and increasing with Ψ(z) ≥ z²/π, so the start lies above the root and Newton
    descends to it.
    """
    c = np.clip(np.asarray(covariance, dtype=np.float64), floor, TOP)
    z = np.minimum(np.sqrt(np.pi * c), 1.0)
    for _ in range(6):
        slope = 2 / np.pi * np.arcsin(z)
        z = np.clip(
            z - np.divide(psi(z) - c, slope, out=np.zeros_like(z), where=slope > 0), 0.0, 1.0
        )
    return z


def psi_noise(z: ArrayLike) -> NDArray[np.float64]:
    """Standard deviation of (|a| − E|a|)(|b| − E|b|) for one pixel, in closed form from the moments
    of (a, b)."""
    z = np.asarray(z, dtype=np.float64)
    mu2, value = 2 / np.pi, psi(z)
    second = 1 + 2 * z * z - 4 * mu2 * (1 + z * z) + 2 * mu2 + 4 * mu2 * value + mu2 * mu2
    return np.asarray(np.sqrt(np.maximum(second - value * value, 0)))
