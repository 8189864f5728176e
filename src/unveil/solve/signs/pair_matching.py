"""Pairs of known vectors, and vectors that are new, for thousands of encodings at once (k_private =
2, a few dozen pixels).

    known   |x_u + x_v| of all pairs, rounded to a grid at some pivot pixels, is a key without any
            choice of signs: an encoding has the key of its pair. n²/2 keys, sorted once
    new     an encoding with one known member u says that the other is ±y − x_u: 2^t keys for t
            pivots. Two of them can be read in two ways, three that agree make a new vector; then
            the encodings it has with known ones are found as above

`solve.grow.exact_growth` does the same for any k, one encoding at a time. Here both are array
operations. What agrees at some keys is checked at all pixels given. A value is NaN where two values
fit all of a vector's encodings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.solve.signs.sign_search import Floats, Index

PIVOTS = 4
"""Pixels of a key: 8-bit images have some 300 sums at each, and 300⁴ is far more than the keys
there are."""
CELL = 64.0
"""Width of a cell in units of what counts as zero: one value in a hundred is near enough to a
border to need a second look."""
FEWEST = 3
"""Encodings that must agree on a new vector."""
MOST_KEYS = 8_000_000
"""Keys for new vectors at a time: one or two seconds, and half a GiB."""
SAMPLE = 100_000
"""Values from which the shares of keys are read."""
ROUNDS = 24
"""Turns of known and new at most; vectors come in a few."""


@dataclass(frozen=True, eq=False)
class Matched:
    """members (m, 2), −1 where unknown; values (n, pixels) of the vectors they name."""

    members: Index
    values: Floats


def match_pairs(
    y: Floats,
    members: Index,
    values: Floats,
    bound: Floats,
    telling: int,
    rng: np.random.Generator,
) -> Matched:
    """|x_u + x_v| = y (m, pixels), for some of which `members` (m, 2) and the vectors' `values` (n,
    pixels) are known.

    telling: how many pixels, the first ones, may be pivots
    """
    members, idle = members.copy(), 0
    for _ in range(ROUNDS):
        left = np.flatnonzero(members[:, 0] < 0)
        if not len(left) or len(values) < 2 or idle == 2:
            break
        pivots = rng.permutation(telling)[:PIVOTS]
        members[left] = known_pairs(y[left], values, bound, pivots)
        left = left[members[left, 0] < 0]
        members[left], new = new_vectors(y[left], values, bound, pivots)
        values = np.vstack([values, new])
        # Cells cut some matches apart: an idle turn may be bad luck.
        idle = idle + 1 if (members[left, 0] < 0).all() else 0
    return Matched(members, values)


def known_pairs(y: Floats, values: Floats, bound: Floats, pivots: Index) -> Index:
    """members (rows, 2) of the encodings that one pair of vectors reproduces, −1 for the others.
    None is missed: the rows of a triangle of known vectors, left over, would look like a star
    around a new one."""
    n = len(values)
    out = np.full((len(y), 2), -1, np.int64)
    x = np.where(np.isnan(values), 0, values)
    one, two = np.triu_indices(n, 1)
    keys = np.zeros(len(one), np.uint64)
    mine = np.zeros((1, len(y)), np.uint64)
    for p, factor in zip(pivots, _factors(len(pivots)), strict=True):
        cell = CELL * bound[p]
        keys += np.floor(np.abs(x[one, p] + x[two, p]) / cell).astype(np.uint64) * factor
        # Near the border of a cell the sum may lie in the next one.
        sides = [
            np.floor(np.maximum(y[:, p] + off * bound[p], 0) / cell).astype(np.uint64) * factor
            for off in (-2, 2)
        ]
        mine = np.concatenate([mine + sides[0], mine + sides[1]])
    # Most rows have one key: of the others all, of these the first.
    mine = np.sort(mine, axis=0)
    new = np.vstack([np.ones((1, len(y)), bool), mine[1:] != mine[:-1]])
    asked, which = mine[new], np.nonzero(new)[1]
    some = np.flatnonzero(np.isin(keys, asked))
    some = some[np.argsort(keys[some], kind="stable")]
    low, high = np.searchsorted(keys[some], asked), np.searchsorted(keys[some], asked, side="right")
    count = high - low
    row = np.repeat(which, count)
    pair = some[
        np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
    ]
    fits = np.empty(len(row), bool)
    for s in range(0, len(row), 1 << 16):
        part = slice(s, s + (1 << 16))
        total = np.abs(values[one[pair[part]]] + values[two[pair[part]]])
        # NaN is nothing to go by; half of the pixels must be something.
        told = ~np.isnan(total)
        fits[part] = ((np.abs(total - y[row[part]]) <= 2 * bound) | ~told).all(axis=1) & (
            2 * told.sum(axis=1) >= len(bound)
        )
    row, pair = row[fits], pair[fits]
    once = (
        np.bincount(row, minlength=len(y))[row] == 1
    )  # several: they say nothing about each other
    out[row[once]] = np.column_stack([one[pair[once]], two[pair[once]]])
    return out


def new_vectors(
    y: Floats, values: Floats, bound: Floats, pivots: Index, most: int = MOST_KEYS
) -> tuple[Index, Floats]:
    """(members (rows, 2) of the encodings of new vectors, which are named n …, −1 for the others;
    their values)."""
    rows, n = len(y), len(values)
    members = np.full((rows, 2), -1, np.int64)
    new: list[Floats] = []
    if rows < FEWEST:
        return members, np.empty((0, len(bound)))
    x = np.where(np.isnan(values), 0, values)
    first = pivots[0]
    # Shares: intervals of the missing vector's value at the first pivot, with about `most` keys
    # each.
    shares = -(-(rows * n << len(pivots)) // most)
    rng = np.random.default_rng(0)
    sample = rng.choice(y[:, first], SAMPLE) * rng.choice([-1.0, 1.0], SAMPLE) - rng.choice(
        x[:, first], SAMPLE
    )
    cell = CELL * bound[first]
    edges = np.floor(np.quantile(sample, np.arange(1, shares) / shares) / cell) * cell
    edges = np.concatenate([[-np.inf], np.unique(edges), [np.inf]])
    for low, high in pairwise(edges):
        open_ = np.flatnonzero(members[:, 0] < 0)
        places, keys = _keys(y[open_], x, bound, pivots, low, high)
        # Equal keys, three and more. The largest groups first: chance makes small ones.
        where = np.flatnonzero(keys[FEWEST - 1 :] == keys[: 1 - FEWEST])
        start = where[np.append(True, np.diff(keys[where]) > 0)] if len(where) else where
        end = np.searchsorted(keys, keys[start], side="right")
        for g in np.argsort(start - end, kind="stable"):
            row, partner = np.divmod(places(start[g], end[g]), n)
            mine = open_[row]
            free = members[mine, 0] < 0
            mine, once = np.unique(mine[free], return_index=True)
            theirs = partner[free][once]
            if len(mine) < FEWEST:
                continue
            value, fits = agreed(y[mine], values[theirs], bound)
            if (
                fits.sum() < FEWEST
                or len(np.unique(theirs[fits])) < FEWEST
                or 2 * np.isnan(value).sum() > len(value)
            ):
                continue
            # The border of a cell may part the encodings of one vector.
            again = [
                i for i, other in enumerate(new) if not (np.abs(other - value) > 4 * bound).any()
            ]
            name = again[0] if again else len(new)
            members[mine[fits]] = np.column_stack(
                [theirs[fits], np.full(int(fits.sum()), n + name)]
            )
            if not again:
                new.append(value)
    return members, np.array(new).reshape(-1, len(bound))


def _keys(
    y: Floats, x: Floats, bound: Floats, pivots: Index, low: float, high: float
) -> tuple[Callable[[int, int], Index], NDArray[np.uint64]]:
    """(places row·n + known vector of those from … to, keys in their order), one for each choice of
    signs at the pivots, for which the missing vector lies between low and high at the first
    pivot."""
    # Sorted as one number each, the first bits of the hash and the place: several times as fast as
    # sorting places by hashes.
    bits = max(len(y) * len(x) - 1, 1).bit_length()
    own, other = np.ascontiguousarray(y[:, pivots]), np.ascontiguousarray(x[:, pivots])
    both = np.sort(
        _choices(own, other, 1 / (CELL * bound[pivots]), _factors(len(pivots)), low, high, bits)
    )
    mask = np.uint64((1 << bits) - 1)
    return lambda start, end: (both[start:end] & mask).astype(np.int64), both >> np.uint64(bits)


def agreed(y: Floats, partner: Floats, bound: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(the value (pixels,) that most of the encodings y (r, pixels) = |partner + value| allow, NaN
    where two do; which of the encodings (r,) allow it everywhere)."""
    plus, minus = y - partner, -y - partner
    options = np.concatenate([plus, minus])
    near = 4 * bound
    with np.errstate(invalid="ignore"):
        votes = sum(
            (np.abs(options - u) <= near) | (np.abs(options - w) <= near)
            for u, w in zip(plus, minus, strict=True)
        )
    votes = np.asarray(votes, np.int64)
    here = np.arange(len(bound))
    best = votes.argmax(axis=0)
    value = options[best, here]
    rivals = ((np.abs(options - value) > near) & (votes == votes[best, here])).any(axis=0)
    value = np.where(rivals, np.nan, value)
    fits = (
        (np.minimum(np.abs(plus - value), np.abs(minus - value)) <= near)
        | np.isnan(value)
        | np.isnan(partner)
    )
    return value, np.asarray(fits.all(axis=1))


