"""Every pixel under noise: y = |Σ x + c + ε|, maximum likelihood from the best of a few starts.

Nothing is exact any more, so that nothing can be proved exactly: what counts is the distance to
least squares with the true subsets and signs. Per pixel a few steps of relaxed reflections find the
basin (`affine_rrr`), then expectation–maximisation x ← LS(y·tanh(y·μ/σ²) − c), μ = Σ x + c: the
sign of an encoding much smaller than the noise is a mean of both. Of several starts the one with
the smallest residual is kept. Rows that do not fit like the others are searched again among the
solved vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.folded import maximise
from unveil.records import Progress
from unveil.solve.affine_rrr import Range, solve_all
from unveil.solve.model import (
    MEDIAN,
    TWICE_THE_NOISE,
    Members,
    Values,
    all_different,
    merged,
    renamed,
    residual,
    touched_by_null,
)
from unveil.solve.pixels.chance import fit_nats
from unveil.solve.pixels.pixels import Block, solved_blocks
from unveil.solve.subsets.descent import reassign, restart

BLOCK = 256
"""Pixels at a time, one thread each."""
PIXELS = 300
"""Pixels on which a row's subset is looked for."""
TRIES = 8
"""Starts at a pixel whose residual stays larger than at others: each finds the basin nine times of
ten."""
FAR = 3.0
"""Standard deviations of a mean square by which a pixel's residual may exceed the typical one: a
wrong basin may be as near as that, and a start in vain costs a moment."""
BASIN_STEPS, STEPS = 100, 30
"""Steps of relaxed reflections, and then of expectation–maximisation, which only has to settle the
signs of encodings smaller than the noise."""
QUIETEST = 1e-6
"""The least noise that is assumed, in units of a private pixel's rms: below, signs are what they
are, and y·μ/σ² would overflow."""
SEEN = 128
"""Pixels at which it is asked whether other values fit as well: a twentieth of them shows."""
MOST_SPENT = 0.9
"""The largest share of freedom that a fit is taken to use up: with hardly more rows than vectors
what is left over says little, and is not blown up beyond bounds."""


@dataclass(frozen=True, eq=False)
class NoisySolution:
    """values (n, d); rows (r,) with members (r, k); noise: standard deviation of ε; error (n,):
    standard error of a pixel of each vector; determined (n,): whether the rows determine it at all;
    nats: what a row that fits says against chance; spare: nats beyond chance for all rows
    together, where `nats` and the number of members do not tell them; None: they do. weights
    (r, k): of the members, where they are not all 1; open_share (n,): of pixels at which other
    values fit as well (`open_share`), None: not looked at."""

    values: NDArray[np.float64]
    rows: NDArray[np.int64]
    members: Members
    noise: float
    error: NDArray[np.float64]
    determined: NDArray[np.bool_]
    nats: float
    spare: float | None = None
    weights: NDArray[np.float64] | None = None
    open_share: NDArray[np.float64] | None = None


