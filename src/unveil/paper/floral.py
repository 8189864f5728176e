"""FindFloralSubmatrix (`alg:findsetsystem`, Algorithm 3; `lem:construct`, `lem:findsetsystem`).

Find rows of the overlap matrix M whose private subsets are all k-subsets of some k+2 vectors, and
name them: a map F from rows to k-subsets of {1, …, k+2} with M[j, j'] = |F(j) ∩ F(j')| for all
pairs. The order of search is the paper's:

  S_0  = {1, …, k}, S_1 = {3, …, k+2}, with S* = S_0 ∩ S_1     rows i_0, i_1
  𝓘'   = S* with one of {1, 2} and one of {k+1, k+2}            4 rows; with i_0 a *house*
  𝓘''  = {1, 2, b} ∪ S*∖s and {k+1, k+2, a} ∪ S*∖s               4(k−2) rows
  𝓘''' = {1, 2, k+1, k+2} ∪ G, G a (k−4)-subset of S*            the recursion

method="printed" does it line by line, with the repairs of errata 6, 7 and 12. method="fast" departs
from it further (errata are those of docs/paper_map.md):

  * every row is accepted only if its overlaps with *all* rows placed before it are right, and the
    search steps back where none is: duplicates and accidental neighbours cost a step, not a wrong
    answer (erratum 7). Both ways of naming the square 𝓘' are tried (erratum 12);
  * instead of every house at i_0 we count two-step paths i_0 – j – i_1: four are needed. Each
    floral is found once, from its smallest row as i_0 and the smallest (k−2)-neighbour of that as
    i_1; encodings of the same subset (overlap k) are represented by the first of them.

Cost m·δ² for (k−1)-degree δ, against m² for the matrix itself.

`lem:construct` does not hold: a floral submatrix has *two* readings (erratum 11). With C a set of
k−2 vectors and P the pairs of k+2 others, |(C∪P) ∩ (C∪P')| = k−2 + |P∩P'| is |S∩S'| for the
complements S, S' of P, P'. So the row that is named S mixes the vectors T_S, with

    "subsets"    T_S = S,              the paper's;
    "sunflower"  T_S = C ∪ ([k+2]∖S),  a core of k−2 vectors common to all, and pairs of k+2
                                       petals. (Our word: Erdős and Rado's petals are disjoint.)

Whichever is true, the sign system of Algorithm 4 has an exact solution, and under "sunflower" it is
not the private vectors. Only further encodings tell (`read_floral`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import combinations, islice
from math import comb
from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.checks import InputError
from unveil.records import Floral, Overlaps, Progress

# --- Algorithm 3 as printed ----------------------------------------------------------------------


def printed_floral(
    matrix: ArrayLike, k: int, most_houses: int = 1_000_000
) -> tuple[list[int], list[set[int]]] | None:
    """(𝓘, F) or None; line numbers are the paper's. Names are 1, …, k+2; rows count from 0.

    most_houses: for the bound Ω(k^{5k} m⁵ n^{2−4k}) of line 7, whose constant is not given
    """
    M = np.asarray(matrix)
    # 𝓝^{k−1}_i and 𝓝^{k−2}_i for every row i, and S* = S_0 ∩ S_1.
    near, far = ([set(np.flatnonzero(row == t).tolist()) for row in M] for t in (k - 1, k - 2))
    core = set(range(3, k + 1))
    houses = 0  # line 1
    for i0 in range(len(M)):  # line 2; line 3: F(i_0) = {1, 2} ∪ S*
        for j in _squares(near[i0], near, far):  # lines 4, 5: (i_0; j_1, …, j_4) is a house
            houses += 1  # line 6
            if houses >= most_houses:  # lines 7, 8
                return None
            # lines 9 to 13; erratum 7: "the unique element" need not be unique
            for i1 in sorted(set.intersection(*(near[a] for a in j)) - {i0}):
                F = {i0: {1, 2} | core, i1: {k + 1, k + 2} | core}
                groups: list[tuple[int, list[int]]] = []
                for z in (0, 1):  # line 14
                    for a, b, c, e in ((0, 1, 3, 2), (1, 2, 0, 3), (2, 3, 1, 0), (0, 3, 1, 2)):
                        al, be, ga, de = j[a], j[b], j[c], j[e]  # i_α, i_β, i_γ, i_δ
                        here = near[(i0, i1)[z]] & near[al] & near[be]
                        here &= far[(i1, i0)[z]] & far[ga] & far[de]
                        # lines 15, 16; erratum 12: "not all neighbours of each other" is no test
                        if len(here) != k - 2:
                            continue
                        groups.append((z, sorted(here)))
                        if sum(len(rows) for _, rows in groups) != 4 * k - 8:  # line 17
                            continue
                        # lines 18, 19: the names that i_α and i_β share, i_γ and i_δ, i_α and
                        # i_γ, i_β and i_δ; i_γ', i_δ' of line 19 are i_γ, i_δ
                        low, high = ({1}, {2}), ({k + 1}, {k + 2})
                        (ab, cd), (ac, bd) = (low, high) if z else (high, low)
                        F |= {al: ab | core | ac, be: ab | core | bd}
                        F |= {ga: cd | core | ac, de: cd | core | bd}
                        outer = set.intersection(*(far[r] for r in (i0, i1, *j)))
                        inner = [r for _, rows in groups for r in rows]
                        outer = {r for r in outer if near[r] & set(inner)}
                        if len(outer) != comb(k - 2, 2):  # line 20, k−2 choose k−4
                            continue
                        # lines 21 to 25; erratum 6: F on 𝓘'' is not printed. It names S*: a row
                        # of 𝓘'' lacks one name of S*, that of its (k−1)-neighbour in the first
                        # group, and a row of 𝓘''' those that its two (k−1)-neighbours there
                        # lack: no recursion (which would be for k−4, not k−2)
                        names = dict(zip(groups[0][1], sorted(core), strict=True)) if k > 2 else {}
                        lacks = {
                            r: {names[r]}
                            if r in names
                            else {s for q, s in names.items() if r in near[q]}
                            for r in (*inner, *outer)
                        }
                        for group_z, rows in groups:
                            ends = {k + 1, k + 2} if group_z else {1, 2}
                            for r in rows:
                                third = set.intersection(
                                    *(F[a] - core - ends for a in j if r in near[a])
                                )
                                F[r] = ends | third | core - lacks[r]
                        for r in outer:
                            F[r] = {1, 2, k + 1, k + 2} | core - lacks[r]
                        # line 26; erratum 7: accepted only after the full check
                        if all(M[p, q] == len(F[p] & F[q]) for p in F for q in F):
                            return list(F), list(F.values())
    return None


def _squares(
    rows: set[int], near: list[set[int]], far: list[set[int]]
) -> Iterator[tuple[int, int, int, int]]:
    """j_1 – j_2 – j_3 – j_4 – j_1 all (k−1)-neighbours, both diagonals (k−2)-neighbours, j_1 <
    j_4."""
    for a in sorted(rows):
        for b in sorted(rows & near[a]):
            for c in sorted(rows & near[b] & far[a]):
                for e in sorted(rows & near[c] & near[a] & far[b]):
                    if a < e:
                        yield a, b, c, e


# --- The same, fast and strong -------------------------------------------------------------------


def find_floral_submatrix(
    overlaps: Overlaps,
    *,
    method: Literal["fast", "printed"] = "fast",
    progress: Progress | None = None,
) -> Floral | None:
    """One floral submatrix with its labels, or None when there is none (FindFloralSubmatrix).

    Parameters
    ----------
    overlaps : Overlaps
        How many private vectors each two encodings share; a few wrong entries hide florals, they
        do not make any.
    method : str
        "fast", or "printed": Algorithm 3 line by line, for some hundred encodings.
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
    if method not in ("fast", "printed"):
        raise InputError(f"method={method!r}: choose one of fast, printed")
    if method == "fast":
        return next(iter_florals(overlaps, progress=progress), None)
    _require_pairs(overlaps.k_private)
    found = printed_floral(overlaps.toarray(), overlaps.k_private)
    if found is None:
        return None
    labels = np.array([sorted(subset) for subset in found[1]], np.int64) - 1
    return Floral(np.array(found[0], np.int64), labels)


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
    return list(islice(iter_florals(overlaps, progress=progress), limit))


