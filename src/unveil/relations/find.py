"""Relations by hashing: pairs of encodings whose differences meet.

    z_a − z_b = z_c − z_d   with z = ±y − c, the signs free at every pixel

says that the pairs {a, b} and {c, d} have a difference in common. At a pixel without public part a pair has two differences up
to sign, |y_a − y_b| and y_a + y_b, with one it has four. So

  keys      a few pivot pixels, rounded to a grid: every choice of one difference per pivot is a key of the pair
  collide   pairs with equal keys are compared at all pixels of the sketch, and most are ruled out by the next one
  accept    where the evidence, in nats against chance, exceeds what the number of comparisons can reach by luck

Cost: m²/2 pairs, 2^t keys each for t pivots (4^t with a public part). A share holds the keys whose difference at the first pivot
lies in one interval: with the encodings sorted there, its pairs are runs of neighbours, and nothing else is looked at. Memory
holds one share per core at a time. Within a share a radix sort brings equal keys together.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.parallel import run_blocks, where, worker_count
from unveil.records import Progress
from unveil.relations.sketch import WIDTH, Index, Sketch

LUCK = 12.0
"""Nats of evidence beyond the number of comparisons: one false relation in e^12 = 160,000 runs, if pixels were independent."""
CELL = 64.0
"""Width of a grid cell in spreads of a residual: 1% of the relations are cut apart by the borders of each pivot's cells."""
COARSE = 6.0
"""The same under noise, where finer cells say little more and cut more: about one relation in eight is lost per pivot."""
CANDIDATES = 1e8
"""Comparisons that pivots should leave; each is a few pixels, and costs as much as a key."""
MOST_KEYS = 2e9
"""Keys that may be generated: about half a minute on two cores."""
FULLEST = 3000
"""Keys of one bucket that are compared with each other; more of them have hardly anything to tell apart."""
ENTRY = 16
"""Bytes per key while a share is worked on: the key with its pair, once as generated and once sorted."""
SHARE = 4_000_000
"""Keys of a share, where memory allows: their buckets, 2^11 of them, are sorted in the first cache."""
MOST_ROWS = 65_535
"""Encodings that are searched, so that a pair fits into 32 bits; more would be two thousand million pairs."""
ENOUGH = 60
"""Relations per encoding after which the search ends: their rank has long been reached."""


@dataclass(frozen=True, eq=False)
class Relations:
    """quads (r, 4): z_a − z_b − z_c + z_d = 0 for some signs at every pixel. Without a public part the order means nothing.

    possible: whether the pixels carry enough evidence for any relation to be told from chance
    """

    quads: Index
    possible: bool
    keys: int

    def __len__(self) -> int:
        return len(self.quads)


