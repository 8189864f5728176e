"""Which two private vectors does every encoding mix, k_private = 2: the root of a line graph, in
linear time.

Let private vectors be vertices and encodings edges of a graph H. Two encodings overlap where their
edges meet: the overlaps are the line graph L(H), and who mixes whom is its root (Huang et al.,
"InstaHide's sample complexity when mixing two private images", 2020). `rivals.line_graph.krausz`
finds it, component by component; around that:

  copies      overlap 2 is the same pair again: such rows count once, and get their pair at the end
  two ways    by Whitney (1932) a connected line graph has one root, and every row one place in it,
              unless the root is K3 or K1,3 (both have the same line graph), or a triangle with a
              tail, K4 less an edge, or K4: there two different assignments of pairs to rows have
              the same overlaps. `unique` says so
  broken      a component may be no line graph because overlaps were misread. A few rows show it
              (`forbidden_place`), and the pairs that contradict few overlaps are found instead
              (`rivals.line_graph.nearest`)

Cost: O(overlaps), and some 6·log₂ m times that for each broken component.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.checks import InputError
from unveil.records import Overlaps
from unveil.rivals.line_graph.krausz import find_cells, forbidden_place, is_line_graph, wide
from unveil.rivals.line_graph.nearest import nearest_pairs

TRUSTED = 0.5
"""Overlaps at least this likely to be right take part."""

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Broken:
    """A component that is no line graph: its `rows`, a `place` of a few of them that shows it, and
    `why` in words."""

    rows: Index
    place: Index
    why: str


@dataclass(frozen=True, eq=False)
class LineGraphRoot:
    """rows (r,): encodings whose pair is known; members (r, 2): the pairs, names 0 … n−1.

    unique (r,): no other pairs have the same overlaps in its component, names aside
    contradicted (r,): overlaps of the row that its pair does not have; 0 in all components but
    those in `broken`
    """

    rows: Index
    members: Index
    n: int
    unique: NDArray[np.bool_]
    contradicted: Index
    components: int
    broken: tuple[Broken, ...]


def line_graph_root(overlaps: Overlaps, *, mend: bool = True) -> LineGraphRoot:
    """The pairs of all rows; those of components that are no line graphs are the nearest ones, or
    left out without `mend`."""
    # 1. Different pairs, component by component.
    graph = _graph(overlaps)
    m = overlaps.m
    components, component = connected_components(graph, directed=False)
    copy, first = _copies(graph)
    once = sparse.csr_array(graph[first][:, first])
    cell, good = find_cells(once)
    members, fine = cell[copy], good[copy]
    contradicted = contradictions(graph, members)
    # 2. Components that are no line graph, or whose copies disagree: the nearest pairs instead.
    wrong = np.zeros(components, bool)
    wrong[component[~fine | (contradicted > 0)]] = True
    broken = []
    known = ~wrong[component]
    for c in np.flatnonzero(wrong):
        rows = np.flatnonzero(component == c)
        broken.append(_explained(graph, rows, np.intersect1d(first, rows)))
        if mend:
            pairs = nearest_pairs(sparse.csr_array(graph[rows][:, rows]))
            known[rows] = True
            members[rows] = pairs + 2 * m * (c + 1)  # names of its own
    # 3. Names 0 … n−1 for the vertices that are used.
    rows = np.flatnonzero(known)
    used, names = np.unique(members[rows], return_inverse=True)
    members = names.reshape(-1, 2).astype(np.int64)
    part = graph if len(rows) == m else sparse.csr_array(graph[rows][:, rows])
    return LineGraphRoot(
        rows,
        members,
        len(used),
        ~_two_ways(members, len(used)),
        contradictions(part, members),
        components,
        tuple(broken),
    )


def contradictions(graph: sparse.csr_array, members: Index) -> Index:
    """For each row, the overlaps that are not those of its pair; rows without a pair have −1 and
    count for nothing."""
    return np.asarray(
        _contradictions(*wide(graph), graph.data, members, int(members.max(initial=-1)) + 1)
    )


def _graph(overlaps: Overlaps) -> sparse.csr_array:
    """Overlaps 1 and 2 off the diagonal, as far as they are trusted."""
    if overlaps.k_private != 2:
        raise InputError(
            f"k_private={overlaps.k_private}: overlaps are a line graph for k_private=2 only"
        )
    matrix = overlaps.tocsr()
    if matrix.nnz and not 0 <= matrix.data.min() <= matrix.data.max() <= 2:
        raise InputError(
            "overlaps below 0 or above 2: encodings of two vectors share none, one or both"
        )
    row = np.repeat(np.arange(overlaps.m), np.diff(matrix.indptr))
    keep = row != matrix.indices
    if overlaps.confidence is not None:
        keep &= overlaps.confidence >= TRUSTED
    matrix.data = np.where(keep, matrix.data, 0).astype(np.int8)
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


def _two_ways(members: Index, n: int) -> NDArray[np.bool_]:
    """Rows of the components for which Whitney's theorem has an exception: the triangle, and all
    roots of four vertices in which one meets the other three."""
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
        return Broken(
            rows,
            place,
            f"encodings {i} and {j} are read as one pair, "
            f"and {other} overlaps with them differently",
        )
    place = forbidden_place(part)
    inside = part[place][:, place].toarray() > 0
    place = different[place]
    names = ", ".join(map(str, place))
    centre = np.flatnonzero(inside.sum(axis=1) == 3)
    if len(place) == 4 and inside.sum() == 6 and len(centre):
        others = ", ".join(map(str, np.delete(place, centre[0])))
        return Broken(
            rows,
            place,
            f"encoding {place[centre[0]]} overlaps with {others}, "
            "which do not overlap with each other",
        )
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
    for v in range(n):
        start[v + 1] = start[v] + size[v]
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
