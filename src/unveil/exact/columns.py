"""All values of records mixed in pairs, once it is known who is mixed with whom.

At every column on its own, for each encoding f = {v, w} of a known graph:

    x_v + x_w ∈ {plus_f, minus_f}.

A record with a known neighbour has two candidates, and every further known neighbour that has
another value leaves one of them. Records that keep two candidates (all their known neighbours
share one value c, and −x − 2c fits as well as x) constrain each other along the encodings between
them: two choices each and conditions on pairs, which is 2-satisfiability. A choice whose
consequences contradict each other is impossible, so the other one is known. What is deduced this
way holds in *every* solution; what is left is completed in several ways, and a value in which two
complete solutions differ is *open*. So open means that another value fits and was shown, never
that a search gave up.

The first values of a column come from a *core*: a triangle, x_r = (u_ra + u_rb − u_ab)/2, and ears,
paths that leave it and come back. All signs of its few encodings are tried; the last encoding of an
ear is a check, so that of generic values one choice survives. Where several do, values in which
they differ are open.

An open value is returned as the candidate that is a level of its column: the one that more of the
known records have, so that few levels explain all encodings.

Cost: a few passes over the encodings per column. Columns are solved in blocks, each by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from unveil.engine.blocks import results
from unveil.exact.problem import Floats, Indices, Mask, Problem, late

NEAR = 8.0
"""How far a sum of two records may be from a candidate, in rounding steps: errors of a chain of a
few encodings add up."""

Graph = tuple[Indices, Indices, Indices]
Cores = tuple[Indices, Indices]


def solve_columns(
    problem: Problem,
    members: Indices,
    r: int,
    *,
    known: tuple[Indices, Floats] | None = None,
    cores: int = 64,
    tries: int = 6,
    attempts: int = 8,
    block: float = 4e6,
    deadline: float = np.inf,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Floats, Mask]:
    """Values (r, d) of all records, and which of them are open.

    Parameters
    ----------
    members : int array of shape (m, 2)
        Which of the r records every encoding mixes, −1 where they are not known.
    known : columns and array of shape (r, columns), optional
        Values that are known already, NaN elsewhere.
    cores : int
        Of which the ones with most different encodings are tried at a column.
    tries : int
        Cores from which a column is solved where the first ones do not lead to a solution.
    attempts : int
        Further solutions of a column that are made to show which values are open.
    block : float
        Values of a block of columns.

    Values that no solution was found for are NaN, and not open.
    """
    rows = np.flatnonzero((members >= 0).all(axis=1) & (members[:, 0] != members[:, 1]))
    graph = adjacency(members[rows], r)
    at, given = known or (np.empty(0, np.int64), np.empty((r, 0)))
    limits = (tries, attempts, deadline)
    shared = problem, rows, graph, find_cores(graph, cores), at, given, limits
    x, opened = np.full((r, problem.d), np.nan), np.zeros((r, problem.d), bool)
    width = int(np.clip(block / max(1, len(rows)), 1, 256))
    starts = [(s, min(s + width, problem.d)) for s in range(0, problem.d, width)]
    for done, ((s, e), solved) in enumerate(results(_solve_block, shared, starts), 1):
        x[:, s:e], opened[:, s:e] = solved
        if progress:
            progress("columns", min(done * width, problem.d), problem.d)
    return x, opened


def _solve_block(
    shared: tuple[Problem, Indices, Graph, Cores, Indices, Floats, tuple[int, int, float]],
    span: tuple[int, int],
) -> tuple[Floats, Mask]:
    """The columns of a span: values (r, columns) and which are open."""
    problem, rows, graph, cores, at, given, (tries, attempts, deadline) = shared
    part = problem.columns(np.arange(*span))
    plus, minus = (np.ascontiguousarray(side[rows].T) for side in part.candidates())
    near = NEAR * np.maximum(part.step, 1e-30)
    known = np.full((part.d, len(given)), np.nan)
    here = np.flatnonzero((at >= span[0]) & (at < span[1]))
    known[at[here] - span[0]] = given[:, here].T
    x, opened = np.full(known.shape, np.nan), np.zeros(known.shape, bool)
    for p in range(part.d):
        if late(deadline):
            break
        column = plus[p], minus[p], near[p]
        x[p], opened[p] = _solve_column(
            column, graph, cores, known[p], problem.c is None, tries, attempts
        )
    return x.T, opened.T


def adjacency(members: Indices, r: int) -> Graph:
    """The graph in compressed rows: start (r + 1,), neighbour, edge."""
    rows = np.arange(len(members))
    a, b = members.T
    here, there, edge = np.append(a, b), np.append(b, a), np.append(rows, rows)
    order = np.argsort(here, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(here, minlength=r)))
    return start, there[order], edge[order]


# ---- Cores ---------------------------------------------------------------------------------------


def find_cores(graph: Graph, count: int, *, size: int = 6, most: int = 9) -> Cores:
    """Parts of the graph that determine themselves: vertices (cores, most), and their encodings in
    the order in which they are used, (cores, steps, 3): two places among the vertices and the
    encoding, −1 beyond the last. The first three are a triangle; one that leads to a new vertex is
    a choice of sign, one between two vertices that are there is a check.

    size, most : vertices of a core at least, where there are ears, and at most.
    """
    triangles = find_triangles(*graph)
    spread = np.linspace(0, len(triangles) - 1, min(count, len(triangles)))
    some = triangles[np.unique(spread.astype(np.int64))]
    vertices = np.full((len(some), most), -1)
    steps = np.full((len(some), 2 * most, 3), -1)
    for i, triangle in enumerate(some):
        _grow_core(triangle, graph, size, vertices[i], steps[i])
    return vertices, steps


@njit(cache=True, nogil=True)
def find_triangles(start, neighbour, edge):  # type: ignore[no-untyped-def]
    """(count, 6): corners r < a < b and the edges ra, rb, ab."""
    n = len(start) - 1
    found = [np.array([0, 0, 0, 0, 0, 0]) for _ in range(0)]
    by = np.full(n, -1, np.int64)
    for r in range(n):
        for i in range(start[r], start[r + 1]):
            by[neighbour[i]] = edge[i]
        for i in range(start[r], start[r + 1]):
            a = neighbour[i]
            for j in range(start[a], start[a + 1]):
                b = neighbour[j]
                if b > a > r and by[b] >= 0:
                    found.append(np.array([r, a, b, edge[i], by[b], edge[j]]))
        for i in range(start[r], start[r + 1]):
            by[neighbour[i]] = -1
    flat = np.empty((len(found), 6), np.int64)
    for i in range(len(found)):
        flat[i] = found[i]
    return flat


@njit(cache=True, nogil=True)
def _grow_core(triangle, graph, size, vertices, steps):  # type: ignore[no-untyped-def]
    """A triangle with ears, in place: breadth first from what is there, until an encoding joins two
    branches."""
    start, neighbour, edge = graph
    n = len(start) - 1
    place, parent, by = np.full(n, -1), np.full(n, -1), np.full(n, -1)
    vertices[:3] = triangle[:3]
    steps[:3] = np.array([[0, 1, triangle[3]], [0, 2, triangle[4]], [1, 2, triangle[5]]])
    count, used = 3, 3
    while count < size:
        # 1. A breadth-first tree from the core; place ≥ 0 in the core, −2 in the tree.
        place[:] = -1
        queue = np.empty(n, np.int64)
        queue[:count] = vertices[:count]
        place[vertices[:count]] = np.arange(count)
        near, far, join = 0, count, np.array([-1, -1, -1])
        while near < far and join[0] < 0:
            v = queue[near]
            near += 1
            for i in range(start[v], start[v + 1]):
                w = neighbour[i]
                if place[w] == -1:
                    place[w], parent[w], by[w] = -2, v, edge[i]
                    queue[far] = w
                    far += 1
                elif (place[v] < 0 or place[w] < 0) and not (
                    (place[v] < 0 and parent[v] == w) or (place[w] < 0 and parent[w] == v)
                ):
                    join[:] = v, w, edge[i]
                    break
        if join[0] < 0:
            return
        # 2. The branches of both ends, from the core outwards.
        for end in join[:2]:
            depth, v = 0, end
            while place[v] < 0:
                depth, v = depth + 1, parent[v]
            if count + depth > len(vertices):
                return
            for level in range(depth, 0, -1):
                v = end
                for _ in range(level - 1):
                    v = parent[v]
                place[v] = count
                vertices[count] = v
                steps[used] = place[parent[v]], count, by[v]
                count, used = count + 1, used + 1
        steps[used] = place[join[0]], place[join[1]], join[2]
        used += 1


@njit(cache=True, nogil=True)
def core_values(column, vertices, steps, hidden):  # type: ignore[no-untyped-def]
    """(choices, vertices) values of a core for all signs that fit, without repeats; without a
    public part the sign of the whole column is free."""
    plus, minus, near = column
    size = 0
    while size < len(vertices) and vertices[size] >= 0:
        size += 1
    fitting = [np.empty(0) for _ in range(0)]
    first = 2 if hidden else 3
    for choice in range(1 << (first + size - 3)):
        bit = first
        x = np.empty(size)
        u = minus[steps[0, 2]] if choice & 4 and not hidden else plus[steps[0, 2]]
        w = minus[steps[1, 2]] if choice & 1 else plus[steps[1, 2]]
        z = minus[steps[2, 2]] if choice & 2 else plus[steps[2, 2]]
        x[0] = (u + w - z) / 2
        x[1], x[2] = u - x[0], w - x[0]
        known = 3
        fits = True
        for s in range(3, len(steps)):
            a, b, f = steps[s]
            if a < 0 or not fits:
                break
            if b == known:
                x[b] = (minus[f] if (choice >> bit) & 1 else plus[f]) - x[a]
                bit, known = bit + 1, known + 1
            else:
                fits = _holds(x[a] + x[b], column, f)
        for other in fitting:
            if fits:
                same = np.abs(x - other).max() <= near
                fits = not (same or (hidden and np.abs(x + other).max() <= near))
        if fits:
            fitting.append(x)
    return fitting


# ---- One column ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _solve_column(column, graph, cores, known, hidden, tries, attempts):  # type: ignore[no-untyped-def]
    """One column: values (NaN where there are none) and which of them are open."""
    n = len(known)
    plus, _, near = column
    opened = np.zeros(n, np.bool_)
    value = known.copy()
    if n - np.isnan(value).sum() >= 3:
        shown, good = _all_solutions(value, column, graph, attempts)
        if good:
            polish(value, column, graph)
            return value, shown
    best = np.full(n, np.nan)
    # Cores with the most different encodings first: their signs show.
    vertices, steps = cores
    spread = np.zeros(len(steps))
    for i in range(len(steps)):
        spread[i] = _levels(plus[steps[i, steps[i, :, 0] >= 0, 2]], near)
    for i in np.argsort(-spread, kind="mergesort")[:tries]:
        survivors, fewest = 0, n + 1
        for x in core_values(column, vertices[i], steps[i], hidden):
            value[:] = np.nan
            value[vertices[i, : len(x)]] = x
            shown, good = _all_solutions(value, column, graph, attempts)
            if not good:
                continue
            opened |= shown
            if survivors:
                same, turned = np.abs(value - best) <= near, np.abs(value + best) <= near
                if hidden and turned.sum() > same.sum():
                    value *= -1.0
                opened |= np.abs(value - best) > near
            levels = _levels(value, near)
            if levels < fewest:
                fewest = levels
                best[:] = value
            survivors += 1
        if survivors:
            polish(best, column, graph)
            break
    return best, opened


@njit(cache=True, nogil=True)
def _levels(value, near):  # type: ignore[no-untyped-def]
    """How many different values there are."""
    ordered = np.sort(value)
    count = 0
    last = -np.inf
    for x in ordered:
        if x - last > near:
            count += 1
        last = x
    return count


@njit(cache=True, nogil=True)
def _holds(total, column, f):  # type: ignore[no-untyped-def]
    """Whether the encoding f may be this sum."""
    plus, minus, near = column
    return abs(total - plus[f]) <= near or abs(total - minus[f]) <= near


@njit(cache=True, nogil=True)
def polish(value, column, graph, sweeps=12):  # type: ignore[no-untyped-def]
    """Least squares with the signs found, in place, which takes out the rounding of long chains:
    every value in turn is the mean of what its neighbours say. Encodings that contradict do not
    pull."""
    plus, minus, near = column
    start, neighbour, edge = graph
    for _ in range(sweeps):
        moved = 0.0
        for v in range(len(value)):
            total, votes = 0.0, 0
            for i in range(start[v], start[v + 1]):
                s = value[v] + value[neighbour[i]]
                miss, other = plus[edge[i]] - s, minus[edge[i]] - s
                if abs(other) < abs(miss):
                    miss = other
                if abs(miss) <= 2 * near:
                    total += miss
                    votes += 1
            if votes:
                value[v] += total / votes
                moved = max(moved, abs(total) / votes)
        if moved <= 0.02 * near:
            break


@njit(cache=True, nogil=True)
def _all_solutions(value, column, graph, attempts):  # type: ignore[no-untyped-def]
    """One solution with the values given, in place, and which values another solution changes.

    First what follows from them. The rest is completed by levels, then again with the other
    candidates wherever they were not yet shown to fit, until nothing new is shown. Returns the open
    values, and whether there is a solution at all.

    attempts : further solutions at most."""
    n = len(value)
    near = column[2]
    pair = np.full((n, 2), np.nan)
    shown = np.zeros(n, np.bool_)
    if not _deduce(value, pair, column, graph):
        return shown, False
    if not np.isnan(value).any():
        return shown, True
    given, choices = value.copy(), pair.copy()
    if not _complete(value, pair, shown, False, column, graph):
        return shown, False
    for _ in range(attempts):
        other = given.copy()
        fresh = 0
        pair[:] = choices
        if _complete(other, pair, shown, True, column, graph):
            for v in range(n):
                if not shown[v] and abs(other[v] - value[v]) > near:
                    shown[v] = True
                    fresh += 1
        if fresh == 0:
            break
    return shown, True


@njit(cache=True, nogil=True)
def _complete(value, pair, shown, rare, column, graph):  # type: ignore[no-untyped-def]
    """Values that are left, in place: by the candidate that more records have, or, where `rare`,
    the other one of those not yet shown. False where no choice works."""
    n, near = len(value), column[2]
    chosen, trail = np.full(n, -1, np.int8), np.empty(n, np.int64)
    while True:
        ordered = np.sort(value[~np.isnan(value)])
        gap = np.full(n, -1.0)
        for v in range(n):
            if np.isnan(value[v]) and not np.isnan(pair[v, 0]):
                one = _count_near(ordered, pair[v, 0], near)
                two = _count_near(ordered, pair[v, 1], near)
                flip = rare and not shown[v]
                if (two > one) != flip:
                    pair[v, 0], pair[v, 1] = pair[v, 1], pair[v, 0]
                gap[v] = abs(one - two) + (n if flip else 0)
        if gap.max() < 0:
            return True
        # Those first whose candidates differ most in how often they occur.
        for v in np.argsort(-gap, kind="mergesort"):
            if gap[v] < 0:
                break
            if not np.isnan(value[v]):
                continue
            size = _consequences(v, 0, value, pair, column, graph, chosen, trail)
            if size < 0:
                size = _consequences(v, 1, value, pair, column, graph, chosen, trail)
            if size < 0:
                return False
            for code in trail[:size]:
                value[code // 2] = pair[code // 2, code % 2]
        if not _deduce(value, pair, column, graph):
            return False


@njit(cache=True, nogil=True)
def _count_near(ordered, x, near):  # type: ignore[no-untyped-def]
    return np.searchsorted(ordered, x + near) - np.searchsorted(ordered, x - near)


@njit(cache=True, nogil=True)
def _deduce(value, pair, column, graph):  # type: ignore[no-untyped-def]
    """Values that hold in every solution with the given ones, in place; pair (n, 2): candidates of
    the others. False where there is a contradiction."""
    n = len(value)
    queue, waiting = np.empty(n, np.int64), np.zeros(n, np.bool_)
    chosen, trail = np.full(n, -1, np.int8), np.empty(n, np.int64)
    size = 0
    for v in range(n):
        if not np.isnan(value[v]):
            size = _tell(v, value, column, graph, queue, waiting, size)
        if size < 0:
            return False
    while True:
        # 1. Candidates by all known neighbours.
        if not _follow(value, pair, column, graph, queue, waiting, size):
            return False
        # 2. Choices whose consequences contradict each other.
        settled = True
        for v in range(n):
            if not np.isnan(value[v]) or np.isnan(pair[v, 0]):
                continue
            one = _consequences(v, 0, value, pair, column, graph, chosen, trail)
            two = _consequences(v, 1, value, pair, column, graph, chosen, trail)
            if one < 0 and two < 0:
                return False
            if one < 0 or two < 0:
                value[v] = pair[v, 1] if one < 0 else pair[v, 0]
                size = _tell(v, value, column, graph, queue, waiting, 0)
                if size < 0 or not _follow(value, pair, column, graph, queue, waiting, size):
                    return False
                settled = False
                size = 0
        if settled:
            return True


@njit(cache=True, nogil=True)
def _tell(v, value, column, graph, queue, waiting, size):  # type: ignore[no-untyped-def]
    """Neighbours of a value that is new wait for their candidates; the length of the queue, or −1
    where a known one contradicts."""
    start, neighbour, edge = graph
    for i in range(start[v], start[v + 1]):
        w = neighbour[i]
        if np.isnan(value[w]):
            if not waiting[w]:
                waiting[w] = True
                queue[size] = w
                size += 1
        elif not _holds(value[v] + value[w], column, edge[i]):
            return -1
    return size


@njit(cache=True, nogil=True)
def _follow(value, pair, column, graph, queue, waiting, size):  # type: ignore[no-untyped-def]
    """The candidates of all that wait, and values where one is left. False: a contradiction."""
    while size:
        size -= 1
        v = queue[size]
        waiting[v] = False
        if not np.isnan(value[v]):
            continue
        count, pair[v, 0], pair[v, 1] = _candidates(v, value, column, graph)
        if count == 0:
            return False
        if count == 1:
            value[v] = pair[v, 0]
            size = _tell(v, value, column, graph, queue, waiting, size)
            if size < 0:
                return False
    return True


@njit(cache=True, nogil=True)
def _candidates(v, value, column, graph):  # type: ignore[no-untyped-def]
    """How many values of v agree with all its known neighbours, and which."""
    plus, minus, near = column
    start, neighbour, edge = graph
    one = two = True
    x = y = total_x = total_y = 0.0
    votes = 0
    for i in range(start[v], start[v + 1]):
        a = value[neighbour[i]]
        if np.isnan(a):
            continue
        s, t = plus[edge[i]] - a, minus[edge[i]] - a
        votes += 1
        if votes == 1:
            x, y = s, t
            total_x, total_y = s, t
            continue
        u = s if abs(x - s) <= abs(x - t) else t
        w = s if abs(y - s) <= abs(y - t) else t
        one &= abs(x - u) <= near
        two &= abs(y - w) <= near
        total_x += u
        total_y += w
        if not one and not two:
            return 0, np.nan, np.nan
    if votes == 0:
        return 2, np.nan, np.nan
    if one and two and abs(x - y) > near:
        return 2, total_x / votes, total_y / votes
    return 1, (total_x if one else total_y) / votes, np.nan


@njit(cache=True, nogil=True)
def _consequences(v, which, value, pair, column, graph, chosen, trail):  # type: ignore[no-untyped-def]
    """What follows if v has its candidate `which`: how many codes 2·record + candidate of all that
    is implied are in `trail`, or −1 where that is a contradiction. `chosen` is −1 before and
    after."""
    start, neighbour, edge = graph
    trail[0] = 2 * v + which
    chosen[v] = which
    at, size = 0, 1
    good = True
    while at < size and good:
        u = trail[at] // 2
        x = pair[u, trail[at] % 2]
        at += 1
        for i in range(start[u], start[u + 1]):
            w = neighbour[i]
            if not np.isnan(value[w]) or np.isnan(pair[w, 0]):
                continue
            one = _holds(x + pair[w, 0], column, edge[i])
            two = _holds(x + pair[w, 1], column, edge[i])
            if chosen[w] >= 0:
                good = two if chosen[w] else one
            elif one != two:
                chosen[w] = 1 if two else 0
                trail[size] = 2 * w + chosen[w]
                size += 1
            else:
                good = one
            if not good:
                break
    for i in range(size):
        chosen[trail[i] // 2] = -1
    return size if good else -1