def find_relations(
    sketch: Sketch, *, noisy: bool = False, limit: int, progress: Progress | None = None, enough: int = ENOUGH
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
    found: list[Index] = []
    most = enough * m

    def search(share: tuple[float, float, int, int]) -> None:
        if sum(map(len, found)) >= most:
            return
        found.append(
            _search_share(
                sketch.hi, sketch.lo, sketch.free, values, rows, t, grid, sketch.spread, sketch.nats, need, *share, 4 * most
            )
        )

    finished = [0]

    def done(_: tuple[float, float, int, int]) -> None:
        finished[0] += 1
        if progress:
            progress("relations", finished[0], len(shares))

    run_blocks(search, shares, workers, done)
    quads = np.concatenate([np.empty((0, 4), np.int64), *found])
    if sketch.free:
        quads = np.sort(quads, axis=1)
    else:
        quads = _oriented(quads)
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
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        parts = max(1, ceil(int(_pairs_between(values, free, low, high)) * per_run / (1.5 * most)))
        out += [(float(low), float(high), part, parts) for part in range(parts)]
    order = rng.permutation(len(out))  # a search that ends early has seen every kind of pair
    return [out[i] for i in order]


def _oriented(quads: Index) -> Index:
    """One order for each of the eight ways to write a − b = c − d."""
    a, b, c, d = quads.T
    # a − b − c + d: the positive ones and the negative ones are sets.
    plus, minus = np.sort(quads[:, [0, 3]], axis=1), np.sort(quads[:, [1, 2]], axis=1)
    swap = plus[:, 0] > minus[:, 0]
    plus[swap], minus[swap] = minus[swap], plus[swap].copy()
    return np.column_stack([plus[:, 0], minus[:, 0], minus[:, 1], plus[:, 1]])


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


@njit(cache=True, nogil=True)
def _hash(h, value):  # type: ignore[no-untyped-def]
    """One more cell number in a hash: multiply and fold, as splitmix does."""
    h = (h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@njit(cache=True, nogil=True)
def _differences(hi, lo, free, a, b, q, out):  # type: ignore[no-untyped-def]
    """The differences that a pair may have at pixel q; without public part up to sign."""
    if free:
        out[0] = abs(hi[a, q] - hi[b, q])
        out[1] = abs(hi[a, q] + hi[b, q])
        return 2
    out[0] = hi[a, q] - hi[b, q]
    out[1] = hi[a, q] - lo[b, q]
    out[2] = lo[a, q] - hi[b, q]
    out[3] = lo[a, q] - lo[b, q]
    return 4


@njit(cache=True, nogil=True)
def _evidence(hi, lo, free, a, b, c, d, spread, nats, begin, rest, need):  # type: ignore[no-untyped-def]
    """Whether z_a − z_b = z_c − z_d holds at all pixels, with enough evidence against chance; pivots, which are before pixel
    `begin`, are looked at last: they have hardly anything to say any more."""
    one, two = np.empty(4), np.empty(4)
    total = 0.0
    pixels = len(nats)
    for at in range(pixels):
        p = (begin + at) % pixels
        k = _differences(hi, lo, free, a, b, p, one)
        _differences(hi, lo, free, c, d, p, two)
        best = np.inf
        for i in range(k):
            for j in range(k):
                best = min(best, abs(one[i] - two[j]))
        z = best / spread[p]
        # Within the width a pixel is worth its nats, beyond it costs what the tail of a Gaussian costs.
        total += nats[p] if z <= WIDTH else nats[p] - 0.5 * z * z
        if z > 6.0 or total + rest[at] < need:
            return False
    return total >= need


@njit(cache=True, nogil=True)
def _run(values, i, low, high, total):  # type: ignore[no-untyped-def]
    """The places j > i with low ≤ values[j] − values[i] < high, or values[j] + values[i] if `total`: from, to."""
    base = -values[i] if total else values[i]
    start = max(i + 1, np.searchsorted(values, base + low))
    return start, max(start, np.searchsorted(values, base + high))


@njit(cache=True, nogil=True)
def _pairs_between(values, free, low, high):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(len(values)):
        for total in range(2 if free else 1):
            start, end = _run(values, i, low, high, total == 1)
            count += end - start
    return count


@njit(cache=True, nogil=True)
def _keys(hi, lo, free, values, rows, t, grid, low, high, part, parts):  # type: ignore[no-untyped-def]
    """Keys of one share: 32 bits of hash, then the pair, a·m + b."""
    m = len(hi)
    branch = 2 if free else 4
    out = np.empty(max(16, _pairs_between(values, free, low, high) * branch ** (t - 1) // parts * 5 // 4), np.uint64)
    count = 0
    hashes = np.empty(branch ** (t - 1), np.uint64)
    option = np.empty(4)
    for i in range(len(values)):
        for total in range(2 if free else 1):
            start, end = _run(values, i, low, high, total == 1)
            for j in range(start, end):
                a, b = rows[j], rows[i]
                if a == b:
                    continue
                first = values[j] + values[i] if total else values[j] - values[i]
                hashes[0] = _hash(np.uint64(0x2545F4914F6CDD1D), np.int64(first / grid[0]))
                size = 1
                for q in range(1, t):
                    _differences(hi, lo, free, a, b, q, option)
                    for o in range(branch - 1, -1, -1):
                        cell = np.int64(np.floor(option[o] / grid[q]))
                        for s in range(size):
                            hashes[o * size + s] = _hash(hashes[s], cell)
                    size *= branch
                if count + size > len(out):
                    more = np.empty(len(out) * 3 // 2 + size, np.uint64)
                    more[:count] = out[:count]
                    out = more
                for s in range(size):
                    h = hashes[s]
                    if parts > 1 and (h & np.uint64(0xFFFF)) % np.uint64(parts) != np.uint64(part):
                        continue
                    out[count] = (h >> np.uint64(32) << np.uint64(32)) | np.uint64(a * m + b)
                    count += 1
    return out[:count]


@njit(cache=True, nogil=True)
def _sorted(keys, bits, above, out, start):  # type: ignore[no-untyped-def]
    """keys into `out` by their `bits` bits below the first `above`; the buckets end up as out[start[i]:start[i+1]]."""
    shift, mask = np.uint64(64 - above - bits), np.uint64((1 << bits) - 1)
    start[:] = 0
    for key in keys:
        start[np.int64(key >> shift & mask) + 2] += 1
    for i in range(2, len(start)):
        start[i] += start[i - 1]
    for key in keys:
        bucket = np.int64(key >> shift & mask) + 1
        out[start[bucket]] = key
        start[bucket] += 1


@njit(cache=True, nogil=True)
def _search_share(hi, lo, free, values, rows, t, grid, spread, nats, need, low, high, part, parts, most):  # type: ignore[no-untyped-def]
    """Relations (r, 4) whose keys fall into one share."""
    m, pixels = len(hi), len(nats)
    rest = np.zeros(pixels)  # what the pixels after the at-th that is looked at can still say
    for at in range(pixels - 2, -1, -1):
        rest[at] = rest[at + 1] + nats[(t + at + 1) % pixels]
    keys = _keys(hi, lo, free, values, rows, t, grid, low, high, part, parts)
    # 1. Sort by 11 bits of the hash, then each bucket, which is in the cache now, by as many as leave about one key.
    coarse = 11
    fine = 1
    while len(keys) >> coarse >> fine > 1 and fine < 12:
        fine += 1
    bucketed = np.empty_like(keys)
    start = np.empty((1 << coarse) + 2, np.int64)
    _sorted(keys, coarse, 0, bucketed, start)
    inner = np.empty((1 << fine) + 2, np.int64)
    out = np.empty((64, 4), np.int64)
    count = 0
    low32 = np.uint64(0xFFFFFFFF)
    for bucket in range(1 << coarse):
        begin, end = start[bucket], start[bucket + 1]
        here = keys[begin:end]  # no longer needed as they were
        _sorted(bucketed[begin:end], fine, coarse, here, inner)
        # 2. Compare the pairs that have one key.
        for small in range(1 << fine):
            last = min(inner[small + 1], inner[small] + FULLEST)
            for i in range(inner[small], last):
                for j in range(i + 1, last):
                    if (here[i] ^ here[j]) > low32:
                        continue
                    one, two = np.int64(here[i] & low32), np.int64(here[j] & low32)
                    a, b, c, d = one // m, one % m, two // m, two % m
                    if a == c or a == d or b == c or b == d:
                        continue
                    if _evidence(hi, lo, free, a, b, c, d, spread, nats, t, rest, need):
                        if count == len(out):
                            more = np.empty((2 * count, 4), np.int64)
                            more[:count] = out
                            out = more
                        out[count] = a, b, c, d
                        count += 1
                        if count == most:
                            return out
    return out[:count]