def solve_noisy(
    y: Values,
    c: Values | None,
    rows: NDArray[np.int64],
    members: Members,
    n: int,
    noise: float,
    rng: np.random.Generator,
    *,
    start: NDArray[np.float64] | None = None,
    rounds: int = 4,
    progress: Progress | None = None,
) -> NoisySolution | None:
    """From `rows` with their `members` of n columns, y (m, d) with unit weights; rows that fit
    badly are searched anew.

    start (n, d): values to start from, where they are known roughly; then columns are taken to be
    different vectors. None: hardly a row fits.
    """
    d = y.shape[1]
    k = members.shape[1]
    if not len(rows) or n < k:
        return None
    # 1. Pixels from subsets, subsets from pixels, until no row changes.
    for turn in range(rounds):
        target = Range(members, n, np.ones(len(rows)), 1.0)
        values = np.zeros((n, d))
        system = _System(y[rows], None if c is None else c[rows], members, n, target, noise, start)
        for pixels, x in solved_blocks(_solved, system, d, rng, block=BLOCK, progress=progress):
            values[:, pixels] = x
        noise = _noise(y, c, values, rows, members)
        if turn == rounds - 1:
            break
        # 2. Two columns of one vector share its encodings between them, and each is worse than need
        # be.
        used, named = renamed(merged(values, members) if start is None else members)
        if len(used) < n:
            members, n = named, len(used)
            start = None if start is None else start[used]
            keep = all_different(members)
            rows, members = rows[keep], members[keep]
            if len(rows) <= n or n < k:
                return None
            continue
        # 3. Every row's best subset of what was found.
        found, theirs = explained(y, c, values, noise, k, rng)
        if np.array_equal(found, rows) and np.array_equal(
            np.sort(theirs, axis=1), np.sort(members, axis=1)
        ):
            break
        rows, members = found, theirs
        if len(rows) <= n:
            return None
    # 4. How well each vector is determined, and what the fit says against chance.
    target = Range(members, n, np.ones(len(rows)), 1.0)
    covariance = np.diag(target.pinv())
    determined = ~touched_by_null(target.gram)
    total = np.abs(values[members].sum(axis=1) + (0 if c is None else c[rows]))
    nats = fit_nats(y[rows], total, noise, rng)
    error = noise * np.sqrt(covariance)
    system = _System(y[rows], None if c is None else c[rows], members, n, target, noise, None)
    share = open_share(system, values, error, rng)
    return NoisySolution(values, rows, members, noise, error, determined, nats, open_share=share)


