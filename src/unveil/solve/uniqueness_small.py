"""Few vectors: every column that another reading could have, one by one. See `docs/certificate.md`, step 5.

Another reading is W' = D·W·T. Let C be all t with W t ∈ {0,1}^m. Signs D that keep the row sums come from some t* in C: D = 2Wt* − 1,
and the columns of T are t* − t with t in C; its rows sum to s = 2k·t* − 1. Signs kept: t* = 1/k only, where D = 1.

  1. C: the values at n independent rows fix t, so 2^n trials find all of it.
  2. For each t*: T is a basis of total weight Σ|Wt|₁ = mk. The lightest basis (greedy) is the floor; a column that makes the
     lightest basis that holds it heavier than mk cannot occur. Vector i has a unit row if all columns left are 0 or 1 at i.
  3. Where that does not decide, an integer program asks for n different columns that sum to s, one of them not 0 or 1 at i.

Cost: 2^n·m, then |C|²·n² for hidden signs. Nothing is approximate: determinants are below 10⁵, so that values W t that are not
integers are at least 1e-5 away from them.
"""

from __future__ import annotations

from time import monotonic

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from unveil.solve.uniqueness_lattice import _independent, _primes

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Values = NDArray[np.float64]

SMALL = 12
"""Vectors up to which all 2^n columns are tried: 4,096, in milliseconds."""

MANY = 1500
"""Columns beyond which hidden signs are not tried, since each is a t* with as many columns of its own: seconds."""

NEAR = 1e-6
"""Distance to an integer that counts as none; true ones are 0 or more than 1e-5."""


def small_design(members: Index, n: int, *, signed: bool, seconds: float) -> Flags:
    """Vectors whose row of T is a unit vector in every other reading, up to one sign for all. W has full column rank."""
    k = members.shape[1]
    end = monotonic() + seconds
    if n > SMALL:
        return np.zeros(n, bool)
    W = np.zeros((len(members), n), np.int64)
    np.put_along_axis(W, members, 1, axis=1)
    C = candidates(W)
    if not signed and len(C) > MANY:
        return np.zeros(n, bool)
    certain = np.ones(n, bool)
    starts = np.full((1, n), 1 / k) if signed else _up_to_complement(C, k)
    # D = 1 first: it settles most, and a vector that is lost needs no second look.
    for start in starts[np.argsort(np.abs(starts - 1 / k).sum(axis=1), kind="stable")]:
        columns = start - C
        columns = columns[(np.abs(columns) > NEAR).any(axis=1)]
        weight = np.rint(np.abs(columns @ W.T).sum(axis=1)).astype(np.int64)
        order = np.argsort(weight, kind="stable")
        columns, weight = columns[order], weight[order]
        possible = _possible(columns, weight, W.size // n * k if False else len(W) * k)
        if not possible.any():
            continue
        certain &= _unit_rows(columns[possible], np.rint(2 * k * start - 1), certain, end)
        if not certain.any():
            break
    return certain


def candidates(W: Index) -> Values:
    """All t with W t ∈ {0,1}^m, by the values at n independent rows."""
    n = W.shape[1]
    basis = _independent(W, _primes()[0])
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    t = np.linalg.solve(basis.astype(float), bits.T.astype(float)).T
    values = t @ W.T
    fits = ((np.abs(values) < NEAR) | (np.abs(values - 1) < NEAR)).all(axis=1)
    return np.asarray(t[fits])


def _up_to_complement(C: Values, k: int) -> Values:
    """One of t and 1/k − t: they stand for D and −D."""
    mirrored = 1 / k - C
    keep = [tuple(np.rint(a / NEAR)) >= tuple(np.rint(b / NEAR)) for a, b in zip(C, mirrored, strict=True)]
    return C[np.array(keep, bool)]


def _unit_rows(columns: Values, sums: Values, wanted: Flags, end: float) -> Flags:
    """Vectors i for which every choice of n columns with these row sums has one ±1 and else 0 in row i, with one sign."""
    n = columns.shape[1]
    best = np.zeros(n, bool)
    for sign in (1, -1):
        plain = (np.abs(columns) < NEAR) | (np.abs(columns - sign) < NEAR)
        good = plain.all(axis=0) & (np.abs(sums - sign) < NEAR)
        for i in np.flatnonzero(~good & wanted & (np.abs(sums - sign) < NEAR)):
            good[i] = not _choice_exists(columns, sums, ~plain[:, i], end)
        # All columns settled at once may mean that there is no choice at all: then nothing is lost by this D.
        if (good & wanted).sum() > (best & wanted).sum():
            best = good
    if not (best & wanted).any() and not _choice_exists(columns, sums, np.ones(len(columns), bool), end):
        return np.ones(n, bool)
    return best


def _choice_exists(columns: Values, sums: Values, odd: Flags, end: float) -> bool:
    """Whether n different columns sum to `sums`, at least one of them odd. Undecided in time: yes."""
    left = end - monotonic()
    if left <= 0:
        return True
    n = columns.shape[1]
    A = np.concatenate([columns.T, np.ones((1, len(columns))), odd[None].astype(float)])
    low = np.concatenate([sums - NEAR, [n], [1]])
    high = np.concatenate([sums + NEAR, [n], [n]])
    found = milp(
        np.zeros(len(columns)),
        constraints=LinearConstraint(A, low, high),
        integrality=np.ones(len(columns)),
        bounds=Bounds(0, 1),
        options={"time_limit": left},
    )
    return bool(found.status != 2)  # 2: proved to have no solution


@njit(cache=True, nogil=True)
def _possible(columns, weight, total):  # type: ignore[no-untyped-def]
    """Columns, sorted by weight, that stand in some basis of weight at most `total`: greedy, then one exchange each."""
    count, n = columns.shape
    reduced = np.zeros((n, n))
    history = np.zeros((n, n))
    pivot = np.zeros(n, np.int64)
    chosen = np.zeros(n, np.int64)
    rank = 0
    excess = np.zeros(count, np.int64)
    for c in range(count):
        row = columns[c].copy()
        past = np.zeros(n)
        for b in range(rank):
            f = row[pivot[b]]
            if f != 0.0:
                row -= f * reduced[b]
                past -= f * history[b]
        big = np.argmax(np.abs(row))
        if abs(row[big]) > 1e-7:
            past[rank] = 1.0
            reduced[rank] = row / row[big]
            history[rank] = past / row[big]
            pivot[rank] = big
            chosen[rank] = c
            rank += 1
        else:
            # Dependent on lighter ones: it may take the place of the heaviest that its combination uses.
            heaviest = 0
            for b in range(rank):
                if abs(past[b]) > 1e-7:
                    heaviest = max(heaviest, weight[chosen[b]])
            excess[c] = weight[c] - heaviest
    out = np.zeros(count, np.bool_)
    if rank < n:
        return out
    least = 0
    for b in range(n):
        least += weight[chosen[b]]
    for c in range(count):
        out[c] = least + excess[c] <= total
    return out