def iter_florals(
    overlaps: Overlaps, *, most_houses: int = 20_000_000, progress: Progress | None = None
) -> Iterator[Floral]:
    """Floral submatrices one by one, in the order of their smallest rows.

    most_houses: the paper gives up after O(k^{5k} m⁵ n^{2−4k}) houses; without n, after this many.
    """
    k = overlaps.k_private
    _require_pairs(k)
    labels, (expected, parent, ordered) = floral_labels(k), _tables(k)
    M = overlaps.matrix
    # Rows with k on the diagonal that repeat no earlier one (overlap k).
    keep, later = M.diagonal() == k, sparse.triu(M, 1).tocoo()
    keep[later.col[(later.data == k) & keep[later.row]]] = False
    rows = np.flatnonzero(keep)
    if len(rows) < len(labels):
        return
    full = M[rows][:, rows].tocsr()
    full.sort_indices()
    data = np.where((full.data >= 0) & (full.data <= k), full.data, -1).astype(np.int8)
    csr = full.indptr.astype(np.int64), full.indices.astype(np.int64), data
    near = full.astype(np.int32)
    near.data = (near.data == k - 1).astype(np.int32)
    near.eliminate_zeros()
    lists, ahead = (near.indptr, near.indices), sparse.triu(near, 1).tocsr()
    # Small chunks first, so that asking for one floral stays cheap; a chunk that overflows is
    # searched again with more room.
    first, chunk, room, houses = 0, 64, 256, 0
    while first < len(rows) and houses < most_houses:
        stop = min(first + chunk, len(rows))
        # Rows i_1 that four paths of two (k−1)-steps reach from i_0, through rows beyond it.
        paths = (ahead[first:stop] @ near).tocoo()
        enough = (paths.data >= 4) & (paths.col > paths.row + first)
        pairs = (paths.row + first)[enough], paths.col[enough].astype(np.int64)
        found, number, seen = _search_houses(
            csr, lists, *pairs, k, expected, parent, ordered, room, most_houses
        )
        if number > room:
            chunk, room = max(1, chunk // 8), room * 8
            continue
        for placed in found[:number]:
            yield Floral(rows[placed], labels.copy())
        houses, first, chunk = houses + seen, stop, min(chunk * 2, 1024)
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


def _require_pairs(k: int) -> None:
    if k < 2:
        raise InputError(f"k_private={k}: a floral submatrix needs k_private of 2 or more")


@lru_cache
def _label_tuple(k: int) -> tuple[tuple[int, ...], ...]:
    """The k-subsets of 0..k+1 in the order of search; names are the paper's less one, `last` its
    k+1 and `end` its k+2. The recursion is for sparsity k−4 (erratum 6)."""
    if k < 2:
        return tuple(combinations(range(k + 2), k))
    one, two, last, end = 0, 1, k, k + 1
    core = tuple(range(2, k))
    sets = [(one, two, *core), (*core, last, end)]
    sets += [(one, *core, last), (two, *core, end), (one, *core, end), (two, *core, last)]
    for trio in ((one, two, last), (one, two, end), (one, last, end), (two, last, end)):
        sets += [(*trio, *(c for c in core if c != s)) for s in core]
    if k >= 4:
        sets += [(one, two, last, end, *(core[g] for g in G)) for G in _label_tuple(k - 4)]
    return tuple(tuple(sorted(s)) for s in sets)


def floral_labels(k: int) -> NDArray[np.int64]:
    """F in the order of search: all k-subsets of 0..k+1, shape (t, k)."""
    return np.array(_label_tuple(k), dtype=np.int64)


@lru_cache
def _tables(k: int) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]]:
    """expected[a, b] = |F(a) ∩ F(b)|; parent[a], an earlier place that is a (k−1)-neighbour of a;
    ordered[a], the place whose row must be smaller, or −1: the first k−2 rows of 𝓘'' name S*, in
    any order, and asking for increasing rows leaves one of the (k−2)! orders."""
    sets = [set(s) for s in _label_tuple(k)]
    t = len(sets)
    expected = np.array([[len(a & b) for b in sets] for a in sets], dtype=np.int8)
    earlier = [int(np.flatnonzero(expected[q, :q] == k - 1)[-1]) for q in range(2, t)]
    ordered = np.full(t, -1)
    ordered[7 : 6 + k - 2] = np.arange(6, 6 + k - 3)
    return expected, np.array([0, 0, *earlier]), ordered


