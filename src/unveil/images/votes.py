"""Clusters of encodings that share a moved image: their moves must agree.

The best move of two encodings that share nothing is any of hundreds. Where a, b and c share an
image, that from a to b and that from b to c make that from a to c. So the members of a cluster,
each with its pose (its move against the first), vote: member j says of encoding i the pose that its
own one and the best move from j to i make, with as much weight as the two are alike beyond the
median. Poses that as many members name as chance hardly would make the next members, the surest
first, until they are the same ones. Compiled: thousands of pairs are tried, and each reads some
rows of the similarity.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from numba import njit

from unveil.images.settling import LEAST, ROUNDS, repeats

CHANCE = 0.1
"""Encodings that chance may bring into a cluster."""
FIRST = 4
"""Encodings that a cluster starts from at least: a pair, and two whose moves agree with it."""


@njit(cache=True, nogil=True)
def agree(near, gain, move, moves, out):  # type: ignore[no-untyped-def]
    """Into `out` (m, m), of each pair at the lower number first: how much encodings c support its
    move, c among the nearest ones of a, near (m, nearest), and b among those of c."""
    for a in range(len(near)):
        for c in near[a]:
            for b in near[c]:
                mirrored, down, across = moves[move[a, b]]
                same = joined(moves, move[a, c], move[c, b]) == (mirrored, down, across)
                if b != a and same:
                    out[min(a, b), max(a, b)] += gain[a, c] * gain[c, b]


@njit(cache=True, nogil=True)
def joined(moves, first, second):  # type: ignore[no-untyped-def]
    """One move after another: mirrored, down, across. After mirroring left is right."""
    mirrored, down, across = moves[first]
    then, further, aside = moves[second]
    return mirrored ^ then, down + further, across - aside if mirrored else across + aside


@njit(cache=True, nogil=True)
def vote(gain, move, moves, reach, rows, pose, score, best):  # type: ignore[no-untyped-def]
    """Into `score` and `best` (m,): the weight of votes for the best pose of each encoding, by
    members `rows` with `pose`, and which it is; 0 and −1 where chance could have it."""
    m, side = len(gain), 2 * reach + 1
    weight, count = np.zeros(len(moves), np.float32), np.zeros(len(moves), np.int64)
    named = np.empty(len(rows), np.int64)
    for i in range(m):
        votes = poses = 0
        for j in range(len(rows)):
            if rows[j] == i or gain[rows[j], i] <= 0:
                continue
            mirrored, down, across = joined(moves, pose[j], move[rows[j], i])
            if abs(down) > reach or abs(across) > reach:
                continue
            at = (mirrored * side + down + reach) * side + across + reach
            if not count[at]:
                named[poses] = at
                poses += 1
            weight[at] += gain[rows[j], i]
            count[at] += 1
            votes += 1
        best[i], score[i], most = -1, 0, 0
        for at in named[:poses]:
            if weight[at] > score[i]:
                best[i], score[i], most = at, weight[at], count[at]
            weight[at], count[at] = 0, 0
        if most < 2 or _by_chance(votes, most, len(moves)) > log(CHANCE / m):
            best[i], score[i] = -1, 0


@njit(cache=True, nogil=True)
def ties(gain, move, moves, rows, pose):  # type: ignore[no-untyped-def]
    """(members, members): how much two members are alike, where their move agrees with their poses;
    else 0."""
    out = np.zeros((len(rows), len(rows)))
    for i in range(len(rows)):
        for j in range(len(rows)):
            mirrored, down, across = moves[pose[j]]
            same = joined(moves, pose[i], move[rows[i], rows[j]]) == (mirrored, down, across)
            if i != j and same:
                out[i, j] = gain[rows[i], rows[j]]
    return out


@njit(cache=True, nogil=True)
def _by_chance(votes, same, poses):  # type: ignore[no-untyped-def]
    """Logarithm of how many groups of so many votes are expected to name the same pose."""
    groups = lgamma(votes + 1.0) - lgamma(same + 1.0) - lgamma(votes - same + 1.0)
    return groups - (same - 1) * log(float(poses))


@njit(cache=True, nogil=True)
def settle_moved(  # type: ignore[no-untyped-def]
    gain, move, moves, reach, near, a, b, member, sizes, block, k, rows, pose
):
    """Into `rows` and `pose` the cluster of a pair, the surest first; and how many encodings it
    has, none where it repeats another or nothing agrees.

    gain, move (m, m), moves: `gram.aligned`; reach: that of the moves; near (m, nearest); member
    (m, clusters), with `sizes`: who is in which; block (m,): of each block a cluster has k
    encodings at most
    """
    # 1. The pair and those whose moves agree with it.
    m, itself = len(gain), (2 * reach + 1) * reach + reach
    score, best = np.empty(m, np.float32), np.empty(m, np.int64)
    some, at = [a, b], [itself, np.int64(move[a, b])]
    mirrored, down, across = moves[move[a, b]]
    for c in near[a]:
        same = joined(moves, move[a, c], move[c, b]) == (mirrored, down, across)
        if c != b and gain[c, b] > 0 and same:
            some.append(c)
            at.append(np.int64(move[a, c]))
    if len(some) < FIRST:
        return 0
    members, poses = np.array(some), np.array(at)
    count = 0
    for _ in range(ROUNDS):
        # 2. Those the members agree on; of each block the surest only, and as many as fit.
        vote(gain, move, moves, reach, members, poses, score, best)
        used = np.zeros(block.max() + 1, np.int64)
        count = 0
        for i in np.argsort(-score, kind="mergesort"):
            if score[i] <= 0 or count == len(rows):
                break
            if used[block[i]] < k:
                used[block[i]] += 1
                rows[count], pose[count] = i, best[i]
                count += 1
        if count < LEAST or repeats(rows[:count], member, sizes):
            return 0
        if count == len(members) and (np.sort(members) == np.sort(rows[:count])).all():
            break
        members, poses = rows[:count].copy(), pose[:count].copy()
    return count
