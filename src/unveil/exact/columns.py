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

The first value of a column comes from a triangle, x_r = (u_ra + u_rb − u_ab)/2: four magnitudes
without a public part, of which usually one survives. Where several do, values in which they differ
are open.

An open value is returned as the candidate that is a level of its column: the one that more of the
known records have, so that few levels explain all encodings.

Cost: a few passes over the encodings per column.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from scipy import sparse

from unveil.exact.problem import Floats, Indices, Mask, Problem, late

NEAR = 8.0
"""How far a sum of two records may be from a candidate, in rounding steps: errors of a chain of a
few encodings add up."""

Graph = tuple[Indices, Indices, Indices]


def solve_columns(
    problem: Problem,
    members: Indices,
    known: Floats,
    *,
    roots: int = 6,
    attempts: int = 8,
    deadline: float = np.inf,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Floats, Mask]:
    """Values (r, d) of all records, and which of them are open.

    Parameters
    ----------
    members : int array of shape (m, 2)
        Records of every encoding, −1 where they are not known.
    known : array of shape (r, d)
        Values that are known already, NaN elsewhere.
    roots : int
        Records from which a column is solved where the first ones do not lead to a solution.

    attempts : int
        Further solutions of a column that are made to show which values are open.

    Values that no solution was found for are NaN, and not open.
    """
    r = len(known)
    rows = np.flatnonzero((members >= 0).all(axis=1) & (members[:, 0] != members[:, 1]))
    graph = adjacency(members[rows], r)
    plus, minus = (np.ascontiguousarray(side[rows].T) for side in problem.candidates())
    near = NEAR * np.maximum(problem.step, 1e-30)
    triangles = find_triangles(*graph)
    order = np.argsort(triangles[:, 0], kind="stable")
    first = np.searchsorted(triangles[order, 0], np.arange(r + 1))
    corners = triangles[order]
    x = np.full(known.shape, np.nan)
    opened = np.zeros(known.shape, bool)
    hidden = problem.c is None
    for p in range(problem.d):
        if late(deadline):
            break
        x[:, p], opened[:, p] = _solve_column(
            plus[p], minus[p], near[p], *graph, known[:, p], corners, first, roots, hidden, attempts
        )
        if progress:
            progress("columns", p + 1, problem.d)
    return polish(x, plus, minus, members[rows], near), opened


def adjacency(members: Indices, r: int) -> Graph:
    """The graph in compressed rows: start (r + 1,), neighbour, edge."""
    rows = np.arange(len(members))
    a, b = members.T
    here, there, edge = np.append(a, b), np.append(b, a), np.append(rows, rows)
    order = np.argsort(here, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(here, minlength=r)))
    return start, there[order], edge[order]


def polish(
    x: Floats, plus: Floats, minus: Floats, members: Indices, near: Floats, *, steps: int = 40
) -> Floats:
    """Least squares with the signs found, which takes out the rounding of long chains.

    plus, minus : (d, edges). steps : of conjugate gradients; the graph's incidence is well
    conditioned."""
    a, b = members.T
    edges = np.arange(len(members))
    incidence = sparse.csr_matrix(
        (np.ones(2 * len(edges)), (np.append(edges, edges), np.append(a, b))),
        shape=(len(edges), len(x)),
    )
    total = np.nan_to_num(x)[a] + np.nan_to_num(x)[b]
    miss = np.where(
        np.abs(total - plus.T) < np.abs(total - minus.T), plus.T - total, minus.T - total
    )
    # Edges of unknown values, and those that contradict, do not pull.
    good = ~np.isnan(x[a] + x[b]) & (np.abs(miss) <= 2 * near)
    residual = incidence.T @ np.where(good, miss, 0.0)
    move, direction = np.zeros_like(x), residual
    norm = (residual**2).sum(axis=0)
    for _ in range(steps):
        image = incidence.T @ (good * (incidence @ direction))
        length = norm / np.maximum((direction * image).sum(axis=0), 1e-300)
        move += length * direction
        residual = residual - length * image
        fresh = (residual**2).sum(axis=0)
        if (fresh <= 1e-8 * near**2).all():
            break
        direction = residual + fresh / np.maximum(norm, 1e-300) * direction
        norm = fresh
    small = (np.abs(move) <= 4 * near).all(axis=0)
    return np.where(small & ~np.isnan(x), x + move, x)


@njit(cache=True, nogil=True)
def find_triangles(start, neighbour, edge):  # type: ignore[no-untyped-def]
    """(count, 6): corners r, a, b and the edges ra, rb, ab; once for each corner as r."""
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
                if b > a and by[b] >= 0:
                    found.append(np.array([r, a, b, edge[i], by[b], edge[j]]))
        for i in range(start[r], start[r + 1]):
            by[neighbour[i]] = -1
    flat = np.empty((len(found), 6), np.int64)
    for i in range(len(found)):
        flat[i] = found[i]
    return flat


