"""The final solve: every pixel from the explained encodings, twice, from independent random starts.

A pixel is *solved* when re-encoding reproduces all explained encodings. It is solved *twice*
because equations can have other solutions that no count of rows and ranks shows: a vector used
once, an even cycle of pairs hanging on one vector. Such an alternative is as good a target for the
iteration as the truth, so that independent starts end in different solutions at about half of the
pixels; where they agree at every pixel there is, beyond reasonable doubt, one solution only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from unveil.cluster import results
from unveil.records import Progress
from unveil.solve.affine_rrr import Range, Weight, solve_all
from unveil.solve.model import APART, PIXEL, TIE, Values, rms

BLOCK = 256
"""Pixels at a time, one thread each. Random starts belong to a block, so that the number of threads
changes nothing."""
SHARP, SHARPEST = 10.0, 0.01
"""Pixels whose residual is so many times the typical one are solved again, unless it is below this
share of what a solved pixel may miss by: a value that fits by chance fits worse than the others."""
TIE_MISFIT = 3.0
"""Where the solution itself misses by more than `TIE`, another one fits as well within so many
times what it misses by."""
TRIES, TURN_STEPS = 8, 100
"""Random starts of each pixel, and the steps of the first two; every second start has as many more.
Nearly all pixels are solved in the first, and where rows contradict each other none ever is."""
SHARE, STARTS, STEPS, ROUNDS = 0.1, 32, 300, 4
"""Of a block's pixels at most this share is tried again from so many starts at once, and how
often."""
OPEN = 1e-6
"""A largest residual beyond this, relative to the rms of y, may be a wrong sign: rounding leaves
less in nearly all pixels."""
MOST_OWN = 0.99
"""The share of a row's fit that is the row itself is held below: a row that alone determines a
vector has 1, and no others to ask."""
POLISH = 3
"""Least squares in double precision with renewed signs: single precision leaves at most a sign or
two of tiny values to renew."""
HOPELESS = 2
"""Attempts after which a block with not one solved pixel is given up: its rows contradict each
other."""


SharedT = TypeVar("SharedT")
ResultT = TypeVar("ResultT")
Block = tuple[slice, np.random.Generator]
"""Pixels, and the random numbers that belong to them."""


@dataclass(frozen=True, eq=False)
class PixelSolution:
    """values (n, d); misfit (d,): largest residual over the explained rows, relative to the rms of
    y; solved (d,): misfit within tolerance; differs (n,): at how many pixels an independent solve
    gave another value; group (n,): connected component of each vector."""

    values: NDArray[np.float64]
    misfit: NDArray[np.float64]
    solved: NDArray[np.bool_]
    differs: NDArray[np.int64]
    group: NDArray[np.int64]


def solve_pixels(
    magnitudes: Values,
    offsets: Values | None,
    members: NDArray[np.int64],
    n: int,
    a: Weight,
    rng: np.random.Generator,
    *,
    tolerance: float = PIXEL,
    progress: Progress | None = None,
) -> PixelSolution:
    """Solve |a·Wx + c| = y (rows, d) for x (n, d) when every row is explained by `members` (rows,
    k). `tolerance`: the misfit of a solved pixel, relative to the rms of y."""
    d = magnitudes.shape[1]
    target = Range(members, n, np.ones(len(members)), a)
    group = connected_components(target.W.T @ target.W, directed=False)[1].astype(np.int64)
    equations = _Equations(
        magnitudes, offsets, members, n, a, target, group, rms(magnitudes), tolerance
    )
    values = np.zeros((n, d))
    misfit = np.full(d, np.inf)
    apart = np.zeros((n, d), bool)
    blocks = solved_blocks(_solve_twice, equations, d, rng, block=BLOCK, progress=progress)
    for pixels, found in blocks:
        values[:, pixels], misfit[pixels], apart[:, pixels] = found
    return PixelSolution(values, misfit, misfit <= tolerance, apart.sum(axis=1), group)


def solved_blocks(
    solve: Callable[[SharedT, Block], ResultT],
    shared: SharedT,
    d: int,
    rng: np.random.Generator,
    *,
    block: int,
    progress: Progress | None,
) -> Iterator[tuple[slice, ResultT]]:
    """Blocks of pixels with solve(shared, (pixels, generator)), as they finish; what comes out does
    not depend on where they are solved."""
    slices = [slice(start, min(start + block, d)) for start in range(0, d, block)]
    blocks = list(zip(slices, rng.spawn(len(slices)), strict=True))
    finished = 0
    for (pixels, _), found in results(solve, shared, blocks):
        yield pixels, found
        finished += pixels.stop - pixels.start
        if progress:
            progress("pixels", finished, d)


@dataclass(frozen=True, eq=False)
class _Equations:
    """What all pixels share, as `solve_pixels` takes it; group: connected component of each
    vector; scale: the rms of y."""

    magnitudes: Values
    offsets: Values | None
    members: NDArray[np.int64]
    n: int
    a: Weight
    target: Range
    group: NDArray[np.int64]
    scale: float
    tolerance: float


def _solve_twice(
    shared: _Equations, block: Block
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Values, misfits, and where another value fits, at these pixels."""
    pixels, rng = block
    members, n, a, target, scale = shared.members, shared.n, shared.a, shared.target, shared.scale
    bound = shared.tolerance * scale
    apart_from = APART * scale / float(np.sqrt(np.mean(np.square(a))))
    y = np.ascontiguousarray(shared.magnitudes[:, pixels])
    c = None if shared.offsets is None else np.ascontiguousarray(shared.offsets[:, pixels])
    # 1. Two independent solves; where they differ, two solutions fit.
    first, error = _solve_block(y, c, members, n, a, target, bound, rng)
    second, other_error = _solve_block(y, c, members, n, a, target, bound, rng)
    if c is None:
        second = _same_signs(first, second, shared.group, apart_from)
    both = (error <= bound) & (other_error <= bound)
    # 2. What both may have missed: one vector whose other value fits as well.
    margin = np.maximum(TIE * scale, TIE_MISFIT * error)
    other = _ties(y, c, first, members, a, margin, apart_from)
    differ = np.abs(first - second) > apart_from
    return first, error / scale, (differ & both) | (other & (error <= bound))


