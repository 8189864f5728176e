"""Pairs of known vectors, and vectors that are new, for thousands of encodings at once (k_private = 2, a few dozen pixels).

    known   |x_u + x_v| of all pairs, rounded to a grid at some pivot pixels, is a key without any choice of signs: an encoding
            has the key of its pair. n²/2 keys, sorted once
    new     an encoding with one known member u says that the other is ±y − x_u: 2^t keys for t pivots. Two of them can be read
            in two ways, three that agree make a new vector; then the encodings it has with known ones are found as above

`solve.exact_growth` does the same for any k, one encoding at a time. Here both are array operations. What agrees at some keys is
checked at all pixels given. A value is NaN where two values fit all of a vector's encodings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.solve.sign_search import Floats, Index

PIVOTS = 4
"""Pixels of a key: 8-bit images have some 300 sums at each, and 300⁴ is far more than the keys there are."""
CELL = 64.0
"""Width of a cell in units of what counts as zero: one match in a hundred is cut apart at each pivot, and found the next time."""
FEWEST = 3
"""Encodings that must agree on a new vector."""
MOST_KEYS = 16_000_000
"""Keys for new vectors at a time: about two seconds and half a GiB; beyond that some known vectors are drawn."""
ROUNDS = 24
"""Turns of known and new at most; vectors come in a few."""


@dataclass(frozen=True, eq=False)
class Matched:
    """members (m, 2), −1 where unknown; values (n, pixels) of the vectors they name."""

    members: Index
    values: Floats


def match_pairs(y: Floats, members: Index, values: Floats, bound: Floats, rng: np.random.Generator, most: int = MOST_KEYS) -> Matched:
    """|x_u + x_v| = y (m, pixels), for some of which `members` (m, 2) and the vectors' `values` (n, pixels) are known."""
    members, idle = members.copy(), 0
    for _ in range(ROUNDS):
        left = np.flatnonzero(members[:, 0] < 0)
        if not len(left) or len(values) < 2 or idle == 3:
            break
        pivots = rng.permutation(len(bound))[:PIVOTS]
        members[left] = known_pairs(y[left], values, bound, pivots)
        left = left[members[left, 0] < 0]
        members[left], new = _new_vectors(y[left], values, bound, pivots, rng, most)
        values = np.vstack([values, new])
        # Cells cut some matches apart, and draws leave some out: two idle turns in a row may be bad luck.
        idle = idle + 1 if (members[left, 0] < 0).all() else 0
    return Matched(members, values)


def known_pairs(y: Floats, values: Floats, bound: Floats, pivots: Index) -> Index:
    """members (rows, 2) of the encodings that one pair of vectors reproduces, −1 for the others."""
    n = len(values)
    out = np.full((len(y), 2), -1, np.int64)
    one, two = np.triu_indices(n, 1)
    keys = np.zeros(len(one), np.uint64)
    mine = np.zeros(len(y), np.uint64)
    for p, factor in zip(pivots, _factors(len(pivots)), strict=True):
        x = np.where(np.isnan(values[:, p]), 0, values[:, p])
        cell = CELL * bound[p]
        keys += np.floor(np.abs(x[one] + x[two]) / cell).astype(np.uint64) * factor
        mine += np.floor(y[:, p] / cell).astype(np.uint64) * factor
    some = np.flatnonzero(np.isin(keys, mine))
    some = some[np.argsort(keys[some], kind="stable")]
    low, high = np.searchsorted(keys[some], mine), np.searchsorted(keys[some], mine, side="right")
    row = np.repeat(np.arange(len(y)), high - low)
    pair = some[np.arange(len(row)) - np.repeat(np.cumsum(high - low) - (high - low), high - low) + np.repeat(low, high - low)]
    fits = np.empty(len(row), bool)
    for s in range(0, len(row), 1 << 16):
        part = slice(s, s + (1 << 16))
        total = np.abs(values[one[pair[part]]] + values[two[pair[part]]])
        # NaN is nothing to go by; half of the pixels must be something.
        told = ~np.isnan(total)
        fits[part] = ((np.abs(total - y[row[part]]) <= 2 * bound) | ~told).all(axis=1) & (2 * told.sum(axis=1) >= len(bound))
    row, pair = row[fits], pair[fits]
    once = np.bincount(row, minlength=len(y))[row] == 1  # several: they say nothing about each other
    out[row[once]] = np.column_stack([one[pair[once]], two[pair[once]]])
    return out


