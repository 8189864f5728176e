"""Subsets under loud noise: the likeliest ones, where no row fits exactly any more.

Each round, on a few hundred pixels:

  1 solve     x from the present subsets (`pixels.loud`), and the noise
  2 merge     columns that differ by no more than their errors are one vector; columns that few rows
              use are given up
  3 reassign  every row takes the subset with the smallest residual (`subsets.descent`)
  4 judge     a row is explained when its members make it likelier than any of them replaced by an
              unknown vector, by more than the number of choices there were

What comes out is held against chance on rows that x was not made from (`pixels.left_out`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from unveil.folded import log_density
from unveil.records import Progress
from unveil.solve.model import Members, Values, all_different, renamed
from unveil.solve.pixels.chance import LUCK
from unveil.solve.pixels.loud import Design, solve_loud
from unveil.solve.subsets.descent import reassign, restart

ROUNDS = 8
"""Rounds at most; from a factorisation with nine rows of ten right it takes three."""
FEWEST = 3
"""Rows that a column needs: two say nothing of each other that noise would not."""
RARE = 0.25
"""The same as a share of the typical number: a second column of one vector has a few of its rows,
and values too poor to be recognised by."""
SAME = 3.0
"""Two columns are one vector when their mean squared difference is below so many times what their
errors make it: sharing rows and hidden signs add to these, and different vectors are ten times as
far apart."""


@dataclass(frozen=True, eq=False)
class Likely:
    """members (m, k) of n columns; explained (m,): rows whose members are all backed; noise: its
    standard deviation."""

    members: Members
    n: int
    explained: NDArray[np.bool_]
    noise: float


def likely_subsets(
    y: Values,
    members: Members,
    n: int,
    noise: float,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> Likely | None:
    """From a first guess at the members of y (m, p), unit weights. None: too few columns stay."""
    m, k = members.shape
    rows = np.arange(m)
    even = np.ones(y.shape[1], np.float32)
    explained = np.zeros(m, bool)
    for _ in range(ROUNDS):
        # 1. Values, from the rows that count.
        used, named = renamed(members[rows])
        n = len(used)
        if n <= k or len(rows) <= n:
            return None
        loud = solve_loud(y[rows], named, n, noise, rng, fine=False)
        noise, x = loud.noise, loud.x
        # 2. One name for one vector, and none for what few rows use.
        design = Design(named, n)
        first = _same(x, design, noise)
        uses = np.bincount(first[named].ravel(), minlength=n)
        least = max(FEWEST, RARE * float(np.median(uses)))
        usable = (uses >= least) & (first == np.arange(n))
        if usable.sum() <= k:
            return None
        # 3. Every row's best subset.
        x32 = np.ascontiguousarray(x, dtype=np.float32)
        start = np.tile(np.flatnonzero(usable)[:k], (m, 1))
        start[rows] = first[named]
        fresh = ~(usable[start].all(axis=1) & all_different(start))
        start[fresh] = np.flatnonzero(usable)[:k]
        found, cost = reassign(y, x32, start, usable, even)
        explained = backed(y, x, found, noise)
        if k > 2 and not explained.all():
            left = np.flatnonzero(~explained)
            found, _ = restart(y, x32, found, cost, left, usable, even, rng)
            explained = backed(y, x, found, noise)
        if progress:
            progress("subsets", int(explained.sum()), m)
        # 4. Until no row changes.
        found = used[found]
        still = np.array_equal(np.sort(found, axis=1), np.sort(members, axis=1))
        members = found
        fits = explained if 2 * explained.sum() > m else np.ones(m, bool)
        if still and np.array_equal(np.flatnonzero(fits), rows):
            break
        rows = np.flatnonzero(fits)
    return Likely(members, n, explained, noise)


def _same(x: NDArray[np.float64], design: Design, noise: float) -> NDArray[np.int64]:
    """(n,) the first column that is the same vector as each one."""
    size = np.einsum("ij,ij->i", x, x)
    apart = np.maximum(size[:, None] + size - 2 * x @ x.T, 0.0) / x.shape[1]
    error = np.diag(design.C)
    same = apart < SAME * noise**2 * (error[:, None] + error - 2 * design.C)
    group = connected_components(coo_array(same), directed=False)[1]
    return np.asarray(np.unique(group, return_index=True)[1][group], np.int64)


def backed(y: Values, x: NDArray[np.float64], members: Members, noise: float) -> NDArray[np.bool_]:
    """Rows that all of their members make likelier: each one held against an unknown vector."""
    k = members.shape[1]
    total = x[members].sum(axis=1)
    variance = noise**2
    full = log_density(y, total, variance).sum(axis=1)
    unknown = variance + float(np.mean(np.square(x)))
    without = np.max(
        [log_density(y, total - x[members[:, j]], unknown).sum(axis=1) for j in range(k)], axis=0
    )
    return np.asarray(full > without + log(len(x)) + LUCK)
