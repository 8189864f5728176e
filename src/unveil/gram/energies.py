"""Which encodings of natural images share a private image, seen in their energies y².

Signs are hidden, squares are not: y² = Σ λ²x² + cross terms, and what two encodings have in common
adds to the covariance of their squares. Neighbouring pixels say nearly the same, so squares are
whitened by their own covariance first (shrunk towards a multiple of the identity: the smallest
components are noise). Of the 0.1 percent most similar pairs of the challenge's shape nine of ten
share a private image.

    K = F (C + s·I)⁻¹ Fᵀ,   F the centred squares, C their covariance, s = 0.3·max(1, d/m)·tr C / d

by a Cholesky factor of the smaller of d×d and m×m. O(m·d·min(m, d) + m²·d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

SHRINKAGE = 0.3
"""Share of the mean variance added to every component: the smallest ones are noise, and whitening
would lift them to the height of the rest."""


@dataclass(frozen=True, eq=False)
class Energies:
    """gram (m, m): whitened products of centred squares; level (m,): the product of each with the
    mean square, whose own product with itself is `level_norm`: what all encodings have in
    common."""

    gram: NDArray[np.float32]
    level: NDArray[np.float32]
    level_norm: float


def whitened_energies(Y: NDArray[np.float32]) -> Energies:
    """Of magnitudes (m, d)."""
    F = Y * Y
    mean = F.mean(axis=0)
    F -= mean  # what all encodings have in common is told apart, as `level`
    return energies_of(F, mean)


def energies_of(F: NDArray[np.float32], mean: NDArray[np.float32]) -> Energies:
    """Of squares (m, d) around their mean (d,); F is overwritten."""
    m, d = F.shape
    shrinkage = SHRINKAGE * max(1.0, d / m)
    # Fewer pixels than encodings: whiten the squares themselves.
    if d <= m:
        C = F.T @ F
        C /= m
        C[np.diag_indices(d)] += np.float32(shrinkage * np.trace(C) / d + 1e-12)
        L = cholesky(C, lower=True, overwrite_a=True, check_finite=False)
        Z = solve_triangular(L, F.T, lower=True, overwrite_b=True, check_finite=False)
        common = solve_triangular(L, mean, lower=True, check_finite=False)
        return Energies(np.asarray(Z.T @ Z), np.asarray(common @ Z), float(common @ common))
    # (FᵀF/m + s·I)⁻¹ by the m×m products alone: F(…)⁻¹Fᵀ = K(K/m + s·I)⁻¹, and likewise for the
    # mean.
    K = F @ F.T
    s = np.float32(shrinkage * np.trace(K) / m / d + 1e-12)
    inner = K / np.float32(m)
    inner[np.diag_indices(m)] += s
    factor = cho_factor(inner, overwrite_a=True, check_finite=False)
    gram = cho_solve(factor, K, check_finite=False)
    flat = F @ mean
    level = cho_solve(factor, flat, check_finite=False)
    norm = (mean @ mean - flat @ level / m) / s
    return Energies(np.asarray((gram + gram.T) / 2), np.asarray(level), float(norm))
