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

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import numpy as np
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
    high = min(start, len(subsets))
    while not exists(subsets[:high]):
        if high == len(subsets):
            return None
        high = min(2 * high, len(subsets))
    return bisect_left(range(high), True, key=lambda m: exists(subsets[:m]))


def has_subsets(subsets: Subsets, n: int) -> bool:
    """Whether all k-subsets of some k+2 of the n vectors are there."""
    third, k = _completions(subsets), subsets.shape[1]
    if k == 2:
        return _clique({a: third[(a,)] for a in range(n)}, (1 << n) - 1, 4)
    if k != 3:
        raise InputError(f"k_private={k}: existence is decided for 2 and 3 only")
    # From a triple abc on: d and e that complete each of its pairs, and each other with a, b and c.
    for a, b, c in np.unique(subsets, axis=0).tolist():
        both = third[a, b] & third[a, c] & third[b, c]
        for d in _bits(both):
            if both & third[a, d] & third[b, d] & third[c, d]:
                return True
    return False


def has_sunflower(subsets: Subsets, n: int) -> bool:
    """Whether k−2 vectors with all pairs of k+2 others are there."""
    if subsets.shape[1] == 2:
        return has_subsets(subsets, n)
    third, whole = _completions(subsets), (1 << n) - 1
    return any(
        _clique({a: third[core, a] for a in range(n)}, whole & ~(1 << core), 5) for core in range(n)
    )


def search_finds(subsets: Subsets, n: int) -> str:
    """What FindFloralSubmatrix returns on the exact overlaps: "subsets", "sunflower" or
    "nothing"."""
    k = subsets.shape[1]
    W = selection_matrix(subsets, n).astype(np.int32)
    found = find_floral_submatrix(Overlaps((W @ W.T).tocsr(), k))
    if found is None:
        return "nothing"
    return "subsets" if len(np.unique(subsets[found.rows])) == k + 2 else "sunflower"


def _completions(subsets: Subsets) -> Mapping[tuple[int, ...], int]:
    """For k−1 vectors, in any order, those that complete them to a subset, as the bits of a
    number."""
    out: dict[tuple[int, ...], int] = defaultdict(int)
    for subset in subsets.tolist():
        for last in subset:
            others = [i for i in subset if i != last]
            for key in (tuple(others), tuple(others[::-1])):
                out[key] |= 1 << last
    return out


def _bits(number: int) -> Iterator[int]:
    while number:
        place = (number & -number).bit_length() - 1
        yield place
        number ^= 1 << place


def _clique(near: Mapping[int, int], within: int, size: int) -> bool:
    """Whether the graph with these neighbours has a clique of this size among `within`."""
    if size == 0:
        return True
    for vertex in _bits(within):
        within &= ~(1 << vertex)
        if _clique(near, within & near[vertex], size - 1):
            return True
        if within.bit_count() < size:
            return False
    return False
