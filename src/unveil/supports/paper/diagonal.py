"""LearnPublic by diagonal thresholding, as in the paper's experiments: the SDP replaced by a
screen.

For every public vector j the quantity (1/d) Σ_i y_i²·(p_i)_j² is the diagonal of the moment matrix
up to a shift; keep the 25 largest, form M̃ on those alone, and read the support off its top
eigenvector. The screen of all encodings is one matrix product over blocks, Y²·(P²)ᵀ. It fails on
heavy tails: one bright pixel lifts many wrong columns together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.parallel import rows_per_block
from unveil.records import Progress
from unveil.supports.paper.moment import moment_weights

KEPT = 25


def diagonal_supports(
    magnitudes: NDArray[np.float32],
    public: NDArray[np.float32],
    k_public: int,
    *,
    limit: int,
    progress: Progress | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Supports (m, k_public), sorted, and the relative margin of the k-th to the next eigenvector
    entry (m,)."""
    m, d = magnitudes.shape
    kept = min(len(public), max(KEPT, k_public))
    candidates = _screen(magnitudes, public, kept, limit)
    indices = np.empty((m, k_public), dtype=np.int64)
    margin = np.ones(m)
    block = rows_per_block(8 * kept * kept + 16 * d, limit // 4, most=512)
    for start in range(0, m, block):
        rows = range(start, min(start + block, m))
        z = moment_weights(magnitudes[rows.start : rows.stop])
        moments = np.empty((len(rows), kept, kept))
        for a, i in enumerate(rows):
            P = public[candidates[i]]
            moments[a] = (P * z[a].astype(np.float32)) @ P.T / d
        moments[:, np.arange(kept), np.arange(kept)] -= z.mean(axis=1, keepdims=True)
        vectors = np.abs(np.linalg.eigh(moments)[1][:, :, -1])
        order = np.argsort(-vectors, axis=1, kind="stable")
        chosen = candidates[start : start + len(rows)]
        indices[start : start + len(rows)] = np.sort(
            np.take_along_axis(chosen, order[:, :k_public], axis=1), axis=1
        )
        if kept > k_public:
            ordered = np.take_along_axis(vectors, order, axis=1)
            margin[start : start + len(rows)] = 1 - ordered[:, k_public] / np.maximum(
                ordered[:, k_public - 1], 1e-300
            )
        if progress:
            progress("learn public", rows.stop, m)
    return indices, margin


def _screen(
    magnitudes: NDArray[np.float32], public: NDArray[np.float32], kept: int, limit: int
) -> NDArray[np.int64]:
    """For each encoding the `kept` public vectors with the largest Σ y²p²; both sides in blocks."""
    m, d = magnitudes.shape
    n = len(public)
    rows = rows_per_block(8 * d + 16 * kept, limit // 4, most=4096)
    columns = rows_per_block(8 * d + 16 * min(rows, m), limit // 4, most=4096)
    best = np.empty((m, kept), dtype=np.int64)
    for start in range(0, m, rows):
        some = magnitudes[start : start + rows].astype(np.float64)
        square = np.square(
            some / np.maximum(np.sqrt(np.mean(some**2, axis=1, keepdims=True)), 1e-300)
        ).astype(np.float32)
        value = np.empty((len(square), 0), dtype=np.float32)
        index = np.empty((len(square), 0), dtype=np.int64)
        for first in range(0, n, columns):
            score = square @ np.square(public[first : first + columns]).T
            value = np.concatenate([value, score], axis=1)
            index = np.concatenate(
                [index, np.broadcast_to(np.arange(first, first + score.shape[1]), score.shape)],
                axis=1,
            )
            if value.shape[1] > kept:
                top = np.argpartition(-value, kept - 1, axis=1)[:, :kept]
                value, index = (
                    np.take_along_axis(value, top, axis=1),
                    np.take_along_axis(index, top, axis=1),
                )
        best[start : start + rows] = index
    return best
