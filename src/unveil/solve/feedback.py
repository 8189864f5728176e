"""The feedback loop: subsets give pixels, pixels give better subsets, until every encoding is explained exactly.

A first factorisation of noisy overlaps may have fewer than half of its rows right. Yet the pixels solved from them
(`affine_rrr`) are good enough to re-score every row by its residual Σ(|a·Σx| − y)², and a right row then fits *exactly*:
noise-free data lock in. Each round:

  solve     x from the present subsets, rows weighted by how well they fit
  reassign  every row takes the k vectors with the smallest residual: all pairs at once for k = 2 (one matrix product),
            one-swap descent for k ≥ 3, with random restarts for rows still unexplained
  judge     a row is *exact* when it fits within `TOLERANCE` at more than a third of the pixels
  repair    columns with little exact support are freed, near-copies merged; what rows are missing is the posterior mean of
            an unknown vector given their best k−1 known ones, and groups of rows that agree on it become new columns

On at most a few hundred pixels: the subsets need no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.factor.all_vectors import Factorisation
from unveil.records import Progress
from unveil.solve.affine_rrr import solve_all

Values = NDArray[np.float32]
Members = NDArray[np.int64]
TOLERANCE = 0.02


@dataclass(frozen=True, eq=False)
class Assignment:
    """members (m, k): the columns each encoding uses; x (columns, pixels); exact (m,): rows explained at most pixels."""

    members: Members
    x: Values
    exact: NDArray[np.bool_]
    rounds: int


def feedback(
    magnitudes: Values,
    k: int,
    a: float,
    start: Factorisation,
    columns: int,
    rng: np.random.Generator,
    *,
    rounds: int = 40,
    progress: Progress | None = None,
) -> Assignment:
    """Alternate between pixels and subsets; `magnitudes` (m, p) on the pixels to use, `columns` ≥ the number of vectors."""
    y = magnitudes / np.float32(a)  # unit weights from here on: |Σ x| = y
    m, p = y.shape
    members, weights = _first_members(start, k, columns)
    v = np.float32(np.sqrt(k)) * rng.standard_normal((m, p), dtype=np.float32)
    x = np.zeros((columns, p), np.float32)
    exact = np.zeros(m, bool)
    usable = np.ones(columns, bool)
    expected = m * k / max(1, start.W.shape[1])
    done = 0
    for done in range(1, rounds + 1):
        x, v = solve_all(y, None, members, columns, weights, 1.0, v, steps=200 if done == 1 else 60)
        pixel_weights = _pixel_weights(y, x, members, weights)
        old = members
        members, cost = reassign(y, x, members, usable, pixel_weights)
        exact = _exact(y, x, members, columns)
        if k > 2 and exact.mean() > 0.5 and not exact.all():
            members, cost = restart(y, x, members, cost, np.flatnonzero(~exact), usable, pixel_weights, rng)
            exact = _exact(y, x, members, columns)
        changed = (np.sort(members, axis=1) != np.sort(old, axis=1)).any(axis=1)
        v[changed] = x[members[changed]].sum(axis=1)
        typical = max(float(np.quantile(cost, 0.3)), 1e-7)
        weights = 1 / (1 + (cost / (2.5 * typical + 1e-4 * k)) ** 2)
        weights[weights < 0.05] = 0
        if exact.mean() > 0.3:
            weights[exact] = np.maximum(weights[exact], 0.5)
        if progress:
            progress("feedback", int(exact.sum()), m)
        if exact.all():
            break
        if exact.mean() > 0.25 and done > 1:
            support = np.bincount(members[exact].ravel(), minlength=columns)
            sound = support >= max(3, 0.25 * expected)
            members = _merge_copies(x, members, support, sound)
            if not sound.all():
                _add_missing(y, x, members, v, weights, np.flatnonzero(~exact), sound)
    return Assignment(members, x, exact, done)


def _first_members(start: Factorisation, k: int, columns: int) -> tuple[Members, NDArray[np.float64]]:
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
    return members.astype(np.int64), weights


def _pixel_weights(y: Values, x: Values, members: Members, weights: NDArray[np.float64]) -> Values:
    """Pixels that are solved well count for more."""
    miss = np.abs(np.abs(x[members].sum(axis=1)) - y)[weights > 0]
    spread = np.median(miss, axis=0) ** 2 + 1e-6
    out = 1 / (spread + np.median(spread))
    return np.asarray(out / out.mean(), dtype=np.float32)


def _exact(y: Values, x: Values, members: Members, columns: int) -> NDArray[np.bool_]:
    """Rows that fit at more than a third of the pixels; a column used once fits whatever it is, so its row does not count."""
    near = np.abs(np.abs(x[members].sum(axis=1)) - y) < TOLERANCE * np.sqrt(members.shape[1])
    exact = near.mean(axis=1) > 0.35
    return np.asarray(exact & (uses(members[exact], columns)[members] >= 2).all(axis=1))


def uses(members: Members, columns: int) -> NDArray[np.int64]:
    """In how many *different* subsets each column occurs: an encoding drawn twice says nothing new."""
    distinct = np.unique(np.sort(members, axis=1), axis=0)
    return np.bincount(distinct.ravel(), minlength=columns)


def reassign(
    y: Values, x: Values, members: Members, usable: NDArray[np.bool_], pixel_weights: Values
) -> tuple[Members, NDArray[np.float64]]:
    """The best subset of every row and its mean squared residual."""
    if members.shape[1] == 2:
        return _all_pairs(y, x, usable, pixel_weights)
    members = members.copy()
    cost = np.empty(len(y), np.float32)
    _descend(y, x, members, np.arange(len(y)), cost, usable, 4, pixel_weights)
    return members, np.maximum(cost.astype(np.float64) / y.shape[1], 0)


def _all_pairs(
    y: Values, x: Values, usable: NDArray[np.bool_], pixel_weights: Values, block: int = 16384
) -> tuple[Members, NDArray[np.float64]]:
    """k = 2: Σ w(|x_a + x_b| − y)² for all pairs and rows, as a matrix product over blocks of pairs."""
    columns = np.flatnonzero(usable)
    a, b = (columns[side] for side in np.triu_indices(len(columns), 1))
    scale = np.sqrt(pixel_weights)
    weighted = y * scale
    best = np.full(len(y), np.inf, np.float32)
    members = np.zeros((len(y), 2), np.int64)
    for s in range(0, len(a), block):
        pairs = np.abs(x[a[s : s + block]] + x[b[s : s + block]]) * scale
        cost = np.einsum("ij,ij->i", pairs, pairs)[None, :] - 2 * (weighted @ pairs.T)
        j = cost.argmin(axis=1)
        value = cost[np.arange(len(y)), j]
        better = value < best
        best[better] = value[better]
        members[better, 0], members[better, 1] = a[s + j[better]], b[s + j[better]]
    square = np.einsum("ij,ij->i", weighted, weighted)
    return members, np.maximum((square + best).astype(np.float64) / y.shape[1], 0)


def restart(
    y: Values,
    x: Values,
    members: Members,
    cost: NDArray[np.float64],
    rows: NDArray[np.int64],
    usable: NDArray[np.bool_],
    pixel_weights: Values,
    rng: np.random.Generator,
    tries: int = 10,
) -> tuple[Members, NDArray[np.float64]]:
    """Descend again from random subsets for rows that are not explained; keep what is better."""
    members, cost = members.copy(), cost.copy()
    columns = np.flatnonzero(usable)
    k = members.shape[1]
    for _ in range(tries):
        trial = members.copy()
        keys = rng.random((len(rows), len(columns)))
        trial[rows] = columns[np.argpartition(keys, k - 1, axis=1)[:, :k]]
        value = np.empty(len(y), np.float32)
        _descend(y, x, trial, rows, value, usable, 6, pixel_weights)
        better = rows[value[rows] / y.shape[1] < cost[rows] - 1e-7]
        members[better], cost[better] = trial[better], value[better] / y.shape[1]
    return members, cost


def _merge_copies(x: Values, members: Members, support: NDArray[np.int64], sound: NDArray[np.bool_]) -> Members:
    """Two columns that are nearly one vector become one; the other is free for something new (marked in `sound`)."""
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
    x: Values,
    members: Members,
    v: Values,
    weights: NDArray[np.float64],
    rows: NDArray[np.int64],
    sound: NDArray[np.bool_],
) -> None:
    """Fill freed columns in place from rows that one unknown vector would explain (unit weights, so its variance is 1)."""
    k = members.shape[1]
    known = np.flatnonzero(sound)
    if len(known) < k or len(rows) < 2:
        return
    partners = np.empty((len(rows), k - 1), np.int64)
    for r, i in enumerate(rows):
        partners[r] = best_partners(y[i], x, members[i], known, sound)
    mean = x[partners].sum(axis=1)
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
        v[rows[group]] = x[members[rows[group]]].sum(axis=1)


def best_partners(
    y: Values, x: Values, present: Members, known: NDArray[np.int64], sound: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The k−1 known columns under which y, with one more unknown standard vector, is most likely: descent by one swap."""
    k = len(present)
    chosen = [int(c) for c in present if sound[c]][: k - 1]
    chosen += [int(c) for c in known if c not in chosen][: k - 1 - len(chosen)]
    last = -np.inf
    for _ in range(4):
        value = -np.inf
        for place in range(k - 1):
            others = [c for q, c in enumerate(chosen) if q != place]
            mean = x[known] + x[others].sum(axis=0)
            z = np.abs(mean) * y
            fit = (-0.5 * mean * mean + z + np.log1p(np.exp(-2 * z))).sum(axis=1)
            fit[np.isin(known, others)] = -np.inf
            best = int(fit.argmax())
            chosen[place], value = int(known[best]), float(fit[best])
        if value <= last + 1e-6:
            break
        last = value
    return np.array(chosen, dtype=np.int64)


