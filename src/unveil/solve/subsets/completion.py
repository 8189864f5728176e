"""The encodings left once everything else is solved: by known vectors after all, by vectors only a
few of them use, by one vector used twice, or by one that no other encoding uses.

First each one is fitted again with the solved vectors alone. For the others let r be the sum of the
best k−1 known vectors and the public part. If that guess is right, the missing vector is +y − r or
−y − r at each pixel. Two encodings that miss the same vector agree, at every pixel, in one of the
four combinations of signs; two that do not agree at a few pixels by chance. So pairs of them are
compared at all pixels. An encoding that misses a vector alone says only that: at each pixel its
vector is one of two values.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log

import numpy as np
from numpy.typing import NDArray

from unveil.folded import log_density, signed
from unveil.solve.model import COMPLETED, Members, Values, reproduced, residual
from unveil.solve.subsets.descent import (
    RESTART_SWEEPS,
    best_partners,
    descend,
    reassign,
    restart,
)

PIXELS = 300
"""Pixels on which subsets are chosen; whether they hold is asked at all of them."""
GLANCE = 64
"""Pixels at which pairs are compared first; most of them go no further."""
MOST = 256
"""Encodings compared with each other at most; more left over than that means that something else is
wrong."""
SURE = 12.0
"""Nats by which partners must beat the absence of any, beyond the number of choices there are."""


@dataclass(frozen=True, eq=False)
class Single:
    """A vector that only `row` uses, with its known partners: value (d,) is the mean of the two
    values each pixel may have."""

    row: int
    partners: NDArray[np.int64]
    value: NDArray[np.float64]


def complete(
    y: Values,
    c: Values | None,
    x: NDArray[np.float64],
    k: int,
    rows: NDArray[np.int64],
    tolerance: float,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], Members, int]:
    """(explained rows, their members, number of new columns); new columns count from len(x) on. y =
    |Σ x + c|, unit weights."""
    members = by_known(y[rows], _of(c, rows), x, k, rng)
    # 1. Solved vectors alone.
    fits = reproduced(residual(y[rows], _of(c, rows), x, members), tolerance, COMPLETED)
    found_rows, found = [rows[fits]], [members[fits]]
    rows = rows[~fits][:MOST]
    new = 0
    if len(rows) >= 2:
        # 2. Solved vectors and one that is new: rows that agree on it form a group.
        partners, rest, _ = _partners(y, c, x, k, rows)
        plus, minus = y[rows] - rest, -y[rows] - rest
        free = np.ones(len(rows), bool)
        for i in range(len(rows)):
            if not free[i]:
                continue
            near = np.flatnonzero(free)
            near = near[_agreement(plus[:, :GLANCE], minus[:, :GLANCE], i, near, tolerance) > 0.5]
            group = near[_agreement(plus, minus, i, near, tolerance) >= COMPLETED]
            # Two copies of one encoding agree as well, and prove nothing.
            if len(np.unique(np.sort(partners[group], axis=1), axis=0)) < 2:
                continue
            found_rows.append(rows[group])
            found.append(np.column_stack([partners[group], np.full(len(group), len(x) + new)]))
            free[group] = False
            new += 1
    return np.concatenate(found_rows), np.vstack(found), new


def _agreement(
    plus: NDArray[np.float64],
    minus: NDArray[np.float64],
    i: int,
    rows: NDArray[np.int64],
    tolerance: float,
) -> NDArray[np.float64]:
    """The share of pixels at which one of row i's two values is one of each other row's."""
    apart = np.minimum(
        np.minimum(np.abs(plus[i] - plus[rows]), np.abs(plus[i] - minus[rows])),
        np.minimum(np.abs(minus[i] - plus[rows]), np.abs(minus[i] - minus[rows])),
    )
    return np.asarray((apart < tolerance).mean(axis=1))


def with_repeats(
    y: Values,
    c: Values | None,
    x: NDArray[np.float64],
    k: int,
    rows: NDArray[np.int64],
    tolerance: float,
) -> tuple[NDArray[np.int64], Members]:
    """Rows reproduced at every pixel by k known vectors of which some are the same: an encoder that
    draws with replacement."""
    some, x32, offset = _some_pixels(y[rows], _of(c, rows), x)
    # 1. One vector k times: the simplest start, and for k = 2 the only subset with a repeat.
    members = np.zeros((len(rows), k), np.int64)
    even = np.ones(some.shape[1], np.float32)
    if len(rows):
        best = np.full(len(rows), np.inf)
        for j in range(len(x)):
            trial = np.full((len(rows), k), j, np.int64)
            cost = np.mean(
                (np.abs(k * x32[j] + (0 if offset is None else offset)) - some) ** 2, axis=1
            )
            members[cost < best], best = trial[cost < best], np.minimum(cost, best)
        # 2. From there by one swap at a time, repeats allowed.
        if k > 2:
            usable, here = np.ones(len(x), bool), np.arange(len(rows))
            sweeps = RESTART_SWEEPS
            descend(some, x32, members, here, usable, even, offset, sweeps=sweeps, repeats=True)
    fits = reproduced(residual(y[rows], _of(c, rows), x, members), tolerance, COMPLETED)
    return rows[fits], members[fits]


def once_only(
    y: Values, c: Values | None, x: NDArray[np.float64], k: int, rows: NDArray[np.int64]
) -> list[Single]:
    """Rows of k−1 known vectors and one that appears nowhere else, where the likelihood leaves no
    doubt about the k−1."""
    rows = rows[:MOST]
    if not len(rows):
        return []
    partners, rest, gain = _partners(y, c, x, k, rows)
    # The posterior mean of the missing vector, whose pixels have rms 1.
    guess = signed(y[rows], rest) - rest
    sure = gain > SURE + log(comb(len(x), k - 1))
    return [Single(int(rows[i]), partners[i], guess[i]) for i in np.flatnonzero(sure)]


def _partners(
    y: Values, c: Values | None, x: NDArray[np.float64], k: int, rows: NDArray[np.int64]
) -> tuple[Members, NDArray[np.float64], NDArray[np.float64]]:
    """The likeliest k−1 known vectors of each row, their sum with the public part, and the nats
    they gain over none of them."""
    known, sound = np.arange(len(x)), np.ones(len(x), bool)
    x32 = x.astype(np.float32)
    partners = np.array(
        [
            best_partners(y[i], x32, np.arange(k), known, sound, None if c is None else c[i])
            for i in rows
        ]
    ).reshape(len(rows), k - 1)
    public = np.zeros((len(rows), x.shape[1])) if c is None else c[rows].astype(np.float64)
    rest = x[partners].sum(axis=1) + public
    gain = log_density(y[rows], rest, 1.0) - log_density(y[rows], public, float(k))
    return partners, rest, gain.sum(axis=1)


def by_known(
    y: Values, c: Values | None, x: NDArray[np.float64], k: int, rng: np.random.Generator
) -> Members:
    """The best subset of solved vectors for each encoding, on a few hundred pixels."""
    some, x32, offset = _some_pixels(y, c, x)
    usable, even = np.ones(len(x), bool), np.ones(some.shape[1], np.float32)
    members, cost = reassign(some, x32, np.tile(np.arange(k), (len(y), 1)), usable, even, offset)
    if k > 2 or c is not None:
        members, _ = restart(some, x32, members, cost, np.arange(len(y)), usable, even, rng, offset)
    return members


def _some_pixels(
    y: Values, c: Values | None, x: NDArray[np.float64]
) -> tuple[Values, Values, Values | None]:
    """y, x and c on the first pixels, contiguous: what the search runs on."""
    return (
        np.ascontiguousarray(y[:, :PIXELS]),
        np.ascontiguousarray(x[:, :PIXELS], dtype=np.float32),
        None if c is None else np.ascontiguousarray(c[:, :PIXELS]),
    )


def _of(c: Values | None, rows: NDArray[np.int64]) -> Values | None:
    return None if c is None else c[rows]
