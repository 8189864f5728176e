"""The encodings left once everything else is solved: by known vectors after all, or by vectors only a few of them use.

First each one is fitted again with the solved vectors alone. For the others let r be the sum of the best k−1 known
vectors. If that guess is right, the missing vector is +y − r or −y − r at each pixel. Two encodings that miss the same
vector agree, at every pixel, in one of the four combinations of signs; two that do not agree at a few pixels by chance. So
pairs of them are compared at all pixels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.solve.feedback import best_partners, reassign, restart

PIXELS = 300
MOST = 256
"""Encodings compared with each other at most; more left over than that means that something else is wrong."""


def complete(
    magnitudes: NDArray[np.float32],
    x: NDArray[np.float64],
    k: int,
    rows: NDArray[np.int64],
    tolerance: float,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """(explained rows, their members, number of new columns): y = |Σ x| with unit weights, new columns count from len(x) on."""
    members = _by_known(magnitudes[rows], x, k, rng)
    fits = (np.abs(np.abs(x[members].sum(axis=1)) - magnitudes[rows]) < tolerance).mean(axis=1) > 0.99
    found_rows, found = [rows[fits]], [members[fits]]
    rows = rows[~fits][:MOST]
    new = 0
    if len(rows) >= 2:
        known, sound = np.arange(len(x)), np.ones(len(x), bool)
        x32 = x.astype(np.float32)
        partners = np.array([best_partners(magnitudes[i], x32, np.arange(k), known, sound) for i in rows])
        rest = x[partners].sum(axis=1)
        y = magnitudes[rows].astype(np.float64)
        plus, minus = y - rest, -y - rest
        free = np.ones(len(rows), bool)
        for i in range(len(rows)):
            apart = np.minimum(
                np.minimum(np.abs(plus[i] - plus), np.abs(plus[i] - minus)),
                np.minimum(np.abs(minus[i] - plus), np.abs(minus[i] - minus)),
            )
            group = np.flatnonzero(((apart < tolerance).mean(axis=1) > 0.99) & free)
            # Two copies of one encoding agree as well, and prove nothing.
            if not free[i] or len(np.unique(np.sort(partners[group], axis=1), axis=0)) < 2:
                continue
            found_rows.append(rows[group])
            found.append(np.column_stack([partners[group], np.full(len(group), len(x) + new)]))
            free[group] = False
            new += 1
    return np.concatenate(found_rows), np.vstack(found), new


def _by_known(y: NDArray[np.float32], x: NDArray[np.float64], k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The best subset of solved vectors for each encoding, on a few hundred pixels."""
    some, x32 = np.ascontiguousarray(y[:, :PIXELS]), np.ascontiguousarray(x[:, :PIXELS], dtype=np.float32)
    usable, even = np.ones(len(x), bool), np.ones(some.shape[1], np.float32)
    members, cost = reassign(some, x32, np.tile(np.arange(k), (len(y), 1)), usable, even)
    if k > 2:
        members, _ = restart(some, x32, members, cost, np.arange(len(y)), usable, even, rng)
    return members
