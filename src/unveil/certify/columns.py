"""All t with W t ∈ {0,1}^m, by search. The values at n independent rows fix t. They are tried, 0
and 1, and every other row checks them as early as it can. Cost: trials, at most 2^n."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.solve.model import incidence

Index = NDArray[np.int64]
Values = NDArray[np.float64]

TRIALS = 50_000_000
"""Trials beyond which it ends, too: a second."""
ZERO, SURELY_ZERO, WHOLE = 1e-7, 1e-9, 1e-6
"""What is left of zero after eliminating rows of zeros and ones, and how far off a sum that should
be 0 or 1 may be. Entries that are not zero are fractions of small whole numbers. Taking one for
zero, or a sum for whole, adds candidates: that can only add doubt. A row's last basis row is told
apart more sharply, since a later one only costs time."""


def candidates(members: Index, n: int, many: int, trials: int = TRIALS) -> Values | None:
    """All t with W t ∈ {0,1}^m; None if there are too many, or too many trials.

    Rows are taken in an order in which few vectors meet many rows. The values of independent rows
    are tried, 0 and 1; every row that depends on those before it must then be 0 or 1 as well.
    Rounding may let a t pass that does not fit: doubt, no harm.
    """
    W = incidence(members, n)
    W = W[_row_order(members, n)]
    basis, level, combination = _dependencies(W)
    if len(basis) < n:
        return None
    order = np.argsort(level, kind="stable")
    start = np.searchsorted(level[order], np.arange(n + 1))
    found, count = _try_all(order, start, combination, n, many, trials)
    if count < 0:
        return None
    return np.asarray(np.linalg.solve(W[basis], found[:count].T).T)


def _row_order(members: Index, n: int) -> Index:
    """Vectors one by one, each the one that completes most rows, then touches most; rows as they
    are completed."""
    missing = np.full(len(members), members.shape[1])
    taken, order = np.zeros(n, bool), []
    for _ in range(n):
        gain = np.zeros(n)
        for left in range(1, members.shape[1] + 1):
            rows = members[missing == left]
            gain += np.bincount(rows.ravel(), minlength=n) * 100.0**-left
        i = int(np.where(taken, -1, gain).argmax())
        taken[i] = True
        hit = (members == i).any(axis=1)
        missing[hit] -= 1
        order += np.flatnonzero(hit & (missing == 0)).tolist()
    return np.array(order, np.int64)


@njit(cache=True, nogil=True)
def _dependencies(W):  # type: ignore[no-untyped-def]
    """Rows that are independent of those before them; of each other row the last basis row it
    needs, −1 for those of the basis, and its combination."""
    basis, combination = eliminated(W)
    level = np.full(len(W), -1)
    taken = np.zeros(len(W), np.bool_)
    for b in range(len(basis)):
        taken[basis[b]] = True
    for r in range(len(W)):
        if not taken[r]:
            level[r] = 0
            for b in range(len(basis)):
                if abs(combination[r, b]) > SURELY_ZERO:
                    level[r] = b
    return basis, level, combination


@njit(cache=True, nogil=True)
def eliminated(rows):  # type: ignore[no-untyped-def]
    """(rows that are independent of those before them; (m, n) every row as a combination of these):
    Gauss, with what was done to each row on the side."""
    m, n = rows.shape
    reduced = np.zeros((n, n))
    history = np.zeros((n, n))
    pivot = np.zeros(n, np.int64)
    basis = np.zeros(n, np.int64)
    combination = np.zeros((m, n))
    rank = 0
    for r in range(m):
        row = rows[r].copy()
        past = np.zeros(n)
        for b in range(rank):
            f = row[pivot[b]]
            if f != 0.0:
                row -= f * reduced[b]
                past -= f * history[b]
        big = np.argmax(np.abs(row))
        if abs(row[big]) > ZERO:
            past[rank] = 1.0
            reduced[rank] = row / row[big]
            history[rank] = past / row[big]
            pivot[rank] = big
            basis[rank] = r
            combination[r, rank] = 1.0
            rank += 1
        else:
            for b in range(rank):
                combination[r, b] = -past[b]
    return basis[:rank], combination


@njit(cache=True, nogil=True)
def _try_all(order, start, combination, n, many, trials):  # type: ignore[no-untyped-def]
    """Depth first over the values of the basis rows; rows order[start[b]:start[b+1]] are known
    from basis row b on. Count −1: given up."""
    found = np.zeros((many, n))
    count, steps, depth = 0, 0, 0
    value = np.full(n, -1.0)
    while depth >= 0:
        steps += 1
        if steps > trials:
            return found, -1
        value[depth] += 1.0
        if value[depth] > 1.0:
            value[depth] = -1.0
            depth -= 1
            continue
        good = True
        for a in range(start[depth], start[depth + 1]):
            s = 0.0
            for b in range(depth + 1):
                s += combination[order[a], b] * value[b]
            if abs(s) > WHOLE and abs(s - 1.0) > WHOLE:
                good = False
                break
        if not good:
            continue
        if depth == n - 1:
            if count == many:
                return found, -1
            for b in range(n):
                found[count, b] = value[b]
            count += 1
        else:
            depth += 1
    return found, count
