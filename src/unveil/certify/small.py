"""Few vectors: every column that another reading could have, one by one. See `docs/certificate.md`,
step 5.

Another reading is W' = D·W·T. Let C be all t with W t ∈ {0,1}^m. Signs D that keep the row sums
come from some t* in C: D = 2Wt* − 1, and the columns of T are t* − t with t in C; its rows sum to s
= 2k·t* − 1. Signs kept: t* = 1/k, D = 1.

  1. C is found by search (`certify.columns`).
  2. For each t*: the columns of T, n or more, span all and weigh Σ|Wt|₁ = mk. A column that makes
  the lightest basis that holds it (greedy) heavier than mk cannot occur, and one that leaves little
  not often. Vector i has a unit row if all columns left are 0 or 1 at i.
  3. Where that does not decide, an integer program asks for columns that span all and sum to s, one
  of them not 0 or 1 at i.

Cost: trials, at most 2^n; for hidden signs |C|²·m: the weights of all columns of all t* leave
hardly any t* to go on with. Rounding can add columns to C, never drop one: that is doubt, no harm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from unveil.certify.columns import TRIALS, ZERO, candidates, eliminated

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Values = NDArray[np.float64]

SMALL = 40
"""Vectors up to which all columns are looked for. With three rows per vector 30 take a second, 50
too long."""

MANY, MANY_HIDDEN = 20_000, 12_000
"""Columns beyond which the search ends. Hidden signs make each a t* with as many columns of its
own: seconds."""

BLOCK = 500
"""Columns t* whose weights are held at a time: 50 MB."""

WORK = 2e9
"""Columns × t* × n² that are gone through for hidden signs: some ten seconds. Work is counted, not
time: the answer must not depend on what else the machine does."""

CELLS, NODES = 400_000, 100
"""Columns times lines of all integer programs together, and nodes of each, before giving up: three
seconds. Most need one node, a few thousand cells, and a few hundredths of a second."""

NEAR = 1e-6
"""Distance to an integer that counts as none. Errors are about 1e-12: what fits is never
dropped."""


@dataclass
class Budget:
    """Columns times lines of integer programs that may still be solved."""

    cells: int


def small_design(members: Index, n: int, *, signed: bool) -> Flags:
    """Vectors whose row of T is a unit vector in every other reading, up to one sign for all. W has
    full column rank."""
    k = members.shape[1]
    budget = Budget(CELLS)
    if n > SMALL:
        return np.zeros(n, bool)
    W = np.zeros((len(members), n), np.int64)
    np.put_along_axis(W, members, 1, axis=1)
    C = candidates(members, n, MANY if signed else MANY_HIDDEN, TRIALS)
    if C is None:
        return np.zeros(n, bool)
    certain = np.ones(n, bool)
    starts = np.full((1, n), 1 / k) if signed else _light_enough(_up_to_complement(C, k), C, W)
    if len(starts) * len(C) * n**2 > WORK:
        return np.zeros(n, bool)
    # D = 1 first: it settles most, and a vector that is lost needs no second look.
    for start in starts[np.argsort(np.abs(starts - 1 / k).sum(axis=1), kind="stable")]:
        if budget.cells <= 0:
            return np.zeros(n, bool)
        columns = start - C
        columns = columns[(np.abs(columns) > NEAR).any(axis=1)]
        weight = np.rint(np.abs(columns @ W.T).sum(axis=1)).astype(np.int64)
        order = np.argsort(weight, kind="stable")
        columns, weight = columns[order], weight[order]
        spare = _spare(columns, weight, len(W) * k)
        possible = spare >= 0
        if not possible.any():
            continue
        most = 1 + spare[possible] // weight[possible]
        sums = np.rint(2 * k * start - 1)
        certain &= _unit_rows(columns[possible], sums, certain, most, budget)
        if not certain.any():
            break
    return certain


def _up_to_complement(C: Values, k: int) -> Values:
    """One of t and 1/k − t: they stand for D and −D."""
    mirrored = 1 / k - C
    keep = [
        tuple(np.rint(a / NEAR)) >= tuple(np.rint(b / NEAR))
        for a, b in zip(C, mirrored, strict=True)
    ]
    return np.asarray(C[np.array(keep, bool)])


def _light_enough(starts: Values, C: Values, W: Index) -> Values:
    """Those t* whose n lightest columns do not weigh more than all of T may: no other has n
    columns that span all. The weight of t* − t is in how many rows the two differ."""
    n = W.shape[1]
    total = int(W.sum())
    ends = np.rint(C @ W.T).astype(np.float32)
    weights = ends.sum(axis=1)
    kept = []
    for first in range(0, len(starts), BLOCK):
        ours = np.rint(starts[first : first + BLOCK] @ W.T).astype(np.float32)
        apart = ours.sum(axis=1)[:, None] + weights - 2 * (ours @ ends.T)
        apart[apart < 0.5] = np.inf  # t* itself is no column
        if len(C) <= n:
            continue
        least = np.partition(apart, n - 1, axis=1)[:, :n].sum(axis=1)
        kept.append(starts[first : first + BLOCK][least <= total])
    return np.concatenate(kept) if kept else starts[:0]


def _unit_rows(columns: Values, sums: Values, wanted: Flags, most: Index, budget: Budget) -> Flags:
    """The wanted vectors i whose row is one ±1 and else 0 in every T of these columns with these
    row sums, with one sign.

    1. Is there such a T? If not, nothing is lost. 2. One sign: the one that more of the wanted
    have. 3. A T in which a wanted row is not a unit vector: all such rows are lost, and the next T
    is asked for.
    """
    plain = {sign: (np.abs(columns) < NEAR) | (np.abs(columns - sign) < NEAR) for sign in (1, -1)}
    sign = (
        1
        if (wanted & (np.abs(sums - 1) < NEAR)).sum() >= (wanted & (np.abs(sums + 1) < NEAR)).sum()
        else -1
    )
    left = wanted & (np.abs(sums - sign) < NEAR)
    if (left == wanted).all() and plain[sign][:, wanted].all():
        return wanted
    T = _choice(columns, sums, np.ones(len(columns), bool), most, budget)
    if T is None:
        return wanted
    while left.any():
        odd = np.asarray(~plain[sign][:, left].all(axis=1))
        T = _choice(columns, sums, odd, most, budget) if odd.any() else None
        if T is None:
            break
        lost = (np.abs(T) > NEAR).sum(axis=0) > 1
        left = left & ~lost if len(T) and (left & lost).any() else np.zeros_like(left)
    return left


def _choice(
    columns: Values, sums: Values, odd: Flags, most: Index, budget: Budget
) -> Values | None:
    """Columns, as rows, that span all and sum to `sums`, at least one of them odd; column c at most
    most[c] times; None if there are none; empty: undecided.

    A choice of lower rank is cut off with all others that take too few columns from outside its
    span.
    """
    n = columns.shape[1]
    lines = [*columns.T, np.ones(len(columns)), odd.astype(float)]
    low = [*(sums - NEAR), n, 1]
    high = [*(sums + NEAR), np.inf, np.inf]
    while budget.cells > 0:
        budget.cells -= len(columns) * len(lines)
        found = milp(
            np.zeros(len(columns)),
            constraints=LinearConstraint(np.array(lines), low, high),
            integrality=np.ones(len(columns), np.int64),
            bounds=Bounds(0, most),
            options={"node_limit": NODES},
        )
        if found.status == 2:  # proved to have no solution
            return None
        if found.x is None:
            break
        chosen = np.repeat(columns, np.rint(found.x).astype(np.int64), axis=0)
        _, size, axes = np.linalg.svd(chosen)
        rank = int((size > NEAR).sum())
        if rank == n:
            return np.asarray(chosen)
        lines.append((np.abs(columns @ axes[rank:].T) > NEAR).any(axis=1).astype(float))
        low.append(n - rank)
        high.append(np.inf)
    return np.zeros((0, n))


@njit(cache=True, nogil=True)
def _spare(columns, weight, total):  # type: ignore[no-untyped-def]
    """What the lightest basis that holds a column leaves of `total`, negative: nothing. Columns are
    sorted by weight: greedy, then one exchange each."""
    count, n = columns.shape
    chosen, combination = eliminated(columns)
    if len(chosen) < n:
        return np.full(count, -1)
    least = 0
    for b in range(n):
        least += weight[chosen[b]]
    out = np.full(count, total - least)
    for c in range(count):
        # Dependent on lighter ones: it may take the place of the heaviest that its combination
        # uses. One of the basis takes its own place.
        heaviest = 0
        for b in range(n):
            if abs(combination[c, b]) > ZERO:
                heaviest = max(heaviest, weight[chosen[b]])
        out[c] -= weight[c] - heaviest
    return out
