"""In which order the vectors behind pairs are solved: a core, then vertex after vertex, then ears.

A *plan* starts at a core of the graph of pairs, then takes the vertex with most known neighbours,
and an ear where there is none with two (`solve.pairs.pair_graph`). It is the same for all pixels,
and it is a proof: every step leaves, for vectors in general position, one value
(`solve.pairs.peeling` follows it).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.solve.pairs.pair_graph import (
    Core,
    Ear,
    Index,
    PairGraph,
    find_core,
    find_ears,
    pair_graph,
)
from unveil.solve.pairs.pair_graph import triangles as find_triangles

ANCHORS = 6
"""Known neighbours that decide on a vertex, at most."""
LOOKED_AT = 20
"""Plans from which the one that reaches most is taken."""
ALL_BUT_FEW = 0.9
"""A plan that reaches this share of the vertices is good enough: the rest hangs on by threads."""


@dataclass(frozen=True, eq=False)
class PeelingPlan:
    """Vertices in the order of solving after the core: runs of `order` between ears.

    Vertex order[o] has the known neighbours anchor[start[o]:start[o+1]] by the encodings row[…];
    ears[e] comes before position at[e] of the order. lean (±1 each): which of two values that fit
    alike is taken.
    """

    core: Core
    order: Index
    start: Index
    anchor: Index
    row: Index
    ears: tuple[Ear, ...]
    at: tuple[int, ...]
    known: NDArray[np.bool_]
    lean: NDArray[np.float64]


def reachable(members: Index, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which vertices the best of some plans reaches."""
    best = np.zeros(n, bool)
    for plan in plans_of(pair_graph(members, n), rng, LOOKED_AT):
        if plan.known.sum() > best.sum():
            best = plan.known
        if best.sum() > ALL_BUT_FEW * n:
            break
    return best


def plans_of(graph: PairGraph, rng: np.random.Generator, tries: int) -> Iterator[PeelingPlan]:
    """Plans from different cores, as they are asked for."""
    found = find_triangles(graph)
    for start in rng.permutation(len(found))[:tries]:
        core = find_core(graph, found, int(start))
        if core is not None:
            yield _plan(graph, core, rng.choice([-1.0, 1.0], graph.n))


def different_first(plans: list[PeelingPlan]) -> list[PeelingPlan]:
    """Plans from cores of the same vertices come last."""
    seen: set[bytes] = set()
    again = []
    for plan in plans:
        name = np.unique(plan.core.vertices).tobytes()
        again.append(name in seen)
        seen.add(name)
    return [plans[i] for i in np.argsort(again, kind="stable")]


def _plan(graph: PairGraph, core: Core, lean: NDArray[np.float64]) -> PeelingPlan:
    """From a core to all that hangs together with it: vertices with two known neighbours as long as
    there are any, then an ear."""
    n = graph.n
    known = np.zeros(n, bool)
    known[core.vertices] = True
    order, start = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    anchor, row = np.empty((2, n * ANCHORS), np.int64)
    never = np.zeros(int(graph.row.max(initial=0)) + 1, bool)
    ears: list[Ear] = []
    at: list[int] = []
    size = 0
    while True:
        size = int(
            _extend(
                graph.indptr, graph.neighbour, graph.row, known, order, start, anchor, row, size
            )
        )
        more = [] if known.all() else find_ears(graph, known, never, 1)
        if not more:
            break
        ears += more
        at += [size] * len(more)
        for ear in more:
            known[ear.vertices] = True
    return PeelingPlan(
        core, order[:size], start[: size + 1], anchor, row, tuple(ears), tuple(at), known, lean
    )


@njit(cache=True, nogil=True)
def _extend(  # type: ignore[no-untyped-def]
    indptr, neighbour, row, known, order, start, anchor, anchor_row, size
):
    """Vertices with two known neighbours or more, most first, until there are none; how many are
    ordered then."""
    n = len(indptr) - 1
    count = np.zeros(n, np.int64)
    # 1. A stack for each count; an entry is out of date once its vertex has moved to a higher one.
    longest = 0
    for v in range(n):
        longest = max(longest, indptr[v + 1] - indptr[v])
    head = np.full(longest + 1, -1, np.int64)
    item = np.empty(indptr[n] + 1, np.int64)
    below = np.empty(indptr[n] + 1, np.int64)
    used = 0
    top = 0
    for v in range(n):
        if known[v]:
            for t in range(indptr[v], indptr[v + 1]):
                count[neighbour[t]] += 1
    for v in range(n):
        if not known[v] and count[v] >= 2:
            item[used], below[used] = v, head[count[v]]
            head[count[v]] = used
            used += 1
            top = max(top, count[v])
    while top >= 2:
        # 2. The vertex with most known neighbours.
        if head[top] < 0:
            top -= 1
            continue
        v = item[head[top]]
        stale = count[v] != top
        head[top] = below[head[top]]
        if known[v] or stale:
            continue
        # 3. Its anchors, and its place in the order.
        at = start[size]
        for t in range(indptr[v], indptr[v + 1]):
            if known[neighbour[t]] and at - start[size] < ANCHORS:
                anchor[at], anchor_row[at] = neighbour[t], row[t]
                at += 1
        order[size] = v
        size += 1
        start[size] = at
        known[v] = True
        # 4. Its neighbours move up.
        for t in range(indptr[v], indptr[v + 1]):
            u = neighbour[t]
            if not known[u]:
                count[u] += 1
                if count[u] >= 2:
                    item[used], below[used] = u, head[count[u]]
                    head[count[u]] = used
                    used += 1
                    top = max(top, count[u])
    return size
