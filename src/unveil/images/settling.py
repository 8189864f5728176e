"""Where a cluster comes to rest, from each of many pairs to start from (`images.clusters`).

The mean similarity of its members scores all encodings; those that stand out are the next members,
until they are the same ones. Half of the pairs end at once in a cluster that there is. Compiled:
hundreds of thousands of pairs are tried, and each reads some rows of the similarity.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ROUNDS = 6
"""Times a cluster is scored and chosen again: it stops changing before."""
LEAST = 5
"""Encodings of a cluster at least: fewer may be alike by chance."""
SHARED = 0.4
"""A cluster that shares more than this with another one, of the smaller of the two, repeats it: two
images meet in few encodings."""
STANDS_OUT = 4.0
"""Standard deviations above the median, by the median deviation, that make a member."""
DEVIATION = 1.4826
"""Standard deviations in one median deviation of a Gaussian."""
SPREAD = 2000
"""Scores from which their median and spread are read: sure to a few percent."""
HELD = -1
"""What `settle` says of a pair that a cluster holds already."""


@njit(cache=True, nogil=True)
def settle(  # type: ignore[no-untyped-def]
    cosines, indptr, indices, pairs, member, sizes, block, k, found, counts
):
    """Into `found` (pairs, size), the cluster of each of `pairs` (·, 2), the surest first, and how
    many encodings it has into `counts`: none where nothing stands out or it repeats another, `HELD`
    where a cluster holds the pair.

    cosines (m, m), in any unit; indptr, indices: neighbours, row by row; member (m, clusters), with
    `sizes`: who is in which; block (m,): of each block a cluster has k encodings at most
    """
    score = np.empty(len(cosines), np.float32)
    for t in range(len(pairs)):
        a, b = pairs[t]
        counts[t] = HELD
        if not (member[a] & member[b]).any():
            near_a = indices[indptr[a] : indptr[a + 1]]
            near_b = indices[indptr[b] : indptr[b + 1]]
            counts[t] = _rest(
                cosines, _first(a, b, near_a, near_b), score, member, sizes, block, k, found[t]
            )


@njit(cache=True, nogil=True)
def repeats(cluster, member, sizes):  # type: ignore[no-untyped-def]
    """Whether a cluster is mostly one that there is."""
    shared = np.zeros(len(sizes), np.int64)
    for i in cluster:
        shared += member[i]
    return (shared > SHARED * np.minimum(len(cluster), sizes)).any()


@njit(cache=True, nogil=True)
def _first(a, b, near_a, near_b):  # type: ignore[no-untyped-def]
    """A pair with the neighbours that both have, which are sorted."""
    out = [a, b]
    i = j = 0
    while i < len(near_a) and j < len(near_b):
        if near_a[i] == near_b[j]:
            out.append(np.int64(near_a[i]))
            i += 1
            j += 1
        elif near_a[i] < near_b[j]:
            i += 1
        else:
            j += 1
    return np.array(out)


@njit(cache=True, nogil=True)
def _rest(cosines, cluster, score, member, sizes, block, k, found):  # type: ignore[no-untyped-def]
    """How many encodings a cluster has where it comes to rest, and into `found` which."""
    for _ in range(ROUNDS):
        _mean_similarity(cosines, cluster, score)
        ranked = _outstanding(score)
        if len(ranked) < LEAST - 1:
            return 0
        # Of each block the surest only, and as many as fit.
        used = np.zeros(block.max() + 1, np.int64)
        count = 0
        for i in ranked:
            if count < len(found) and used[block[i]] < k:
                used[block[i]] += 1
                found[count] = i
                count += 1
        if repeats(found[:count], member, sizes):
            return 0
        if count == len(cluster) and (np.sort(cluster) == np.sort(found[:count])).all():
            break
        cluster = found[:count].copy()
    return len(cluster) if len(cluster) >= LEAST else 0


@njit(fastmath=True, cache=True, nogil=True)
def _mean_similarity(cosines, cluster, score):  # type: ignore[no-untyped-def]
    """Into `score` (m,): how alike each encoding is to a cluster, not counting itself."""
    score[:] = 0
    for i in cluster:
        row = cosines[i]
        for j in range(len(row)):
            score[j] += row[j]
    for i in cluster:
        score[i] -= cosines[i, i]
    for j in range(len(score)):
        score[j] /= len(cluster)


@njit(cache=True, nogil=True)
def _outstanding(score):  # type: ignore[no-untyped-def]
    """Encodings whose score stands out, the largest first."""
    some = score[:: -(-len(score) // SPREAD)].copy()
    centre = np.median(some)
    least = STANDS_OUT * DEVIATION * np.median(np.abs(some - centre))
    out = np.flatnonzero(score - centre > least)
    return out[np.argsort(-score[out], kind="mergesort")]
