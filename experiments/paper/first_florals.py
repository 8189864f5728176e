"""When does a floral first exist? Exact stopping times in a growing sequence of random k-subsets, k
= 2 and 3.

Two families of sets have the overlaps of a floral (docs/paper_map.md, 11):
  subsets     all k-subsets of k+2 vectors, the paper's: n^(k+2) candidates, so it takes about
              n^(k − 2/(k+1)) encodings
  sunflower   k−2 vectors common to all, with all pairs of k+2 others: n^(2k) candidates; for k = 2
              it is the same family

Encodings are nested, so that existence is monotone and bisection finds the first m. For k = 2 a
floral is a 4-clique of the graph of drawn pairs; for k = 3 a complete 3-uniform hypergraph on 5
vectors, or a 5-clique in the link of one vector. Cost of one check about m·n.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.encode import selection_matrix
from unveil.paper import find_floral_submatrix
from unveil.records import Overlaps

Subsets = NDArray[np.int64]


def first_m(subsets: Subsets, exists: Callable[[Subsets], bool], start: int) -> int | None:
    """The smallest m such that `exists` holds for the first m subsets; None when it does not for
    all of them."""
    # Doubling until there is one, then bisection: existence is monotone in m.
    low, high = 0, min(start, len(subsets))
    while not exists(subsets[:high]):
        if high == len(subsets):
            return None
        low, high = high, min(2 * high, len(subsets))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if exists(subsets[:middle]) else (middle, high)
    return high


def has_subsets(subsets: Subsets, n: int) -> bool:
    """Whether all k-subsets of some k+2 of the n vectors are there."""
    k = subsets.shape[1]
    if k == 2:
        return bool(_has_clique(_pairs(subsets, n), 4))
    if k == 3:
        return bool(_has_complete(_triples(subsets, n), subsets))
    raise InputError(f"k_private={k}: existence is decided for 2 and 3 only")


def has_sunflower(subsets: Subsets, n: int) -> bool:
    """Whether k−2 vectors with all pairs of k+2 others are there."""
    if subsets.shape[1] == 2:
        return has_subsets(subsets, n)
    present = _triples(subsets, n)
    return any(bool(_has_clique(present[core], 5)) for core in range(n))


def search_finds(subsets: Subsets, n: int) -> str:
    """What FindFloralSubmatrix returns on the exact overlaps: "subsets", "sunflower" or
    "nothing"."""
    k = subsets.shape[1]
    W = selection_matrix(subsets, n).astype(np.int32)
    found = find_floral_submatrix(Overlaps((W @ W.T).tocsr(), k))
    if found is None:
        return "nothing"
    return "subsets" if len(np.unique(subsets[found.rows])) == k + 2 else "sunflower"


def _pairs(subsets: Subsets, n: int) -> NDArray[np.bool_]:
    graph = np.zeros((n, n), dtype=np.bool_)
    graph[subsets[:, 0], subsets[:, 1]] = graph[subsets[:, 1], subsets[:, 0]] = True
    return graph


def _triples(subsets: Subsets, n: int) -> NDArray[np.bool_]:
    """All six orders of every triple, so that a slice is the link of a vector."""
    present = np.zeros((n, n, n), dtype=np.bool_)
    for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        present[subsets[:, a], subsets[:, b], subsets[:, c]] = True
    return present


@njit(cache=True, nogil=True)
def _has_clique(graph, size):  # type: ignore[no-untyped-def]
    """Depth first; candidates of each level are the later common neighbours of those chosen."""
    n = len(graph)
    candidates = np.empty((size, n), np.int64)
    counts, cursor = np.zeros(size, np.int64), np.zeros(size, np.int64)
    candidates[0] = np.arange(n)
    counts[0] = n
    level = 0
    while level >= 0:
        # Back where nothing is left to choose, or too little to complete the clique.
        if cursor[level] >= counts[level] or counts[level] - cursor[level] < size - level:
            level -= 1
            continue
        chosen = candidates[level, cursor[level]]
        cursor[level] += 1
        if level == size - 1:
            return True
        kept = 0
        for a in range(cursor[level], counts[level]):
            if graph[chosen, candidates[level, a]]:
                candidates[level + 1, kept] = candidates[level, a]
                kept += 1
        level += 1
        counts[level], cursor[level] = kept, 0
    return False


@njit(cache=True, nogil=True)
def _has_complete(present, triples):  # type: ignore[no-untyped-def]
    """Five vectors all of whose triples are present: from the smallest triple abc, then d, then
    e."""
    n = len(present)
    for row in range(len(triples)):
        a, b, c = triples[row]
        for d in range(c + 1, n):
            if not (present[a, b, d] and present[a, c, d] and present[b, c, d]):
                continue
            for e in range(d + 1, n):
                if (
                    present[a, b, e] and present[a, c, e] and present[b, c, e]
                    and present[a, d, e] and present[b, d, e] and present[c, d, e]
                ):  # fmt: skip
                    return True
    return False