@njit(cache=True, nogil=True)
def _search_houses(  # type: ignore[no-untyped-def]
    M, near, first, second, k, expected, parent, ordered, room, most_houses
):
    """All florals whose i_0, i_1 are one of the pairs given: rows in the order of `floral_labels`,
    how many, houses seen. M is (indptr, indices, data) with sorted rows, near (indptr, indices) of
    each row's (k−1)-neighbours. A number beyond `room` means: there are more than fitted."""
    found = np.empty((room, len(expected)), dtype=np.int64)
    number = houses = 0
    placed = np.empty(len(expected), dtype=np.int64)
    for pair in range(len(first)):
        i0, i1 = first[pair], second[pair]
        if _value(M, i0, i1) != k - 2:
            continue
        beside = near[1][near[0][i1] : near[0][i1 + 1]]
        common = np.array([j for j in beside if j > i0 and _value(M, i0, j) == k - 1])
        size = len(common)
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
                        placed[0], placed[1] = i0, i1
                        placed[2], placed[3] = common[w], common[x]
                        # Which sides of the square share a name of {1, 2} is open; for k = 2 it
                        # stays open.
                        for way in range(1 if k == 2 else 2):
                            placed[4] = common[y] if way == 0 else common[z]
                            placed[5] = common[z] if way == 0 else common[y]
                            number = _extend(
                                M, near, k, expected, parent, ordered, placed, found,
                                number,
                            )  # fmt: skip
                            if number > room or houses >= most_houses:
                                return found, number, houses
    return found, number, houses


