"""From the subsets on a few pixels to every pixel: solve, drop what does not hold, add what is
missing, solve again.

merge     columns that are one vector get one name
needed    a row with a column of its own says nothing
solve     every pixel, twice (`solve.pixels.pixels`)
drop      rows that are not reproduced where the others are, and those of a column that is a combination of others
complete  once all pixels are solved: rows left over, by known vectors or by new ones (`solve.subsets.completion`)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.records import Progress
from unveil.solve.pixels.pixels import PixelSolution, solve_pixels
from unveil.solve.subsets.completion import Single, complete, once_only, with_repeats
from unveil.solve.subsets.descent import Members, Values, uses

TOLERANCE = 1e-3
"""Largest residual of a reproduced encoding, relative to the rms of y."""
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
    rms = float(np.sqrt(np.mean(np.square(y, dtype=np.float64))))
    # Unknown values are NaN, and columns of NaN stay apart.
    unknown = np.full((int(members.max(initial=-1)) + 1, 1), np.nan)
    values: NDArray[np.float64] = unknown if x is None else x.astype(np.float64)
    solution = None
    banned = np.empty(0, np.int64)
    for _ in range(rounds):
        members = merge(values, members)
        # A vector taken twice makes room for the wrong k_private: such rows are explained at the
        # end, and prove nothing.
        keep = (np.diff(np.sort(members, axis=1), axis=1) > 0).all(axis=1)
        if solution is not None and solution.solved.all():
            banned = np.append(
                banned, rows[~keep]
            )  # or two such rows come back as those of a new vector, again and again
        rows, members = rows[keep], members[keep]
        keep = _needed(members)
        rows, members = rows[keep], members[keep]
        if len(rows) <= k + 2:
            break
        used, names = np.unique(members, return_inverse=True)
        members = names.reshape(members.shape).astype(np.int64)
        offsets = None if c is None else c[rows]
        solution = solve_pixels(y[rows], offsets, members, len(used), 1.0, rng, progress=progress)
        values = solution.values
        total = values[members].sum(axis=1) + (0 if offsets is None else offsets)
        miss = np.abs(np.abs(total) - y[rows])
        # A wrong row pulls on all that share a vector with it: only those that miss most are
        # dropped at a time.
        size = np.sqrt(np.mean(miss**2, axis=1))
        wrong = ((miss > TOLERANCE * rms).mean(axis=1) > 0.05) & (size > 0.5 * size.max())
        if wrong.any():
            rows, members = rows[~wrong], members[~wrong]
        elif not np.array_equal(merge(values, members), members):
            pass
        elif (alias := _alias(values[:, solution.solved], members)) >= 0:
            uses_it = (members == alias).any(axis=1)
            banned = np.append(banned, rows[uses_it])
            rows, members = rows[~uses_it], members[~uses_it]
        elif completing and solution.solved.all() and len(values) > k and len(rows) < len(y):
            left = np.setdiff1d(np.arange(len(y)), np.append(rows, banned))
            more, theirs, new = complete(y, c, values, k, left, TOLERANCE * rms, rng)
            if not len(more):
                break
            rows, members = np.append(rows, more), np.vstack([members, theirs])
            values = np.vstack([values, np.full((new, values.shape[1]), np.nan)])
        else:
            break
    if solution is None:
        return None
    solved = (members < len(solution.values)).all(
        axis=1
    )  # columns added in the last round were not solved any more
    rows, members = rows[solved], members[solved]
    if len(solution.group) <= k or len(rows) <= k + 2:
        return None
    left = np.setdiff1d(np.arange(len(y)), rows)
    return with_leftovers(
        rows, members, solution, left, y[left], None if c is None else c[left], rms
    )


def with_leftovers(
    rows: NDArray[np.int64],
    members: Members,
    solution: PixelSolution,
    left: NDArray[np.int64],
    y: Values,
    c: Values | None,
    rms: float,
) -> Settled:
    """What can be said of the encodings `left`, y (left, d), once all pixels are solved: repeats,
    and vectors used once."""
    k = members.shape[1]
    if not solution.solved.all() or len(left) > MOST_LEFT:
        return Settled(rows, members, solution, (left[:0], members[:0]), [])
    here = np.arange(len(left))
    found, theirs = with_repeats(y, c, solution.values, k, here, TOLERANCE * rms)
    singles = once_only(y, c, solution.values, k, np.setdiff1d(here, found))
    return Settled(
        rows,
        members,
        solution,
        (left[found], theirs),
        [replace(one, row=int(left[one.row])) for one in singles],
    )


def reproduced(y: Values, total: Values) -> NDArray[np.bool_]:
    """Rows whose sums `total` are theirs up to signs, at nearly all pixels."""
    rms = float(np.sqrt(np.mean(np.square(y, dtype=np.float64)))) if y.size else 1.0
    return np.asarray((np.abs(np.abs(total) - y) > TOLERANCE * rms).mean(axis=1) <= 0.05)


def merge(x: NDArray[np.float64], members: Members) -> Members:
    """Columns that are one vector get one name (columns not solved yet are NaN and stay apart)."""
    scale = np.linalg.norm(x, axis=1) + 1e-9
    alike = np.triu((x @ x.T) / np.outer(scale, scale), 1) > 0.98
    name = np.arange(len(x))
    for i, j in np.argwhere(alike):
        name[name == name[j]] = name[i]
    return np.asarray(name[members])


def _alias(x: NDArray[np.float64], members: Members) -> int:
    """A column of few rows that is a combination of others, −1 if there is none.

    2·x_j − x_p explains two encodings that use x_j twice, and casts doubt on all it is made of.
    """
    if len(x) >= x.shape[1]:
        return -1
    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30)
    spectrum, vectors = np.linalg.eigh(unit @ unit.T)
    share = np.linalg.norm(vectors[:, spectrum < 1e-7], axis=1)
    count = uses(members, len(x))
    suspects = np.flatnonzero((share > 1e-2) & (count <= max(3, 0.2 * float(np.median(count)))))
    return int(suspects[count[suspects].argmin()]) if suspects.size else -1


def _needed(members: Members) -> NDArray[np.bool_]:
    """Rows that say something: a column that only one row uses explains that row whatever it is."""
    keep = np.ones(len(members), bool)
    while True:
        lonely = keep & (uses(members[keep], int(members.max(initial=0)) + 1)[members] < 2).any(
            axis=1
        )
        if not lonely.any():
            return keep
        keep &= ~lonely
