"""The feedback loop: subsets give pixels, pixels give better subsets, until every encoding is
explained exactly.

A first factorisation of noisy overlaps may have fewer than half of its rows right. Yet the pixels
solved from them (`affine_rrr`) are good enough to re-score every row by its residual Σ(|a·Σx + c| −
y)², and a right row then fits *exactly*: noise-free data lock in. Each round:

  1 solve     x from the present subsets, rows weighted by how well they fit
  2 reassign  every row takes the k vectors with the smallest residual (`solve.subsets.descent`),
              with random restarts for rows that stay unexplained
  3 judge     a row is *exact* when it fits as `model.FEEDBACK` asks, or within the noise as
              `model.NOISY` does; rows that do not fit lose their weight in the next solve
  4 stop      when all rows are exact, or none has been added for a while
  5 repair    columns with little exact support are freed, near-copies merged; groups of rows that
              miss one and the same vector get a freed column for it

On at most a few hundred pixels: the subsets need no more.

The numbers below steer the search, and prove nothing: whatever comes out is solved at every pixel
and certified afterwards. Results hardly hinge on them. On eight instances of 12 to 20 vectors and 4
to 6 encodings for each (k = 2 and 3, a public part, noise) ten of them were about halved and
doubled: all that came back was the same, but for one instance that `CLEAR_MARGIN` of 0.3 lost.
Seconds changed by up to four times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.factor.all_vectors import Factorisation
from unveil.folded import signed
from unveil.records import Progress
from unveil.solve.affine_rrr import solve_all
from unveil.solve.model import (
    FEEDBACK,
    LEAST_USES,
    LOUDEST,
    MEDIAN,
    NEARLY_SAME,
    NOISY,
    Members,
    Values,
    reproduced,
    residual,
    uses,
)
from unveil.solve.subsets.descent import best_partners, reassign, restart

FIRST_STEPS, STEPS = 200, 60
"""Iterations of the first solve, which starts from random signs, and of later ones, which start
from where the last one ended."""
RESTART, RESTART_PUBLIC = 0.5, 0.3
"""Share of exact rows from which the others are searched from random subsets. Before, x is too poor
for a right subset to show. With a public part signs are known, and x is good earlier."""
BETTER = 0.3
"""The quantile of rows that are taken to be right, to tell what a right row misses by: a first
guess has at least so many."""
DOUBTED = 2.5
"""A row that misses, in squares, by so many times what right rows do counts half."""
HARDLY, HARDLY_PER_MEMBER = 1e-7, 1e-4
"""Floors of that comparison, or rounding would decide between rows that all fit: of what right rows
miss by, and per member of what is allowed."""
DROPPED = 0.05
"""Rows of less weight are left out of the solve: they would only slow it down."""
TRUSTED, TRUSTED_WEIGHT = 0.3, 0.5
"""From this share of exact rows on, exact ones count at least so much: weights follow the mean
residual, which a few bad pixels can spoil."""
MOST, SOME = 0.8, 0.3
"""Shares of exact rows that `PATIENCE` knows."""
PATIENCE = (6, 12)
"""Rounds without one more exact row after which the rest is left to later stages: the first where
more than `MOST` of the rows are exact, the second where more than `SOME` are. Below, only the end
of all rounds stops the loop."""
FIRST_EXACT, WORK = 12, 2e11
"""Rounds without any exact row after which the loop ends: the first at least, and as many as the
second number of multiplications allows. Of instances at the edge of what is possible one had its
first exact row in round 34; where m is small that many are made, and where a round takes seconds a
dozen."""
REPAIRED = 0.25
"""Share of exact rows from which columns are judged by their support."""
FEWEST_ROWS, SUPPORT = 3, 0.25
"""A column is sound with three exact rows, and a quarter of those a vector has on average: fewer
can fit by chance, or belong to a copy of another column."""
ALIKE = 0.45
"""Cosine of two guesses at the missing vector of two rows, from which they are taken for the same.
In the Gaussian model two right guesses have a cosine of 0.52 for k = 2, of 0.63 for k = 3 and more
beyond; those at different vectors scatter about 0 by 1/√pixels."""
SHRUNK = 1.2
"""A posterior mean is shorter than the vector it stands for: five rows' median by a factor of 1.24
for k = 2, of 1.13 for k = 3."""
CLEAR_MARGIN, MARGIN = 0.15, 0.5
"""Rows of the first guess that are used at all: the k-th score is ahead of the next by this much.
Beyond the second a lead says no more."""
ANY_MARGIN = 0.02
"""Where too few rows are clear all are used, those without a lead with this weight."""
EMPTY, CHOSEN = -9.0, 1e6
"""Below and above all scores, which are about 0 and 1: for columns that the first guess does not
have, and for those that it chose."""
EVEN = 1e-6
"""Added to a pixel's squared residual, so that one solved to rounding does not outweigh all."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """members (m, k): the columns each encoding uses; x (columns, pixels) in units of a private
    pixel's rms; exact (m,): rows explained at most pixels; noise: its size in the same units."""

    members: Members
    x: Values
    exact: NDArray[np.bool_]
    noise: float
    rounds: int


