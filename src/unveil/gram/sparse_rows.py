"""Products of a sparse matrix with rows of numbers, on all cores and without copies.

Few images are in an encoding. Rows are added a piece at a time, so that sums stay in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from unveil.parallel import run_blocks, where, worker_count

Floats = NDArray[np.float32]
COLUMNS = 1024
"""Columns at a time: sums of some hundred rows of them stay in the cache."""


def mix_rows(A: sparse.csr_array, rows: slice, X: Floats, out: Floats) -> None:
    """out (rows, d) ← some rows of A (m, n), times X (n, d)."""
    _mix(A.indptr[rows.start : rows.start + len(out) + 1], A.indices, A.data, X, out)


def gather_rows(A: sparse.csr_array, X: NDArray[Any]) -> Floats:
    """Aᵀ·X (n, d): A (m, n), X (m, d)."""
    n, d = A.shape[1], X.shape[1]
    out = np.empty((n, d), np.float32)

    def task(start: int) -> None:
        stop = min(start + COLUMNS, d)
        out[:, start:stop] = _gather(A.indptr, A.indices, A.data, X, n, start, stop)

    run_blocks(task, range(0, d, COLUMNS), worker_count(where().workers))
    return out


def there_and_back(A: sparse.csr_array, scale: Floats, X: Floats) -> Floats:
    """Aᵀ·(scale·(A·X)) (n, w), on this core: A (m, n), scale (m, w) number by number, X (n, w)."""
    return np.asarray(_there_and_back(A.indptr, A.indices, A.data, scale, X))


@njit(fastmath=True, cache=True, nogil=True)
def _there_and_back(indptr, indices, data, scale, X):  # type: ignore[no-untyped-def]
    out, mixed = np.zeros_like(X), np.empty(X.shape[1], np.float32)
    for i in range(len(scale)):
        mixed[:] = 0
        for at in range(indptr[i], indptr[i + 1]):
            weight, row = np.float32(data[at]), X[indices[at]]
            for j in range(len(row)):
                mixed[j] += weight * row[j]
        by = scale[i]
        for j in range(len(mixed)):
            mixed[j] *= by[j]
        for at in range(indptr[i], indptr[i + 1]):
            weight, total = np.float32(data[at]), out[indices[at]]
            for j in range(len(mixed)):
                total[j] += weight * mixed[j]
    return out


@njit(fastmath=True, cache=True, nogil=True)
def _mix(indptr, indices, data, X, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        total = out[i]
        total[:] = 0
        for at in range(indptr[i], indptr[i + 1]):
            weight, row = np.float32(data[at]), X[indices[at]]
            for j in range(len(row)):
                total[j] += weight * row[j]


@njit(fastmath=True, cache=True, nogil=True)
def _gather(indptr, indices, data, X, n, start, stop):  # type: ignore[no-untyped-def]
    out = np.zeros((n, stop - start), np.float32)
    for i in range(len(X)):
        row = X[i][start:stop]
        for at in range(indptr[i], indptr[i + 1]):
            weight, total = np.float32(data[at]), out[indices[at]]
            for j in range(len(total)):
                total[j] += weight * row[j]
    return out