@njit(cache=True, nogil=True)
def _extend(  # type: ignore[no-untyped-def]
    M, near, k, expected, parent, ordered, placed, found, number
):
    """𝓘'' and 𝓘''' for the six rows placed: depth first, each row checked against all before it."""
    t = len(placed)
    cursor = np.empty(t + 1, dtype=np.int64)
    q = 6
    cursor[q] = near[0][placed[parent[q]]] if q < t else 0
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
        while r < 0 and cursor[q] < near[0][placed[parent[q]] + 1]:
            r = near[1][cursor[q]]
            cursor[q] += 1
            # i0 is the smallest row, i1 the smallest (k−2)-neighbour of it, and the rows that name
            # S* increase.
            late = expected[q, 0] == k - 2 and r <= placed[1]
            if r <= placed[0] or late or (ordered[q] >= 0 and r <= placed[ordered[q]]):
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
                cursor[q] = near[0][placed[parent[q]]]
    return number


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


# --- Which of the two readings -------------------------------------------------------------------


class Reading(NamedTuple):
    """How many of the other encodings vote for either reading."""

    subsets: int
    sunflower: int


def read_floral(overlaps: Overlaps, floral: Floral) -> Reading:
    """Let every encoding vote on what stands behind a floral.

    If an encoding shares the names τ ∈ {0,1}^{k+2} with "subsets", its overlaps with the floral are
    Aτ, A the incidence matrix of F. If it shares g vectors with a sunflower, among them the petals
    σ ∈ {0,1}^{k+2}, they are A((g/k)·1 − σ). A has full rank, so the two agree only where nothing
    is shared, or g = k and τ = 1 − σ, |τ| = 2, …, k. So one shared name is a vote for "subsets",
    fractions (0 < g < k) for "sunflower". Single wrong overlaps are tolerated: a vote needs two
    entries more in its favour.
    """
    A = floral.incidence.astype(np.float64)
    t, k = len(A), A.shape[1] - 2
    shared = overlaps.matrix[floral.rows].toarray().T.astype(np.float64)
    tau = shared @ np.linalg.pinv(A).T
    few = t // 5  # a fifth of a row's overlaps may be wrong

    def wrong(coefficients: NDArray[np.float64]) -> NDArray[np.int64]:
        # Predictions are multiples of 1/k: a quarter tells whole numbers from what is not.
        return np.asarray((np.abs(shared - coefficients @ A.T) > 0.25).sum(axis=1))

    # 1. "subsets": names in whole numbers, and how many overlaps contradict them.
    names = (np.rint(tau) == 1).astype(np.float64)
    whole, size = wrong(names), names.sum(axis=1)
    # 2. "sunflower": g shared vectors in all, some of them petals, the rest core.
    fraction = np.full(len(shared), t)
    for g in range(1, k):
        petals = np.clip(np.rint(g / k - tau), 0, 1)
        core = g - petals.sum(axis=1)
        possible = (core >= 0) & (core <= k - 2)
        fraction = np.minimum(fraction, np.where(possible, wrong(g / k - petals), t))
    # 3. Votes.
    subsets = (size == 1) & (whole <= few) & (whole + 2 <= fraction)
    sunflower = (fraction <= few) & (fraction + 2 <= whole)
    return Reading(int(subsets.sum()), int(sunflower.sum()))


