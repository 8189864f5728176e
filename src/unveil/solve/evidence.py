"""What further encodings say about the two readings of a floral (`factor.reading`), pixel by pixel.

Let x be the solution under the reading "subsets". If the truth is a sunflower, x_i = (Σ core + Σ petals)/k − petal_i. In
either case x spans what is known, and an encoding is folded normal around its part in that span,

    y = |a·⟨b, x⟩ + c + g|,     g ~ N(0, a²·(k − ‖b‖²)·v),

with b ∈ {0,1}^{k+2}, |b| ≤ k, if the sets are subsets, and b = g/k − σ (g shared vectors, petals σ), or b = 1 − σ with
2 ≤ |b| ≤ k, if they are a sunflower. The best log-likelihood under one less the best under the other, summed over encodings,
is the evidence, in nats.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PIXELS = 4096
"""Enough for tens of nats per encoding; more pixels only cost time."""


def folded_log_likelihood(
    magnitudes: NDArray[np.float64], mean: NDArray[np.float64], variance: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """log density of |N(mean, variance)| at the magnitudes, less the constant log √(2/π)."""
    centre = np.abs(mean)
    return np.asarray(
        -0.5 * (magnitudes - centre) ** 2 / variance
        + np.log1p(np.exp(-2 * magnitudes * centre / variance))
        - np.log(2)
        - 0.5 * np.log(variance)
    )


def reading_evidence(
    magnitudes: NDArray[np.float32],
    tau: NDArray[np.float64],
    vectors: NDArray[np.float64],
    weight: float,
    offsets: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Nats in favour of "subsets", one number per encoding (row of `magnitudes`).

    tau (rows, k+2): the names each encoding uses as its overlaps suggest, in fractions; `vectors` (k+2, d).
    """
    names = len(vectors)
    k = names - 2
    X = vectors[:, :PIXELS]
    v = float(np.mean(X**2))
    out = np.empty(len(magnitudes))
    for row, (y, near) in enumerate(zip(magnitudes[:, :PIXELS].astype(np.float64), tau, strict=True)):
        c = np.zeros_like(y) if offsets is None else offsets[row, :PIXELS]
        B, whole, shared = _candidates(near, k)
        spread = np.maximum(k - (B**2).sum(axis=1), 1e-3)[:, None] * weight**2 * v
        fit = folded_log_likelihood(y, weight * B @ X + c, spread).sum(axis=1)
        out[row] = fit[whole].max() - fit[shared].max()
    return out


def _candidates(tau: NDArray[np.float64], k: int) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Coefficients b worth trying, and which of them each reading allows: the ones near tau, and the simplest ones."""
    names = k + 2
    one = np.eye(names)
    subsets = np.vstack([np.zeros(names), one, np.clip(np.rint(tau), 0, 1)])
    fractions = []
    for g in range(1, k):
        for petals in (np.zeros(names), *one, np.clip(np.rint(g / k - tau), 0, 1)):
            if 0 <= g - petals.sum() <= k - 2:
                fractions.append(g / k - petals)
    size = subsets.sum(axis=1)
    B = np.vstack([subsets, *fractions]) if fractions else subsets
    whole = np.arange(len(B)) < len(subsets)
    whole[: len(subsets)] &= size <= k
    shared = np.arange(len(B)) >= len(subsets)
    shared[: len(subsets)] |= (size == 0) | ((size >= 2) & (size <= k))
    return B, whole, shared
