"""The graph of pairs: vectors are vertices, an encoding of two of them is an edge, and cycles are
what solves a pixel.

Let an edge allow two sums, x_u + x_v ∈ {hi, lo} (hi = −lo = y/a without an offset). Two shapes
determine their vertices:

  core   a triangle gives 8 values for each of its vertices, and so does another one; the path
         between them carries each value on in two ways; one equation is left over, and picks one of
         the 64·2^L combinations
  ear    a path through L unknown vertices between known ones allows 2^L values, and its last edge
         picks one. L = 1 is a vertex with two known neighbours. An ear that ends where it began
         must have an even number of unknown vertices: around an even cycle all sums can be
         exchanged together, and both values fit

Generically only one combination fits, since the equation left over is not satisfied identically;
without offsets the global sign is free. So whatever a core and ears reach is determined by the
encodings.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

MOST_TRIANGLES = 20_000
"""Triangles that are listed: cores are drawn from them, and a few dozen are tried."""
LONGEST_PATH = 4
"""Edges between the triangles of a core, at most; also unknown vertices of an ear."""

Index = NDArray[np.int64]
Sums = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairGraph:
    """Neighbours of v: neighbour[indptr[v]:indptr[v+1]], sorted, each once; row: the encoding that
    is the edge."""

    indptr: Index
    neighbour: Index
    row: Index

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    @property
    def degree(self) -> Index:
        return np.diff(self.indptr)

    def edge(self, u: int, v: int) -> int:
        """The row that joins two neighbours."""
        start = self.indptr[u]
        return int(self.row[start + np.searchsorted(self.neighbour[start : self.indptr[u + 1]], v)])


@dataclass(frozen=True, eq=False)
class Core:
    """Two triangles and the path from vertex 0 of the first to vertex 0 of the second (L edges, 0
    when it is one vertex)."""

    first: Index
    path: Index
    second: Index

    @property
    def vertices(self) -> Index:
        return np.concatenate([self.first[1:], self.path, self.second[1:]])


@dataclass(frozen=True, eq=False)
class Ear:
    """vertices: known, L unknown ones, known; rows: the L + 1 encodings along it."""

    vertices: Index
    rows: Index


def pair_graph(members: Index, n: int, use: NDArray[np.bool_] | None = None) -> PairGraph:
    """The graph of the rows in `use`; of several encodings of one pair the first counts, a vector
    with itself does not."""
    rows = np.flatnonzero(
        members[:, 0] != members[:, 1] if use is None else use & (members[:, 0] != members[:, 1])
    )
    low, high = members[rows].min(axis=1), members[rows].max(axis=1)
    _, first = np.unique(low * n + high, return_index=True)
    rows, low, high = rows[first], low[first], high[first]
    source, target = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((target, source))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=n))]).astype(np.int64)
    return PairGraph(
        indptr, target[order].astype(np.int64), np.tile(rows, 2)[order].astype(np.int64)
    )


def triangles(graph: PairGraph) -> Index:
    """(t, 3) triangles, at most `MOST_TRIANGLES` of them."""
    return np.asarray(_triangles(graph.indptr, graph.neighbour, MOST_TRIANGLES))


def find_core(graph: PairGraph, found: Index, start: int) -> Core | None:
    """The triangle `start` of those found, the nearest one that shares no edge with it, and the way
    between them."""
    first = found[start]
    distance, parent = _distances(graph.indptr, graph.neighbour, first, LONGEST_PATH)
    # A triangle with a common edge brings no equation of its own.
    shared = np.isin(found, first).sum(axis=1)
    near = distance[found].min(axis=1)
    near[(shared > 1)] = LONGEST_PATH + 1
    best = int(near.argmin())
    if near[best] > LONGEST_PATH:
        return None
    second = np.roll(found[best], -int(distance[found[best]].argmin()))
    path = [int(second[0])]
    while parent[path[-1]] >= 0:
        path.append(int(parent[path[-1]]))
    first = np.roll(first, -int(np.flatnonzero(first == path[-1])[0]))
    return Core(first, np.array(path[::-1]), second)


def solve_core(
    graph: PairGraph, core: Core, hi: Sums, lo: Sums
) -> tuple[Index, Sums, NDArray[np.float64]]:
    """(vertices, their values (v, pixels), the misfit of the equation left over (pixels,))."""
    # 1. Eight values of either triangle, and those of the first carried along the path.
    one, two = (_triangle(graph, t, hi, lo) for t in (core.first, core.second))
    rows = np.array([graph.edge(u, v) for u, v in pairwise(core.path)], dtype=np.int64)
    ways = _walk(one[:, 0], rows, hi, lo)
    # 2. They meet at the second triangle: the pair of values that agree best.
    misfit = np.abs(ways[:, None, -1] - two[None, :, 0])
    best = misfit.reshape(-1, misfit.shape[-1]).argmin(axis=0)
    pixels = np.arange(len(best))
    way, other = best // len(two), best % len(two)
    # The walk doubles the candidates at each edge and keeps their order: way w began at candidate w
    # mod 8.
    values = np.concatenate(
        [one[way % len(one), 1:, pixels], ways[way, :, pixels], two[other, 1:, pixels]], axis=1
    ).T
    return core.vertices, np.ascontiguousarray(values), misfit[way, other, pixels]


def solve_ear(
    ear: Ear, x: Sums, hi: Sums, lo: Sums, apart: float
) -> tuple[Sums, NDArray[np.float64], NDArray[np.float64]]:
    """(values of the unknown vertices (L, pixels), misfit of the best way, misfit of the best way
    that is `apart` from it)."""
    ways = _walk(x[ear.vertices[0]][None], ear.rows[:-1], hi, lo)[:, 1:]
    total = ways[:, -1] + x[ear.vertices[-1]]
    misfit = np.minimum(np.abs(total - hi[ear.rows[-1]]), np.abs(total - lo[ear.rows[-1]]))
    best = misfit.argmin(axis=0)
    pixels = np.arange(len(best))
    values = ways[best, :, pixels].T
    other = np.where((np.abs(ways - values[None]) > apart).any(axis=1), misfit, np.inf)
    return np.ascontiguousarray(values), misfit[best, pixels], other.min(axis=0)


def find_ears(
    graph: PairGraph, known: NDArray[np.bool_], banned: NDArray[np.bool_], most: int
) -> list[Ear]:
    """Short ears on the known vertices that have no unknown vertex in common; `banned` rows do not
    close one."""
    found, length = _ears(graph.indptr, graph.neighbour, graph.row, known, banned, most)
    return [
        Ear(path[:size], np.array([graph.edge(u, v) for u, v in pairwise(path[:size])]))
        for path, size in zip(found, length, strict=True)
    ]


def _triangle(graph: PairGraph, t: Index, hi: Sums, lo: Sums) -> Sums:
    """(8, 3, pixels): all values of the three vertices."""
    ab, bc, ca = graph.edge(t[0], t[1]), graph.edge(t[1], t[2]), graph.edge(t[2], t[0])
    out = np.empty((8, 3, hi.shape[1]))
    for way in range(8):
        p, q, r = (hi[row] if way >> bit & 1 else lo[row] for bit, row in enumerate((ab, bc, ca)))
        out[way] = (p + r - q) / 2, (p + q - r) / 2, (q + r - p) / 2
    return out


def _walk(start: Sums, rows: Index, hi: Sums, lo: Sums) -> Sums:
    """(starts·2^L, L + 1, pixels): the values along a path, from each start (starts, pixels)."""
    ways = start[:, None, :]
    for row in rows:
        last = ways[:, -1:]
        ways = np.concatenate(
            [
                np.concatenate([ways, hi[row] - last], axis=1),
                np.concatenate([ways, lo[row] - last], axis=1),
            ],
            axis=0,
        )
    return ways


@njit(cache=True, nogil=True)
def _triangles(indptr, neighbour, most):  # type: ignore[no-untyped-def]
    out = np.empty((most, 3), np.int64)
    count = 0
    for u in range(len(indptr) - 1):
        for t in range(indptr[u], indptr[u + 1]):
            v = neighbour[t]
            if v <= u:
                continue
            p, q = t + 1, indptr[v]
            while p < indptr[u + 1] and q < indptr[v + 1]:
                a, b = neighbour[p], neighbour[q]
                if a == b and a > v:
                    out[count, 0], out[count, 1], out[count, 2] = u, v, a
                    count += 1
                    if count == most:
                        return out
                p += a <= b
                q += b <= a
    return out[:count]


@njit(cache=True, nogil=True)
def _distances(indptr, neighbour, sources, longest):  # type: ignore[no-untyped-def]
    """Edges to the nearest source, and the next vertex on the way there (−1 at a source)."""
    n = len(indptr) - 1
    distance = np.full(n, longest + 1, np.int64)
    parent = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    tail = 0
    for s in sources:
        distance[s] = 0
        queue[tail] = s
        tail += 1
    head = 0
    while head < tail:
        u = queue[head]
        head += 1
        if distance[u] == longest:
            break
        for t in range(indptr[u], indptr[u + 1]):
            v = neighbour[t]
            if distance[v] > longest:
                distance[v] = distance[u] + 1
                parent[v] = u
                queue[tail] = v
                tail += 1
    return distance, parent


@njit(cache=True, nogil=True)
def _ears(indptr, neighbour, row, known, banned, most):  # type: ignore[no-untyped-def]
    """Paths (found, 6) as known, unknown…, known, the shortest first; how many vertices each
    has."""
    n = len(indptr) - 1
    # 1. Unknown vertices one step from a known one, then two steps.
    anchor = np.full(n, -1, np.int64)  # the known vertex where the way back ends
    parent = np.full(n, -1, np.int64)  # the unknown vertex before it, −1 right after the anchor
    depth = np.zeros(n, np.int64)
    for u in range(n):
        if known[u]:
            for t in range(indptr[u], indptr[u + 1]):
                v = neighbour[t]
                if not known[v] and anchor[v] < 0:
                    anchor[v], depth[v] = u, 1
    for u in range(n):
        if depth[u] == 1:
            for t in range(indptr[u], indptr[u + 1]):
                v = neighbour[t]
                if not known[v] and depth[v] == 0:
                    anchor[v], depth[v], parent[v] = anchor[u], 2, u
    # 2. Edges that join two such ways, the shortest ears first; no vertex is in two of them.
    taken = np.zeros(n, np.bool_)
    out = np.full((most, 6), -1, np.int64)
    length = np.zeros(most, np.int64)
    count = 0
    for size in range(2, 5):
        for u in range(n):
            if depth[u] == 0:
                continue
            for t in range(indptr[u], indptr[u + 1]):
                v = neighbour[t]
                if v <= u or depth[v] == 0 or depth[u] + depth[v] != size or banned[row[t]]:
                    continue
                # A way back over itself is no ear, nor one through a common vertex.
                if parent[u] == v or parent[v] == u or (parent[u] >= 0 and parent[u] == parent[v]):
                    continue
                # An even cycle through one known vertex leaves its values open.
                if anchor[u] == anchor[v] and size % 2 == 1:
                    continue
                if (
                    taken[u]
                    or taken[v]
                    or (parent[u] >= 0 and taken[parent[u]])
                    or (parent[v] >= 0 and taken[parent[v]])
                ):
                    continue
                # 3. The path: from one known end over the edge to the other.
                at = 0
                out[count, at] = anchor[u]
                if parent[u] >= 0:
                    at += 1
                    out[count, at] = parent[u]
                out[count, at + 1], out[count, at + 2] = u, v
                at += 2
                if parent[v] >= 0:
                    at += 1
                    out[count, at] = parent[v]
                out[count, at + 1] = anchor[v]
                length[count] = at + 2
                for p in range(1, at + 1):
                    taken[out[count, p]] = True
                count += 1
                if count == most:
                    return out, length
        if count:
            break
    return out[:count], length[:count]
