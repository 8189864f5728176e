"""Relations by hashing: pairs of encodings whose differences meet.

    z_a − z_b = z_c − z_d   with z = ±y − c, the signs free at every pixel

says that the pairs {a, b} and {c, d} have a difference in common. At a pixel without public part a
pair has two differences up to sign, |y_a − y_b| and y_a + y_b, with one it has four. So

  keys      a few pivot pixels, rounded to a grid: every choice of one difference per pivot is a key
            of the pair
  collide   pairs with equal keys are compared at all pixels of the sketch, and most are ruled out
            by the next one
  accept    where the evidence, in nats against chance, exceeds what the number of comparisons can
            reach by luck

Cost: m²/2 pairs, 2^t keys each for t pivots (4^t with a public part). A share holds the keys whose
difference at the first pivot lies in one interval, and memory one share per core at a time
(`relations.share`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from unveil.cluster import results
from unveil.parallel import where, worker_count
from unveil.records import Progress
from unveil.relations.share import pairs_between, search_share
from unveil.relations.sketch import Index, Sketch

LUCK = 12.0
"""Nats of evidence beyond the number of comparisons: one false relation in e^12 = 160,000 runs, if
pixels were independent."""
CELL = 64.0
"""Width of a grid cell in spreads of a residual: 1% of the relations are cut apart by the borders
of each pivot's cells."""
COARSE = 6.0
"""The same under noise, where finer cells say little more and cut more: about one relation in eight
is lost per pivot."""
CANDIDATES = 3e7
"""Comparisons that pivots should leave: each costs a few times as much as a key."""
MOST_KEYS = 2e9
"""Keys that may be generated: about half a minute on two cores."""
MANY_KEYS = 2e8
"""Keys beyond which half of the shares will do: four encodings are two pairs in three ways, so that
a relation lies in three shares, and half of them hold seven in eight relations."""
NEVER = 1e-9
"""Chance that two pairs fall into one cell, at least: where the sample shows none it is not 0."""
ENTRY = 20
"""Bytes per key while a share is worked on: the key with its pair, as generated and in buckets, and
its place in a chain."""
SHARE = 2_000_000
"""Keys of a share, where memory allows: one of its buckets then fits the first cache."""
FULLEST = 3000
"""Keys that one key is compared with; where more are equal, pixels have hardly anything to tell
apart."""
MOST_ROWS = 65_535
"""Encodings that are searched, so that a pair fits into 32 bits; more would be two thousand million
pairs."""
ENOUGH = 60
"""Relations per encoding, found up to three times each, after which the search ends: their rank has
long been reached."""


@dataclass(frozen=True, eq=False)
class Relations:
    """quads (r, 4): z_a − z_b − z_c + z_d = 0 for some signs at every pixel. Without a public part
    the order means nothing.

    possible: whether the pixels carry enough evidence for any relation to be told from chance
    """

    quads: Index
    possible: bool
    keys: int

    def __len__(self) -> int:
        return len(self.quads)


