"""How many private vectors do three encodings share? The tensor T_abc = |S_a ∩ S_b ∩ S_c|, from
pairwise overlaps alone.

Overlaps M_ab = |S_a ∩ S_b| say nothing of three encodings at once; the other encodings do. A random
k-subset avoids S_a ∪ S_b ∪ S_c with probability C(n−u, k)/C(n, k), where u is the size of the
union, and u = 3k − M_ab − M_ac − M_bc + T_abc. So the number of encodings d with M_ad = M_bd = M_cd
= 0 tells u, and u tells T_abc (Chen, Song, Tao, Zhang: "Symmetric Sparse Boolean Matrix
Factorization and Applications", ITCS 2022).

Where we go beyond it: to round that one count takes many encodings, since most of its variance
comes from encodings that avoid one or two of the three, which tell nothing. Each encoding d falls
into one of eight cells, by which of a, b, c it meets; their probabilities follow from n, k, the
pairwise overlaps and T_abc by inclusion and exclusion, and T_abc is the value with the largest
likelihood. Some cells are impossible for some values: one encoding there settles it. And what must
hold of three sets bounds it:

    max(0, M_ab + M_ac − k, …) ≤ T_abc ≤ min(M_ab, M_ac, M_bc)

so that most entries are 0, or known, without counting. Entries on a diagonal are exact: T_aab =
M_ab.

The tensor itself is never stored: Jennrich's algorithm needs contractions T(·,·,v) = Σ_c v_c T_··c
only. Cost, with g = mk²/n neighbours of an encoding: m products of g×g matrices, and a few
operations for each of the mg²/6 triples. Memory: m×m, `bytes_per_pair` for each pair.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.records import Progress

SLIP = 1e-3
"""Share of encodings that fall into any cell, because an overlap was misread: no cell is quite
impossible."""


def bytes_per_pair(count: int) -> int:
    """Memory of `count` contractions, for each of the m² pairs of encodings."""
    return 1 + 4 + 4 + 8 * count


def contractions(
    M: NDArray[np.int8],
    k: int,
    n: float,
    directions: NDArray[np.float64],
    *,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """T(·,·,v) (count, m, m) for each v of `directions` (count, m); M (m, m): the overlaps of
    k-subsets of about n vectors."""
    m = len(M)
    meets = (M > 0).astype(np.float32)
    both = meets @ meets
    table = log_cells(n, k)
    out = np.zeros((len(directions), m, m))
    for c in range(m):
        near = np.flatnonzero(M[c])
        after = near[near > c]
        part = meets[np.ix_(near, after)]
        _add_slice(c, after, part.T @ part, M, both, table, directions, out)
        if progress is not None:
            progress("intersection tensor", c + 1, m)
    return _with_diagonals(out, M, directions)


def avoids(n: float, k: int, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """C(n−size, k)/C(n, k): the probability that a random k-subset of n avoids a set; n need not be
    whole."""
    steps = np.arange(k)
    out: NDArray[np.float64] = np.prod(
        np.maximum(n - size[..., None] - steps, 0) / np.maximum(n - steps, 1), axis=-1
    )
    return out


def log_cells(n: float, k: int) -> NDArray[np.float64]:
    """(k+1, k+1, k+1, k+1, 8), by M_ab, M_ac, M_bc and T_abc: logarithms of the probability that a
    random k-subset meets, of a, b and c, exactly: none; a; b; c; a and b; a and c; b and c; all
    three."""
    shape = (k + 1,) * 4
    M_ab, M_ac, M_bc, T = np.indices(shape).astype(np.float64)
    a = 1 - avoids(n, k, np.full(shape, float(k)))
    ab, ac, bc = (2 * a - 1 + avoids(n, k, 2 * k - shared) for shared in (M_ab, M_ac, M_bc))
    none = avoids(n, k, 3 * k - M_ab - M_ac - M_bc + T)
    abc = 1 - 3 * a + ab + ac + bc - none
    cells = [
        none,
        a - ab - ac + abc,
        a - ab - bc + abc,
        a - ac - bc + abc,
        ab - abc,
        ac - abc,
        bc - abc,
        abc,
    ]
    return np.log((1 - SLIP) * np.clip(np.stack(cells, axis=-1), 0, 1) + SLIP / 8)


@njit(cache=True, nogil=True)
def _add_slice(c, after, common, M, both, table, directions, out):  # type: ignore[no-untyped-def]
    """The triples c < a < b: T_abc from the number of encodings that meet all three, `common`
    (after, after), and those that meet two; added to the upper triangle of every contraction. The
    three themselves do not count."""
    m, k = len(M), table.shape[0] - 1
    count = len(directions)
    meets_c = both[c, c] - 3
    for i in range(len(after)):
        a = after[i]
        ca, meets_a, ac = M[c, a], both[a, a] - 3, both[c, a] - 3
        for j in range(i + 1, len(after)):
            b = after[j]
            ab_shared, cb = M[a, b], M[c, b]
            if ab_shared == 0:
                continue
            low = max(0, ab_shared + ca - k, ab_shared + cb - k, ca + cb - k)
            high = min(ab_shared, ca, cb)
            t = low
            if low < high:
                abc, ab, bc, meets_b = (
                    common[i, j] - 3,
                    both[a, b] - 3,
                    both[c, b] - 3,
                    both[b, b] - 3,
                )
                best = -np.inf
                for guess in range(low, high + 1):
                    cell = table[ab_shared, ca, cb, guess]
                    score = (
                        (m - 3 - meets_a - meets_b - meets_c + ab + ac + bc - abc) * cell[0]
                        + (meets_a - ab - ac + abc) * cell[1]
                        + (meets_b - ab - bc + abc) * cell[2]
                        + (meets_c - ac - bc + abc) * cell[3]
                        + (ab - abc) * cell[4]
                        + (ac - abc) * cell[5]
                        + (bc - abc) * cell[6]
                        + abc * cell[7]
                    )
                    if score > best:
                        best, t = score, guess
            if t:
                for q in range(count):
                    out[q, a, b] += t * directions[q, c]
                    out[q, c, a] += t * directions[q, b]
                    out[q, c, b] += t * directions[q, a]


def _with_diagonals(
    upper: NDArray[np.float64], M: NDArray[np.int8], directions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The whole of each contraction: T_aab = M_ab twice off the diagonal, and Σ_b v_b M_ab on
    it."""
    for matrix, v in zip(upper, directions, strict=True):
        matrix += matrix.T
        matrix += M * (v[:, None] + v[None, :])
        np.fill_diagonal(matrix, M @ v)
    return upper
