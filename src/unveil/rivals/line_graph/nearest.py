"""Pairs that contradict few overlaps, where some overlaps are wrong: the nearest line graph,
greedily.

Let row i meet the rows N(i), and give it the vertices u and v, which s(u) and s(v) other rows have.
It then contradicts

    |N(i)| + [s(u) − 2·t(u)] + [s(v) − 2·t(v)]      overlaps, t(u) = how many of N(i) have u,

where a row that has both u and v counts once. So v is best where 2t − s is largest among the rows
without u, and of u only the few with the largest 2t − s are tried; a vertex that no row has yet
counts 0. Adding rows one by one in this way is how Degiorgi and Simon (1995) keep the root of a
growing line graph, with nothing contradicted.

  start   the star of a row with most neighbours: one of them and what both meet, less what meets less than half of that
  add     the rows with most neighbours among those placed, each with its best u and v
  again   every row in turn is taken out and placed anew, until nothing changes

A wrong overlap costs nothing where the rest of the row outvotes it. Rows without neighbours on one
side have a vertex of their own there. Cost: O(overlaps) for each round.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from unveil.rivals.line_graph.krausz import wide

ROUNDS = 20
LEADS = 3
"""Vertices tried as the first of a row."""
STAY = 0.5
"""What a vertex that the row has is worth more than another, so that rounds come to an end."""


def nearest_pairs(graph: sparse.csr_array) -> NDArray[np.int64]:
    """(m, 2): the vertices of every row; `graph`: which rows overlap, no loops, connected."""
    members = np.full((graph.shape[0], 2), -1, np.int64)
    _place_all(*wide(graph), graph.data == 2, members, ROUNDS)
    return members


@njit(cache=True, nogil=True)
def _place_all(indptr, indices, twice, members, rounds):  # type: ignore[no-untyped-def]
    m = len(members)
    size = np.zeros(2 * m + 2, np.int64)
    votes = np.zeros(2 * m + 2, np.int64)
    touched = np.empty(2 * m + 2, np.int64)
    free = np.arange(2 * m + 2)[::-1].copy()  # names that no row has, a stack
    spare = np.array([2 * m + 2])
    # 1. the first star
    first = 0
    for i in range(m):
        if indptr[i + 1] - indptr[i] > indptr[first + 1] - indptr[first]:
            first = i
    star = _star(indptr, indices, first)
    spare[0] -= 1
    centre = free[spare[0]]
    for i in star:
        spare[0] -= 1
        members[i, 0], members[i, 1] = centre, free[spare[0]]
        size[centre] += 1
        size[members[i, 1]] += 1
    # 2. rows with most placed neighbours first: a stack for each count, whose entries may be out of
    # date
    count = np.zeros(m, np.int64)
    head = np.full(m + 1, -1, np.int64)
    item = np.empty(len(indices) + m + 1, np.int64)
    below = np.empty(len(indices) + m + 1, np.int64)
    used, top = 0, 0
    for i in star:
        used, top = _stack_neighbours(
            indptr, indices, members, i, count, head, item, below, used, top
        )
    while top > 0:
        if head[top] < 0:
            top -= 1
            continue
        i = item[head[top]]
        head[top] = below[head[top]]
        if members[i, 0] >= 0 or count[i] != top:
            continue
        _place(indptr, indices, twice, members, i, size, votes, touched, free, spare)
        used, top = _stack_neighbours(
            indptr, indices, members, i, count, head, item, below, used, top
        )
    # 3. every row anew
    for _ in range(rounds):
        changed = 0
        for i in range(m):
            one, two = members[i]
            for v in (one, two):
                size[v] -= 1
            _place(indptr, indices, twice, members, i, size, votes, touched, free, spare)
            changed += _other(one, two, members[i])
        if not changed:
            break


@njit(cache=True, nogil=True)
def _other(one, two, pair):  # type: ignore[no-untyped-def]
    return not ((pair[0] == one and pair[1] == two) or (pair[0] == two and pair[1] == one))


@njit(cache=True, nogil=True)
def _star(indptr, indices, i):  # type: ignore[no-untyped-def]
    """Row i, the neighbour with which it shares most others, and those of them that meet at least
    half of the rest."""
    m = len(indptr) - 1
    near = np.zeros(m, np.bool_)
    for t in range(indptr[i], indptr[i + 1]):
        near[indices[t]] = True
    best, most = -1, -1
    for t in range(indptr[i], indptr[i + 1]):
        shared = 0
        for q in range(indptr[indices[t]], indptr[indices[t] + 1]):
            shared += near[indices[q]]
        if shared > most:
            best, most = indices[t], shared
    both = np.zeros(m, np.bool_)
    for t in range(indptr[best], indptr[best + 1]):
        both[indices[t]] = near[indices[t]]
    out = np.empty(most + 2, np.int64)
    out[0], out[1] = i, best
    size = 2
    for t in range(indptr[best], indptr[best + 1]):
        j = indices[t]
        if both[j]:
            meets = 0
            for q in range(indptr[j], indptr[j + 1]):
                meets += both[indices[q]]
            if 2 * meets >= most - 1:
                out[size] = j
                size += 1
    return out[:size]


@njit(cache=True, nogil=True)
def _place(indptr, indices, twice, members, i, size, votes, touched, free, spare):  # type: ignore[no-untyped-def]
    """The best two vertices of row i, which counts in no size now; ones that it had stay where
    nothing is better."""
    old = members[i].copy()
    lead = np.full(LEADS, -1, np.int64)
    score = np.zeros(LEADS)
    reached = 0
    for t in range(indptr[i], indptr[i + 1]):
        for v in members[indices[t]]:
            if v >= 0:
                if votes[v] == 0:
                    touched[reached] = v
                    reached += 1
                votes[v] += 2
    for t in range(reached):
        v = touched[t]
        gain = votes[v] - size[v] + (STAY if v == old[0] or v == old[1] else 0.0)
        votes[v] = 0
        p = LEADS
        while p > 0 and gain > score[p - 1]:
            p -= 1
        for q in range(LEADS - 1, p, -1):
            lead[q], score[q] = lead[q - 1], score[q - 1]
        if p < LEADS:
            lead[p], score[p] = v, gain
    new = np.full(2, -1, np.int64)
    most = 0.0
    for p in range(LEADS):
        u = lead[p]
        if u < 0:
            break
        reached = 0
        for t in range(indptr[i], indptr[i + 1]):
            a, b = members[indices[t]]
            if a < 0:
                continue
            if a == u or b == u:
                # The row is met already; with its other vertex as well it would be the same pair.
                v = b if a == u else a
                if votes[v] == 0:
                    touched[reached] = v
                    reached += 1
                votes[v] += 2 if twice[t] else 0
            else:
                for v in (a, b):
                    if votes[v] == 0:
                        touched[reached] = v
                        reached += 1
                    votes[v] += 2
        best, second = 0.0, -1
        for t in range(reached):
            v = touched[t]
            gain = votes[v] - size[v] + (STAY if v == old[0] or v == old[1] else 0.0)
            votes[v] = 0
            if gain > best:
                best, second = gain, v
        if score[p] + best > most:
            most = score[p] + best
            new[0], new[1] = u, second
    for v in old:  # names that nobody has any more are free again
        if v >= 0 and size[v] == 0 and v != new[0] and v != new[1]:
            free[spare[0]] = v
            spare[0] += 1
    for p in range(2):
        if new[p] < 0:
            spare[0] -= 1
            new[p] = free[spare[0]]
        size[new[p]] += 1
    members[i] = new


@njit(cache=True, nogil=True)
def _stack_neighbours(indptr, indices, members, i, count, head, item, below, used, top):  # type: ignore[no-untyped-def]
    """Neighbours of row i, just placed, that have no place yet: each has one placed neighbour
    more."""
    for t in range(indptr[i], indptr[i + 1]):
        j = indices[t]
        if members[j, 0] < 0:
            count[j] += 1
            item[used], below[used] = j, head[count[j]]
            head[count[j]] = used
            used += 1
            top = max(top, count[j])
    return used, top
