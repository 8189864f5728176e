"""Every pixel of known pairs (k_private = 2) by the signs that 4-cycles force, and what hangs on
them: values, and doubts.

    0  4-cycles of the graph of pairs            z_ab − z_bc + z_cd − z_da = 0
    1  signs ← what they force                   at each pixel, up to one sign (`relations.signs`)
    2  x ← along signed encodings                x_u = z − x_v from a vector on; an odd cycle says
                                                 what the first one is
    3  x ← of the two values ±y − x_v that an encoding allows, the only one that fits all others
       with a known vector
    4  in doubt ← vectors that were not reached, or by a choice; they take the smaller value that
       fits

Each step is a proof: a value that comes out of 1–3 is the only one, up to the pixel's sign,
whatever the values are. Where numbers coincide (8-bit images, saturated pixels) fewer are reached,
and the others are listed. `solve.signs.relation_pixels` searches for all solutions and works for
any k, at the cost of an n×n inverse and of every relation of every encoding; here it is some dozen
operations per encoding and pixel.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.cluster import results
from unveil.records import Progress
from unveil.relations.signs import SignGraph, propagated_block, sign_graph
from unveil.solve.pairs.pair_graph import PairGraph, pair_graph
from unveil.solve.signs.relation_pixels import RelationSolution
from unveil.solve.signs.sign_search import Floats, Index

BLOCK = 32
"""Pixels worked on at a time by one thread."""
PER_ROW = 4
"""4-cycles used per encoding, each of which takes part in four times as many; beyond that signs are
forced many times over."""
SWEEPS = 2
"""Rounds of averaging over all encodings of a vector: what rounding adds up along a path is gone
after two."""


def solve_signed_pairs(
    y: NDArray[np.float32],
    members: Index,
    n: int,
    bound: Floats,
    *,
    progress: Progress | None = None,
) -> RelationSolution:
    """|x_u + x_v| = y (rows, d), unit weights, no public part; bound (d,): what counts as zero."""
    rows, d = y.shape
    graph = pair_graph(members, n)
    quads = four_cycles(members, n, PER_ROW * rows)
    coefficients = np.tile([1.0, -1.0, 1.0, -1.0], (len(quads), 1))
    system = sign_graph(quads, coefficients, rows)
    values, doubtful, misfit = np.zeros((n, d)), np.ones((n, d), bool), np.full(d, np.inf)
    blocks = [slice(at, min(at + BLOCK, d)) for at in range(0, d, BLOCK)]
    finished = 0
    for part, (x, known, miss) in results(_solved, (y, members, bound, graph, system), blocks):
        values[:, part], doubtful[:, part], misfit[part] = x.T, ~known.T, miss
        finished += part.stop - part.start
        if progress:
            progress("pixels", finished, d)
    return RelationSolution(values, doubtful, misfit)


def _solved(
    shared: tuple[NDArray[np.float32], Index, Floats, PairGraph, SignGraph], part: slice
) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Values (pixels, n) of these pixels, where they are known, and misfits."""
    y, members, bound, graph, system = shared
    here = np.ascontiguousarray(y[:, part].T, dtype=np.float64)
    sign = propagated_block(system, here, bound[part])
    x, known, miss = _solve_block(
        graph.indptr, graph.neighbour, graph.row, members, here, sign, bound[part]
    )
    return x, known, miss


