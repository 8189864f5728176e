"""Which subsets are right, for k_private ≥ 3? Solve a few pixels from those most rows agree on, then judge row by row.

Subsets from readable overlaps (`factor.cliques`) are nearly all right, so that the loop of `solve.feedback` can be shortened:
only rows that do not fit are searched again.

  solve    x from the rows that fit so far (at first: all complete ones), rows weighted down by how badly they fit
  judge    a row is *right* when it is reproduced at more than half of the pixels by columns that two other rows use as well
  search   the rest, from the columns they have, by one-swap descent against x; then from random subsets
  add      vectors that only unexplained rows use (`solve.completion`)

Cost: an iteration is a product with the n×n inverse and three sparse ones, at some hundred pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.records import Progress
from unveil.solve.affine_rrr import Values, solve_all
from unveil.solve.completion import complete
from unveil.solve.feedback import reassign, restart, uses

NEAR = 1e-2
"""What counts as reproduced, relative to the rms of y."""
MOST = 2000
"""Rows searched again at most."""


@dataclass(frozen=True, eq=False)
class Settled:
    """members (m, k); right (m,): rows that these reproduce; columns: names in use."""

    members: NDArray[np.int64]
    right: NDArray[np.bool_]
    columns: int
    rounds: int


def settle_subsets(
    magnitudes: Values,
    a: float,
    members: NDArray[np.int64],
    columns: int,
    rng: np.random.Generator,
    *,
    rounds: int = 12,
    progress: Progress | None = None,
) -> Settled:
    """Solve, judge, search and add until nothing changes; `magnitudes` (m, p) on the pixels to use, −1 for unknown members."""
    y = magnitudes / np.float32(a)
    m, k = members.shape
    near = NEAR * (float(np.sqrt(np.mean(y**2))) or 1.0)
    free = members < 0
    members = np.where(free, rng.integers(0, columns, members.shape), members)
    right, added, done = np.zeros(m, bool), False, 0
    weights = (~free.any(axis=1)).astype(np.float64)
    v = np.float32(np.sqrt(k)) * rng.standard_normal(y.shape, dtype=np.float32)
    for done in range(1, rounds + 1):
        if np.count_nonzero(weights) <= k + 2:
            break
        x, v = solve_all(y, None, members, columns, weights, 1.0, v, steps=60)
        before = right
        right = _right(y, x, members, near) & (np.sort(members, axis=1)[:, 1:] != np.sort(members, axis=1)[:, :-1]).all(axis=1)
        right &= (uses(members[right], columns)[members] >= 3).all(axis=1)
        if progress:
            progress("settling subsets", int(right.sum()), m)
        left = np.flatnonzero(~right)
        if not len(left):
            break
        if 2 * right.sum() < m:
            # Not there yet: rows count by how well they fit.
            cost = np.mean((np.abs(x[members].sum(axis=1)) - y) ** 2, axis=1)
            typical = max(float(np.quantile(cost[weights > 0], 0.3)), 1e-7)
            weights = np.where(free.any(axis=1), 0.0, 1 / (1 + (cost / (2.5 * typical)) ** 2))
            continue
        sound = uses(members[right], columns) >= 3
        if len(left) <= MOST and sound.sum() > k:
            members = members.copy()
            members[left] = _search(y[left], x, members[left], sound, near, rng)
            right[left] = _right(y[left], x, members[left], near)
            left = np.flatnonzero(~right)
            if not added and len(left) >= 2 and np.array_equal(before, right):
                added = True
                members, columns, right = _add(y, x, members, columns, right, sound, near, rng)
        weights = right.astype(np.float64)
        fresh = right & ~before
        v[fresh] = x[members[fresh]].sum(axis=1) if len(x) == columns else v[fresh]
        if added and np.array_equal(before, right):
            break
    return Settled(members, right, columns, done)


def _right(y: Values, x: Values, members: NDArray[np.int64], near: float) -> NDArray[np.bool_]:
    out = np.empty(len(y), bool)
    for s in range(0, len(y), 4096):
        part = slice(s, s + 4096)
        out[part] = (np.abs(np.abs(x[members[part]].sum(axis=1)) - y[part]) < near).mean(axis=1) > 0.5
    return out


def _search(
    y: Values, x: Values, members: NDArray[np.int64], sound: NDArray[np.bool_], near: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The best subsets of sound columns: from the present ones, then from random ones where that does not explain a row."""
    even = np.ones(y.shape[1], np.float32)
    found, cost = reassign(y, x, members, sound, even)
    left = np.flatnonzero(~_right(y, x, found, near))
    if len(left):
        found, _ = restart(y, x, found, cost, left, sound, even, rng, tries=4)
    return found


def _add(
    y: Values,
    x: Values,
    members: NDArray[np.int64],
    columns: int,
    right: NDArray[np.bool_],
    sound: NDArray[np.bool_],
    near: float,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], int, NDArray[np.bool_]]:
    """New columns for vectors that some of the unexplained rows share."""
    names = np.flatnonzero(sound)
    rows, theirs, new = complete(y, x[names].astype(np.float64), members.shape[1], np.flatnonzero(~right), near, rng)
    members, right = members.copy(), right.copy()
    if len(rows):
        members[rows] = np.concatenate([names, columns + np.arange(new)])[theirs]
        right[rows] = True
    return members, columns + new, right