def _factors(count: int) -> NDArray[np.uint64]:
    """Odd numbers of 64 bits, for a linear hash."""
    return np.random.default_rng(0).integers(0, 2**64, count, dtype=np.uint64) | np.uint64(1)


@njit(cache=True, nogil=True)
def _choices(y, x, per_cell, factors, low, high, bits):  # type: ignore[no-untyped-def]
    """Hashes of ±y − x at the pivots, y (rows, t), x (n, t), for every choice of signs; the last
    `bits` bits are the place."""
    rows, n, t = len(y), len(x), len(per_cell)
    out = np.empty(1 << 16, np.uint64)
    hashes = np.empty(1 << (t - 1), np.uint64)
    shift = np.uint64(bits)
    count = 0
    for i in range(rows):
        for j in range(n):
            for turn in range(2):
                first = (-y[i, 0] if turn else y[i, 0]) - x[j, 0]
                if not low <= first < high:
                    continue
                hashes[0] = np.uint64(np.int64(np.floor(first * per_cell[0]))) * factors[0]
                size = 1
                for q in range(1, t):
                    plus = (
                        np.uint64(np.int64(np.floor((y[i, q] - x[j, q]) * per_cell[q])))
                        * factors[q]
                    )
                    minus = (
                        np.uint64(np.int64(np.floor((-y[i, q] - x[j, q]) * per_cell[q])))
                        * factors[q]
                    )
                    for s in range(size):
                        hashes[size + s] = hashes[s] + minus
                        hashes[s] += plus
                    size *= 2
                if count + size > len(out):
                    more = np.empty(2 * len(out) + size, np.uint64)
                    for old in range(count):
                        more[old] = out[old]
                    out = more
                for s in range(size):
                    out[count] = (hashes[s] >> shift << shift) | np.uint64(i * n + j)
                    count += 1
    return out[:count]
