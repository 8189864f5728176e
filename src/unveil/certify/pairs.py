"""Pairs (k = 2): which vectors have no other reading, by graph theory alone. See
`docs/certificate.md`, steps 3 and 4.

Vectors are vertices, rows are edges. Every claim is a count of paths in the double cover of the
graph: vertex v becomes v+ and v−, edge uv becomes u+v− and v+u−. A vector t of integers with |t_u +
t_v| ≤ 1 on all edges is there a stack of cuts, so that

  heavy       |Wt|₁ ≥ deg(i)·|t_i|, and more than that unless t = ±e_i: there are deg(i)
              edge-disjoint paths from i+ to i−, and one more when any single edge at i is doubled
              (Menger)
  no halves   t in ½ + integers is not 0 on any odd closed walk, so |Wt|₁ is at least the number of
              edge-disjoint odd walks

Cost: 2·deg(i) searches from both ends per vertex, each about √n long in a random graph. Integers
only, nothing is rounded.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


def odd_components(edges: Index, n: int) -> tuple[Index, Flags]:
    """Component of each vertex, and whether it holds an odd cycle. In the double cover a bipartite
    one falls into two."""
    u, v = edges.T
    ends = np.concatenate([u, v]), np.concatenate([v, u]) + n
    cover = sparse.coo_array((np.ones(2 * len(edges), np.int8), ends), shape=(2 * n, 2 * n))
    graph = sparse.coo_array((np.ones(len(edges), np.int8), (u, v)), shape=(n, n))
    half = connected_components(cover, directed=False)[1]
    return connected_components(graph, directed=False)[1].astype(np.int64), np.asarray(
        half[:n] == half[n:]
    )


def heavy_pairs(edges: Index, n: int, chosen: Flags) -> Flags:
    """The `chosen` vertices i with |Wt|₁ > deg(i) for every integer t ≠ ±e_i with t_i ≠ 0 and |Wt|
    ≤ 1."""
    indptr, neighbour, edge = _adjacency(edges, n)
    return np.asarray(
        _heavy(indptr, neighbour, edge, edges[:, 0].copy(), np.flatnonzero(chosen), n)
    )


def disjoint_odd_walks(edges: Index, n: int, enough: int) -> int:
    """How many edge-disjoint odd closed walks a greedy search finds; it stops at `enough`."""
    indptr, neighbour, edge = _adjacency(edges, n)
    return int(_odd_walks(indptr, neighbour, edge, edges[:, 0].copy(), n, enough))


def _adjacency(edges: Index, n: int) -> tuple[Index, Index, Index]:
    """Neighbours of v and the edges to them: neighbour[indptr[v]:indptr[v+1]], edge[...]."""
    ends = np.concatenate([edges[:, 0], edges[:, 1]])
    order = np.argsort(ends, kind="stable")
    indptr = np.searchsorted(ends[order], np.arange(n + 1)).astype(np.int64)
    others = np.concatenate([edges[:, 1], edges[:, 0]])
    return indptr, others[order], np.concatenate([np.arange(len(edges))] * 2)[order]


@njit(cache=True, nogil=True)
def _copy_of(e: int, w: int, plus: bool, first: Index) -> int:
    """Which of the two cover edges of e leaves w on this side: 2e joins first+ with second−, 2e+1
    second+ with first−."""
    return 2 * e + (0 if (first[e] == w) == plus else 1)


@njit(cache=True, nogil=True)
def _path(  # type: ignore[no-untyped-def]
    indptr, neighbour, edge, first, n, source, target, flow, closed, mark, via, queues, stamp
):
    """Search from both ends for a path with residual capacity; its cover edges and directions are
    left in `queues[2]`, [3].

    mark[0], mark[1]: stamps of the nodes seen from the source and from the target; via: the cover
    edge each was reached by. Returns the length of the path, −1 if there is none.
    """
    heads = np.zeros(2, np.int64)
    tails = np.ones(2, np.int64)
    queues[0, 0], queues[1, 0] = source, target
    mark[0, source] = stamp
    mark[1, target] = stamp
    via[0, source] = -1
    via[1, target] = -1
    meeting = -1
    while meeting < 0:
        # 1. One level of the smaller side. An empty side: there is no path.
        size0, size1 = tails[0] - heads[0], tails[1] - heads[1]
        if size0 == 0 or size1 == 0:
            return -1
        side = 0 if size0 <= size1 else 1
        end = tails[side]
        while heads[side] < end and meeting < 0:
            node = queues[side, heads[side]]
            heads[side] += 1
            w, plus = (node, True) if node < n else (node - n, False)
            for a in range(indptr[w], indptr[w + 1]):
                e = edge[a]
                if closed[e]:
                    continue
                c = _copy_of(e, w, plus, first)
                # A step away from a plus node counts +1. Seen from the target the path runs the
                # other way.
                step = 1 if plus == (side == 0) else -1
                if flow[c] == step:
                    continue
                other = neighbour[a] + n if plus else neighbour[a]
                if mark[side, other] == stamp:
                    continue
                mark[side, other] = stamp
                via[side, other] = c
                queues[side, tails[side]] = other
                tails[side] += 1
                if mark[1 - side, other] == stamp:
                    meeting = other
                    break
    # 2. Back from the meeting point to both ends.
    length = 0
    for side in range(2):
        node = meeting
        while via[side, node] >= 0:
            c = via[side, node]
            queues[2, length] = c
            plus = node < n
            queues[3, length] = (-1 if plus else 1) if side == 0 else (1 if plus else -1)
            length += 1
            w = node if plus else node - n
            e = c // 2
            node = _other_end(indptr, neighbour, edge, w, e) + (n if plus else 0)
    return length


@njit(cache=True, nogil=True)
def _other_end(indptr, neighbour, edge, w, e):  # type: ignore[no-untyped-def]
    for a in range(indptr[w], indptr[w + 1]):
        if edge[a] == e:
            return neighbour[a]
    return -1


@njit(cache=True, nogil=True)
def _heavy(indptr, neighbour, edge, first, chosen, n):  # type: ignore[no-untyped-def]
    out = np.zeros(n, np.bool_)
    flow = np.zeros(2 * len(first), np.int64)
    closed = np.zeros(len(first), np.bool_)
    mark = np.zeros((2, 2 * n), np.int64)
    via = np.zeros((2, 2 * n), np.int64)
    queues = np.zeros((4, 4 * n + 4), np.int64)
    touched = np.zeros(4 * len(first) + 4 * n, np.int64)
    stamp = 0
    for i in chosen:
        used = 0
        good = True
        # 1. deg(i) edge-disjoint paths from i+ to i−.
        for _ in range(indptr[i + 1] - indptr[i]):
            stamp += 1
            length = _path(
                indptr, neighbour, edge, first, n, i, i + n, flow, closed, mark, via, queues, stamp
            )
            if length < 0:
                good = False
                break
            for s in range(length):
                c = queues[2, s]
                if flow[c] == 0:
                    touched[min(used, len(touched) - 1)] = c
                    used += 1
                flow[c] += queues[3, s]
        # 2. One more for each edge at i, if that were doubled: no other cut is as small.
        if good:
            for a in range(indptr[i], indptr[i + 1]):
                stamp += 1
                v = neighbour[a]
                if (
                    _path(
                        indptr,
                        neighbour,
                        edge,
                        first,
                        n,
                        v + n,
                        v,
                        flow,
                        closed,
                        mark,
                        via,
                        queues,
                        stamp,
                    )
                    < 0
                ):
                    good = False
                    break
        out[i] = good
        if used > len(touched):
            flow[:] = 0
        else:
            for s in range(used):
                flow[touched[s]] = 0
    return out


@njit(cache=True, nogil=True)
def _odd_walks(indptr, neighbour, edge, first, n, enough):  # type: ignore[no-untyped-def]
    flow = np.zeros(2 * len(first), np.int64)
    closed = np.zeros(len(first), np.bool_)
    mark = np.zeros((2, 2 * n), np.int64)
    via = np.zeros((2, 2 * n), np.int64)
    queues = np.zeros((4, 4 * n + 4), np.int64)
    found = 0
    stamp = 0
    for v in range(n):
        while found < enough:
            stamp += 1
            length = _path(
                indptr, neighbour, edge, first, n, v, v + n, flow, closed, mark, via, queues, stamp
            )
            if length < 0:
                break
            for s in range(length):
                closed[queues[2, s] // 2] = True
            found += 1
    return found
