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

from unveil.encodings import Encodings
from unveil.paper.gram_extract import psi
from unveil.paper.overlap_levels import feature_rows, polar_nodes, public_part
from unveil.records import Supports

CLIP = 5
"""Squares are cut here, in units of their mean: one bright pixel would lift many pairs together."""
EDGE = 1.01
"""Room for the largest eigenvalue of chance: it scatters by m^(−2/3) of itself, 1% for 1,000."""
FOLDED = 3
"""Up to this k, correlations are 1/3 and more, where |y| is the better statistic."""


def similarity(magnitudes: NDArray[np.float32], k: int) -> NDArray[np.float64]:
    """S with E[S_ij] = 0 for disjoint subsets and 1 for one shared vector: folded for k ≤ 3,
    clipped squares beyond.

    |y| is the better statistic for correlations of 1/3 and more, y² for smaller ones; bright pixels
    are clipped.
    """
    if k <= FOLDED:
        F, _ = feature_rows(magnitudes, "folded", np.arange(magnitudes.shape[1]))
        one = float(psi(1 / k))
    else:
        square = magnitudes**2
        square /= np.maximum(square.mean(axis=1, keepdims=True), np.float32(1e-30))
        F = np.minimum(square, np.float32(CLIP))
        F -= F.mean(axis=1, keepdims=True)
        F /= np.float32(np.sqrt(F.shape[1]))
        one = _one_pixel(k, 1)[0]
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


def moments(k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of S for 0, …, k shared vectors, and its variance times the number of pixels."""
    mean, variance = np.array([_one_pixel(k, q) for q in range(k + 1)]).T
    return mean / mean[1], variance / mean[1] ** 2


def _one_pixel(k: int, q: int) -> tuple[float, float]:
    """Mean and variance of the product of two encodings' features at a pixel, where they share q
    of their k vectors: both are standard normal there, of correlation q/k."""
    *both, weights = polar_nodes(q / k)
    f, g = (np.abs(x) if k <= FOLDED else np.minimum(x**2, CLIP) for x in both)
    product = (f - (f * weights).sum()) * (g - (g * weights).sum())
    mean = float((product * weights).sum())
    return mean, float((product**2 * weights).sum()) - mean**2


def misfit(S: NDArray[np.float64], W: NDArray[np.float64], level: float, d: int) -> float:
    """Mean square of S − level·WWᵀ over pairs that share one vector or none, in units of what
    chance makes of d pixels: 1 where W is right, more with every wrong row."""
    shared = W @ W.T
    pairs = shared < 2
    np.fill_diagonal(pairs, False)
    if not pairs.any():
        return 1.0
    chance = (float(np.trace(S)) / len(S)) ** 2 / d
    return float(np.mean(np.square((S - level * shared)[pairs]))) / max(chance, 1e-30)


def above_chance(S: NDArray[np.float64], d: int) -> int:
    """Eigenvalues of S larger than those of encodings that share nothing.

    S = FFᵀ for rows F of d pixels, so that without any structure its largest eigenvalue is about
    c·(1 + √(m/d))², c the mean of its diagonal (Marchenko and Pastur 1967). Pixels that go together
    have larger ones: they never seem to be less than chance. A vector that s encodings share
    stands out from s > c·√(m/d) on (Baik, Ben Arous and Péché 2005).
    """
    m = len(S)
    edge = float(np.trace(S)) / m * (1 + np.sqrt(m / d)) ** 2
    return int((np.linalg.eigvalsh(S) > EDGE * edge).sum())


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

    # The mean similarity falls with n: the first n that is low enough.
    n = k + 1
    while n < m and expected(n) > mean:
        n += 1
    return n
