"""Relations among many thousand encodings, as `relations.find` has them, in shares that fit the cache.

    z_a − z_b = z_c − z_d   with z = ±y − c, the signs free at every pixel

says that the pairs {a, b} and {c, d} have a difference in common. At a pixel without public part a pair has two differences up
to sign, |y_a − y_b| and y_a + y_b, with one it has four. So

  keys      a few pivot pixels, rounded to a grid: every choice of one difference per pivot is a key of the pair
  collide   pairs with equal keys are compared at all pixels of the sketch, and most are ruled out by the next one
  accept    where the evidence, in nats against chance, exceeds what the number of comparisons can reach by luck

Cost: m²/2 pairs, 2^t keys each for t pivots (4^t with a public part). A share holds the keys whose difference at the first
pivot lies in one interval, and memory one share per core at a time (`relations.share`).
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from unveil.parallel import run_blocks, where, worker_count
from unveil.records import Progress
from unveil.relations.find import CELL, COARSE, LUCK, Relations, one_order
from unveil.relations.share import pairs_between, search_share
from unveil.relations.sketch import Index, Sketch

CANDIDATES = 1e8
"""Comparisons that pivots should leave: each costs about as much as a key."""
MOST_KEYS = 2e9
"""Keys that may be generated: about half a minute on two cores."""
MANY_KEYS = 2e8
"""Keys beyond which half of the shares will do: four encodings are two pairs in three ways, so that a relation lies in three
shares, and half of them hold seven in eight relations."""
ENTRY = 20
"""Bytes per key while a share is worked on: the key with its pair, as generated and in buckets, and its place in a chain."""
SHARE = 2_000_000
"""Keys of a share, where memory allows: one of its 2^`BUCKETS` buckets then fits the first cache."""
MOST_ROWS = 65_535
"""Encodings that are searched, so that a pair fits into 32 bits; more would be two thousand million pairs."""
ENOUGH = 60
"""Relations per encoding, found up to three times each, after which the search ends: their rank has long been reached."""


def find_many(
    sketch: Sketch, *, noisy: bool = False, limit: int, progress: Progress | None = None, enough: float = ENOUGH
) -> Relations:
    """Relations among encodings, none of them equal to another. `limit`: bytes."""
    sketch = sketch if sketch.m <= MOST_ROWS else sketch.of(np.arange(MOST_ROWS))
    m = sketch.m
    pairs = m * (m - 1) // 2
    need = log(max(pairs, 2)) * 2 - log(2) + LUCK
    if m < 4 or sketch.nats.sum() < need:
        return Relations(np.empty((0, 4), np.int64), m >= 4 and bool(sketch.nats.sum() >= need), 0)
    t, grid, per_pair = _pivots(sketch, pairs, COARSE if noisy else CELL)
    # 1. The encodings in the order of the first pivot; with a public part each of them twice, by either value.
    first = sketch.hi[:, 0] if sketch.free else np.concatenate([sketch.hi[:, 0], sketch.lo[:, 0]])
    order = np.argsort(first, kind="stable")
    values, rows = first[order], (order % m).astype(np.int64)
    # 2. Shares: intervals of the difference there, as many as memory asks for.
    workers = worker_count(where().workers)
    most_keys = min(SHARE, max(limit // 4 // workers // ENTRY, 1 << 16))
    per_run = per_pair // (2 if sketch.free else 4)
    shares = _shares(values, sketch.free, grid[0], ceil(pairs * per_pair / most_keys), per_run, most_keys)
    if pairs * per_pair > MANY_KEYS:
        shares = shares[: max(ceil(len(shares) / 2), ceil(len(shares) * MANY_KEYS / (pairs * per_pair)))]
    found: list[Index] = []
    most = max(1, int(enough * m))
    room = 4 * most + 1000  # of one share; more than it finds, or nothing is told apart

    def search(share: tuple[float, float, int, int]) -> None:
        if sum(map(len, found)) >= most:
            return
        found.append(
            search_share(
                sketch.hi, sketch.lo, sketch.free, values, rows, t, grid, sketch.spread, sketch.nats, need, *share, room
            )
        )

    finished = [0]

    def done(_: tuple[float, float, int, int]) -> None:
        finished[0] += 1
        if progress:
            progress("relations", finished[0], len(shares))

    run_blocks(search, shares, workers, done)
    quads = np.concatenate([np.empty((0, 4), np.int64), *found])
    quads = np.sort(quads, axis=1) if sketch.free else one_order(quads)
    return Relations(np.unique(quads, axis=0), True, pairs * per_pair)


def _shares(
    values: NDArray[np.float64], free: bool, cell: float, count: int, per_run: int, most: int
) -> list[tuple[float, float, int, int]]:
    """Intervals [low, high) of the first difference with about as many keys each: (low, high, part, parts). Borders lie on
    those of cells; where a cell alone has too many keys they are parted by their hash."""
    rng = np.random.default_rng(0)
    a, b = values[rng.integers(0, len(values), (2, 200_000))]
    sample = np.concatenate([np.abs(a - b), a + b]) if free else np.abs(a - b)
    borders = np.floor(np.quantile(sample, np.arange(1, count) / count) / cell) * cell
    edges = np.unique(np.concatenate([[0.0], borders, [np.inf]]))
    out = []
    for low, high in pairwise(edges):
        parts = max(1, ceil(int(pairs_between(values, free, low, high)) * per_run / (1.5 * most)))
        out += [(float(low), float(high), part, parts) for part in range(parts)]
    order = rng.permutation(len(out))  # a search that ends early has seen every kind of pair
    return [out[i] for i in order]


def _pivots(sketch: Sketch, pairs: int, cell: float) -> tuple[int, NDArray[np.float64], int]:
    """(number of pivots, the first pixels; grid of each; keys per pair): as few as leave `CANDIDATES` comparisons."""
    branch = 2 if sketch.free else 4
    grid = cell * sketch.spread
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, sketch.m, (2, 20_000))
    left, per_pair, t = pairs**2 / 2.0, 1, 0
    while t < len(grid) and (t == 0 or (left > CANDIDATES and pairs * per_pair * branch <= MOST_KEYS)):
        one, two = sketch.hi[a, t] - sketch.hi[b, t], sketch.hi[a, t] - sketch.lo[b, t]
        cells = np.floor(np.abs(np.concatenate([one, two])) / grid[t])
        count = np.unique(cells, return_counts=True)[1] / len(cells)
        same = max(float((count**2).sum()) - 1 / len(cells), 1e-9)
        left *= branch**2 * same
        per_pair *= branch
        t += 1
    return t, grid[:t], per_pair
