"""The feedback loop: subsets give pixels, pixels give better subsets, until every encoding is
explained exactly.

A first factorisation of noisy overlaps may have fewer than half of its rows right. Yet the pixels
solved from them (`affine_rrr`) are good enough to re-score every row by its residual Σ(|a·Σx + c| −
y)², and a right row then fits *exactly*: noise-free data lock in. Each round:

  solve     x from the present subsets, rows weighted by how well they fit
  reassign  every row takes the k vectors with the smallest residual (`solve.subsets.descent`), with random restarts for rows still
            unexplained
  judge     a row is *exact* when it fits within `TOLERANCE` at more than a third of the pixels; under noise, when it fits
            within 1.5 times the noise at more than `NOISY_SHARE` of them
  repair    columns with little exact support are freed, near-copies merged; what rows are missing is the posterior mean of
            an unknown vector given their best k−1 known ones, and groups of rows that agree on it
            become new columns

On at most a few hundred pixels: the subsets need no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.factor.all_vectors import Factorisation
from unveil.records import Progress
from unveil.solve.affine_rrr import solve_all
from unveil.solve.subsets.descent import Members, Values, best_partners, reassign, restart, uses

TOLERANCE = 0.02
LOUDEST = 0.1
"""Noise, relative to the rms of a private part, beyond which right and wrong subsets are not told
apart by their residuals."""
NOISY_SHARE = 0.65
MOST, SOME = 0.8, 0.3
PATIENCE = (6, 12)
"""Rounds without one more exact row after which the rest is left to later stages: with that share
of rows exact."""


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
    """Alternate between pixels and subsets: y (m, p) = |Σ x + offsets| on the pixels to use, in
    units in which private pixels have rms 1 and every weight is 1; `columns` ≥ the number of
    vectors."""
    m, p = y.shape
    c = offsets
    members, weights = _first_members(start, k, columns)
    if c is None:
        v = np.float32(np.sqrt(k)) * rng.standard_normal((m, p), dtype=np.float32)
    else:
        v = y * np.tanh(y * c / np.float32(k))
    x = np.zeros((columns, p), np.float32)
    exact = np.zeros(m, bool)
    usable = np.ones(columns, bool)
    expected = m * k / max(1, start.W.shape[1])
    noise = 0.0
    done = still = most = 0
    for done in range(1, rounds + 1):
        x, v = solve_all(y, c, members, columns, weights, 1.0, v, steps=200 if done == 1 else 60)
        pixel_weights = _pixel_weights(_misfit(y, x, members, c)[weights > 0])
        old = members
        members, cost = reassign(y, x, members, usable, pixel_weights, c)
        exact, noise = _exact(_misfit(y, x, members, c), members, columns)
        if (
            (k > 2 or c is not None)
            and exact.mean() > (0.5 if c is None else 0.3)
            and not exact.all()
        ):
            members, cost = restart(
                y, x, members, cost, np.flatnonzero(~exact), usable, pixel_weights, rng, c
            )
            exact, noise = _exact(_misfit(y, x, members, c), members, columns)
        changed = (np.sort(members, axis=1) != np.sort(old, axis=1)).any(axis=1)
        v[changed] = x[members[changed]].sum(axis=1) + (0 if c is None else c[changed])
        typical = max(float(np.quantile(cost, 0.3)), 1e-7)
        weights = 1 / (1 + (cost / (2.5 * typical + 1e-4 * k)) ** 2)
        weights[weights < 0.05] = 0
        if exact.mean() > 0.3:
            weights[exact] = np.maximum(weights[exact], 0.5)
        if progress:
            progress("feedback", int(exact.sum()), m)
        still = 0 if exact.sum() > most else still + 1
        most = max(most, int(exact.sum()))
        enough = still >= PATIENCE[0 if exact.mean() > MOST else 1] and exact.mean() > SOME
        if (exact.all() and (noise < TOLERANCE or still)) or enough:
            break
        if exact.mean() > 0.25 and done > 1:
            support = np.bincount(members[exact].ravel(), minlength=columns)
            sound = support >= max(3, 0.25 * expected)
            members = _merge_copies(x, members, support, sound)
            if not sound.all():
                _add_missing(y, c, x, members, v, weights, np.flatnonzero(~exact), sound)
    return Assignment(members, x, exact, noise, done)


def _first_members(
    start: Factorisation, k: int, columns: int
) -> tuple[Members, NDArray[np.float64]]:
    """The factorisation's members, rows weighted by the margin of the k-th to the next score."""
    m, n = start.W.shape
    scores = np.full((m, max(columns, n)), -9.0)
    scores[:, :n] = start.scores
    lead = scores.copy()
    lead[:, :n] += 1e6 * start.W
    members = np.argsort(-lead, axis=1, kind="stable")[:, :k]
    ordered = -np.sort(-scores, axis=1)
    margin = ordered[:, k - 1] - ordered[:, k]
    weights = np.where(margin > 0.15, 2 * np.clip(margin, 0, 0.5), 0.0)
    if (weights > 0).sum() < 2 * n:
        weights = 2 * np.clip(margin, 0.02, 0.5)
    weights = weights * start.trust
    return members.astype(np.int64), weights


