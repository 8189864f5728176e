"""Relations by hashing: pairs of encodings whose differences meet.

    z_a − z_b = z_c − z_d   with z = ±y − c, the signs free at every pixel

says that the pairs {a, b} and {c, d} have a difference in common. At a pixel without public part a pair has two differences up
to sign, |y_a − y_b| and y_a + y_b, with one it has four. So

  keys      a few pivot pixels, rounded to a grid: every choice of one difference per pivot is a key of the pair
  collide   pairs with equal keys are compared at all pixels of the sketch, and most are ruled out by the next one
  accept    where the evidence, in nats against chance, exceeds what the number of comparisons can reach by luck

Cost: m²/2 pairs, 2^t keys each for t pivots (4^t with a public part). Keys are generated anew for each share of the hash
values, so that memory holds one share at a time, and the shares run on all cores.
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
PEAK = 0.87
"""log of 2·`WIDTH`/√(2π): a Gaussian residual's density at zero, over that of chance, where `nats` counts a whole window."""
OUTLIER = -4.6
"""Nats that a pixel costs at most, log of 0.01: as many pixels may be off by more than noise."""
SHORT = 4.0
"""Standard deviations by which a true relation's evidence may fall short of its mean: three in a hundred thousand do."""
BEHIND = -10.0
"""Nats behind chance at which a comparison ends: a true relation falls so far behind once in e^10 = 22,000 times."""
NOISY_LUCK = 16.0
"""Nats beyond the number of comparisons under noise: more than for exact relations, as pixels repeat each other."""
CANDIDATES = 3e7
"""Comparisons that pivots should leave; each is a few pixels."""
MOST_KEYS = 5e8
"""Keys that may be generated: about half a minute on two cores."""
FULLEST = 3000
"""Pairs with one key that are compared with each other; more of them have hardly anything to tell apart."""
ENTRY = 24
"""Bytes per key while a share is worked on."""
SHARES = 4
"""Shares of the hash values, at least: each generates all keys anew, and runs on one core."""
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
    m = sketch.m
    pairs = m * (m - 1) // 2
    need = log(max(pairs, 2)) * 2 - log(2) + LUCK
    if m < 4 or sketch.nats.sum() < need:
        return Relations(np.empty((0, 4), np.int64), m >= 4 and bool(sketch.nats.sum() >= need), 0)
    pivots, grid, per_pair = _pivots(sketch, pairs, COARSE if noisy else CELL)
    keys = pairs * per_pair
    # Where there are few pairs all can be compared, as they must be without pivots.
    fullest = pairs if pairs**2 / 2 <= 10 * CANDIDATES else FULLEST
    # Shares do not depend on workers, so that the result does not: as many run at a time as memory allows.
    budget = max(min(limit // 2, 1 << 30) // SHARES, 1 << 20)
    shares = max(SHARES if pairs > 50_000 else 1, ceil(keys * ENTRY / budget))
    workers = min(worker_count(where().workers), max(1, limit // 2 // budget))
    found: dict[int, Index] = {}
    most = enough * m
    order = np.arange(len(sketch.pixels))

    def search(share: int) -> None:
        # Whatever else is still running, the shares before this one suffice.
        if sum(len(hits) for earlier, hits in list(found.items()) if earlier < share) >= most:
            return
        hits = _search_share(
            sketch.hi,
            sketch.lo,
            sketch.free,
            pivots,
            grid,
            sketch.spread,
            sketch.nats,
            order,
            need,
            share,
            shares,
            4 * most,
            fullest,
        )
        found[share] = np.asarray(hits, np.int64)

    finished = [0]

    def done(_: int) -> None:
        finished[0] += 1
        if progress:
            progress("relations", finished[0], shares)

    run_blocks(search, range(shares), workers, done)
    taken = [np.empty((0, 4), np.int64)]
    for share in sorted(found):
        if sum(map(len, taken)) >= most:
            break
        taken.append(found[share])
    quads = np.concatenate(taken)
    quads = np.sort(quads, axis=1) if sketch.free else one_order(_told_apart(sketch, quads))
    return Relations(np.unique(quads, axis=0), True, keys)


def _told_apart(sketch: Sketch, quads: Index) -> Index:
    """Relations no two of whose encodings have the same public part: z_a − z_b could be z_b − z_a, all signs turned, and
    then nobody knows which of two relations it is."""
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


def _pivots(sketch: Sketch, pairs: int, cell: float) -> tuple[Index, NDArray[np.float64], int]:
    """(pivot pixels, grid of each, keys per pair): as few as leave `CANDIDATES` comparisons."""
    branch = 2 if sketch.free else 4
    grid = cell * sketch.spread
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, sketch.m, (2, 20_000))
    left, per_pair, t = pairs**2 / 2.0, 1, 0
    while t < len(grid) and left > CANDIDATES and pairs * per_pair * branch <= MOST_KEYS:
        one, two = sketch.hi[a, t] - sketch.hi[b, t], sketch.hi[a, t] - sketch.lo[b, t]
        cells = np.rint(np.abs(np.concatenate([one, two])) / grid[t])
        count = np.unique(cells, return_counts=True)[1] / len(cells)
        same = max(float((count**2).sum()) - 1 / len(cells), 1e-9)
        fewer = left * branch**2 * same
        if fewer + pairs * per_pair * branch >= left + pairs * per_pair and pairs**2 / 2 <= 10 * CANDIDATES:
            break  # more keys, and hardly fewer comparisons: few levels, say
        left = fewer
        per_pair *= branch
        t += 1
    return np.arange(t), grid[:t], per_pair


def find_among(sketch: Sketch, pairs: Index, *, progress: Progress | None = None, enough: int = ENOUGH) -> Relations:
    """Relations between the given `pairs` (p, 2) of encodings alone, under noise: every two of them are compared.

    Hashing has no use where cells would be as wide as the values. Evidence is the likelihood ratio of a Gaussian residual
    against chance, pixel by pixel, with room for outliers; a comparison ends when it has fallen behind for good.
    """
    gain = sketch.nats + PEAK
    mean, deviation = float((gain - 0.5).sum()), float(np.sqrt(0.5 * len(gain)))
    least = 2 * log(max(len(pairs), 2)) + NOISY_LUCK
    if len(pairs) < 2 or mean < least:
        return Relations(np.empty((0, 4), np.int64), False, 0)
    # Pixels that repeat each other can lift chance above `least`, never to where true relations are.
    need = max(least, mean - SHORT * deviation)
    differences = _all_differences(sketch, pairs)
    blocks = [(s, min(s + 256, len(pairs))) for s in range(0, len(pairs), 256)]
    found: list[Index] = []
    most = enough * sketch.m
    finished = [0]

    def search(block: tuple[int, int]) -> None:
        if sum(map(len, found)) < most:
            hits = _search_pairs(differences, np.ascontiguousarray(pairs), *block, gain.astype(np.float32), need, 4 * most)
            found.append(np.asarray(hits, np.int64))

    def done(_: tuple[int, int]) -> None:
        finished[0] += 1
        if progress:
            progress("relations", finished[0], len(blocks))

    run_blocks(search, blocks, worker_count(where().workers), done)
    quads = np.concatenate([np.empty((0, 4), np.int64), *found])
    return Relations(np.unique(np.sort(quads, axis=1) if sketch.free else one_order(quads), axis=0), True, 0)


def _all_differences(sketch: Sketch, pairs: Index) -> NDArray[np.float32]:
    """(pairs, pixels, 2 or 4): what each pair's difference may be, in units of the spread; without a public part up to sign."""
    a, b = pairs.T
    hi, lo = sketch.hi / sketch.spread, sketch.lo / sketch.spread
    if sketch.free:
        both = [np.abs(hi[a] - hi[b]), np.abs(hi[a] + hi[b])]
    else:
        both = [hi[a] - hi[b], hi[a] - lo[b], lo[a] - hi[b], lo[a] - lo[b]]
    return np.ascontiguousarray(np.stack(both, axis=2), dtype=np.float32)


@njit(cache=True, nogil=True, fastmath=True)
def _search_pairs(differences, pairs, begin, end, gain, need, most):  # type: ignore[no-untyped-def]
    """Relations of pairs begin … end−1 with later ones."""
    out = np.empty((most, 4), np.int64)
    count = 0
    options = differences.shape[2]
    turns = 1 if options == 2 else 2
    floor = np.float32(OUTLIER)
    for i in range(begin, end):
        a, b = pairs[i]
        for j in range(i + 1, len(pairs)):
            c, d = pairs[j]
            if a in (c, d) or b in (c, d):
                continue
            for turn in range(turns):
                sign = np.float32(1.0 if turn == 0 else -1.0)
                total = np.float32(0.0)
                for p in range(len(gain)):
                    best = np.float32(1e9)
                    for u in range(options):
                        for v in range(options):
                            best = min(best, abs(differences[i, p, u] - sign * differences[j, p, v]))
                    total += max(gain[p] - np.float32(0.5) * best * best, floor)
                    if total < BEHIND:
                        break
                if total >= need:
                    if sign < 0:
                        c, d = d, c
                    out[count] = a, b, c, d
                    count += 1
                    if count == most:
                        return out
                    break
    return out[:count]


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
def _evidence(hi, lo, free, a, b, c, d, turn, spread, nats, order, rest, need):  # type: ignore[no-untyped-def]
    """Whether z_a − z_b = turn·(z_c − z_d) holds at all pixels, with enough evidence against chance."""
    one, two = np.empty(4), np.empty(4)
    total = 0.0
    for p in order:
        k = _differences(hi, lo, free, a, b, p, one)
        _differences(hi, lo, free, c, d, p, two)
        best = np.inf
        for i in range(k):
            for j in range(k):
                best = min(best, abs(one[i] - turn * two[j]))
        z = best / spread[p]
        # Within the width a pixel is worth its nats, beyond it costs what the tail of a Gaussian costs.
        total += nats[p] if z <= WIDTH else nats[p] - 0.5 * z * z
        if total + rest[p] < need or z > 6.0:
            return False
    return total >= need


@njit(cache=True, nogil=True)
def _search_share(hi, lo, free, pivots, grid, spread, nats, order, need, share, shares, most, fullest):  # type: ignore[no-untyped-def]
    """Relations (r, 4) whose keys fall into one share of the hash values."""
    m, t = len(hi), len(pivots)
    rest = np.zeros(len(nats))
    for p in range(len(nats) - 2, -1, -1):
        rest[p] = rest[p + 1] + nats[p + 1]
    branch = 2 if free else 4
    options = branch**t
    cells = np.empty((max(t, 1), 4), np.int64)
    values = np.empty(4)
    # 1. Count the keys of every bucket, then place them: a counting sort. Round 0 counts, round 1 places.
    expected = m * (m - 1) // 2 * options // shares
    bits = 4
    while (1 << bits) < expected // 4 and bits < 26:
        bits += 1
    start = np.zeros((1 << bits) + 1, np.int64)
    key = np.empty(0, np.uint64)
    first = np.empty(0, np.int32)
    second = np.empty(0, np.int32)
    sign = np.empty(0, np.int8)
    for turn in range(2):
        for a in range(m):
            for b in range(a + 1, m):
                for q in range(t):
                    _differences(hi, lo, free, a, b, pivots[q], values)
                    for i in range(branch):
                        # Rounded, not cut: zero, and the steps of a pixel of few levels, lie in the middle of their cells.
                        cells[q, i] = np.int64(np.rint(values[i] / grid[q]))
                for o in range(options):
                    h = np.uint64(0x2545F4914F6CDD1D)
                    flip = 1 if free else 0
                    left = o
                    for q in range(t):
                        cell = cells[q, left % branch]
                        left //= branch
                        if not free:
                            # One orientation for both ways to write a difference: the first that is not zero is positive.
                            if flip == 0 and cell != 0:
                                flip = 1 if cell > 0 else -1
                            cell *= flip
                        h = _hash(h, cell)
                    if h % np.uint64(shares) != np.uint64(share):
                        continue
                    bucket = np.int64(_hash(h, 1) >> np.uint64(64 - bits))
                    if turn == 0:
                        start[bucket + 1] += 1
                    else:
                        at = start[bucket]
                        start[bucket] += 1
                        key[at], first[at], second[at], sign[at] = h, a, b, flip
        if turn == 0:
            for i in range(1 << bits):
                start[i + 1] += start[i]
            total = start[1 << bits]
            key, first, second = np.empty(total, np.uint64), np.empty(total, np.int32), np.empty(total, np.int32)
            sign = np.empty(total, np.int8)
    # 2. Compare the pairs of a bucket that have one key. After placing, start[i] is the end of bucket i.
    out = np.empty((most, 4), np.int64)
    count = 0
    begin = 0
    for at_bucket in range(1 << bits):
        end = start[at_bucket]
        full = end - begin > fullest
        if full:
            # Key by key, so that the limit on one key does not depend on what else the bucket holds.
            by_key = begin + np.argsort(key[begin:end], kind="mergesort")
            key[begin:end], sign[begin:end] = key[by_key], sign[by_key]
            first[begin:end], second[begin:end] = first[by_key], second[by_key]
        run = begin
        for i in range(begin, end):
            if key[i] != key[run]:
                run = i
            last = min(end, run + fullest) if full else end
            for j in range(i + 1, last):
                if key[i] != key[j]:
                    if full:
                        break
                    continue
                a, b, c, d = first[i], second[i], first[j], second[j]
                if a in (c, d) or b in (c, d):
                    continue
                for turn in (1, -1):
                    if sign[i] * sign[j] == -turn:
                        continue
                    # Both where no pivot tells.
                    if _evidence(hi, lo, free, a, b, c, d, turn, spread, nats, order, rest, need):
                        out[count] = (a, b, c, d) if turn > 0 else (a, b, d, c)
                        count += 1
                        if count == most:
                            return out
        begin = end
    return out[:count]