def _new_vectors(
    y: Floats, values: Floats, bound: Floats, pivots: Index, rng: np.random.Generator, most: int
) -> tuple[Index, Floats]:
    """(members (rows, 2) of the encodings of new vectors, which are named n …, −1 for the others; their values)."""
    rows, n = len(y), len(values)
    members, found = np.full((rows, 2), -1, np.int64), np.empty((0, len(bound)))
    if rows < FEWEST:
        return members, found
    drawn = rng.permutation(n)[: max(most // (rows << len(pivots)), 1)]
    # 1. Keys of (encoding, known vector), one for each choice of signs at the pivots.
    keys = np.zeros((1, rows, len(drawn)), np.uint64)
    for p, factor in zip(pivots, _factors(len(pivots)), strict=True):
        x = np.where(np.isnan(values[drawn, p]), 0, values[drawn, p])
        cells = [np.floor((side[:, None] - x[None, :]) / (CELL * bound[p])).astype(np.int64) for side in (y[:, p], -y[:, p])]
        keys = np.concatenate([keys + cell.astype(np.uint64) * factor for cell in cells])
    flat = keys.ravel()
    del keys
    order = np.argsort(flat)
    flat = flat[order]
    start = np.flatnonzero(np.append(True, flat[1:] != flat[:-1]))
    size = np.diff(np.append(start, len(flat)))
    # 2. Groups that agree at all pixels, the largest first.
    groups = np.flatnonzero(size >= FEWEST)
    new: list[Floats] = []
    for g in groups[np.argsort(-size[groups], kind="stable")]:
        where = order[start[g] : start[g] + size[g]] % (rows * len(drawn))
        row, once = np.unique(where // len(drawn), return_index=True)
        partner = drawn[where[once] % len(drawn)]
        free = members[row, 0] < 0
        row, partner = row[free], partner[free]
        if len(row) < FEWEST:
            continue
        value, fits = agreed(y[row], values[partner], bound)
        if fits.sum() >= FEWEST and len(np.unique(partner[fits])) >= FEWEST and 2 * np.isnan(value).sum() <= len(value):
            members[row[fits]] = np.column_stack([partner[fits], np.full(int(fits.sum()), n + len(new))])
            new.append(value)
    return members, np.array(new).reshape(-1, len(bound))


def agreed(y: Floats, partner: Floats, bound: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(the value (pixels,) that most of the encodings y (r, pixels) = |partner + value| allow, NaN where two do; which of the
    encodings (r,) allow it everywhere)."""
    plus, minus = y - partner, -y - partner
    options = np.concatenate([plus, minus])
    near = 4 * bound
    with np.errstate(invalid="ignore"):
        votes = sum((np.abs(options - u) <= near) | (np.abs(options - w) <= near) for u, w in zip(plus, minus, strict=True))
    votes = np.asarray(votes, np.int64)
    here = np.arange(len(bound))
    best = votes.argmax(axis=0)
    value = options[best, here]
    rivals = ((np.abs(options - value) > near) & (votes == votes[best, here])).any(axis=0)
    value = np.where(rivals, np.nan, value)
    fits = (np.minimum(np.abs(plus - value), np.abs(minus - value)) <= near) | np.isnan(value) | np.isnan(partner)
    return value, np.asarray(fits.all(axis=1))


def _factors(count: int) -> NDArray[np.uint64]:
    """Odd numbers of 64 bits, for a linear hash."""
    return np.random.default_rng(0).integers(0, 2**64, count, dtype=np.uint64) | np.uint64(1)