def feedback(
    y: Values,
    k: int,
    start: Factorisation,
    columns: int,
    rng: np.random.Generator,
    *,
    offsets: Values | None = None,
    rounds: int = 40,
    progress: Progress | None = None,
) -> Assignment:
    """Alternate between pixels and subsets.

    y (m, p) = |Σ x + offsets| on the pixels to use, in units in which private pixels have rms 1 and
    every weight is 1; `columns`: at least as many as there are vectors.
    """
    m, p = y.shape
    c = offsets
    members, weights = _first_members(start, k, columns)
    # v holds the signed encodings: random to begin with, or y with the signs that the public part
    # suggests, each as sure as it is.
    if c is None:
        v = np.float32(np.sqrt(k)) * rng.standard_normal((m, p), dtype=np.float32)
    else:
        v = signed(y, c, np.float32(k))
    x = np.zeros((columns, p), np.float32)
    exact = np.zeros(m, bool)
    usable = np.ones(columns, bool)
    expected = m * k / max(1, start.W.shape[1])
    noise = 0.0
    done = still = most = 0
    pairs = columns**2 / 2 if k == 2 else k * columns
    hopeless = max(FIRST_EXACT, int(WORK / (2 * pairs * m * p)))
    for done in range(1, rounds + 1):
        # 1. Solve: pixels from the present subsets.
        steps = FIRST_STEPS if done == 1 else STEPS
        x, v = solve_all(y, c, members, columns, weights, 1.0, v, steps=steps)
        pixel_weights = _pixel_weights(residual(y, c, x, members)[weights > 0])
        # 2. Reassign: the best subset of every row. For pairs without a public part that looked at
        # all pairs already; else one-swap descent can get stuck, and starts again.
        old = members
        members, cost = reassign(y, x, members, usable, pixel_weights, c)
        exact, noise = _exact(residual(y, c, x, members), members, columns)
        searched = k == 2 and c is None
        enough = exact.mean() > (RESTART if c is None else RESTART_PUBLIC)
        if not searched and enough and not exact.all():
            left = np.flatnonzero(~exact)
            members, cost = restart(y, x, members, cost, left, usable, pixel_weights, rng, c)
            exact, noise = _exact(residual(y, c, x, members), members, columns)
        changed = (np.sort(members, axis=1) != np.sort(old, axis=1)).any(axis=1)
        v[changed] = x[members[changed]].sum(axis=1) + (0 if c is None else c[changed])
        # 3. Judge: rows count by how well they fit, beside the better ones.
        typical = max(float(np.quantile(cost, BETTER)), HARDLY)
        weights = 1 / (1 + (cost / (DOUBTED * typical + HARDLY_PER_MEMBER * k)) ** 2)
        weights[weights < DROPPED] = 0
        if exact.mean() > TRUSTED:
            weights[exact] = np.maximum(weights[exact], TRUSTED_WEIGHT)
        if progress:
            progress("feedback", int(exact.sum()), m)
        # 4. Stop. With noise a round more is made after the last row is exact, for better pixels.
        still = 0 if exact.sum() > most else still + 1
        most = max(most, int(exact.sum()))
        patience = PATIENCE[0 if exact.mean() > MOST else 1]
        if exact.all() and (noise < FEEDBACK.near or still):
            break
        if (still >= patience and exact.mean() > SOME) or (not most and done >= hopeless):
            break
        # 5. Repair: not after the first round, whose x is the poorest.
        if exact.mean() > REPAIRED and done > 1:
            support = np.bincount(members[exact].ravel(), minlength=columns)
            sound = support >= max(FEWEST_ROWS, SUPPORT * expected)
            members = _merge_copies(x, members, support, sound)
            if not sound.all():
                _add_missing(y, c, x, members, v, weights, np.flatnonzero(~exact), sound)
    return Assignment(members, x, exact, noise, done)