def find_relations(
    sketch: Sketch,
    *,
    noisy: bool = False,
    limit: int,
    progress: Progress | None = None,
    enough: float = ENOUGH,
    luck: float = LUCK,
) -> Relations:
    """Relations among encodings, none of them equal to another. `limit`: bytes; `luck`: nats beyond
    the number of comparisons: with less than none, exp(−luck) relations hold by chance."""
    sketch = sketch if sketch.m <= MOST_ROWS else sketch.of(np.arange(MOST_ROWS))
    m = sketch.m
    pairs = m * (m - 1) // 2
    need = comparisons(m) + luck
    # Encodings whose values are all the same have no pixel that says anything.
    if m < 4 or sketch.nats.sum() < need or not sketch.hi.shape[1]:
        return Relations(np.empty((0, 4), np.int64), m >= 4 and bool(sketch.nats.sum() >= need), 0)
    t, grid, per_pair = _pivots(sketch, pairs, COARSE if noisy else CELL)
    keys = pairs * per_pair
    # Where there are few pairs all can be compared, as they must be where pixels take few values.
    fullest = keys if pairs**2 / 2 <= 10 * CANDIDATES else FULLEST
    # 1. The encodings in the order of the first pivot; with a public part each of them twice, by
    # either value.
    first = sketch.hi[:, 0] if sketch.free else np.concatenate([sketch.hi[:, 0], sketch.lo[:, 0]])
    order = np.argsort(first, kind="stable")
    values, rows = first[order], (order % m).astype(np.int64)
    # 2. Shares: intervals of the difference there, as many as memory asks for. They do not depend
    # on workers, so that the result does not.
    most_keys = min(SHARE, max(limit // 16 // ENTRY, 1 << 16))
    workers = min(worker_count(where().workers), max(1, limit // 4 // ENTRY // most_keys))
    per_run = per_pair // (2 if sketch.free else 4)
    shares = _shares(values, sketch.free, grid[0], ceil(keys / most_keys), per_run, most_keys)
    if keys > MANY_KEYS:
        shares = shares[: max(ceil(len(shares) / 2), ceil(len(shares) * MANY_KEYS / keys))]
    # 3. Search them one by one, until there are enough.
    most = max(1, int(enough * m))
    room = 4 * most + 1000  # of one share; more than it finds, or nothing is told apart
    search = _Search(sketch, values, rows, t, grid, need, room, fullest)
    found: dict[int, Index] = {}
    taken, next_one = [np.empty((0, 4), np.int64)], 0
    numbered = list(enumerate(shares))
    for (at, _), hits in results(_searched, search, numbered, workers=workers):
        found[at] = hits
        if progress:
            progress("relations", len(found), len(shares))
        # Shares count in their own order, whichever ends first, so that the result does not depend
        # on that. What lies behind enough of them is not needed.
        while next_one in found and sum(map(len, taken)) < most:
            taken.append(found[next_one])
            next_one += 1
        if sum(map(len, taken)) >= most:
            break
    quads = np.concatenate(taken)
    quads = np.sort(quads, axis=1) if sketch.free else one_order(_told_apart(sketch, quads))
    return Relations(np.unique(quads, axis=0), True, keys)


@dataclass(frozen=True, eq=False)
class _Search:
    """What all shares have in common, as `search_share` takes it."""

    sketch: Sketch
    values: NDArray[np.float64]
    rows: Index
    pivots: int
    grid: NDArray[np.float64]
    need: float
    room: int
    fullest: float


def _searched(search: _Search, numbered: tuple[int, tuple[float, float, int, int]]) -> Index:
    sketch = search.sketch
    hits = search_share(
        sketch.hi,
        sketch.lo,
        sketch.free,
        search.values,
        search.rows,
        search.pivots,
        search.grid,
        sketch.spread,
        sketch.nats,
        search.need,
        *numbered[1],
        search.room,
        search.fullest,
    )
    return np.asarray(hits, np.int64)


def comparisons(m: int) -> float:
    """log of how many relations m encodings may have: pairs of pairs."""
    return log(max(m * (m - 1) // 2, 2)) * 2 - log(2)


def _told_apart(sketch: Sketch, quads: Index) -> Index:
    """Relations no two of whose encodings have the same public part: z_a − z_b could be z_b − z_a,
    all signs turned, and then nobody knows which of two relations it is."""
    offset = sketch.hi + sketch.lo
    keep = np.ones(len(quads), bool)
    for i in range(4):
        for j in range(i):
            keep &= (np.abs(offset[quads[:, i]] - offset[quads[:, j]]) > sketch.spread).any(axis=1)
    return np.asarray(quads[keep])


def one_order(quads: Index) -> Index:
    """One order for each of the eight ways to write a − b = c − d."""
    # a − b − c + d: the positive ones and the negative ones are sets.
    plus, minus = np.sort(quads[:, [0, 3]], axis=1), np.sort(quads[:, [1, 2]], axis=1)
    swap = plus[:, 0] > minus[:, 0]
    plus[swap], minus[swap] = minus[swap], plus[swap].copy()
    return np.column_stack([plus[:, 0], minus[:, 0], minus[:, 1], plus[:, 1]])


def _pivots(sketch: Sketch, pairs: int, cell: float) -> tuple[int, NDArray[np.float64], int]:
    """(number of pivots, the first pixels; grid of each; keys per pair): as few as leave
    `CANDIDATES` comparisons."""
    branch = 2 if sketch.free else 4
    grid = cell * sketch.spread
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, sketch.m, (2, 20_000))
    left, per_pair, t = pairs**2 / 2.0, 1, 0
    while t < len(grid) and (
        t == 0 or (left > CANDIDATES and pairs * per_pair * branch <= MOST_KEYS)
    ):
        one, two = sketch.hi[a, t] - sketch.hi[b, t], sketch.hi[a, t] - sketch.lo[b, t]
        cells = np.rint(np.abs(np.concatenate([one, two])) / grid[t])
        count = np.unique(cells, return_counts=True)[1] / len(cells)
        same = max(float((count**2).sum()) - 1 / len(cells), NEVER)
        fewer = left * branch**2 * same
        if (
            t
            and fewer + pairs * per_pair * branch >= left + pairs * per_pair
            and pairs**2 / 2 <= 10 * CANDIDATES
        ):
            break  # more keys, and hardly fewer comparisons: few levels, say
        left = fewer
        per_pair *= branch
        t += 1
    return t, grid[:t], per_pair


def _shares(
    values: NDArray[np.float64], free: bool, cell: float, count: int, per_run: int, most: int
) -> list[tuple[float, float, int, int]]:
    """Intervals [low, high) of the first difference with about as many keys each: (low, high, part,
    parts). Borders lie on those of cells; where a cell alone has too many keys they are parted by
    their hash."""
    rng = np.random.default_rng(0)
    a, b = values[rng.integers(0, len(values), (2, 200_000))]
    sample = np.concatenate([np.abs(a - b), a + b]) if free else np.abs(a - b)
    # Cells are centred at multiples of their width: zero, and the steps of a pixel of few levels,
    # lie in their middle.
    borders = (np.floor(np.quantile(sample, np.arange(1, count) / count) / cell) + 0.5) * cell
    edges = np.unique(np.concatenate([[0.0], borders, [np.inf]]))
    out = []
    for low, high in pairwise(edges):
        parts = max(1, ceil(int(pairs_between(values, free, low, high)) * per_run / (1.5 * most)))
        out += [(float(low), float(high), part, parts) for part in range(parts)]
    order = rng.permutation(len(out))  # a search that ends early has seen every kind of pair
    return [out[i] for i in order]
