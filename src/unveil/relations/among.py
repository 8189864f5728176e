"""Relations between given pairs of encodings under noise: every two pairs are compared.

Hashing has no use where cells would be as wide as the values. Evidence is the likelihood ratio of a
Gaussian residual against chance, pixel by pixel, with room for outliers. A comparison ends when it
has fallen behind for good.
"""

from __future__ import annotations

from math import log

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.parallel import run_blocks, where, worker_count
from unveil.records import Progress
from unveil.relations.find import ENOUGH, Relations, one_order
from unveil.relations.sketch import Index, Sketch

PEAK = 0.87
"""log of 2·`WIDTH`/√(2π): a Gaussian residual's density at zero, over that of chance, where `nats`
counts a whole window."""
OUTLIER = -4.6
"""Nats that a pixel costs at most, log of 0.01: as many pixels may be off by more than noise."""
SHORT = 4.0
"""Standard deviations by which a true relation's evidence may fall short of its mean: three in a
hundred thousand do."""
BEHIND = -10.0
"""Nats behind chance at which a comparison ends: a true relation falls so far behind once in e^10 =
22,000 times."""
FAR = 1e9
"""Before any choice of signs was tried: further apart than values ever are."""
NOISY_LUCK = 16.0
"""Nats beyond the number of comparisons under noise: more than for exact relations, as pixels
repeat each other."""


def find_among(
    sketch: Sketch, pairs: Index, *, progress: Progress | None = None, enough: int = ENOUGH
) -> Relations:
    """Relations between the given `pairs` (p, 2) of encodings alone."""
    quads = compare(
        _all_differences(sketch, pairs), pairs, sketch.nats, enough * sketch.m, progress
    )
    if quads is None:
        return Relations(np.empty((0, 4), np.int64), False, 0)
    return Relations(
        np.unique(np.sort(quads, axis=1) if sketch.free else one_order(quads), axis=0), True, 0
    )


def compare(
    differences: NDArray[np.float32],
    pairs: Index,
    nats: NDArray[np.float64],
    most: int,
    progress: Progress | None = None,
) -> Index | None:
    """(r, 4) pairs (p, 2) next to each other that have a difference in common at every pixel,
    `most` or a little more.

    differences (p, pixels, options): in units of the spread; two options: as they are, four: up to
    a common sign of the pair
    nats (pixels,): what agreement is worth there. None: they are not worth enough to tell anything
    from chance
    """
    gain = nats + PEAK
    mean, deviation = float((gain - 0.5).sum()), float(np.sqrt(0.5 * len(gain)))
    least = 2 * log(max(len(pairs), 2)) + NOISY_LUCK
    if len(pairs) < 2 or mean < least:
        return None
    # Pixels that repeat each other can lift chance above `least`, never to where true relations
    # are.
    need = max(least, mean - SHORT * deviation)
    blocks = [(s, min(s + 256, len(pairs))) for s in range(0, len(pairs), 256)]
    found: list[Index] = []
    finished = [0]

    def search(block: tuple[int, int]) -> None:
        if sum(map(len, found)) < most:
            hits = _search_pairs(
                differences,
                np.ascontiguousarray(pairs),
                *block,
                gain.astype(np.float32),
                need,
                4 * most,
            )
            found.append(np.asarray(hits, np.int64))

    def done(_: tuple[int, int]) -> None:
        finished[0] += 1
        if progress:
            progress("relations", finished[0], len(blocks))

    run_blocks(search, blocks, worker_count(where().workers), done)
    return np.concatenate([np.empty((0, 4), np.int64), *found])


def _all_differences(sketch: Sketch, pairs: Index) -> NDArray[np.float32]:
    """(pairs, pixels, 2 or 4): what each pair's difference may be, in units of the spread; without
    a public part up to sign."""
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
                    best = np.float32(FAR)
                    for u in range(options):
                        for v in range(options):
                            best = min(
                                best, abs(differences[i, p, u] - sign * differences[j, p, v])
                            )
                    total += max(gain[p] - np.float32(0.5) * best * best, floor)
                    if total < BEHIND:
                        break
                if total >= need:
                    if sign < 0:
                        c, d = d, c
                    out[count, 0], out[count, 1], out[count, 2], out[count, 3] = a, b, c, d
                    count += 1
                    if count == most:
                        return out
                    break
    return out[:count]