def _first_members(
    start: Factorisation, k: int, columns: int
) -> tuple[Members, NDArray[np.float64]]:
    """The factorisation's members, rows weighted by the margin of the k-th to the next score."""
    m, n = start.W.shape
    scores = np.full((m, max(columns, n)), EMPTY)
    scores[:, :n] = start.scores
    lead = scores.copy()
    lead[:, :n] += CHOSEN * start.W
    members = np.argsort(-lead, axis=1, kind="stable")[:, :k]
    ordered = -np.sort(-scores, axis=1)
    margin = ordered[:, k - 1] - ordered[:, k]
    weights = np.where(margin > CLEAR_MARGIN, 2 * np.clip(margin, 0, MARGIN), 0.0)
    if (weights > 0).sum() < 2 * n:
        weights = 2 * np.clip(margin, ANY_MARGIN, MARGIN)
    weights = weights * start.trust
    return members.astype(np.int64), weights


def _pixel_weights(miss: Values) -> Values:
    """Pixels that are solved well count for more; where no row is trusted, all count alike."""
    if not len(miss):
        return np.ones(miss.shape[1], dtype=np.float32)
    spread = np.median(miss, axis=0) ** 2 + EVEN
    out = 1 / (spread + np.median(spread))
    return np.asarray(out / out.mean(), dtype=np.float32)


def _exact(miss: Values, members: Members, columns: int) -> tuple[NDArray[np.bool_], float]:
    """Rows that fit, and the noise: the residual of the better rows at the typical pixel.

    A column used once fits whatever it is, so its row does not count.
    """
    scale = np.sqrt(members.shape[1])
    noise = float(np.quantile(np.median(miss, axis=1), BETTER)) / MEDIAN
    exact = reproduced(miss, FEEDBACK.near * scale, FEEDBACK.share)
    if noise < LOUDEST * scale:
        exact |= reproduced(miss, NOISY.near * noise, NOISY.share)
    used = uses(members[exact], columns)
    return np.asarray(exact & (used[members] >= LEAST_USES).all(axis=1)), noise


def _merge_copies(
    x: Values, members: Members, support: NDArray[np.int64], sound: NDArray[np.bool_]
) -> Members:
    """Two columns that are nearly one vector become one; the other is free for something new
    (marked in `sound`)."""
    unit = x / (np.linalg.norm(x, axis=1, keepdims=True) + 1e-12)
    alike = np.triu(unit @ unit.T, 1) > NEARLY_SAME
    for i, j in np.argwhere(alike):
        if sound[i] and sound[j]:
            less, more = (i, j) if support[i] < support[j] else (j, i)
            sound[less] = False
            members = np.where(members == less, more, members)
    return members


def _add_missing(
    y: Values,
    c: Values | None,
    x: Values,
    members: Members,
    v: Values,
    weights: NDArray[np.float64],
    rows: NDArray[np.int64],
    sound: NDArray[np.bool_],
) -> None:
    """Fill freed columns in place from rows that one unknown vector would explain (its pixels have
    rms 1)."""
    k = members.shape[1]
    known = np.flatnonzero(sound)
    if len(known) < k or len(rows) < 2:
        return
    # 1. What each row misses: the posterior mean of an unknown vector, given the k−1 known ones
    # under which the row is likeliest.
    partners = np.empty((len(rows), k - 1), np.int64)
    for r, i in enumerate(rows):
        partners[r] = best_partners(y[i], x, members[i], known, sound, None if c is None else c[i])
    mean = x[partners].sum(axis=1) + (0 if c is None else c[rows])
    guess = signed(y[rows], mean) - mean
    # 2. Rows whose guesses agree miss the same vector: the largest group first, three at least.
    unit = guess / (np.linalg.norm(guess, axis=1, keepdims=True) + 1e-12)
    alike = unit @ unit.T > ALIKE
    np.fill_diagonal(alike, False)
    free = np.ones(len(rows), bool)
    for column in np.flatnonzero(~sound):
        degree = (alike & free[None, :]).sum(axis=1) * free
        i = int(degree.argmax())
        if degree[i] < 2:
            return
        group = np.append(np.flatnonzero(alike[i] & free), i)
        x[column] = SHRUNK * np.median(guess[group], axis=0)
        free[group] = False
        # 3. They take the new column, and a say in the next solve.
        members[rows[group], : k - 1] = partners[group]
        members[rows[group], k - 1] = column
        weights[rows[group]] = TRUSTED_WEIGHT
        v[rows[group]] = x[members[rows[group]]].sum(axis=1) + (0 if c is None else c[rows[group]])