def _solve_block(
    y: Values,
    c: Values | None,
    members: NDArray[np.int64],
    n: int,
    a: Weight,
    target: Range,
    bound: float,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x and the largest residual per pixel; pixels that fail start again from fresh random
    values."""
    pixels = y.shape[1]
    x = np.zeros((n, pixels))
    error = np.full(pixels, np.inf)
    weights = np.ones(len(y))

    def attempt(
        columns: NDArray[np.int64], steps: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        part = np.ascontiguousarray(y[:, columns])
        offset = None if c is None else np.ascontiguousarray(c[:, columns])
        scale = np.float32(np.sqrt(np.mean(part**2)) + 1e-30)
        guess = scale * rng.standard_normal(part.shape, dtype=np.float32)
        found, _ = solve_all(part, offset, members, n, weights, a, guess, steps=steps)
        return _polish(part, offset, found, target)

    # 1. All pixels, then those that are left, from one random start after the other.
    todo = np.arange(pixels)
    for turn in range(TRIES):
        found, miss = attempt(todo, TURN_STEPS * (1 + turn // 2))
        better = miss < error[todo]
        x[:, todo[better]] = found[:, better]
        error[todo[better]] = miss[better]
        sharp = max(SHARP * float(np.median(error)), SHARPEST * bound)
        todo = np.flatnonzero(error > min(bound, sharp))
        if not todo.size or (turn >= HOPELESS and (error > bound).all()):
            break
    # 2. One pixel that is left keeps all vectors from being verified: where there are few, each is
    # tried from many starts at once.
    for _ in range(ROUNDS):
        left = np.flatnonzero(error > bound)
        if not 0 < len(left) <= max(1, SHARE * pixels):
            break
        found, miss = attempt(np.repeat(left, STARTS), STEPS)
        best = miss.reshape(len(left), STARTS).argmin(axis=1) + STARTS * np.arange(len(left))
        x[:, left], error[left] = found[:, best], miss[best]
    return x, error


def _polish(
    y: Values, c: Values | None, x: Values, target: Range
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least squares in double precision with the signs of x; the largest residual of each pixel."""
    W = target.W.astype(np.float64)
    y64 = y.astype(np.float64)
    c64 = np.zeros_like(y64) if c is None else c.astype(np.float64)
    pinv = target.pinv()
    out = x.astype(np.float64)
    for _ in range(POLISH):
        out = pinv @ (W.T @ (np.copysign(y64, W @ out + c64) - c64))
    error = np.abs(np.abs(W @ out + c64) - y64).max(axis=0)
    # Where hardly more rows than vectors are left, a wrong sign of a small value confirms itself:
    # half of what the fit says of a row is the row. There signs follow what the others say.
    left = np.flatnonzero(error > OPEN * np.sqrt(np.mean(y64**2)))
    if not left.size:
        return out, np.asarray(error)
    own = np.minimum(target.leverage(), MOST_OWN)[:, None]
    found, here, offset = out[:, left], y64[:, left], c64[:, left]
    for _ in range(POLISH):
        total = W @ found + offset
        others = (total - own * np.copysign(here, total)) / (1 - own)
        found = pinv @ (W.T @ (np.copysign(here, others) - offset))
    again = np.abs(np.abs(W @ found + offset) - here).max(axis=0)
    better = again < error[left]
    out[:, left[better]], error[left[better]] = found[:, better], again[better]
    return out, np.asarray(error)


def _ties(
    y: Values,
    c: Values | None,
    x: NDArray[np.float64],
    members: NDArray[np.int64],
    a: Weight,
    margin: NDArray[np.float64],
    apart_from: float,
) -> NDArray[np.bool_]:
    """(n, pixels): where one vector alone could have another value, so that all of its rows still
    fit within `margin`.

    Another value turns the sign of every row that uses it: x' = x − 2t/a, the same for all rows.
    For a vector that two rows use one coincidence suffices, and among thousands of pixels it
    happens; both solves may fall for it.
    """
    weight = np.broadcast_to(np.asarray(a, dtype=np.float64), members.shape)
    total = np.einsum("rk,rkp->rp", weight, x[members]) + (0 if c is None else c)
    out = np.zeros(x.shape, bool)
    flat = members.ravel()
    order = np.argsort(flat, kind="stable")
    ends = np.searchsorted(flat[order], np.arange(len(x) + 1))
    for i in range(len(x)):
        places = order[ends[i] : ends[i + 1]]
        if not len(places):
            continue
        t, w = total[places // members.shape[1]], weight.ravel()[places, None]
        # A row of weight 0, as a vector that meets itself leaves one, says nothing.
        first = int(np.abs(w).argmax())
        if not w[first]:
            out[i] = True
            continue
        change = -2 * t[first] / w[first]
        fits = np.abs(np.abs(t + w * change) - np.abs(t)).max(axis=0) <= margin
        out[i] = fits & (np.abs(change) > apart_from)
    return out


def _same_signs(
    first: NDArray[np.float64], second: NDArray[np.float64], group: NDArray[np.int64], bound: float
) -> NDArray[np.float64]:
    """Without a public part each connected group has a free sign per pixel: give `second` the one
    by which most vectors agree.

    By count, not by inner product: one vector that is not determined can be large, and would decide
    for all others.
    """
    out = second.copy()
    for g in np.unique(group):
        rows = group == g
        keep, flip = (np.abs(first[rows] - sign * second[rows]) <= bound for sign in (1, -1))
        out[rows] *= np.where(flip.sum(axis=0) > keep.sum(axis=0), -1.0, 1.0)
    return out
