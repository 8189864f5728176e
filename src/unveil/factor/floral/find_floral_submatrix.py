"""FindFloralSubmatrix (`alg:findsetsystem`, `lem:construct`, `lem:findsetsystem`).

Find rows of the overlap matrix whose private subsets are all k-subsets of some k+2 vectors, and
name them: a map F from rows to k-subsets of {1, …, k+2} with M[j, j'] = |F(j) ∩ F(j')| for all
pairs. The order of search is the paper's:

  S_0  = {1, …, k}, S_1 = {3, …, k+2}, with S* = S_0 ∩ S_1     rows i_0, i_1
  𝓘'   = S* with one of {1, 2} and one of {k+1, k+2}            4 rows; with i_0 a *house*
  𝓘''  = {1, 2, b} ∪ S*∖s and {k+1, k+2, a} ∪ S*∖s               4(k−2) rows
  𝓘''' = {1, 2, k+1, k+2} ∪ G, G a (k−4)-subset of S*            recursion: a floral of sparsity k−4
                                                                on k−2 names

Where we depart from the print, and why (docs/paper_map.md):
  * Every row is accepted only if its overlaps with *all* rows placed before it are right, so a
    floral is verified when it is complete, and duplicates or accidental neighbours cost a step back
    instead of a wrong answer.
  * The printed test "not all (k−1)-neighbours of each other" cannot tell the two ways of reading 𝓘'
    apart: the right 𝓘'' of one b are (k−1)-neighbours of each other too. Both ways are tried.
  * The recursion is for sparsity k−4, not k−2 (all of 𝓘''' contain {1, 2, k+1, k+2}). It unrolls
    into the order of the names, `floral_labels`: 𝓘'' has named S* already, so the recursive rows
    are placed by the same check.
  * Instead of trying every house at i_0, we count two-step paths i_0 – j – i_1: four are needed.
    Each floral is found once, from its smallest row as i_0 and the smallest (k−2)-neighbour of that
    as i_1.
  * Encodings of the same subset (overlap k) are represented by the first of them.

The inner loops are in `factor.floral.houses`. Cost m·δ² for (k−1)-degree δ, against m² for the
matrix itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.checks import InputError
from unveil.factor.floral.houses import search_houses
from unveil.records import Floral, Overlaps, Progress

MAX_HOUSES = 20_000_000
"""The paper gives up after O(k^{5k} m⁵ n^{2−4k}) houses; without n, this many."""


def find_floral_submatrix(overlaps: Overlaps, *, progress: Progress | None = None) -> Floral | None:
    """One floral submatrix with its labels, or None when there is none (FindFloralSubmatrix).

    Parameters
    ----------
    overlaps : Overlaps
        How many private vectors each two encodings share; a few wrong entries hide florals, they
        do not make any.
    progress : callable or None
        progress(stage, done, total), called as rows are done.

    Returns
    -------
    Floral or None
        The floral with the smallest first row.

    References
    ----------
    `alg:findsetsystem`, `lem:findsetsystem`, `lem:construct` of the paper.

    Examples
    --------
    >>> from itertools import combinations
    >>> import unveil
    >>> subsets = [set(pair) for pair in combinations(range(4), 2)]
    >>> matrix = [[len(a & b) for b in subsets] for a in subsets]
    >>> floral = unveil.find_floral_submatrix(unveil.Overlaps.from_array(matrix, k_private=2))
    >>> sorted(floral.rows.tolist())
    [0, 1, 2, 3, 4, 5]
    """
    return next(iter_florals(overlaps, progress=progress), None)


def find_all_florals(
    overlaps: Overlaps, *, limit: int | None = None, progress: Progress | None = None
) -> list[Floral]:
    """Every floral submatrix, each once; repeated encodings are represented by the first of them.

    Parameters
    ----------
    overlaps : Overlaps
        How many private vectors each two encodings share.
    limit : int or None
        Stop after so many.
    progress : callable or None
        progress(stage, done, total), called as rows are done.

    Returns
    -------
    list of Floral
        In the order of their smallest rows.

    References
    ----------
    `alg:findsetsystem`, `lem:setsystemexist` of the paper.

    Examples
    --------
    >>> import unveil
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=6, m=40, d=2000, rng=0)
    >>> florals = unveil.find_all_florals(unveil.gram_extract(sim.encodings), limit=3)
    >>> len(florals), florals[0].labels.shape
    (3, (6, 2))
    """
    found: list[Floral] = []
    for floral in iter_florals(overlaps, progress=progress):
        if limit is not None and len(found) >= limit:
            break
        found.append(floral)
    return found


def iter_florals(overlaps: Overlaps, *, progress: Progress | None = None) -> Iterator[Floral]:
    """Floral submatrices one by one, in the order of their smallest rows."""
    k = overlaps.k_private
    if k < 2:
        raise InputError(f"k_private={k}: a floral submatrix needs k_private of 2 or more")
    labels = floral_labels(k)
    expected, parent, ordered = _tables(k)
    rows = _representatives(overlaps)
    if len(rows) < len(labels):
        return
    full = overlaps.matrix[rows][:, rows].tocsr()
    full.sort_indices()
    full = _csr(full, np.where((full.data >= 0) & (full.data <= k), full.data, -1).astype(np.int8))
    near = full.data == k - 1
    starts = np.concatenate([[0], np.cumsum(near)])[full.indptr]
    counts = np.zeros(len(rows), dtype=np.int32)
    # Small chunks first, so that asking for one floral stays cheap; a chunk that overflows is
    # searched again with more room.
    first, chunk, room, houses = 0, 64, 256, 0
    while first < len(rows) and houses < MAX_HOUSES:
        found, number, seen = search_houses(
            full.indptr, full.indices, full.data, starts, full.indices[near],
            first, min(first + chunk, len(rows)), k, expected, parent, ordered, counts, room,
            MAX_HOUSES,
        )  # fmt: skip
        if number > room:
            chunk, room = max(1, chunk // 8), room * 8
            continue
        for placed in found[:number]:
            yield Floral(rows[placed], labels.copy())
        houses += seen
        first = min(first + chunk, len(rows))
        chunk = min(chunk * 2, 4096)
        if progress:
            progress("floral search", first, len(rows))


def is_floral(matrix: ArrayLike) -> bool:
    """Whether a matrix is floral: a reordering of |S ∩ S'| over all k-subsets of k+2 names.

    Parameters
    ----------
    matrix : array of shape (t, t)
        Whole numbers; k is told by t = (k+2)(k+1)/2.

    Returns
    -------
    bool
        False also for what is no square matrix of whole numbers.

    References
    ----------
    `defn:floral` of the paper.

    Examples
    --------
    >>> import numpy as np, unveil
    >>> unveil.is_floral(np.eye(6, dtype=int))
    False
    """
    try:
        H = Overlaps.from_array(matrix, 1).toarray()
    except InputError:
        return False
    k = int((np.sqrt(8 * len(H) + 1) - 3) // 2)
    if k < 2 or (k + 2) * (k + 1) // 2 != len(H):
        return False
    return find_floral_submatrix(Overlaps.from_array(H, k)) is not None


@lru_cache
def _label_tuple(k: int) -> tuple[tuple[int, ...], ...]:
    """The k-subsets of 0..k+1 in the order of search; names are the paper's less one."""
    if k < 2:
        return tuple(combinations(range(k + 2), k))
    one, two, last, end = 0, 1, k, k + 1
    core = tuple(range(2, k))
    sets = [(one, two, *core), (*core, last, end)]
    sets += [(one, *core, last), (two, *core, end), (one, *core, end), (two, *core, last)]
    for trio in ((one, two, last), (one, two, end), (one, last, end), (two, last, end)):
        sets += [(*trio, *(c for c in core if c != s)) for s in core]
    if k >= 4:
        inner = _label_tuple(k - 4)
        sets += [(one, two, last, end, *(core[g] for g in G)) for G in inner]
    return tuple(tuple(sorted(s)) for s in sets)