@njit(cache=True, nogil=True)
def _solve_column(  # type: ignore[no-untyped-def]
    plus, minus, near, start, neighbour, edge, known, corners, first, roots, hidden, attempts
):
    """One column: values (NaN where there are none) and which of them are open."""
    n = len(start) - 1
    best = np.full(n, np.nan)
    opened = np.zeros(n, np.bool_)
    value = known.copy()
    given = 0
    for v in range(n):
        given += not np.isnan(value[v])
    if given >= 3:
        shown, good = _all_solutions(value, plus, minus, near, start, neighbour, edge, attempts)
        if good:
            return value, shown
    # Roots with the most different encodings first: their neighbours differ.
    spread = np.zeros(n, np.int64)
    for v in range(n):
        if first[v + 1] > first[v]:
            for i in range(start[v], start[v + 1]):
                fresh = True
                for j in range(start[v], i):
                    fresh &= abs(plus[edge[i]] - plus[edge[j]]) > near
                spread[v] += fresh
    order = np.argsort(-spread, kind="mergesort")
    for attempt in range(min(roots, n)):
        r = order[attempt]
        if first[r + 1] == first[r]:
            break
        survivors = 0
        fewest = n + 1
        _, a, _, ra, rb, ab = corners[first[r]]
        for choice in range(4 if hidden else 8):
            u = plus[ra] if choice & 4 == 0 else minus[ra]
            w = plus[rb] if choice & 1 == 0 else minus[rb]
            z = plus[ab] if choice & 2 == 0 else minus[ab]
            value[:] = np.nan
            value[r] = (u + w - z) / 2
            value[a] = u - value[r]
            repeated = False
            for other in range(choice):
                u2 = plus[ra] if other & 4 == 0 else minus[ra]
                w2 = plus[rb] if other & 1 == 0 else minus[rb]
                z2 = plus[ab] if other & 2 == 0 else minus[ab]
                x2 = (u2 + w2 - z2) / 2
                same = abs(x2 - value[r]) <= near and abs(u2 - x2 - value[a]) <= near
                turned = abs(x2 + value[r]) <= near and abs(u2 - x2 + value[a]) <= near
                repeated |= same or (hidden and turned)
            if repeated:
                continue
            shown, good = _all_solutions(value, plus, minus, near, start, neighbour, edge, attempts)
            if not good:
                continue
            opened |= shown
            if survivors:
                same = turned = 0
                for v in range(n):
                    same += abs(value[v] - best[v]) <= near
                    turned += abs(value[v] + best[v]) <= near
                if hidden and turned > same:
                    value *= -1.0
                for v in range(n):
                    opened[v] |= abs(value[v] - best[v]) > near
            levels = _levels(value, near)
            if levels < fewest:
                fewest = levels
                best[:] = value
            survivors += 1
        if survivors:
            return best, opened
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
def _all_solutions(value, plus, minus, near, start, neighbour, edge, attempts):  # type: ignore[no-untyped-def]
    """One solution with the values given, in place, and which values another solution changes.

    First what follows from them. The rest is completed by levels, then again with the other
    candidates wherever they were not yet shown to fit, until nothing new is shown. Returns the open
    values, and whether there is a solution at all.

    attempts : further solutions at most."""
    n = len(start) - 1
    pair = np.full((n, 2), np.nan)
    shown = np.zeros(n, np.bool_)
    if not _deduce(value, pair, plus, minus, near, start, neighbour, edge):
        return shown, False
    given, choices = value.copy(), pair.copy()
    if not _complete(value, pair, shown, False, plus, minus, near, start, neighbour, edge):
        return shown, False
    for _ in range(attempts):
        other = given.copy()
        fresh = 0
        pair[:] = choices
        if _complete(other, pair, shown, True, plus, minus, near, start, neighbour, edge):
            for v in range(n):
                if not shown[v] and abs(other[v] - value[v]) > near:
                    shown[v] = True
                    fresh += 1
        if fresh == 0:
            break
    return shown, True


