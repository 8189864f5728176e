"""k = 2, many encodings: memberships from overlaps that can be read one by one.

Encodings that share a record have squares that go together. With z the squares of an encoding,
centred, and C their covariance over all encodings,

    S_ij = cos(C^(−½) z_i, C^(−½) z_j)

Without C^(−½) neighbouring pixels, which say the same thing hundreds of times over, would drown
what two photographs have in common; with it every direction counts once, and four of five pairs
that share a photograph stand out from all that share none. Noise is as often below zero as above,
which shows where the border is: at most `false` of the entries beyond it are noise.

The encodings that mix one record overlap pairwise: a clique of about 2m/n rows in the sparse graph
of overlaps, which is a line graph but for some wrong entries. Two rows that share a record have its
whole clique as common neighbours; two that are joined by a wrong entry have next to none. So a
clique is found at any of its rows:

    seed    among the neighbours of a row that share no record with it yet, take the one with most
            of the others as neighbours; these two and their common neighbours
    grow    rows that neighbour at least half of the clique, and have a place free

Large cliques come first: ab, bc and ca are a clique as well. What is left over, doubled or wrong is
put right by exact equations. From a triangle of encodings, whose signs give three records, values
are peeled on a few columns: a record with two known neighbours or more has the value on which most
of them agree. Then votes (`pairs`) correct the rest.

Cost: one product of all encodings with each other, in blocks of rows; for each record the square of
a row's overlaps. Nothing is m×m or n×n.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse.csgraph import connected_components

from unveil.engine.blocks import one_blas_thread, results
from unveil.exact.problem import Indices, Problem, late

Values = NDArray[np.float32]


def read_members(
    problem: Problem,
    *,
    rng: np.random.Generator,
    deadline: float = np.inf,
    progress: Callable[[str, int, int], None] | None = None,
) -> Indices:
    """(m, 2) the records of every encoding, −1 where a place is free; a few are wrong."""
    return find_cliques(*read_overlaps(problem, rng, deadline=deadline, progress=progress))


def read_overlaps(
    problem: Problem,
    rng: np.random.Generator,
    *,
    false: float = 0.05,
    ridge: float = 0.1,
    cut: float = 4.0,
    columns: int = 4096,
    least: int = 768,
    product: float = 3e7,
    block: int = 1024,
    most: int = 200,
    deadline: float = np.inf,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Indices, Indices]:
    """The pairs of encodings that share a record, in compressed rows: indptr (m + 1,), indices.

    Parameters
    ----------
    false : float
        Entries beyond the border that may be noise.
    ridge : float
        Added to C, in units of its mean eigenvalue: directions that hardly vary are not blown up.
    cut : float
        Squares are cut here, in units of their mean: one large value would lift many pairs.
    columns : int
        Columns at most, and half as many as encodings, so that C can be told from chance.
    least, product : int, float
        Beyond `least` columns, so many that the product of all encodings takes m·product steps.
    block : int
        Rows of a block.
    most : int
        Overlaps of a row on average, at most.
    """
    m = problem.m
    columns = min(columns, m // 2, max(least, int(product / m)))
    some = np.sort(rng.permutation(problem.d)[:columns])
    with one_blas_thread():
        z = _white(problem.columns(some), cut, ridge)
        sample = z[rng.permutation(m)[:512]] @ z.T
        sample = sample[np.abs(sample) < 0.999]  # an encoding and itself
        border = _border(sample, false, int(most * len(sample) / m))
    row, column = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    starts = range(0, m, block)
    for done, (start, pairs) in enumerate(results(_overlaps_of, (z, border, block), starts), 1):
        row += [pairs[0] + start, pairs[1]]
        column += [pairs[1], pairs[0] + start]
        if progress:
            progress("overlaps", done, len(starts))
        if late(deadline):
            break
    rows, columns_ = np.concatenate(row), np.concatenate(column)
    order = np.lexsort((columns_, rows))
    return np.append(0, np.cumsum(np.bincount(rows, minlength=m))), columns_[order]


def _white(problem: Problem, cut: float, ridge: float) -> Values:
    """(m, d) rows of length 1: C^(−½) times the squares of the encodings, or, beside a public part,
    times what is expected of their private parts."""
    if problem.c is None:
        mean = np.mean(problem.y**2, axis=0) + np.float32(1e-30)
        z = np.minimum(problem.y**2 / mean, np.float32(cut))
    else:
        power = np.mean(problem.y**2, axis=0) - np.mean(problem.c**2, axis=0)
        power = np.maximum(power, 1e-6 * np.mean(problem.y**2)) + np.float32(1e-30)
        z = problem.y * np.tanh(problem.y * problem.c / power) - problem.c
        z = z / np.sqrt(power)
    z = z - z.mean(axis=0)
    covariance = (z.T @ z).astype(np.float64)
    covariance[np.diag_indices(len(covariance))] += ridge * np.trace(covariance) / len(covariance)
    root = cholesky(covariance + 1e-30 * np.eye(len(covariance)), lower=True).astype(np.float32)
    z = np.ascontiguousarray(solve_triangular(root, z.T, lower=True, check_finite=False).T)
    return np.asarray(z / (np.linalg.norm(z, axis=1, keepdims=True) + np.float32(1e-30)))


def _border(sample: Values, false: float, most: int) -> float:
    """The lowest border beyond which at most the share `false` of the entries is noise, by the
    entries below its negative; inf where there is none."""
    above, below = np.sort(sample[sample > 0])[::-1], np.sort(-sample[sample < 0])[::-1]
    above = above[:most]
    noise = np.searchsorted(-below, -above)  # as far below zero as each of these is above
    good = np.flatnonzero(noise <= false * np.arange(1, len(above) + 1))
    return float(above[good[-1]]) if len(good) else np.inf


def _overlaps_of(shared: tuple[Values, float, int], start: int) -> tuple[Indices, Indices]:
    """Pairs (row − start, column) of a block of rows with later ones."""
    z, border, block = shared
    similar = z[start : start + block] @ z[start:].T
    row, column = np.nonzero(similar >= border)
    later = column > row
    return row[later].astype(np.int64), column[later].astype(np.int64) + start


def find_cliques(indptr: Indices, indices: Indices) -> Indices:
    """members (m, 2), −1 where a place is free."""
    m = len(indptr) - 1
    members = np.full((m, 2), -1)
    expected = max(2.0, len(indices) / max(1, m) / 2)
    n = 0
    for least in sorted({max(3, int(expected / 2)), max(3, int(expected / 4)), 3}, reverse=True):
        n = int(_seed(indptr, indices, members, n, least))
    return _mend(members, indptr, indices)


def _mend(
    members: Indices,
    indptr: Indices,
    indices: Indices,
    *,
    joined: float = 0.45,
    taken: float = 0.2,
) -> Indices:
    """The same with cliques joined that are one, and every row in the two cliques it overlaps most.

    joined, taken : of the pairs of rows that must overlap, for two cliques to be one, and for a row
        to be in a clique. Of one record two in three do, of two records one in 2m/n.
    """
    m, n = len(members), int(members.max(initial=-1)) + 1
    if n < 2:
        return members
    # 1. Cliques whose rows overlap are one.
    overlap = sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(m, m))
    row, slot = np.nonzero(members >= 0)
    incidence = sparse.csr_array(
        (np.ones(len(row), np.float32), (row, members[row, slot])), shape=(m, n)
    )
    size = np.bincount(members[row, slot], minlength=n).astype(np.float64)
    votes = overlap @ incidence
    mutual = (incidence.T @ votes).tocoo()
    same = mutual.data > joined * size[mutual.row] * size[mutual.col]
    graph = sparse.csr_array(
        (np.ones(same.sum()), (mutual.row[same], mutual.col[same])), shape=(n, n)
    )
    count, name = connected_components(graph, directed=False)
    # 2. The two cliques of which a row overlaps the largest share.
    merge = sparse.csr_array((np.ones(n, np.float32), (np.arange(n), name)), shape=(n, count))
    of_row = sparse.csr_array(votes @ merge)
    begin, clique = of_row.indptr, of_row.indices
    row = np.repeat(np.arange(m), np.diff(begin))
    weight = of_row.data / np.bincount(name, weights=size, minlength=count)[clique]
    order = np.lexsort((-weight, row))
    rank = np.arange(len(order)) - begin[row[order]]
    kept = (rank < 2) & (weight[order] > taken)
    members = np.full((m, 2), -1)
    members[row[order[kept]], rank[kept]] = clique[order[kept]]
    return members


@njit(cache=True, nogil=True)
def _seed(indptr, indices, members, n, least):  # type: ignore[no-untyped-def]
    """Cliques of `least` rows or more, from all rows in turn; members in place, and n."""
    m = len(members)
    stamp = np.full(m, -1, np.int64)
    hits = np.zeros(m, np.int64)
    clique, reached = np.empty(m, np.int64), np.empty(m, np.int64)
    turn = 0
    for i in range(m):
        for _ in range(2):
            if members[i, 1] >= 0:
                break
            # 1. Neighbours with a place free that share no record with this row yet.
            turn += 1
            near = 0
            for t in range(indptr[i], indptr[i + 1]):
                j = indices[t]
                share = members[i, 0] >= 0 and (
                    members[j, 0] == members[i, 0] or members[j, 1] == members[i, 0]
                )
                if members[j, 1] < 0 and not share:
                    stamp[j] = turn
                    near += 1
            if near + 1 < least:
                break
            # 2. The one with most of the others as neighbours, and what they have in common.
            best, most = -1, 0
            for t in range(indptr[i], indptr[i + 1]):
                j = indices[t]
                if stamp[j] == turn:
                    degree = 0
                    for s in range(indptr[j], indptr[j + 1]):
                        degree += stamp[indices[s]] == turn
                    if degree > most:
                        best, most = j, degree
            if best < 0:
                break
            clique[0], clique[1], size = i, best, 2
            for s in range(indptr[best], indptr[best + 1]):
                if stamp[indices[s]] == turn:
                    clique[size] = indices[s]
                    size += 1
            # 3. Rows that neighbour at least half of them; a row does not neighbour itself.
            for _again in range(2):
                count = 0
                for t in range(size):
                    c = clique[t]
                    for s in range(indptr[c], indptr[c + 1]):
                        j = indices[s]
                        if hits[j] == 0:
                            reached[count] = j
                            count += 1
                        hits[j] += 1
                grown = 0
                for t in range(count):
                    j = reached[t]
                    if 2 * hits[j] >= size - 1 and hits[j] > 1 and members[j, 1] < 0:
                        clique[grown] = j
                        grown += 1
                    hits[j] = 0
                size = grown
            inside = False
            for t in range(size):
                inside |= clique[t] == i
            if size < least or not inside:
                break
            for t in range(size):
                j = clique[t]
                members[j, 0 if members[j, 0] < 0 else 1] = n
            n += 1
    return n
