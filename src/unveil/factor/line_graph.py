"""Which two private vectors does every encoding mix, k_private = 2: the root of a line graph, in linear time.

Let private vectors be vertices and encodings edges of a graph H. Two encodings overlap where their edges meet: the overlaps are
the line graph L(H), and who mixes whom is its root (Huang et al., "InstaHide's sample complexity when mixing two private
images", 2020). A graph is a line graph where its edges fall apart into cliques, the *cells*, so that no row is in more than two
of them (Krausz, 1943); the cells are the vertices of H. As in Roussopoulos (1973), for each connected component:

  start     rows i and j that overlap. What both meet is the rest of their cell, but for at most one row, which closes the
            triangle of i and j: one that meets none of the rest. At most two cells are possible, and each is tried
  go on     a row in a known cell meets the members of one other cell besides: all of its other neighbours
  check     every neighbour of a row is in one of its cells, every other member of its cells is a neighbour, no row is in three

Overlap 2: the same pair again; such rows count once, and get their pair at the end. By Whitney (1932) a connected component has
one root, and every row one place in it, unless the root is K3 or K1,3 (both have the same line graph), or a triangle with a
tail, K4 less an edge, or K4: there two different assignments of pairs to rows have the same overlaps. `unique` says so.

Where a component is no line graph, six rows or fewer show it (Beineke, 1970): they are found by bisection, since every part
of a line graph is one. Wrong overlaps make it so; `factor.nearest_line_graph` then finds pairs that contradict few of them.

Cost: O(overlaps), twice at most; a forbidden place takes some 6·log₂ m such passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from unveil.factor.nearest_line_graph import nearest_pairs, wide
from unveil.records import InputError, Overlaps

TRUSTED = 0.5
"""Overlaps at least this likely to be right take part."""

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Broken:
    """A component that is no line graph: its `rows`, a `place` of a few of them that shows it, and `why` in words."""

    rows: Index
    place: Index
    why: str


@dataclass(frozen=True, eq=False)
class LineGraphRoot:
    """rows (r,): encodings whose pair is known; members (r, 2): the pairs, names 0 … n−1.

    unique (r,): no other pairs have the same overlaps in its component, names aside
    contradicted (r,): overlaps of the row that its pair does not have; 0 in all components but those in `broken`
    """

    rows: Index
    members: Index
    n: int
    unique: NDArray[np.bool_]
    contradicted: Index
    components: int
    broken: tuple[Broken, ...]


def line_graph_root(overlaps: Overlaps, *, mend: bool = True) -> LineGraphRoot:
    """The pairs of all rows; those of components that are no line graphs are the nearest ones, or left out without `mend`."""
    graph = _graph(overlaps)
    m = overlaps.m
    components, component = connected_components(graph, directed=False)
    copy, first = _copies(graph)
    once = sparse.csr_array(graph[first][:, first])
    cell, good = _cells(once)
    members, fine = cell[copy], good[copy]
    contradicted = contradictions(graph, members)
    wrong = np.zeros(components, bool)
    wrong[component[~fine | (contradicted > 0)]] = True
    broken = []
    known = ~wrong[component]
    for c in np.flatnonzero(wrong):
        rows = np.flatnonzero(component == c)
        broken.append(_explained(graph, rows, np.intersect1d(first, rows)))
        if mend:
            pairs = nearest_pairs(sparse.csr_array(graph[rows][:, rows]))
            known[rows] = pairs[:, 0] >= 0
            members[rows] = pairs + 2 * m * (c + 1)  # names of its own
    rows = np.flatnonzero(known)
    used, names = np.unique(members[rows], return_inverse=True)
    members = names.reshape(-1, 2).astype(np.int64)
    part = graph if len(rows) == m else sparse.csr_array(graph[rows][:, rows])
    return LineGraphRoot(
        rows, members, len(used), ~_two_ways(members, len(used)), contradictions(part, members), components, tuple(broken)
    )


def is_line_graph(graph: sparse.csr_array) -> bool:
    """Whether a symmetric graph without loops is the line graph of some graph without double edges."""
    return bool(_cells(graph)[1].all())


def forbidden_place(graph: sparse.csr_array) -> Index:
    """A smallest set of vertices, in the sense that none can be spared, that no line graph holds as it is: by bisection, over
    vertices in an order in which near ones follow each other; `graph` is connected and no line graph."""
    left = breadth_first_order(graph, 0, directed=False, return_predecessors=False).astype(np.int64)
    place: list[int] = []

    def bad(count: int) -> bool:
        rows = np.append(left[:count], np.array(place, np.int64))
        return not is_line_graph(sparse.csr_array(graph[rows][:, rows]))

    while not place or not bad(0):
        low, high = 0, len(left)  # the first `low` are good, the first `high` are not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if bad(middle) else (middle, high)
        place.append(int(left[high - 1]))
        left = left[: high - 1]
    return np.sort(np.array(place, np.int64))


def contradictions(graph: sparse.csr_array, members: Index) -> Index:
    """For each row, the overlaps that are not those of its pair; rows without a pair have −1 and count for nothing."""
    return np.asarray(_contradictions(*wide(graph), graph.data, members, int(members.max(initial=-1)) + 1))


def _graph(overlaps: Overlaps) -> sparse.csr_array:
    """Overlaps 1 and 2 off the diagonal, as far as they are trusted."""
    if overlaps.k_private != 2:
        raise InputError(f"k_private={overlaps.k_private}: overlaps are a line graph for k_private=2 only")
    matrix = overlaps.tocsr()
    if matrix.nnz and not 0 <= matrix.data.min() <= matrix.data.max() <= 2:
        raise InputError("overlaps below 0 or above 2: encodings of two vectors share none, one or both")
    row = np.repeat(np.arange(overlaps.m), np.diff(matrix.indptr))
    keep = row != matrix.indices
    if overlaps.confidence is not None:
        keep &= overlaps.confidence >= TRUSTED
    matrix.data = np.where(keep, matrix.data, 0)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _copies(graph: sparse.csr_array) -> tuple[Index, Index]:
    """(for each row its pair's place among the different ones, the first row of each)."""
    same = graph.copy()
    same.data = (same.data == 2).astype(np.int8)
    same.eliminate_zeros()
    label = connected_components(same, directed=False)[1]
    _, first, copy = np.unique(label, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[copy].astype(np.int64), first[order].astype(np.int64)


def _cells(graph: sparse.csr_array) -> tuple[Index, NDArray[np.bool_]]:
    """(m, 2) cells of each row, and whether its component is a line graph."""
    cell = np.full((graph.shape[0], 2), -1, np.int64)
    good = np.asarray(_find_cells(*wide(graph), cell))
    cell[~good] = -1
    return cell, good


def _two_ways(members: Index, n: int) -> NDArray[np.bool_]:
    """Rows of the components for which Whitney's theorem has an exception: the triangle, and all roots of four vertices in which
    one meets the other three."""
    if not n:
        return np.zeros(0, bool)
    u, v = members.T
    join = sparse.coo_array((np.ones(len(u), np.int8), (u, v)), shape=(n, n))
    component = connected_components(join, directed=False)[1]
    pairs = np.unique(np.sort(members, axis=1), axis=0)
    degree = np.bincount(pairs.ravel(), minlength=n)
    vertices = np.bincount(component)
    edges = np.bincount(component[pairs[:, 0]], minlength=len(vertices))
    most = np.zeros(len(vertices), np.int64)
    np.maximum.at(most, component, degree)
    exception = ((vertices == 3) & (edges == 3)) | ((vertices == 4) & (most == 3))
    return np.asarray(exception[component[u]])


def _explained(graph: sparse.csr_array, rows: Index, different: Index) -> Broken:
    part = sparse.csr_array(graph[different][:, different])
    if is_line_graph(part):
        place = _odd_copy(graph, rows)
        i, j, other = place
        return Broken(rows, place, f"encodings {i} and {j} are read as one pair, and {other} overlaps with them differently")
    place = forbidden_place(part)
    inside = part[place][:, place].toarray() > 0
    place = different[place]
    names = ", ".join(map(str, place))
    centre = np.flatnonzero(inside.sum(axis=1) == 3)
    if len(place) == 4 and inside.sum() == 6 and len(centre):
        others = ", ".join(map(str, np.delete(place, centre[0])))
        return Broken(rows, place, f"encoding {place[centre[0]]} overlaps with {others}, which do not overlap with each other")
    return Broken(rows, place, f"encodings {names} overlap in a way that no pairs do")


def _odd_copy(graph: sparse.csr_array, rows: Index) -> Index:
    """Two rows read as one pair, and a third that tells them apart."""

    def read(i: int) -> dict[int, int]:
        part = slice(graph.indptr[i], graph.indptr[i + 1])
        return dict(zip(graph.indices[part].tolist(), graph.data[part].tolist(), strict=True))

    for i in rows.tolist():
        mine = read(i)
        for j in (j for j, shared in mine.items() if shared == 2):
            theirs = read(j)
            differs = [r for r in sorted({*mine, *theirs} - {i, j}) if mine.get(r) != theirs.get(r)]
            if differs:
                return np.array([i, j, differs[0]])
    raise AssertionError("copies that agree everywhere are no contradiction")


@njit(cache=True, nogil=True)
def _find_cells(indptr, indices, cell):  # type: ignore[no-untyped-def]
    """Cells of every row, in place; for each row whether its component is a line graph."""
    m = len(indptr) - 1
    good = np.zeros(m, np.bool_)
    seen = np.zeros(m, np.bool_)
    queue = np.empty(m, np.int64)
    size = np.zeros(2 * m + 2, np.int64)
    stamp = np.full(m, -1, np.int64)
    both = np.empty(m, np.int64)
    cells = 0
    for s in range(m):
        if seen[s]:
            continue
        # 1. the component
        queue[0] = s
        seen[s] = True
        head, tail = 0, 1
        while head < tail:
            r = queue[head]
            head += 1
            for t in range(indptr[r], indptr[r + 1]):
                j = indices[t]
                if not seen[j]:
                    seen[j] = True
                    queue[tail] = j
                    tail += 1
        if tail == 1:
            cell[s, 0], cell[s, 1] = cells, cells + 1
            cells += 2
            good[s] = True
            continue
        rows = queue[:tail].copy()
        # 2. what i and j both meet, and the rows of it that meet none of the rest
        i, j = s, indices[indptr[s]]
        for t in range(indptr[i], indptr[i + 1]):
            stamp[indices[t]] = 2 * s
        common = 0
        for t in range(indptr[j], indptr[j + 1]):
            if stamp[indices[t]] == 2 * s:
                both[common] = indices[t]
                common += 1
        for t in range(common):
            stamp[both[t]] = 2 * s + 1
        alone = np.full(2, -1, np.int64)
        lonely = 0
        for t in range(common):
            meets = False
            for q in range(indptr[both[t]], indptr[both[t] + 1]):
                if stamp[indices[q]] == 2 * s + 1:
                    meets = True
                    break
            if not meets:
                if lonely < 2:
                    alone[lonely] = both[t]
                lonely += 1
        if common > 2 and lonely > 1:
            continue
        # 3. the first cell without the one or the other of them; the whole where there is none, or no other row
        for way in range(2):
            left_out = alone[way]
            if way == 1 and lonely != 2 and not (lonely == 1 and common == 1):
                break
            end = _spread(indptr, indices, rows, i, j, both[:common], left_out, cell, size, cells)
            if end >= 0:
                cells = end
                for r in rows:
                    good[r] = True
                break
    return good


@njit(cache=True, nogil=True)
def _spread(indptr, indices, rows, i, j, both, left_out, cell, size, cells):  # type: ignore[no-untyped-def]
    """All cells of a component from its first; the number of cells then, −1 if it is no line graph this way."""
    for r in rows:
        cell[r] = -1
    queue = np.empty(len(rows), np.int64)
    queue[0], queue[1] = i, j
    tail = 2
    for t in both:
        if t != left_out:
            queue[tail] = t
            tail += 1
    for t in range(tail):
        cell[queue[t], 0] = cells
    size[cells] = tail
    cells += 1
    head = 0
    while head < tail:
        r = queue[head]
        head += 1
        one, two = cell[r]
        if two < 0:
            cell[r, 1] = cells
            size[cells] = 1
            for t in range(indptr[r], indptr[r + 1]):
                q = indices[t]
                if cell[q, 0] == one or cell[q, 1] == one:
                    continue
                if cell[q, 0] < 0:
                    cell[q, 0] = cells
                    queue[tail] = q
                    tail += 1
                elif cell[q, 1] < 0:
                    cell[q, 1] = cells
                else:
                    return -1
                size[cells] += 1
            cells += 1
        else:
            for t in range(indptr[r], indptr[r + 1]):
                a, b = cell[indices[t]]
                if a != one and a != two and b != one and b != two:
                    return -1
    # Each neighbour in exactly one of a row's cells, and as many neighbours as places in them.
    for r in rows:
        one, two = cell[r]
        if indptr[r + 1] - indptr[r] != size[one] + size[two] - 2:
            return -1
        for t in range(indptr[r], indptr[r + 1]):
            a, b = cell[indices[t]]
            if (a == one) + (a == two) + (b == one) + (b == two) != 1:
                return -1
    return cells


@njit(cache=True, nogil=True)
def _contradictions(indptr, indices, data, members, n):  # type: ignore[no-untyped-def]
    m = len(members)
    out = np.zeros(m, np.int64)
    size = np.zeros(n, np.int64)
    for i in range(m):
        for v in members[i]:
            if v >= 0:
                size[v] += 1
    # The rows of each vertex, to count those that have both.
    start = np.zeros(n + 1, np.int64)
    start[1:] = np.cumsum(size)
    fill = start[:-1].copy()
    uses = np.empty(start[n], np.int64)
    for i in range(m):
        for v in members[i]:
            if v >= 0:
                uses[fill[v]] = i
                fill[v] += 1
    for i in range(m):
        one, two = members[i]
        if one < 0:
            continue
        expected = size[one] + size[two] - 2
        for t in range(start[one], start[one + 1]):
            j = uses[t]
            if j != i and (members[j, 0] == two or members[j, 1] == two):
                expected -= 1
        for t in range(indptr[i], indptr[i + 1]):
            a, b = members[indices[t]]
            if a < 0:
                continue
            share = (a == one) + (a == two) + (b == one) + (b == two)
            if share:
                expected -= 1
            out[i] += share != data[t]
        out[i] += expected
    return out
