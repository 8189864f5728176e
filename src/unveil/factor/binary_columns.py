"""Few vectors: every column of zeros and ones that the encodings allow, and a choice of them.

Encodings that keep their signs are Y = WX. Where the n vectors are independent, Y and W have the
same columns' span, and the columns of W are vectors of zeros and ones in it. For n up to `LARGEST`
all such vectors are found: n independent rows fix a vector of the span, so 2ⁿ patterns on these
rows are tried, and the other rows rule nearly all of them out. Among what is left, n columns that
sum to k in every row are a design; an integer program chooses.

Cost: 2ⁿ sums at the first of the other rows, and next to nothing after it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.optimize import Bounds, LinearConstraint, milp

Floats = NDArray[np.float64]

LARGEST = 20
"""Vectors: a million patterns, a few hundredths of a second."""
NEAR = 0.1
"""What counts as 0 or 1. Rounding is far below it; a wrong pattern is within it at one row in five,
and at all of 2n rows never."""
MOST = 3000
"""Columns to choose from. Vectors that never meet can be joined, so that sparse designs have very
many; then this is not the way."""
DEPENDENT = 1e-10
"""A column that adds less than this to the others, relative to the first, adds rounding: then no
rows fix a vector."""
NODES = 500
"""Branches of the integer program; designs that have one solution need a handful."""


def binary_columns(U: Floats) -> NDArray[np.bool_] | None:
    """(m, count): all vectors of zeros and ones in the span of the columns of U (m, n), but 0.

    None where there are too many, or n is too large to try all.
    """
    m, n = U.shape
    if n > LARGEST or n >= m:
        return None
    # 1. n rows that fix a vector of the span, as independent as can be; all rows from them.
    triangle, order = qr(U.T, mode="r", pivoting=True)
    size = np.abs(np.diag(triangle))
    if size[-1] <= DEPENDENT * size[0]:
        return None  # fewer directions than columns: n is not the number of vectors
    pivots = np.asarray(order[:n])
    rest = np.setdiff1d(np.arange(m), pivots)
    others = np.linalg.solve(U[pivots].T, U[rest].T).T
    # 2. Patterns on these rows in two halves. The first of the other rows is tried on all sums of
    # halves, the next ones on what is left.
    half = n // 2
    low, high = _patterns(half), _patterns(n - half)
    left, right = others[:, :half] @ low.T, others[:, half:] @ high.T
    found: list[NDArray[np.bool_]] = []
    count = 0
    for j in range(len(high)):
        kept = np.arange(len(low))
        for row in range(len(rest)):
            kept = kept[_is_binary(left[row, kept] + right[row, j])]
            if not len(kept):
                break
        count += len(kept)
        if count > MOST:
            return None
        # 3. The whole columns, in the order of the rows.
        columns = np.empty((m, len(kept)), bool)
        columns[pivots[:half]] = low[kept].T
        columns[pivots[half:]] = high[j][:, None]
        columns[rest] = left[:, kept] + right[:, j : j + 1] > 0.5
        found.append(columns)
    all_of_them = np.hstack(found)
    return np.asarray(all_of_them[:, all_of_them.any(axis=0)])


def choose_columns(columns: NDArray[np.bool_], n: int, k: int) -> NDArray[np.int64] | None:
    """Members (m, k) of n of the columns that sum to k in every row; None if there are none, or the
    search was cut off."""
    m, count = columns.shape
    if count < n:
        return None
    A = np.vstack([columns.astype(np.float64), np.ones(count)])
    sums = np.append(np.full(m, float(k)), float(n))
    done = milp(
        np.zeros(count),
        integrality=np.ones(count, np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(A, sums, sums),
        options={"node_limit": NODES},
    )
    if done.x is None:
        return None
    chosen = columns[:, done.x > 0.5]
    if chosen.shape[1] != n or (chosen.sum(axis=1) != k).any():
        return None
    return np.nonzero(chosen)[1].reshape(m, k)


def _patterns(count: int) -> NDArray[np.bool_]:
    """(2^count, count): all patterns of zeros and ones."""
    return (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(bool)


def _is_binary(values: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.abs(np.abs(values - 0.5) - 0.5) <= NEAR)