def four_cycles(members: Index, n: int, most: int) -> Index:
    """(q, 4) rows ab, bc, cd, da of the 4-cycles of the graph, each once; where they are more than
    `most`, every so many-th."""
    graph = pair_graph(members, n)
    count = int(_cycles(graph.indptr, graph.neighbour, graph.row, np.empty((0, 4), np.int64), 1))
    step = max(1, -(-count // most))
    out = np.empty((-(-count // step), 4), np.int64)
    _cycles(graph.indptr, graph.neighbour, graph.row, out, step)
    return out


@njit(cache=True, nogil=True)
def _cycles(indptr, neighbour, row, out, step):  # type: ignore[no-untyped-def]
    """a < c with common neighbours b, d: rows ab, bc, cd, da; each cycle from its smallest vertex.
    How many there are."""
    n = len(indptr) - 1
    count = 0
    # Ways a–b–c, chained by c.
    head = np.full(n, -1, np.int64)
    longest = 0
    for a in range(n):
        ways = 0
        for s in range(indptr[a], indptr[a + 1]):
            ways += indptr[neighbour[s] + 1] - indptr[neighbour[s]]
        longest = max(longest, ways)
    before, first, second = (
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
    )
    touched = np.empty(longest, np.int64)
    for a in range(n):
        size = 0
        for s in range(indptr[a], indptr[a + 1]):
            b = neighbour[s]
            if b <= a:
                continue
            for t in range(indptr[b], indptr[b + 1]):
                c = neighbour[t]
                if c <= a:
                    continue
                way = head[c]
                while way >= 0:
                    if count % step == 0 and count // step < len(out):
                        seen = out[count // step]
                        seen[0], seen[1], seen[2], seen[3] = row[s], row[t], second[way], first[way]
                    count += 1
                    way = before[way]
                before[size], first[size], second[size], touched[size] = head[c], row[s], row[t], c
                head[c] = size
                size += 1
        for i in range(size):
            head[touched[i]] = -1
    return count


@njit(cache=True, nogil=True)
def _solve_block(indptr, neighbour, row, members, y, sign, bounds):  # type: ignore[no-untyped-def]
    """x, known (pixels, n) and the largest residual (pixels,) among what is known, infinite after a
    contradiction."""
    pixels, m = y.shape
    n = len(indptr) - 1
    x, known, miss = np.zeros((pixels, n)), np.zeros((pixels, n), np.bool_), np.zeros(pixels)
    side, queue, sure = np.empty(n, np.int8), np.empty(n, np.int64), np.empty(n, np.bool_)
    for p in range(pixels):
        _along_signs(indptr, neighbour, row, y[p], sign[p], x[p], known[p], side, queue)
        _by_fit(indptr, neighbour, row, y[p], bounds[p], x[p], known[p], True)
        for v in range(n):
            sure[v] = known[p, v]
        _by_fit(indptr, neighbour, row, y[p], bounds[p], x[p], known[p], False)
        for v in range(n):
            known[p, v] = sure[v]
        for r in range(m):
            a, b = members[r]
            if sure[a] and sure[b]:
                miss[p] = max(miss[p], abs(abs(x[p, a] + x[p, b]) - y[p, r]))
        if miss[p] > 2 * bounds[p]:
            miss[p] = np.inf
            known[p] = False
    return x, known, miss


@njit(cache=True, nogil=True)
def _along_signs(  # type: ignore[no-untyped-def]
    indptr, neighbour, row, y, sign, x, known, side, queue
):
    """Step 2: x = side·t + what is in x, component by component; t from the odd cycles, or the
    component stays unknown."""
    n = len(indptr) - 1
    side[:] = 0
    # 1. Breadth first from any vector, as if its value were 0: each edge gives the next value, and
    # an odd cycle gives t.
    for start in range(n):
        if side[start] != 0:
            continue
        side[start], x[start], queue[0] = 1, 0.0, start
        head, size = 0, 1
        total, odd = 0.0, 0
        while head < size:
            v = queue[head]
            head += 1
            for t in range(indptr[v], indptr[v + 1]):
                u, s = neighbour[t], sign[row[t]]
                if s == 0:
                    continue
                z = s * y[row[t]]
                if side[u] == 0:
                    side[u], x[u] = -side[v], z - x[v]
                    queue[size] = u
                    size += 1
                elif side[u] == side[v]:
                    total += side[v] * (z - x[u] - x[v]) / 2
                    odd += 1
        # 2. The mean of what odd cycles say, for the whole component.
        for i in range(size):
            v = queue[i]
            known[v] = odd > 0
            x[v] = x[v] + side[v] * total / odd if odd > 0 else 0.0
    # 3. Rounding has added up along the way: each value again from all of its edges.
    for _ in range(SWEEPS):
        for v in range(n):
            if known[v]:
                total, count = 0.0, 0
                for t in range(indptr[v], indptr[v + 1]):
                    s = sign[row[t]]
                    if s != 0:
                        total += s * y[row[t]] - x[neighbour[t]]
                        count += 1
                x[v] = total / count


@njit(cache=True, nogil=True)
def _by_fit(indptr, neighbour, row, y, bound, x, known, proved):  # type: ignore[no-untyped-def]
    """Step 3, until nothing changes: vectors of which one value fits; if not `proved`, the smaller
    of two that fit as well."""
    n = len(indptr) - 1
    near = 4 * bound
    changed = True
    while changed:
        changed = False
        for v in range(n):
            if known[v]:
                continue
            first = -1
            one, two = True, True
            high, low = 0.0, 0.0
            for t in range(indptr[v], indptr[v + 1]):
                u = neighbour[t]
                if not known[u]:
                    continue
                value = y[row[t]]
                if first < 0:
                    first = t
                    high, low = value - x[u], -value - x[u]
                    continue
                one &= abs(abs(high + x[u]) - value) <= near
                two &= abs(abs(low + x[u]) - value) <= near
            if first < 0:
                continue
            if one and two and abs(high - low) <= near:
                two = False
            if one and two and not proved:
                one, two = abs(high) <= abs(low), abs(high) > abs(low)
            if one != two:
                x[v] = high if one else low
                known[v] = True
                changed = True