def open_share(
    system: _System,
    values: NDArray[np.float64],
    error: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """(n,) at which share of some pixels the value of each vector is open: all of them where the
    fit is worse than elsewhere, and those that are others where one more solve, from random signs,
    fits as well. Without offsets a pixel may be turned as a whole."""
    # 1. One more solve.
    d = values.shape[1]
    some = np.sort(rng.choice(d, min(d, SEEN), replace=False))
    W = system.target.W.astype(np.float64)
    y = np.ascontiguousarray(system.y[:, some])
    c = np.zeros((1, len(some))) if system.c is None else system.c[:, some].astype(np.float64)
    offset = None if system.c is None else np.ascontiguousarray(system.c[:, some])
    start = np.sqrt(np.mean(y**2)) * rng.standard_normal(y.shape, dtype=np.float32)
    even = np.ones(len(y))
    basin, _ = solve_all(
        y, offset, system.members, system.n, even, 1.0, start.astype(np.float32), steps=BASIN_STEPS
    )
    variance = max(system.noise, QUIETEST) ** 2
    other = _climb(y, basin.astype(np.float64), c, W, system.target.pinv(), variance)
    # 2. How well both fit, and where they differ.
    x = values[:, some]
    miss, again = (np.mean((np.abs(W @ v + c) - y) ** 2, axis=0) for v in (x, other))
    typical = max(float(np.median(miss)), QUIETEST**2)
    most = (1 + 2 * FAR * np.sqrt(2 / len(y))) * typical
    if system.c is None:
        other = other * np.where((other * x).sum(axis=0) < 0, -1.0, 1.0)
    apart = np.abs(other - x) > 2 * FAR * np.maximum(error, QUIETEST)[:, None]
    return np.asarray(((miss > most) | ((again <= most) & apart)).mean(axis=1))


@dataclass(frozen=True, eq=False)
class _System:
    """What every pixel shares: rows with their members, the least squares that go with them, the
    noise, and where to start from."""

    y: Values
    c: Values | None
    members: Members
    n: int
    target: Range
    noise: float
    start: NDArray[np.float64] | None


def _solved(system: _System, block: Block) -> NDArray[np.float64]:
    """The best of several starts at each of these pixels."""
    pixels, rng = block
    y = np.ascontiguousarray(system.y[:, pixels])
    c = None if system.c is None else np.ascontiguousarray(system.c[:, pixels])
    members, n, target, noise = system.members, system.n, system.target, system.noise
    W = target.W.astype(np.float64)
    pinv = target.pinv()
    best, x = np.full(y.shape[1], np.inf), np.zeros((n, y.shape[1]))
    todo = np.arange(y.shape[1])
    even = np.ones(len(y))
    for turn in range(TRIES):
        part = np.ascontiguousarray(y[:, todo])
        offset = None if c is None else np.ascontiguousarray(c[:, todo])
        scale = np.float32(np.sqrt(np.mean(part**2)) + 1e-30)
        if turn == 0 and system.start is not None:
            found = system.start[:, pixels].copy()
        else:
            guess = scale * rng.standard_normal(part.shape, dtype=np.float32)
            basin, _ = solve_all(part, offset, members, n, even, 1.0, guess, steps=BASIN_STEPS)
            found = basin.astype(np.float64)
        here = np.zeros(1) if offset is None else offset.astype(np.float64)
        found = _climb(part, found, here, W, pinv, max(noise, QUIETEST) ** 2)
        miss = np.mean((np.abs(W @ found + here) - part) ** 2, axis=0)
        better = miss < best[todo]
        x[:, todo[better]], best[todo[better]] = found[:, better], miss[better]
        todo = np.flatnonzero(best > (1 + FAR * np.sqrt(2 / len(y))) * np.median(best))
        if not todo.size:
            break
    return x


def _climb(
    y: Values,
    x: NDArray[np.float64],
    c: NDArray[np.float64],
    W: Any,
    pinv: NDArray[np.float64],
    variance: float,
) -> NDArray[np.float64]:
    """x by expectation–maximisation, y = |Wx + c + ε|."""
    out, _ = maximise(
        y, x, variance, lambda x: W @ x + c, lambda likely, _: pinv @ (W.T @ (likely - c)), STEPS
    )
    return out


def _noise(
    y: Values, c: Values | None, x: NDArray[np.float64], rows: NDArray[np.int64], members: Members
) -> float:
    """From the median residual of all rows and pixels, with the share of freedom that the fit uses
    up put back."""
    miss = residual(y[rows], None if c is None else c[rows], x, members)
    spent = min(MOST_SPENT, len(x) / max(1, len(rows)))
    return float(np.median(miss) / MEDIAN / np.sqrt(1 - spent))


def explained(
    y: Values,
    c: Values | None,
    x: NDArray[np.float64],
    noise: float,
    k: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], Members]:
    """Every row's best subset of the solved vectors, and which rows fit within twice the noise."""
    some = np.ascontiguousarray(y[:, :PIXELS])
    x32 = np.ascontiguousarray(x[:, :PIXELS], dtype=np.float32)
    offset = None if c is None else np.ascontiguousarray(c[:, :PIXELS])
    usable, even = np.ones(len(x), bool), np.ones(some.shape[1], np.float32)
    members, cost = reassign(some, x32, np.tile(np.arange(k), (len(y), 1)), usable, even, offset)
    lost = np.flatnonzero(~_fits(some, offset, x32, members, noise))
    if (k > 2 or c is not None) and len(lost):
        members, cost = restart(some, x32, members, cost, lost, usable, even, rng, offset)
    rows = np.flatnonzero(_fits(some, offset, x32, members, noise))
    return rows, members[rows]


def _fits(
    y: Values, c: Values | None, x: Values, members: Members, noise: float
) -> NDArray[np.bool_]:
    """Rows within twice the noise, at the typical pixel.

    Not by the sum of squares: where noise is faint, as with encodings kept in half precision, one
    pixel that got stuck outweighs all others, and so does what products in single precision leave.
    """
    size = np.median(residual(y, c, x, members), axis=1) / MEDIAN
    return np.asarray(size <= TWICE_THE_NOISE * noise)
