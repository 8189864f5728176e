"""Squared correlations of all pairs of encodings: the similarity to start from when every encoding
has weights of its own.

The folded covariance of two encodings is Ψ(z), and Ψ⁻¹ turns it into z². With weights u_i divided
by their norm, encodings that share one vector a have z = u_ia·u_ja, so that Z = z² is PPᵀ off the
diagonal, P = u² entry by entry: nonnegative, k entries per row, rows that sum to 1. For small z,
Ψ(z) ≈ z²/π: the estimate is continued below zero along that line, and has no bias there.

Dense, m×m: one matrix product.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.paper.gram_extract import psi
from unveil.paper.overlap_levels import feature_rows


def squared_correlations(magnitudes: NDArray[np.float32]) -> NDArray[np.float64]:
    """Z (m, m) with E[Z_ij] ≈ z_ij²; the diagonal means nothing."""
    F, _ = feature_rows(magnitudes, "folded", np.arange(magnitudes.shape[1]))
    covariance = np.asarray(F @ F.T, dtype=np.float64)
    # Ψ⁻¹ by a table, squared; 2000 steps are far finer than the noise of a covariance.
    z = np.linspace(0, 1, 2001)
    return np.where(covariance < 0, np.pi * covariance, np.interp(covariance, psi(z), z * z))
