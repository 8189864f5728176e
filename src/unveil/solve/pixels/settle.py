"""From the subsets on a few pixels to every pixel: solve, drop what does not hold, add what is
missing, solve again.

  1 merge     columns that are one vector get one name
  2 needed    drop encodings with a vector that no other encoding uses: that unknown absorbs
              anything, so they are no evidence
  3 solve     every pixel, twice (`solve.pixels.pixels`)
  4 drop      encodings that are not reproduced where the others are, and those of a vector that is
              a combination of others
  5 complete  once all pixels are solved: encodings left over, by known vectors or by new ones
              (`solve.subsets.completion`)

What "reproduced" and "one vector" mean here is in `solve.model`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.records import Progress
from unveil.solve.model import (
    SETTLED,
    Members,
    Values,
    all_different,
    combinations_of_others,
    merged,
    needed,
    renamed,
    reproduced,
    residual,
    rms,
    uses,
)
from unveil.solve.pixels.pixels import PixelSolution, solve_pixels
from unveil.solve.subsets.completion import Single, complete, once_only, with_repeats

WORST = 0.5
"""Of the rows that are not reproduced, those go first that miss by this share of the worst one. A
wrong row pulls on all that share a vector with it, and most of them come right without it."""
RARE, RARE_SHARE = 3, 0.2
"""A combination of others is dropped when so few subsets use it, or this share of the typical
number: an alias is made up for a few encodings, a true vector that happens to be a combination has
as many as any."""
MOST_LEFT = 1000
"""Encodings looked at one by one at the end; more left over than that means that something else is
wrong."""


@dataclass(frozen=True, eq=False)
class Settled:
    """rows (r,) explained by members (r, k) of the solution; repeats: (rows, members) explained by
    a vector used more than once; singles: vectors that one encoding alone uses."""

    rows: NDArray[np.int64]
    members: Members
    solution: PixelSolution
    repeats: tuple[NDArray[np.int64], Members]
    singles: list[Single]


def settle(
    y: Values,
    c: Values | None,
    rows: NDArray[np.int64],
    members: Members,
    x: Values | None,
    rng: np.random.Generator,
    *,
    completing: bool = True,
    progress: Progress | None = None,
    rounds: int = 12,
) -> Settled | None:
    """y (m, d) = |Σ x + c|, unit weights; start from `rows` with their `members`, and x on some
    pixels where it is known. None: nothing holds. completing: whether to look for the subsets of
    other rows."""
    k = members.shape[1]
    scale = rms(y)
    near = SETTLED.near * scale
    # Unknown values are NaN, and columns of NaN stay apart.
    unknown = np.full((int(members.max(initial=-1)) + 1, 1), np.nan)
    values: NDArray[np.float64] = unknown if x is None else x.astype(np.float64)
    solution = None
    banned = np.empty(0, np.int64)
    for _ in range(rounds):
        # 1. One name per vector. A vector taken twice makes room for the wrong k_private: such rows
        # are explained at the end, and prove nothing.
        members = merged(values, members)
        keep = all_different(members)
        if solution is not None and solution.solved.all():
            # Or two such rows come back as those of a new vector, again and again.
            banned = np.append(banned, rows[~keep])
        rows, members = rows[keep], members[keep]
        # 2. Rows that are evidence.
        keep = needed(members)
        rows, members = rows[keep], members[keep]
        if len(rows) <= k + 2:
            break
        used, members = renamed(members)
        # 3. Every pixel.
        offsets = None if c is None else c[rows]
        solution = solve_pixels(y[rows], offsets, members, len(used), 1.0, rng, progress=progress)
        values = solution.values
        # 4. Drop what does not hold: the worst rows; else merge again; else an alias.
        miss = residual(y[rows], offsets, values, members)
        size = np.sqrt(np.mean(miss**2, axis=1))
        wrong = ~reproduced(miss, near, SETTLED.share) & (size > WORST * size.max())
        if wrong.any():
            rows, members = rows[~wrong], members[~wrong]
        elif not np.array_equal(merged(values, members), members):
            pass
        elif (alias := _alias(values[:, solution.solved], members)) >= 0:
            uses_it = (members == alias).any(axis=1)
            banned = np.append(banned, rows[uses_it])
            rows, members = rows[~uses_it], members[~uses_it]
        elif completing and solution.solved.all() and len(values) > k and len(rows) < len(y):
            # 5. All holds: what else do these vectors explain?
            left = np.setdiff1d(np.arange(len(y)), np.append(rows, banned))
            more, theirs, new = complete(y, c, values, k, left, near, rng)
            if not len(more):
                break
            rows, members = np.append(rows, more), np.vstack([members, theirs])
            values = np.vstack([values, np.full((new, values.shape[1]), np.nan)])
        else:
            break
    if solution is None:
        return None
    # Columns added in the last round were not solved any more.
    solved = (members < len(solution.values)).all(axis=1)
    rows, members = rows[solved], members[solved]
    if len(solution.group) <= k or len(rows) <= k + 2:
        return None
    left = np.setdiff1d(np.arange(len(y)), rows)
    theirs_c = None if c is None else c[left]
    return with_leftovers(rows, members, solution, left, y[left], theirs_c, scale)


def with_leftovers(
    rows: NDArray[np.int64],
    members: Members,
    solution: PixelSolution,
    left: NDArray[np.int64],
    y: Values,
    c: Values | None,
    scale: float,
) -> Settled:
    """What can be said of the encodings `left`, y (left, d), once all pixels are solved: repeats,
    and vectors used once. `scale`: the rms of all encodings."""
    k = members.shape[1]
    if not solution.solved.all() or len(left) > MOST_LEFT:
        return Settled(rows, members, solution, (left[:0], members[:0]), [])
    here = np.arange(len(left))
    found, theirs = with_repeats(y, c, solution.values, k, here, SETTLED.near * scale)
    singles = once_only(y, c, solution.values, k, np.setdiff1d(here, found))
    return Settled(
        rows,
        members,
        solution,
        (left[found], theirs),
        [replace(one, row=int(left[one.row])) for one in singles],
    )


def _alias(x: NDArray[np.float64], members: Members) -> int:
    """A column of few rows that is a combination of others, −1 if there is none.

    2·x_j − x_p explains two encodings that use x_j twice, and casts doubt on all it is made of.
    """
    if len(x) >= x.shape[1]:
        return -1
    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30)
    count = uses(members, len(x))
    rare = count <= max(RARE, RARE_SHARE * float(np.median(count)))
    suspects = np.flatnonzero(combinations_of_others(unit @ unit.T) & rare)
    return int(suspects[count[suspects].argmin()]) if suspects.size else -1