def floral_labels(k: int) -> NDArray[np.int64]:
    """F in the order of search: all k-subsets of 0..k+1, shape (t, k)."""
    return np.array(_label_tuple(k), dtype=np.int64)


@lru_cache
def _tables(k: int) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]]:
    """|F(a) ∩ F(b)|; for each place an earlier one that is a (k−1)-neighbour; and the place whose
    row must be smaller.

    The first k−2 rows of 𝓘'' name S*, in any order: asking for increasing rows leaves one of the
    (k−2)! orders.
    """
    sets = [set(s) for s in _label_tuple(k)]
    t = len(sets)
    expected = np.array([[len(a & b) for b in sets] for a in sets], dtype=np.int8)
    parent = np.array(
        [0, 0] + [int(np.flatnonzero(expected[q, :q] == k - 1)[-1]) for q in range(2, t)]
    )
    ordered = np.full(t, -1)
    ordered[7 : 6 + k - 2] = np.arange(6, 6 + k - 3)
    return expected, parent, ordered


def _csr(like: sparse.csr_array, data: NDArray[np.int8]) -> sparse.csr_array:
    return sparse.csr_array(
        (data, like.indices.astype(np.int64), like.indptr.astype(np.int64)), shape=like.shape
    )


def _representatives(overlaps: Overlaps) -> NDArray[np.int64]:
    """Rows that are valid (diagonal k) and repeat no earlier representative (overlap k)."""
    M, k = overlaps.matrix, overlaps.k_private
    return np.asarray(_first_of_each(M.indptr, M.indices, M.data, M.diagonal() == k, k))


@njit(cache=True, nogil=True)
def _first_of_each(indptr, indices, data, valid, k):  # type: ignore[no-untyped-def]
    keep = valid.copy()
    for i in range(len(valid)):
        if keep[i]:
            for a in range(indptr[i], indptr[i + 1]):
                if data[a] == k and indices[a] > i:
                    keep[indices[a]] = False
    return np.flatnonzero(keep)
