"""Similarity of all pairs of encodings, not rounded: what factorisations start from when single
overlaps are too noisy to read.

Dense, m×m: for up to some thousand encodings. |y| is the better statistic for correlations of 1/3
and more, y² for smaller ones; there bright pixels are clipped, since one of them lifts many pairs
together.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from unveil.gram.psi import psi
from unveil.gram.statistics import feature_rows, public_part
from unveil.records import Encodings, Supports


def similarity(magnitudes: NDArray[np.float32], k: int) -> NDArray[np.float64]:
    """S with E[S_ij] = 0 for disjoint subsets and 1 for one shared vector: folded for k ≤ 3,
    clipped squares beyond.

    |y| is the better statistic for correlations of 1/3 and more, y² for smaller ones; bright pixels
    are clipped.
    """
    if k <= 3:
        F, _ = feature_rows(magnitudes, "folded", np.arange(magnitudes.shape[1]))
        one = float(psi(1 / k))
    else:
        square = magnitudes**2
        square /= np.maximum(square.mean(axis=1, keepdims=True), np.float32(1e-30))
        F = np.minimum(square, np.float32(5))
        F -= F.mean(axis=1, keepdims=True)
        F /= np.float32(np.sqrt(F.shape[1]))
        one = _clipped_square_level(1 / k)
    return np.asarray(F @ F.T, dtype=np.float64) / one


def assisted_similarity(
    encodings: Encodings, public: NDArray[np.float32], supports: Supports
) -> NDArray[np.float64]:
    """The same with a public part: from the posterior mean r of every private part, E[S_ij] is the
    overlap itself.

    r carries a share q of the variance of the private part, and ⟨r_i, r_j⟩ the share q² of their
    inner product.
    """
    part = public_part(encodings, supports.indices, public)
    F, _ = feature_rows(encodings.values, "assisted", np.arange(encodings.d), part)
    share = float(np.einsum("ij,ij->", F, F, dtype=np.float64)) / len(F)
    return np.asarray(F @ F.T, dtype=np.float64) * (
        encodings.scheme.k_private / max(share, 1e-30) ** 2
    )


def _clipped_square_level(z: float) -> float:
    """Cov(min(a², 5), min(b², 5)) at correlation z, by Gauss–Hermite quadrature in the Hermite
    expansion of min(x², 5)."""
    x = np.linspace(-12, 12, 48001)
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0])
    f = np.minimum(x**2, 5)
    before, polynomial, total, factorial = np.ones_like(x), x, 0.0, 1.0
    for degree in range(1, 9):
        factorial *= degree
        total += float(f @ (polynomial * density)) ** 2 / factorial * z**degree
        before, polynomial = polynomial, x * polynomial - degree * before
    return total


def estimate_vectors(S: NDArray[np.float64], k: int, *, linear: bool = False) -> int:
    """n from the mean similarity of two encodings: E[S] = Σ_q P(overlap q)·level(q), subsets drawn
    uniformly.

    `linear`: level(q) = q, as `assisted_similarity` has it.
    """
    m = len(S)
    mean = (float(S.sum()) - float(np.trace(S))) / max(1, m * (m - 1))
    level = np.arange(k + 1.0) if linear else psi(np.arange(k + 1) / k) / psi(1 / k)

    def expected(n: int) -> float:
        return sum(
            comb(k, q) * comb(n - k, k - q) * float(level[q]) for q in range(1, k + 1)
        ) / comb(n, k)

    n = k + 1
    while n < m and expected(n) > mean:
        n += 1
    return n
