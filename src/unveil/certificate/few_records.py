"""Few records: every column that another reading could have, one by one.

Another reading is W' = D·W·T, D signs (1 if signs are kept). Let C be all t with Wt ∈ {0,1}^m.
Signs that keep row sums belong to some t* in C, D = 2Wt* − 1; the columns of T are t* − t with t
in C, its rows sum to 2k·t* − 1. Signs kept: t* = 1/k. Then

  1  C is found by trying 0 and 1 at n independent rows; every other row checks as early as it can
  2  the columns of T span all and weigh Σ|Wt| = mk. For most t* the n lightest weigh more; and a
     column that makes the lightest basis that holds it heavier than mk cannot occur
  3  where that does not decide, an integer program asks for columns that span all and sum to the
     row sums, one of them not 0 or ±1 at some record

Rounding can only add columns to C, and give up is doubt. Cost: 2^n trials at most, |C|²·m for
hidden signs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import connected_components

from unveil.certificate.design import Design, trimmed

NEAR = 2.0**-20
"""Sums of whole numbers and fractions of small ones: errors are about 1e-12."""

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def certain_by_columns(
    rows: Index,
    n: int,
    kept: bool,
    *,
    work: float = 2e9,
    most_columns: int = 12_000,
    most_cells: int = 400_000,
) -> tuple[Flags, Flags]:
    """(n,) records whose row of T is a unit vector in every reading of these rows, up to one sign
    for all; none where W lacks full column rank or the search grows too large. And, if these are
    all, those of whose rows no part is a column: if D·We_i = Wt, signs D are one at all rows of i.

    work: choices of t* times columns times n² to be looked at
    most_columns: of C; most_cells: columns times lines of all integer programs together
    """
    inside, k = trimmed(rows, np.ones(n, bool), 2), rows.shape[1]
    none, n = np.zeros(n, bool), int(inside.sum())
    W = Design.within(rows, inside).W.toarray()
    basis = independent_rows(W)
    if not n or len(basis) < n or not (kept or connected_matroid(W, basis)):
        return none, none
    C = zero_one_columns(W, basis, most_columns)
    if C is None:
        return none, none
    starts = np.full((1, n), 1 / k) if kept else _light_enough(C, W)
    if len(starts) * len(C) * n**2 > work:
        return none, none
    certain, cells = np.ones(n, bool), [most_cells]
    # D = 1 first: it settles most, and a record that is lost needs no second look.
    for start in starts[np.argsort(np.abs(starts - 1 / k).sum(axis=1), kind="stable")]:
        columns = start - C
        columns = columns[(np.abs(columns) > NEAR).any(axis=1)]
        weight = np.rint(np.abs(columns @ W.T).sum(axis=1))
        order = np.argsort(weight, kind="stable")
        columns, weight = columns[order], weight[order]
        spare = _spare(columns, weight, float(W.sum()))
        possible = spare >= 0
        if possible.any():
            most = 1 + spare[possible] // weight[possible]
            sums = np.rint(2 * k * start - 1)
            certain &= _unit_rows(columns[possible], sums, certain, most, cells)
        if not certain.any() or cells[0] <= 0:
            return none, none
    # (columns, n): is the column 1 in rows of i only?
    ends = np.rint(C @ W.T)
    part = (ends @ (1 - W) == 0) & (ends.sum(axis=1) > 0)[:, None]
    known, holding = none.copy(), none.copy()
    known[inside], holding[inside] = certain, certain.all() & (part.sum(axis=0) == 1)
    return known, holding


def connected_matroid(W: Floats, basis: Index, *, none: float = NEAR) -> bool:
    """No two parts of the rows have ranks that add up to n: rows, each tied to those of the basis
    that it is a combination of, hang together (Oxley, Matroid Theory, 4.1). none: a coefficient
    of this size counts as 0."""
    combination = np.linalg.solve(W[basis].T, W.T).T
    ties = sparse.coo_array(np.abs(combination) > none)
    m = len(W)
    graph = sparse.coo_array((np.ones(ties.nnz), (ties.row, basis[ties.col])), shape=(m, m))
    return bool(connected_components(graph, directed=False)[0] == 1)


def _light_enough(C: Floats, W: Floats) -> Floats:
    """Those t*, one of each t* and 1/k − t*, whose n lightest columns weigh no more than all of T
    may. The weight of t* − t is in how many rows the two differ."""
    n, k = W.shape[1], W[0].sum()
    ends = np.rint(C @ W.T).astype(np.float32)
    half = [tuple(a) >= tuple(b) for a, b in zip(ends, 1 - ends, strict=True)]
    starts, ours = C[np.array(half, bool)], ends[np.array(half, bool)]
    apart = ours.sum(axis=1)[:, None] + ends.sum(axis=1) - 2 * (ours @ ends.T)
    apart[apart < 0.5] = np.inf  # t* itself is no column
    if len(C) <= n:
        return np.asarray(starts[:0])
    least = np.partition(apart, n - 1, axis=1)[:, :n].sum(axis=1)
    return np.asarray(starts[least <= k * len(W)])


def _spare(columns: Floats, weight: Floats, total: float) -> Floats:
    """What the lightest basis that holds a column leaves of `total`; columns sorted by weight. The
    lightest basis is greedy; a column takes the place of the heaviest that it needs."""
    n = columns.shape[1]
    chosen, left = [], columns.copy()
    for c in range(len(columns)):
        size = np.abs(left[c]).max()
        if size > NEAR:
            pivot = int(np.abs(left[c]).argmax())
            left = left - np.outer(left[:, pivot] / left[c, pivot], left[c])
            chosen.append(c)
            if len(chosen) == n:
                break
    if len(chosen) < n:
        return np.full(len(columns), -1.0)
    combination = np.linalg.solve(columns[chosen].T, columns.T).T
    heaviest = np.where(np.abs(combination) > NEAR, weight[chosen], 0).max(axis=1)
    return np.asarray(total - weight[chosen].sum() - (weight - heaviest))


def _unit_rows(
    columns: Floats, sums: Floats, wanted: Flags, most: Floats, cells: list[int]
) -> Flags:
    """The wanted records whose row is ±1 once in every T of these columns, with one sign. Each T
    that is found costs the records it contradicts; until there is none."""
    agree = {sign: wanted & (np.abs(sums - sign) < NEAR) for sign in (1, -1)}
    sign = 1 if agree[1].sum() >= agree[-1].sum() else -1
    left = agree[sign]
    plain = (np.abs(columns) < NEAR) | (np.abs(columns - sign) < NEAR)
    if (left == wanted).all() and plain[:, wanted].all():
        return wanted
    if _choice(columns, sums, np.ones(len(columns), bool), most, cells) is None:
        return wanted
    while left.any():
        odd = np.asarray(~plain[:, left].all(axis=1))
        T = _choice(columns, sums, odd, most, cells) if odd.any() else None
        if T is None:
            break
        lost = (np.abs(T) > NEAR).sum(axis=0) > 1
        left = left & ~lost if len(T) and (left & lost).any() else np.zeros_like(left)
    return left


def _choice(
    columns: Floats, sums: Floats, odd: Flags, most: Floats, cells: list[int]
) -> Floats | None:
    """Columns, as rows, that span all and sum to `sums`, one of them odd, column c at most most[c]
    times; None if there are none; empty: undecided. A choice of lower rank is cut off with all
    that take too few columns from outside its span."""
    n = columns.shape[1]
    lines = [*columns.T, np.ones(len(columns)), odd.astype(float)]
    low, high = [*(sums - NEAR), n, 1], [*(sums + NEAR), np.inf, np.inf]
    while cells[0] > 0:
        cells[0] -= len(columns) * len(lines)
        found = milp(
            np.zeros(len(columns)),
            constraints=LinearConstraint(np.array(lines), low, high),
            integrality=np.ones(len(columns), np.int64),
            bounds=Bounds(0, most),
            options={"node_limit": 100},
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


def independent_rows(W: Floats) -> Index:
    """The first rows that span all, in an order in which few records meet many rows."""
    order, rest = [], set(range(len(W)))
    held = np.zeros(W.shape[1], bool)
    while rest:
        # The row that brings the fewest new records.
        r = min(rest, key=lambda r: (int((W[r] > held).sum()), r))
        rest.discard(r)
        order.append(r)
        held |= W[r] > 0
    out, left = [], W.astype(np.float64)
    for r in order:
        size = float(np.abs(left[r]).max())
        if size > NEAR:
            pivot = int(np.abs(left[r]).argmax())
            left = left - np.outer(left[:, pivot] / left[r, pivot], left[r])
            out.append(r)
        if len(out) == W.shape[1]:
            break
    return np.array(out, np.int64)


def zero_one_columns(W: Floats, basis: Index, most: int) -> Floats | None:
    """C (columns, n): all t with Wt in {0, 1}; None if more than `most` are left at some time."""
    n = W.shape[1]
    combination = np.linalg.solve(W[basis].T, W.T).T
    level = np.where(np.abs(combination) > NEAR, np.arange(n), -1).max(axis=1)
    found = np.zeros((1, 0))
    for b in range(n):
        found = np.vstack([np.column_stack([found, np.full(len(found), v)]) for v in (0.0, 1.0)])
        checks = np.setdiff1d(np.flatnonzero(level == b), basis)
        sums = found @ combination[checks][:, : b + 1].T
        fits = (np.abs(sums) < NEAR) | (np.abs(sums - 1) < NEAR)
        found = found[fits.all(axis=1)]
        if len(found) > most:
            return None
    return np.asarray(np.linalg.solve(W[basis], found.T).T)