@njit(cache=True, nogil=True, fastmath=True)
def _descend(y, x, members, rows, cost, usable, sweeps, pixel_weights):  # type: ignore[no-untyped-def]
    """One-swap descent of Σ w(|Σ x| − y)² over subsets, for each of `rows`; members and cost in place."""
    n, p = x.shape
    k = members.shape[1]
    base = np.empty(p, np.float32)
    for i in rows:
        best = np.float32(1e30)
        for _ in range(sweeps):
            changed = False
            for place in range(k):
                base[:] = 0
                for q in range(k):
                    if q != place:
                        for t in range(p):
                            base[t] += x[members[i, q], t]
                lowest = np.float32(1e30)
                lowest_at = -1
                for c in range(n):
                    taken = not usable[c]
                    for q in range(k):
                        taken |= q != place and members[i, q] == c
                    if taken:
                        continue
                    s = np.float32(0)
                    for t in range(p):
                        e = abs(base[t] + x[c, t]) - y[i, t]
                        s += pixel_weights[t] * e * e
                    if s < lowest:
                        lowest = s
                        lowest_at = c
                if lowest_at != members[i, place] and lowest < best - np.float32(1e-6):
                    members[i, place] = lowest_at
                    changed = True
                best = min(best, lowest)
            if not changed:
                break
        cost[i] = best
