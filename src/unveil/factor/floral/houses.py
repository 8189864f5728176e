"""The inner loops of FindFloralSubmatrix: houses at a row, and what they extend to.

`factor.floral.find_floral_submatrix` says what they search for, and where that departs from the
print. The overlap matrix is (indptr, indices, data) with sorted rows; `near` with `starts` lists
the (k−1)-neighbours of each row.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def search_houses(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    starts,
    near,
    first,
    stop,
    k,
    expected,
    parent,
    ordered,
    counts,
    room,
    max_houses,
):
    """All florals whose smallest row lies in [first, stop): rows in the order of `floral_labels`,
    how many, houses seen.

    `near` with `starts` lists each row's (k−1)-neighbours. A number beyond `room` means: there are
    more than fitted.
    """
    M = (indptr, indices, data)
    found = np.empty((room, expected.shape[0]), dtype=np.int64)
    number = houses = 0
    placed = np.empty(expected.shape[0], dtype=np.int64)
    touched = np.empty(len(counts), dtype=np.int64)
    common = np.empty(len(counts), dtype=np.int64)
    for i0 in range(first, stop):
        for a in range(_two_steps(starts, near, i0, counts, touched)):
            i1 = touched[a]
            if _value(M, i0, i1) != k - 2:
                continue
            size = _common_neighbours(starts, near, i0, i1, common)
            # 𝓘': two opposite pairs (w, x), (y, z) of overlap k−2 whose cross overlaps are all k−1;
            # with i0 a house.
            for w in range(size):
                for x in range(w + 1, size):
                    if _value(M, common[w], common[x]) != k - 2:
                        continue
                    for y in range(w + 1, size):
                        if y == x or not _joins(M, common[y], common[w], common[x], k):
                            continue
                        for z in range(y + 1, size):
                            if z == x or not _joins(M, common[z], common[w], common[x], k):
                                continue
                            if _value(M, common[y], common[z]) != k - 2:
                                continue
                            houses += 1
                            placed[0], placed[1], placed[2], placed[3] = (
                                i0,
                                i1,
                                common[w],
                                common[x],
                            )
                            # Which sides of the square share a name of {1, 2} is open; for k = 2 it
                            # stays open.
                            for reading in range(1 if k == 2 else 2):
                                placed[4] = common[y] if reading == 0 else common[z]
                                placed[5] = common[z] if reading == 0 else common[y]
                                number = _extend(
                                    M,
                                    starts,
                                    near,
                                    k,
                                    expected,
                                    parent,
                                    ordered,
                                    placed,
                                    found,
                                    number,
                                )
                                if number > room or houses >= max_houses:
                                    return found, number, houses
    return found, number, houses


@njit(cache=True, nogil=True)
def _extend(  # type: ignore[no-untyped-def]
    M, starts, near, k, expected, parent, ordered, placed, found, number
):
    """𝓘'' and 𝓘''' for the six rows placed: depth first, each row checked against all before it."""
    t = len(placed)
    cursor = np.empty(t + 1, dtype=np.int64)
    q = 6
    cursor[q] = starts[placed[parent[q]]] if q < t else 0
    while q >= 6:
        if q == t:
            if number < len(found):
                found[number] = placed
            number += 1
            if number > len(found):
                return number
            q -= 1
            continue
        r = -1
        while r < 0 and cursor[q] < starts[placed[parent[q]] + 1]:
            r = near[cursor[q]]
            cursor[q] += 1
            # i0 is the smallest row, i1 the smallest (k−2)-neighbour of it, and the rows that name
            # S* increase.
            if (
                r <= placed[0]
                or (expected[q, 0] == k - 2 and r <= placed[1])
                or (ordered[q] >= 0 and r <= placed[ordered[q]])
            ):
                r = -1
                continue
            for p in range(q - 1, -1, -1):
                if r == placed[p] or _value(M, r, placed[p]) != expected[q, p]:
                    r = -1
                    break
        if r < 0:
            q -= 1
        else:
            placed[q] = r
            q += 1
            if q < t:
                cursor[q] = starts[placed[parent[q]]]
    return number


@njit(cache=True, nogil=True)
def _two_steps(starts, near, i0, counts, touched):  # type: ignore[no-untyped-def]
    """Rows beyond i0 that at least four paths of two (k−1)-steps reach; `counts` is all zero before
    and after."""
    reached = 0
    for a in range(starts[i0], starts[i0 + 1]):
        j = near[a]
        if j > i0:
            for b in range(starts[j], starts[j + 1]):
                if near[b] > i0:
                    if counts[near[b]] == 0:
                        touched[reached] = near[b]
                        reached += 1
                    counts[near[b]] += 1
    kept = 0
    for a in range(reached):
        i1 = touched[a]
        if counts[i1] >= 4:
            touched[kept] = i1
            kept += 1
        counts[i1] = 0
    return kept


@njit(cache=True, nogil=True)
def _common_neighbours(starts, near, i0, i1, common):  # type: ignore[no-untyped-def]
    size = 0
    b, c = starts[i0], starts[i1]
    while b < starts[i0 + 1] and c < starts[i1 + 1]:
        if near[b] == near[c]:
            if near[b] > i0:
                common[size] = near[b]
                size += 1
            b += 1
            c += 1
        elif near[b] < near[c]:
            b += 1
        else:
            c += 1
    return size


@njit(cache=True, nogil=True)
def _value(M, i, j):  # type: ignore[no-untyped-def]
    """M[i, j] by bisection in the sorted row i; absent is 0."""
    indptr, indices, data = M
    low, high = indptr[i], indptr[i + 1]
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    return data[low] if low < indptr[i + 1] and indices[low] == j else 0


@njit(cache=True, nogil=True)
def _joins(M, r, a, b, k):  # type: ignore[no-untyped-def]
    return _value(M, r, a) == k - 1 and _value(M, r, b) == k - 1