@njit(cache=True, nogil=True)
def _complete(value, pair, shown, rare, plus, minus, near, start, neighbour, edge):  # type: ignore[no-untyped-def]
    """Values that are left, in place: by the candidate that more records have, or, where `rare`,
    the other one of those not yet shown. False where no choice works."""
    n = len(start) - 1
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
            trail = _consequences(v, 0, value, pair, plus, minus, near, start, neighbour, edge)
            if trail[0] < 0:
                trail = _consequences(v, 1, value, pair, plus, minus, near, start, neighbour, edge)
            if trail[0] < 0:
                return False
            for code in trail:
                value[code // 2] = pair[code // 2, code % 2]
        if not _deduce(value, pair, plus, minus, near, start, neighbour, edge):
            return False


@njit(cache=True, nogil=True)
def _count_near(ordered, x, near):  # type: ignore[no-untyped-def]
    return np.searchsorted(ordered, x + near) - np.searchsorted(ordered, x - near)


@njit(cache=True, nogil=True)
def _deduce(value, pair, plus, minus, near, start, neighbour, edge):  # type: ignore[no-untyped-def]
    """Values that hold in every solution with the given ones, in place; pair (n, 2): candidates of
    the others. False where there is a contradiction."""
    n = len(start) - 1
    queue = np.empty(n, np.int64)
    waiting = np.zeros(n, np.bool_)
    size = 0
    for v in range(n):
        if not np.isnan(value[v]):
            for i in range(start[v], start[v + 1]):
                w = neighbour[i]
                if np.isnan(value[w]) and not waiting[w]:
                    waiting[w] = True
                    queue[size] = w
                    size += 1
                elif not np.isnan(value[w]):
                    s = value[v] + value[w]
                    if abs(s - plus[edge[i]]) > near and abs(s - minus[edge[i]]) > near:
                        return False
    while True:
        # 1. Candidates by all known neighbours.
        while size:
            size -= 1
            v = queue[size]
            waiting[v] = False
            if not np.isnan(value[v]):
                continue
            count, one, two = _candidates(v, value, plus, minus, near, start, neighbour, edge)
            if count == 0:
                return False
            pair[v, 0], pair[v, 1] = one, two
            if count == 1:
                value[v] = one
                for i in range(start[v], start[v + 1]):
                    w = neighbour[i]
                    if np.isnan(value[w]):
                        if not waiting[w]:
                            waiting[w] = True
                            queue[size] = w
                            size += 1
                    else:
                        s = one + value[w]
                        if abs(s - plus[edge[i]]) > near and abs(s - minus[edge[i]]) > near:
                            return False
        # 2. Choices whose consequences contradict each other.
        for v in range(n):
            if not np.isnan(value[v]) or np.isnan(pair[v, 0]):
                continue
            bad_one = _consequences(v, 0, value, pair, plus, minus, near, start, neighbour, edge)[0]
            bad_two = _consequences(v, 1, value, pair, plus, minus, near, start, neighbour, edge)[0]
            if bad_one < 0 and bad_two < 0:
                return False
            if bad_one < 0 or bad_two < 0:
                value[v] = pair[v, 1] if bad_one < 0 else pair[v, 0]
                for i in range(start[v], start[v + 1]):
                    w = neighbour[i]
                    if np.isnan(value[w]) and not waiting[w]:
                        waiting[w] = True
                        queue[size] = w
                        size += 1
                if size:
                    break
        if not size:
            return True


@njit(cache=True, nogil=True)
def _candidates(v, value, plus, minus, near, start, neighbour, edge):  # type: ignore[no-untyped-def]
    """How many values of v agree with all its known neighbours, and which."""
    first = -1
    one = two = True
    x = y = total_x = total_y = 0.0
    votes = 0
    for i in range(start[v], start[v + 1]):
        a = value[neighbour[i]]
        if np.isnan(a):
            continue
        s, t = plus[edge[i]] - a, minus[edge[i]] - a
        votes += 1
        if first < 0:
            first, x, y = i, s, t
            total_x, total_y = s, t
            continue
        if abs(x - s) <= near and abs(x - s) <= abs(x - t):
            total_x += s
        elif abs(x - t) <= near:
            total_x += t
        else:
            one = False
        if abs(y - s) <= near and abs(y - s) <= abs(y - t):
            total_y += s
        elif abs(y - t) <= near:
            total_y += t
        else:
            two = False
        if not one and not two:
            return 0, 0.0, 0.0
    if first < 0:
        return 2, np.nan, np.nan
    if one and two:
        if abs(x - y) <= near:
            return 1, total_x / votes, np.nan
        return 2, total_x / votes, total_y / votes
    return 1, (total_x if one else total_y) / votes, np.nan


@njit(cache=True, nogil=True)
def _consequences(v, which, value, pair, plus, minus, near, start, neighbour, edge):  # type: ignore[no-untyped-def]
    """What follows if v has its candidate `which`: codes 2·record + candidate of all that is
    implied, or [−1] where that is a contradiction."""
    trail = [np.int64(2 * v + which)]
    chosen = {np.int64(v): np.int64(which)}
    at = 0
    while at < len(trail):
        u = trail[at] // 2
        x = pair[u, trail[at] % 2]
        at += 1
        for i in range(start[u], start[u + 1]):
            w = neighbour[i]
            if not np.isnan(value[w]) or np.isnan(pair[w, 0]):
                continue
            f = edge[i]
            one, two = x + pair[w, 0], x + pair[w, 1]
            fits_one = abs(one - plus[f]) <= near or abs(one - minus[f]) <= near
            fits_two = abs(two - plus[f]) <= near or abs(two - minus[f]) <= near
            if w in chosen:
                if not (fits_two if chosen[w] else fits_one):
                    return [np.int64(-1)]
            elif not fits_one and not fits_two:
                return [np.int64(-1)]
            elif fits_one != fits_two:
                pick = np.int64(1 if fits_two else 0)
                chosen[w] = pick
                trail.append(2 * w + pick)
    return trail
