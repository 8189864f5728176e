"""Which subsets are right, for k_private ≥ 3? The feedback loop cut short, for subsets that are
nearly all right at the start.

Subsets from readable overlaps (`factor.cliques`) need no scoring of every row against every vector
(`solve.subsets.feedback`): only rows that do not fit are searched again.

  1 solve   x from the rows that fit so far; until half of them do, from all complete ones, weighted
            by how well they fit
  2 judge   a row is *exact* when it is reproduced (`model.SHORT_FEEDBACK`) by columns that two
            other rows use as well
  3 search  the others, from the columns they have, by one-swap descent against x; then from the
            likeliest ones
  4 add     vectors that only unexplained rows use (`solve.subsets.completion`), once searching
            finds little more

Cost: an iteration is a product with the n×n inverse and a pass over the rows, at some hundred
pixels; a search k·n per row, pixel and sweep.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.records import Progress
from unveil.solve.affine_rrr import solve_all
from unveil.solve.model import (
    LEAST_USES_SHORT,
    SHORT_FEEDBACK,
    Members,
    Values,
    all_different,
    reproduced,
    residual,
    rms,
    uses,
)
from unveil.solve.pairs.growth import merge_equal
from unveil.solve.pairs.unexplained import likely_members
from unveil.solve.subsets.completion import complete
from unveil.solve.subsets.descent import reassign, restart
from unveil.solve.subsets.feedback import BETTER, DOUBTED, HARDLY, STEPS, Assignment

ROUNDS = 12
"""At most: a few do, for subsets that are nearly all right."""
MOST = 2000
"""Rows searched again in one round, at most: the others follow once x is better for these."""
LITTLE = 10
"""New vectors are looked for once searching explains fewer than one in so many of the rows left:
before, what seems to be missing is mostly a known vector not found yet."""
BLOCK = 4096
"""Rows at a time, for memory."""


def short_feedback(
    y: Values,
    members: Members,
    columns: int,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> Assignment:
    """Solve, judge, search and add until nothing changes: y (m, p) = |Σ x| on the pixels to use, in
    units of a private pixel's rms; −1 for unknown members."""
    m, k = members.shape
    near = SHORT_FEEDBACK.near * rms(y)
    whole = (members >= 0).all(axis=1)
    members = np.where(members >= 0, members, rng.integers(0, max(1, columns), members.shape))
    weights: NDArray[np.float64] = np.where(whole, 1.0, 0.0)
    v = np.float32(np.sqrt(k)) * rng.standard_normal(y.shape, dtype=np.float32)
    x = np.zeros((columns, y.shape[1]), np.float32)
    exact, turn = np.zeros(m, bool), 0
    while turn < ROUNDS and np.count_nonzero(weights) > k + 2:
        turn += 1
        # 1. Solve.
        x, v = solve_all(y, None, members, columns, weights, 1.0, v, steps=STEPS)
        known = np.bincount(members[weights > 0].ravel(), minlength=columns) > 0
        members = merge_equal(x, known, members, near)
        # 2. Judge. Until half of the rows are exact, the others only lose weight.
        exact = _judge(y, x, members, columns, near)
        if progress:
            progress("feedback", int(exact.sum()), m)
        if exact.all():
            break
        if 2 * exact.sum() < m:
            cost = np.mean(residual(y, None, x, members) ** 2, axis=1)
            typical = max(float(np.quantile(cost[weights > 0], BETTER)), HARDLY)
            weights = np.where(whole, 1 / (1 + (cost / (DOUBTED * typical)) ** 2), 0.0)
            continue
        # 3. Search the others among sound columns.
        left = rng.permutation(np.flatnonzero(~exact))[:MOST]
        sound = uses(members[exact], columns) >= LEAST_USES_SHORT
        if sound.sum() <= k:
            break
        members[left] = _search(y[left], x, members[left], sound, near, rng)
        found = left[_reproduced(y[left], x, members[left], near)]
        exact[found] = True
        v[found] = x[members[found]].sum(axis=1)
        # 4. Add vectors.
        new = 0
        if LITTLE * len(found) < len(left):
            rows, theirs, new = complete(
                y, None, x[sound].astype(np.float64), k, np.flatnonzero(~exact), near, rng
            )
            names = np.append(np.flatnonzero(sound), columns + np.arange(new))
            members[rows] = names[theirs]
            exact[rows] = True
            columns += new
        if not (len(found) or new):
            break
        weights = exact.astype(np.float64)
    # Columns that were added last are not solved any more.
    unsolved = np.full((columns - len(x), x.shape[1]), np.nan, np.float32)
    return Assignment(members, np.vstack([x, unsolved]), exact, 0.0, turn)


def _judge(y: Values, x: Values, members: Members, columns: int, near: float) -> NDArray[np.bool_]:
    """Rows reproduced by k different columns, each of them in three such rows or more."""
    exact = _reproduced(y, x, members, near) & all_different(members)
    used = uses(members[exact], columns)
    return np.asarray(exact & (used[members] >= LEAST_USES_SHORT).all(axis=1))


def _reproduced(y: Values, x: Values, members: Members, near: float) -> NDArray[np.bool_]:
    """As `model.SHORT_FEEDBACK` asks, in blocks of rows."""
    out = np.empty(len(y), bool)
    for s in range(0, len(y), BLOCK):
        part = slice(s, s + BLOCK)
        miss = residual(y[part], None, x, members[part])
        out[part] = reproduced(miss, near, SHORT_FEEDBACK.share)
    return out


def _search(
    y: Values,
    x: Values,
    members: Members,
    sound: NDArray[np.bool_],
    near: float,
    rng: np.random.Generator,
) -> Members:
    """The best subsets of sound columns: from the present ones, and where that explains nothing
    from the likeliest ones."""
    even = np.ones(y.shape[1], np.float32)
    found, _ = reassign(y, x, members, sound, even)
    left = np.flatnonzero(~_reproduced(y, x, found, near))
    if len(left):
        names = np.flatnonzero(sound)
        start = names[likely_members(y[left], x[names], members.shape[1])]
        again, cost = reassign(y[left], x, start, sound, even)
        bad = np.flatnonzero(~_reproduced(y[left], x, again, near))
        found[left] = restart(y[left], x, again, cost, bad, sound, even, rng, tries=1)[0]
    return found
