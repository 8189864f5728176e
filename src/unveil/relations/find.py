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
"""Comparisons that pivots should leave: each costs about as much as a key."""
MOST_KEYS = 2e9
"""Keys that may be generated: about half a minute on two cores."""
MANY_KEYS = 2e8
"""Keys beyond which half of the shares will do: four encodings are two pairs in three ways, so that a relation lies in three
shares, and half of them hold seven in eight relations."""
FULLEST = 3000
"""Keys of one bucket that are compared with each other; more of them have hardly anything to tell apart."""
ENTRY = 20
"""Bytes per key while a share is worked on: the key with its pair, as generated and in buckets, and its place in a chain."""
SHARE = 2_000_000
"""Keys of a share, where memory allows: one of its 2^`BUCKETS` buckets then fits the first cache."""
BUCKETS, SLOTS = 9, 12
"""Bits of the key for the bucket, and for its slot in the hash table of the bucket."""
MOST_ROWS = 65_535
"""Encodings that are searched, so that a pair fits into 32 bits; more would be two thousand million pairs."""
ENOUGH = 60
"""Relations per encoding, found up to three times each, after which the search ends: their rank has long been reached."""


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

    def search(share: tuple[float, float, int, int]) -> None:
        if sum(map(len, found)) >= most:
            return
        found.append(
            _search_share(
                sketch.hi, sketch.lo, sketch.free, values, rows, t, grid, sketch.spread, sketch.nats, need, *share, 4 * most + 1000
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


@njit(cache=True, nogil=True, inline="always")
def _apart(hi, lo, free, a, b, c, d, p):  # type: ignore[no-untyped-def]
    """How far z_a − z_b and z_c − z_d are apart at pixel p, for the best choice of signs."""
    best = np.inf
    if free:
        ya, yb, yc, yd = hi[a, p], hi[b, p], hi[c, p], hi[d, p]
        less, more = abs(ya - yb), abs(ya + yb)
        fewer, further = abs(yc - yd), abs(yc + yd)
        return min(min(abs(less - fewer), abs(less - further)), min(abs(more - fewer), abs(more - further)))
    for choice in range(16):
        one = (hi[a, p] if choice & 1 else lo[a, p]) - (hi[b, p] if choice & 2 else lo[b, p])
        two = (hi[c, p] if choice & 4 else lo[c, p]) - (hi[d, p] if choice & 8 else lo[d, p])
        best = min(best, abs(one - two))
    return best


@njit(cache=True, nogil=True)
def _evidence(hi, lo, free, a, b, c, d, spread, nats, begin, rest, need):  # type: ignore[no-untyped-def]
    """Whether z_a − z_b = z_c − z_d holds at all pixels, with enough evidence against chance; pivots, which are before pixel
    `begin`, are looked at last: they have hardly anything to say any more."""
    total = 0.0
    pixels = len(nats)
    for at in range(pixels):
        p = begin + at if begin + at < pixels else begin + at - pixels
        z = _apart(hi, lo, free, a, b, c, d, p) / spread[p]
        if z > 6.0:
            return False
        # Within the width a pixel is worth its nats, beyond it costs what the tail of a Gaussian costs.
        total += nats[p] if z <= WIDTH else nats[p] - 0.5 * z * z
        if total + rest[at] < need:
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
    """Keys of one share: 32 bits of hash, then the two encodings. The hash is linear, Σ cell·constant: one sum per key."""
    branch = 2 if free else 4
    out = np.empty(max(16, _pairs_between(values, free, low, high) * branch ** (t - 1) // parts * 5 // 4), np.uint64)
    count = 0
    hashes = np.empty(branch ** (t - 1), np.uint64)
    option = np.empty(4)
    per_cell = 1 / grid
    factor = np.empty(t, np.uint64)
    h = np.uint64(0x2545F4914F6CDD1D)
    for q in range(t):
        h = (h ^ h >> np.uint64(29)) * np.uint64(0x9E3779B97F4A7C15)
        factor[q] = h
    upper = np.uint64(0xFFFFFFFF00000000)
    for i in range(len(values)):
        for total in range(2 if free else 1):
            start, end = _run(values, i, low, high, total == 1)
            for j in range(start, end):
                a, b = rows[j], rows[i]
                if a == b:
                    continue
                first = values[j] + values[i] if total else values[j] - values[i]
                hashes[0] = np.uint64(np.int64(first * per_cell[0])) * factor[0]
                size = 1
                for q in range(1, t):
                    _differences(hi, lo, free, a, b, q, option)
                    for o in range(branch - 1, -1, -1):
                        step = np.uint64(np.int64(np.floor(option[o] * per_cell[q]))) * factor[q]
                        for s in range(size):
                            hashes[o * size + s] = hashes[s] + step
                    size *= branch
                if count + size > len(out):
                    more = np.empty(len(out) * 3 // 2 + size, np.uint64)
                    more[:count] = out[:count]
                    out = more
                pair = np.uint64(a << 16 | b)
                for s in range(size):
                    if parts > 1 and (hashes[s] >> np.uint64(16) & np.uint64(0xFFFF)) % np.uint64(parts) != np.uint64(part):
                        continue
                    out[count] = (hashes[s] & upper) | pair
                    count += 1
    return out[:count]


@njit(cache=True, nogil=True)
def _bucketed(keys):  # type: ignore[no-untyped-def]
    """The keys by their first `BUCKETS` bits: (sorted, where each bucket begins)."""
    shift = np.uint64(64 - BUCKETS)
    start = np.zeros((1 << BUCKETS) + 2, np.int64)
    for key in keys:
        start[np.int64(key >> shift) + 2] += 1
    for i in range(2, len(start)):
        start[i] += start[i - 1]
    out = np.empty_like(keys)
    for key in keys:
        bucket = np.int64(key >> shift) + 1
        out[start[bucket]] = key
        start[bucket] += 1
    return out, start


@njit(cache=True, nogil=True)
def _search_share(hi, lo, free, values, rows, t, grid, spread, nats, need, low, high, part, parts, most):  # type: ignore[no-untyped-def]
    """Relations (r, 4) whose keys fall into one share."""
    pixels = len(nats)
    rest = np.zeros(pixels)  # what the pixels after the at-th that is looked at can still say
    for at in range(pixels - 2, -1, -1):
        rest[at] = rest[at + 1] + nats[(t + at + 1) % pixels]
    after = t % pixels
    next_hi, next_lo, close = hi[:, after].copy().reshape(-1, 1), lo[:, after].copy().reshape(-1, 1), 6.0 * spread[after]
    keys, start = _bucketed(_keys(hi, lo, free, values, rows, t, grid, low, high, part, parts))
    # Within a bucket a hash table: the last key of each slot, and for every key the one before it.
    slots = np.full(1 << SLOTS, -1, np.int64)
    before = np.empty(len(keys), np.int32)
    out = np.empty((64, 4), np.int64)
    count = 0
    low32, low16, sixteen = np.uint64(0xFFFFFFFF), np.uint64(0xFFFF), np.uint64(16)
    shift, mask = np.uint64(64 - BUCKETS - SLOTS), np.uint64((1 << SLOTS) - 1)
    for bucket in range(1 << BUCKETS):
        begin = start[bucket]
        for i in range(begin, start[bucket + 1]):
            slot = np.int64(keys[i] >> shift & mask)
            j = slots[slot]
            slots[slot] = i
            before[i] = j
            seen = 0
            while j >= begin and seen < FULLEST:
                seen += 1
                if (keys[i] ^ keys[j]) <= low32:
                    a, b = np.int64(keys[i] >> sixteen & low16), np.int64(keys[i] & low16)
                    c, d = np.int64(keys[j] >> sixteen & low16), np.int64(keys[j] & low16)
                    # The next pixel rules most of them out; it alone is in the cache.
                    near = _apart(next_hi, next_lo, free, a, b, c, d, 0) <= close
                    if near and a != c and a != d and b != c and b != d:
                        if _evidence(hi, lo, free, a, b, c, d, spread, nats, t, rest, need):
                            if count == len(out):
                                more = np.empty((2 * count, 4), np.int64)
                                more[:count] = out
                                out = more
                            out[count] = a, b, c, d
                            count += 1
                            if count == most:
                                return out[:count]
                j = before[j]
    return out[:count]
