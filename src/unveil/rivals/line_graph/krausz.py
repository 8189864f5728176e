"""The root of a line graph by its cells: Krausz (1943), Roussopoulos (1973).

A graph is a line graph where its edges fall apart into cliques, the *cells*, so that no row is in
more than two of them; the cells are the vertices of the root, a row is the edge between its two.
For each connected component:

  start     rows i and j that overlap. What both meet is the rest of their cell, but for at most one row, which closes the
            triangle of i and j: one that meets none of the rest. At most two cells are possible,
            and each is tried
  go on     a row in a known cell meets the members of one other cell besides: all of its other neighbours
  check     every neighbour of a row is in one of its cells, every other member of its cells is a neighbour, no row is in three

So a root that is found is one, and one that exists is found. Where there is none, at most six rows
show it (Beineke, 1970).

Cost: O(edges), twice at most.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

Index = NDArray[np.int64]


def find_cells(graph: sparse.csr_array) -> tuple[Index, NDArray[np.bool_]]:
    """(m, 2) cells of each row, and whether its component is a line graph."""
    cell = np.full((graph.shape[0], 2), -1, np.int64)
    good = np.asarray(_all_cells(*wide(graph), cell))
    cell[~good] = -1
    return cell, good


def is_line_graph(graph: sparse.csr_array) -> bool:
    """Whether a symmetric graph without loops is the line graph of some graph without double
    edges."""
    return bool(find_cells(graph)[1].all())


def forbidden_place(graph: sparse.csr_array) -> Index:
    """A smallest set of vertices, in the sense that none can be spared, that no line graph holds as
    it is: by bisection, over vertices in an order in which near ones follow each other; `graph` is
    no line graph."""
    first = breadth_first_order(graph, 0, directed=False, return_predecessors=False).astype(
        np.int64
    )
    left = np.append(first, np.setdiff1d(np.arange(graph.shape[0]), first))
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


def wide(graph: sparse.csr_array) -> tuple[Index, Index]:
    """indptr and indices, always of the same type, so that kernels are compiled once."""
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int64)


@njit(cache=True, nogil=True)
def _all_cells(indptr, indices, cell):  # type: ignore[no-untyped-def]
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
        # 3. the first cell without the one or the other of them; the whole where there is none, or
        # no other row
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
    """All cells of a component from its first; the number of cells then, −1 if it is no line graph
    this way."""
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