def _misfit(y: Values, x: Values, members: Members, c: Values | None) -> Values:
    total = x[members].sum(axis=1)
    if c is not None:
        total += c
    return np.asarray(np.abs(np.abs(total) - y))


def _pixel_weights(miss: Values) -> Values:
    """Pixels that are solved well count for more."""
    spread = np.median(miss, axis=0) ** 2 + 1e-6
    out = 1 / (spread + np.median(spread))
    return np.asarray(out / out.mean(), dtype=np.float32)


def _exact(miss: Values, members: Members, columns: int) -> tuple[NDArray[np.bool_], float]:
    """Rows that fit, and the noise: the residual of the better rows at the typical pixel.

    A column used once fits whatever it is, so its row does not count.
    """
    scale = np.sqrt(members.shape[1])
    noise = float(np.quantile(np.median(miss, axis=1), 0.3)) / 0.6745
    exact = (miss < TOLERANCE * scale).mean(axis=1) > 0.35
    if noise < LOUDEST * scale:
        exact |= (miss < 1.5 * noise).mean(axis=1) > NOISY_SHARE
    return np.asarray(exact & (uses(members[exact], columns)[members] >= 2).all(axis=1)), noise


def _merge_copies(
    x: Values, members: Members, support: NDArray[np.int64], sound: NDArray[np.bool_]
) -> Members:
    """Two columns that are nearly one vector become one; the other is free for something new
    (marked in `sound`)."""
    unit = x / (np.linalg.norm(x, axis=1, keepdims=True) + 1e-9)
    alike = np.triu(unit @ unit.T, 1) > 0.9
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
    partners = np.empty((len(rows), k - 1), np.int64)
    for r, i in enumerate(rows):
        partners[r] = best_partners(y[i], x, members[i], known, sound, None if c is None else c[i])
    mean = x[partners].sum(axis=1) + (0 if c is None else c[rows])
    guess = y[rows] * np.tanh(y[rows] * mean) - mean
    unit = guess / (np.linalg.norm(guess, axis=1, keepdims=True) + 1e-9)
    alike = unit @ unit.T > 0.45
    np.fill_diagonal(alike, False)
    free = np.ones(len(rows), bool)
    for column in np.flatnonzero(~sound):
        degree = (alike & free[None, :]).sum(axis=1) * free
        i = int(degree.argmax())
        if degree[i] < 2:
            return
        group = np.append(np.flatnonzero(alike[i] & free), i)
        x[column] = 1.2 * np.median(guess[group], axis=0)
        free[group] = False
        members[rows[group], : k - 1] = partners[group]
        members[rows[group], k - 1] = column
        weights[rows[group]] = 0.5
        v[rows[group]] = x[members[rows[group]]].sum(axis=1) + (0 if c is None else c[rows[group]])
