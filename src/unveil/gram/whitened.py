"""Overlaps where signs are kept: y = Wx is linear, and products of encodings say who mixes whom
without any folding.

Two statistics, both in units in which one shared vector counts 1:

    plain      ⟨y_i, y_j⟩/d, divided by what one vector brings to ⟨y, y⟩/d. Its noise is 1/√d per vector, and vectors that look
               alike count as shared. Any size: blocks of rows, rounded, kept sparse
    whitened   UUᵀ·mk/n, U the leading left singular vectors of Y, n of them. With n ≤ d independent vectors the columns of Y
               span what the columns of W span, so that UUᵀ = W(WᵀW)⁻¹Wᵀ, whatever the vectors are:
               no noise from finite d, none from vectors that are alike. Dense, m×m

n is where the singular values fall off: the rank of Y, which noise only blurs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from unveil.parallel import rows_per_block
from unveil.records import Overlaps, Progress

FALL = 4.0
"""Factor by which eigenvalues of YYᵀ must fall for the rank to be taken from there."""

Floats = NDArray[np.float32]


def spectrum(Y: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues of YYᵀ, falling, and its eigenvectors (m, min(m, d)): from the smaller of the two
    Gram matrices."""
    m, d = Y.shape
    if m <= d:
        values, vectors = eigh(np.asarray(Y @ Y.T, np.float64))
        return values[::-1], vectors[:, ::-1]
    wide = Y.astype(np.float64)
    values, right = eigh(wide.T @ wide)
    values, right = values[::-1], right[:, ::-1]
    return values, (wide @ right) / np.sqrt(
        np.maximum(values, 1e-12 * max(float(values[0]), 1e-300))
    )


def rank_of(values: NDArray[np.float64]) -> int | None:
    """Where falling eigenvalues fall most, or None where they fall nowhere by more than chance."""
    safe = np.maximum(values, 1e-11 * max(float(values[0]), 1e-300))
    last = int(0.95 * len(safe))  # the smallest eigenvalues of noise fall by large factors as well
    if last < 2:
        return None
    falls = safe[: last - 1] / safe[1:last]
    best = int(falls.argmax())
    return best + 1 if falls[best] > FALL else None


def whitened_similarity(vectors: NDArray[np.float64], n: int, k: int) -> NDArray[np.float64]:
    """(m, m) from the first n eigenvectors."""
    U = vectors[:, :n]
    return np.asarray(U @ U.T * (len(U) * k / n), np.float64)


def plain_similarity(Y: Floats, k: int) -> NDArray[np.float64]:
    """(m, m) as measured, not rounded."""
    S = np.asarray(Y @ Y.T, np.float64)
    return S * (k / max(float(np.trace(S)) / len(S), 1e-30))


def rounded(S: NDArray[np.float64], k: int) -> Overlaps:
    """Similarities as overlaps."""
    shared = np.clip(np.rint(S), 0, k).astype(np.int8)
    np.fill_diagonal(shared, k)
    return Overlaps(sparse.csr_array(np.maximum(shared, shared.T)), k)


def plain_overlaps(Y: Floats, k: int, limit: int, progress: Progress | None = None) -> Overlaps:
    """Rounded, in blocks of rows; what all encodings have in common is taken off first, since it
    makes all pairs alike."""
    m, d = Y.shape
    centre = Y.mean(axis=0)
    one = sum(float(np.square(y - centre, dtype=np.float64).sum()) for y in Y) / m / k
    step = rows_per_block(16 * m + 4 * d, limit // 4, most=1024)
    parts = []
    for start in range(0, m, step):
        shared = np.rint(
            (Y[start : start + step] - centre) @ (Y - centre).T / np.float32(max(one, 1e-30))
        )
        here = np.arange(len(shared))
        shared[here, start + here] = k
        parts.append(sparse.csr_array(np.clip(shared, 0, k).astype(np.int8)))
        if progress:
            progress("overlaps", min(start + step, m), m)
    return Overlaps(sparse.csr_array(sparse.vstack(parts)), k)
