"""The inner loops of the search for relations: keys of a share of the pairs, brought together,
compared.

Plain arrays in, plain arrays out; `relations.find` says what they mean.

    runs      with the encodings sorted at the first pivot, pairs with a difference in an interval
              are runs of neighbours
    keys      one for each choice of a difference at the other pivots: a linear hash in 32 bits, the
              pair in the other 32
    buckets   keys by their first bits, then a hash table for each bucket, which fits the cache
    evidence  equal keys: the two pairs are compared pixel by pixel, until enough is said for or
              against them
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unveil.relations.sketch import WIDTH

BUCKETS, SLOTS = 9, 12
"""Bits of the key for the bucket, and for its slot in the hash table of the bucket."""
RULED_OUT = 6.0
"""Spreads beyond which one pixel rules a relation out: a Gaussian residual is larger twice in a
thousand million times."""


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
        return min(
            min(abs(less - fewer), abs(less - further)), min(abs(more - fewer), abs(more - further))
        )
    for choice in range(16):
        one = (hi[a, p] if choice & 1 else lo[a, p]) - (hi[b, p] if choice & 2 else lo[b, p])
        two = (hi[c, p] if choice & 4 else lo[c, p]) - (hi[d, p] if choice & 8 else lo[d, p])
        best = min(best, abs(one - two))
    return best


@njit(cache=True, nogil=True)
def _evidence(  # type: ignore[no-untyped-def]
    hi, lo, free, a, b, c, d, spread, nats, begin, rest, need
):
    """Whether z_a − z_b = z_c − z_d holds at all pixels, with enough evidence against chance;
    pivots, which are before pixel `begin`, are looked at last: they have hardly anything to say any
    more."""
    total = 0.0
    pixels = len(nats)
    for at in range(pixels):
        p = begin + at if begin + at < pixels else begin + at - pixels
        z = _apart(hi, lo, free, a, b, c, d, p) / spread[p]
        if z > RULED_OUT:
            return False
        # Within the width a pixel is worth its nats, beyond it costs what the tail of a Gaussian
        # costs.
        total += nats[p] if z <= WIDTH else nats[p] - 0.5 * z * z
        if total + rest[at] < need:
            return False
    return total >= need


@njit(cache=True, nogil=True)
def _run(values, i, low, high, total):  # type: ignore[no-untyped-def]
    """The places j > i with low ≤ values[j] − values[i] < high, or values[j] + values[i] if
    `total`: from, to."""
    base = -values[i] if total else values[i]
    start = max(i + 1, np.searchsorted(values, base + low))
    return start, max(start, np.searchsorted(values, base + high))


@njit(cache=True, nogil=True)
def pairs_between(values, free, low, high):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(len(values)):
        for total in range(2 if free else 1):
            start, end = _run(values, i, low, high, total == 1)
            count += end - start
    return count


@njit(cache=True, nogil=True)
def _keys(  # type: ignore[no-untyped-def]
    hi, lo, free, values, rows, t, grid, low, high, part, parts
):
    """Keys of one share: 32 bits of hash, then the two encodings. The hash is linear, Σ
    cell·constant: one sum per key."""
    branch = 2 if free else 4
    out = np.empty(
        max(16, pairs_between(values, free, low, high) * branch ** (t - 1) // parts * 5 // 4),
        np.uint64,
    )
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
                cell = np.int64(first * per_cell[0] + 0.5)
                # Zero up to rounding has no sign: with a public part both orders of the pair are
                # keys.
                for turn in range(2 if cell == 0 and not free else 1):
                    if turn:
                        a, b = b, a
                    hashes[0] = np.uint64(cell) * factor[0]
                    size = 1
                    for q in range(1, t):
                        _differences(hi, lo, free, a, b, q, option)
                        for o in range(branch - 1, -1, -1):
                            step = (
                                np.uint64(np.int64(np.floor(option[o] * per_cell[q] + 0.5)))
                                * factor[q]
                            )
                            for s in range(size):
                                hashes[o * size + s] = hashes[s] + step
                        size *= branch
                    if count + size > len(out):
                        more = np.empty(len(out) * 3 // 2 + size, np.uint64)
                        for old in range(count):
                            more[old] = out[old]
                        out = more
                    pair = np.uint64(a << 16 | b)
                    for s in range(size):
                        if parts > 1 and (
                            hashes[s] >> np.uint64(16) & np.uint64(0xFFFF)
                        ) % np.uint64(parts) != np.uint64(part):
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
def search_share(  # type: ignore[no-untyped-def]
    hi, lo, free, values, rows, t, grid, spread, nats, need, low, high, part, parts, most, fullest
):
    """Relations (r, 4) whose keys fall into one share; a key is compared with `fullest` others at
    most."""
    pixels = len(nats)
    rest = np.zeros(pixels)  # what the pixels after the at-th that is looked at can still say
    for at in range(pixels - 2, -1, -1):
        rest[at] = rest[at + 1] + nats[(t + at + 1) % pixels]
    after = t % pixels
    next_hi, next_lo, close = (
        hi[:, after].copy().reshape(-1, 1),
        lo[:, after].copy().reshape(-1, 1),
        RULED_OUT * spread[after],
    )
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
            while j >= begin and seen < fullest:
                seen += 1
                if (keys[i] ^ keys[j]) <= low32:
                    a, b = np.int64(keys[i] >> sixteen & low16), np.int64(keys[i] & low16)
                    c, d = np.int64(keys[j] >> sixteen & low16), np.int64(keys[j] & low16)
                    # The next pixel rules most of them out; it alone is in the cache.
                    near = _apart(next_hi, next_lo, free, a, b, c, d, 0) <= close
                    different = a != c and a != d and b != c and b != d
                    if (
                        near
                        and different
                        and _evidence(hi, lo, free, a, b, c, d, spread, nats, t, rest, need)
                    ):
                        if count == len(out):
                            more = np.empty((2 * count, 4), np.int64)
                            for old in range(count):
                                for place in range(4):
                                    more[old, place] = out[old, place]
                            out = more
                        out[count, 0], out[count, 1], out[count, 2], out[count, 3] = a, b, c, d
                        count += 1
                        if count == most:
                            return out[:count]
                j = before[j]
    return out[:count]
