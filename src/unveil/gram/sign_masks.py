"""Do signs go together? With a fair coin per pixel signed encodings are uncorrelated but for
chance, whatever the data; kept signs, or a mask used twice, let overlaps through.

Given the magnitudes, fair coins leave the squared correlation ρ² of two unit rows the mean
Σ u_i²·u_j². The quotient is about χ² with one degree of freedom.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLE = 1500
"""Encodings, evenly spaced, whose pairs are compared."""
BEYOND = 8.0
"""Standard deviations of the sum over all pairs beyond which signs go together; and as much besides
for few pairs."""


def coin_squares(Y: NDArray[np.float32]) -> NDArray[np.float64]:
    """(m, m) ρ² of every two rows in units of what fair coins leave; 0 on the diagonal."""
    unit = Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), np.float32(1e-30))
    power = unit**2
    square = (unit @ unit.T).astype(np.float64) ** 2 / np.maximum(
        (power @ power.T).astype(np.float64), 1e-30
    )
    np.fill_diagonal(square, 0)
    return np.asarray(square)


def go_together(square: NDArray[np.float64]) -> bool:
    """Whether all pairs together have more than coins leave."""
    m = len(square)
    pairs = m * (m - 1) / 2
    return bool(float(square.sum()) / 2 > pairs + BEYOND * np.sqrt(2 * pairs) + BEYOND)


def sampled(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Evenly spaced rows, at most SAMPLE."""
    m = len(values)
    return np.asarray(values[np.unique(np.linspace(0, m - 1, min(m, SAMPLE)).astype(np.int64))])