def swap_reading(floral: Floral) -> Floral:
    """For k = 2, the same rows under the other labelling: each pair becomes its complement."""
    names = np.arange(floral.labels.shape[1] + 2)
    return Floral(floral.rows, np.array([np.setdiff1d(names, label) for label in floral.labels]))


# --- How many florals to expect (`lem:setsystemexist`) -------------------------------------------


def expected_florals(n_private: int, k_private: int, m: int) -> float:
    """Expected number of (k+2)-sets of private vectors all of whose k-subsets are among m random
    encodings: the paper's first moment without its asymptotics. How many of the t subsets are there
    after each draw is a Markov chain with t+1 states; its m-th power is exact."""
    n, k = n_private, k_private
    if n < k + 2:
        return 0.0
    t = comb(k + 2, 2)
    new = (t - np.arange(t + 1)) / comb(n, k)
    chain = np.diag(1 - new) + np.diag(new[:-1], 1)
    return float(comb(n, k + 2)) * float(np.linalg.matrix_power(chain, m)[0, t])


def encodings_needed(n_private: int, k_private: int) -> int:
    """The smallest m at which one floral is expected, about n^(k − 2/(k+1)) in the paper's
    asymptotics. With n = k+2 there can be one only; then the m at which it is there nine times in
    ten."""
    if n_private < k_private + 2:
        raise ValueError("a floral needs at least k_private + 2 private vectors")
    goal, most = 1.0 if n_private > k_private + 2 else 0.9, 2
    while expected_florals(n_private, k_private, most) < goal:
        most *= 2
    enough = partial(expected_florals, n_private, k_private)
    return bisect_left(range(most), goal, key=enough)


def estimate_n_private(overlaps: Overlaps) -> float:
    """n from the mean overlap of two different encodings, k²/n; infinite when nothing overlaps."""
    m, k = overlaps.m, overlaps.k_private
    mean = (float(overlaps.matrix.sum(dtype=np.int64)) - m * k) / max(1, m * (m - 1))
    return k * k / mean if mean > 0 else float("inf")
