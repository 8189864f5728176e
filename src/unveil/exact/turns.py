"""Memberships and values by turns, on a few hundred columns, until encodings are explained exactly.

A first guess at the memberships may have a third of its rows wrong. Yet the values x that solve it
in the sense of least squares are good enough to give every row the k records with the smallest
misfit

    Σ_p t_p·(|Σ_{a∈S} x_a + c| − y)²,      t_p: columns that are solved well count for more,

by swaps of single members. Values solved from mostly right rows correct the others, and where there
is no noise a right row then fits *exactly*, which a wrong one does at few columns: the loop locks
in. Rows that do not fit lose their weight in the next solve.

Cost of a round: m·k·n·p for the swaps, and some sixty reflections (`values`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.exact.problem import Indices, Mask
from unveil.exact.values import fit_matrix, gather, reflect

Floats = NDArray[np.float64]
Values = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Assignment:
    """members (m, k); x (n, p); exact (m,): rows that hold at most columns; miss: the typical
    residual of the better rows, in units of a record's deviation."""

    members: Indices
    x: Values
    exact: Mask
    miss: float


def take_turns(
    y: Values,
    c: Values | None,
    members: Indices,
    sure: Floats,
    n: int,
    rng: np.random.Generator,
    *,
    rounds: int = 30,
    steps: tuple[int, int] = (200, 60),
    near: float = 0.02,
    share: float = 0.35,
    patience: int = 6,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Assignment:
    """Values and members by turns.

    y, c : (m, p) in units in which a record has variance 1 at each column.
    sure : (m,) weights to start from, between 0 and 1.
    n : columns of W, at least as many as there are records.
    steps : reflections of the first round, which starts from random signs, and of later ones.
    near, share : a row is exact when it misses by at most `near`·√k at this share of the columns. A
        wrong row does so at a few percent, and a column that is not solved yet fits nobody.
    patience : rounds without one more exact row after which the rest is left to `leftovers`.
    """
    m, k = members.shape
    v = np.float32(np.sqrt(k)) * rng.standard_normal(y.shape, dtype=np.float32)
    if c is not None:
        v = y * np.tanh(y * c / np.float32(k))
    weight = np.maximum(sure, 0.02)
    best: Assignment | None = None
    still = 0
    for turn in range(rounds):
        inverse = fit_matrix(members, n, weight)
        x, v = reflect(y, c, members, n, weight, inverse, v, steps=steps[turn > 0])
        miss = misfit(y, c, x, members)[weight > 0.5 * weight.max()]
        trust = 1 / (np.median(miss, axis=0) ** 2 + np.float32(1e-3))
        trust = np.asarray(trust / trust.mean(), dtype=np.float32)
        old = members
        members, cost = swap(y, c, x, members, trust)
        left = misfit(y, c, x, members)
        exact = (left < near * np.sqrt(k)).mean(axis=1) > share
        # Rows that descent leaves unexplained start again somewhere else.
        lost = np.flatnonzero(~exact)
        if len(lost) and exact.mean() > 0.5:
            other = np.argsort(rng.random((len(lost), n)), axis=1)[:, :k]
            cl = None if c is None else c[lost]
            other, value = swap(y[lost], cl, x, other, trust)
            better = value < cost[lost]
            members[lost[better]], cost[lost[better]] = other[better], value[better]
            left[lost] = misfit(y[lost], cl, x, members[lost])
            exact[lost] = (left[lost] < near * np.sqrt(k)).mean(axis=1) > share
        typical = max(float(np.quantile(cost, 0.3)), 1e-5)
        weight = 1 / (1 + (cost / (2.5 * typical)) ** 2)
        weight[exact] = np.maximum(weight[exact], 0.5)
        weight[weight < 0.05] = 0
        moved = np.flatnonzero((np.sort(members, axis=1) != np.sort(old, axis=1)).any(axis=1))
        v[moved] = gather(members[moved], x) + (0 if c is None else c[moved])
        still += 1
        if best is None or exact.sum() > best.exact.sum():
            still = 0
            size = float(np.quantile(np.median(left, axis=1), 0.3)) / 0.6745
            best = Assignment(members.copy(), x, exact, size)
        if progress:
            progress("rows explained", int(exact.sum()), m)
        if exact.all() or still >= patience or (stop and stop()):
            break
    assert best is not None
    return best


def misfit(y: Values, c: Values | None, x: Values, members: Indices) -> Values:
    """| |Σx + c| − y | (m, p)."""
    total = gather(members, x)
    return np.asarray(np.abs(np.abs(total if c is None else total + c) - y))


def swap(
    y: Values, c: Values | None, x: Values, members: Indices, trust: Values, *, passes: int = 4
) -> tuple[Indices, Floats]:
    """members after the best swaps of single members, sorted, and each row's mean square misfit.

    trust : (p,) weights of the columns, 1 on average.
    """
    out = members.copy()
    none = np.zeros((1, y.shape[1]), np.float32)
    cost = _swap(y, none if c is None else c, np.ascontiguousarray(x), out, trust, passes)
    return np.sort(out, axis=1), cost


@njit(cache=True, nogil=True, fastmath=True)
def _swap(y, c, x, members, trust, passes):  # type: ignore[no-untyped-def]
    m, k = members.shape
    n, p = x.shape
    cost = np.empty(m)
    rest = np.empty(p, np.float32)
    for i in range(m):
        best = np.float32(np.inf)
        for _ in range(passes):
            changed = False
            for q in range(k):
                for t in range(p):
                    rest[t] = c[i if len(c) > 1 else 0, t]
                for r in range(k):
                    if r != q:
                        for t in range(p):
                            rest[t] += x[members[i, r], t]
                take = members[i, q]
                for b in range(n):
                    other = False
                    for r in range(k):
                        other |= r != q and members[i, r] == b
                    if other:
                        continue
                    total = np.float32(0)
                    for t in range(p):
                        miss = abs(rest[t] + x[b, t]) - y[i, t]
                        total += trust[t] * miss * miss
                    if total < best - np.float32(1e-5):
                        best, take = total, b
                if take != members[i, q]:
                    members[i, q] = take
                    changed = True
            if not changed:
                break
        cost[i] = best / p
    return cost
