"""Encodings left over that known vectors nearly reproduce: evidence against the solution, or
damage.

An encoding that uses a vector nobody found fits no sum of known ones, except by chance. One that
fits at most pixels, or at all of them roughly, mixes known vectors: it was damaged, or one of these
vectors is wrong where it does not fit. How much chance fits is measured with sums that belong to
other encodings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.solve.model import ROW, Members, Values, residual, rms
from unveil.solve.subsets.completion import by_known

MOST = 256
"""Encodings looked at: more left over than that are no exceptions, and are counted against the
solution as a whole."""
ROUGH = 0.1
"""Residual of an encoding that fits roughly, relative to the rms of y; chance must miss by three
times as much for that to mean anything."""
SHARE = 0.5
"""Of the pixels that chance leaves over, so many must fit."""


def contradicting(
    y: Values,
    c: Values | None,
    x: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
    doubtful: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], Members]:
    """(places, members) of the encodings y (left, d) = |Σ x + c|, unit weights, that k known
    vectors reproduce nearly, but not quite. doubtful (n, d): values that are open contradict
    nothing."""
    nothing = np.empty(0, np.int64), np.empty((0, k), np.int64)
    y, c = y[:MOST], None if c is None else c[:MOST]
    if not len(y) or len(x) < k:
        return nothing
    members, miss, by_chance = _held_against(y, c, x, k, rng)
    base = float((by_chance <= ROW).mean())
    fits = miss <= ROW
    # At most pixels, as far as chance leaves any; or at all of them roughly, where chance does not.
    most = fits.mean(axis=1) >= base + SHARE * (1 - base)
    roughly = (np.sqrt(np.mean(miss**2, axis=1)) <= ROUGH) & (
        np.sqrt(np.mean(by_chance**2)) > 3 * ROUGH
    )
    whole = (fits if doubtful is None else fits | doubtful[members].any(axis=1)).all(axis=1)
    rows = np.flatnonzero((most | roughly) & ~whole)
    return rows.astype(np.int64), members[rows]


def reproduced_by_known(
    y: Values, c: Values | None, x: NDArray[np.float64], k: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """(left,) which of the encodings y (left, d) = |Σ x + c| some k known vectors reproduce, at
    most of the pixels that chance leaves over."""
    out = np.zeros(len(y), bool)
    y, c = y[:MOST], None if c is None else c[:MOST]
    if not len(y) or len(x) < k:
        return out
    _, miss, by_chance = _held_against(y, c, x, k, rng)
    base, share = float((by_chance <= ROW).mean()), (miss <= ROW).mean(axis=1)
    # Binary pixels fit by chance nearly everywhere: then nothing is said.
    out[: len(y)] = (share >= base + SHARE * (1 - base)) & (base < 1)
    return out


def _held_against(
    y: Values, c: Values | None, x: NDArray[np.float64], k: int, rng: np.random.Generator
) -> tuple[Members, NDArray[np.floating], NDArray[np.floating]]:
    """(members of the best sums of k known vectors, how far they miss, how far sums at random do),
    relative to the rms of y."""
    members, scale = by_known(y, c, x, k, rng), rms(y)
    by_chance = residual(y, c, x, _others(members, len(x), rng)) / scale
    return members, residual(y, c, x, members) / scale, by_chance


def _others(members: Members, n: int, rng: np.random.Generator) -> Members:
    """Random subsets of the same size."""
    return np.argsort(rng.random((len(members), n)), axis=1)[:, : members.shape[1]].astype(np.int64)
