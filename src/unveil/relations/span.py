"""Who mixes whom where relations are few: signs first, then the space that the signed encodings
span.

Few relations do not determine subsets by themselves (`relations.subspace`), but they fix the signs
of nearly all encodings at nearly every pixel (`relations.signs`). With signs D·z = D·W·x is linear.
Where there are more pixels than vectors,

    1  Z (rows, pixels) ← signed encodings        rows and pixels without any sign unknown
    2  V ← column space of Z                       the same as that of D·W: the rank is the number of vectors
    3  P ← V·Vᵀ                                    large where two rows share a vector, about 1/(its number of rows)
    4  columns ← eigenvectors of P restricted to the few rows Ω that are near to one row, eigenvalue 1: a vector of the
                 span that vanishes outside Ω is fixed by P[Ω, Ω], and every column of D·W is one,
                 once Ω holds all its rows

Step 4 is exact and local: no iteration, no matrix larger than some dozen rows, and what one place
does not give does no harm to another. Cost: the products m·pixels², m·n² and some m·n per row
looked at, about one for two vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh, lapack, solve_triangular
from scipy.sparse.csgraph import breadth_first_order

from unveil.relations.sketch import Floats, Index
from unveil.relations.subspace import Subsets

FALL = 1e3
"""Factor by which the diagonal falls at the rank; it falls by two or three elsewhere, and by 10⁴
and more there."""
AT_ONCE = 64
"""Rows of P computed at a time."""
ROOM = 0.9
"""A rank above this share of the pixels may be cut off by them; more pixels are needed then."""
NEAR = 3
"""Rows near to one row that are looked at, as a multiple of the rows its vectors have on average;
some have twice that."""
ONE = 1e-4
"""Eigenvalues of P[Ω, Ω] that count as one: float32 leaves about 1e-6, the next below are 0.9 and
less."""
ENOUGH = 0.95
"""Share of the columns after which the search ends: the vectors left over are few, and found by
matching."""
WHOLE = 0.01
"""How near to 0 and ±1 the entries of a column are; what is not a column is far off, and rounding
leaves 1e-4."""
ALIKE = 1e-3
"""Directions closer than this are one."""


def complete_part(sign: NDArray[np.int8], most: int) -> tuple[Index, Index]:
    """(rows, pixels) with no sign unknown: `most` pixels, without the rows that stand in the way of
    them.

    Rows that are unknown at many pixels are dropped first, as few as leave so many pixels complete.
    """
    unknown = sign == 0
    rank = np.empty(len(sign), np.int64)
    rank[np.argsort(-unknown.sum(axis=1), kind="stable")] = np.arange(len(sign))
    # A pixel is complete once its last unknown row is dropped.
    last = np.full(sign.shape[1], -1, np.int64)
    row, pixel = np.nonzero(unknown)
    np.maximum.at(last, pixel, rank[row])
    pixels = np.sort(np.argsort(last, kind="stable")[:most])
    rows = np.flatnonzero(rank > last[pixels].max(initial=-1))
    return rows.astype(np.int64), pixels.astype(np.int64)


def column_space(z: Floats) -> Floats | None:
    """V (rows, n), orthonormal; None where the pixels do not show a rank.

    By Cholesky with pivots of zᵀz = L·Lᵀ: the columns of z that it chooses, times L⁻ᵀ, are
    orthonormal, and its diagonal falls to rounding after n of them. A tenth of the cost of
    eigenvectors; half of the digits are lost, and float32 has no more.
    """
    factor, order, _, _ = lapack.dpstrf(z.T @ z, lower=1)
    diagonal = np.maximum(np.diag(factor), 1e-30)
    last = int(ROOM * len(diagonal))
    falls = diagonal[:last] / diagonal[1 : last + 1]
    n = int(falls.argmax()) + 1
    if falls[n - 1] < FALL or n >= len(z):
        return None
    return np.asarray(
        solve_triangular(factor[:n, :n], z[:, order[:n] - 1].T, lower=True, check_finite=False).T
    )


def local_subsets(V: Floats, k: int, rng: np.random.Generator) -> Subsets:
    """Rows of V as sums of k sparse vectors of its span, up to a sign: those that are, exactly."""
    m, n = V.shape
    near = min(m, int(NEAR * k * m * k / n) + 8)
    narrow = V.astype(np.float32)
    found: dict[bytes, tuple[Index, Floats]] = {}
    times = np.zeros(m, np.int64)
    order = rng.permutation(m)
    for start in range(0, m, AT_ONCE):
        part = order[start : start + AT_ONCE]
        part = part[times[part] < k]
        if not len(part):
            continue
        if len(found) > ENOUGH * n:
            break
        # Its own block of P; then rows that still miss a column, one by one.
        P = np.abs(narrow[part] @ narrow.T)
        close = np.argpartition(-P, near - 1, axis=1)[:, :near]
        for row, inside in zip(part, close, strict=True):
            if times[row] == k:
                continue
            for support, values in local_columns(V[inside]):
                place = np.argsort(inside[support])
                rows = inside[support][place]
                if rows.tobytes() not in found:
                    found[rows.tobytes()] = rows, values[place]
                    times[rows] += 1
    return assembled(list(found.values()), m, k)


def assembled(columns: list[tuple[Index, Floats]], m: int, k: int) -> Subsets:
    """Rows with k members of one sign, once every column has the sign that its neighbours ask
    for."""
    rows = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in columns)])
    entry = np.concatenate([np.empty(0), *(values for _, values in columns)])
    name = np.repeat(np.arange(len(columns)), [len(rows) for rows, _ in columns]).astype(np.int64)
    order = np.argsort(rows, kind="stable")
    rows, entry, name = rows[order], entry[order], name[order]
    whole = np.flatnonzero(np.bincount(rows, minlength=m) == k)
    inside = np.isin(rows, whole)
    members, own = name[inside].reshape(-1, k), entry[inside].reshape(-1, k)
    # Signs along a tree of columns that share a row; the data are exact, so that one tree is as
    # good as another.
    sign = np.zeros(len(columns))
    one, two = np.repeat(members[:, :1], k - 1, axis=1).ravel(), members[:, 1:].ravel()
    product = (own[:, :1] * own[:, 1:]).ravel()
    signs = dict(zip(zip(one.tolist(), two.tolist(), strict=True), product.tolist(), strict=True))
    graph = sparse.csr_array((np.ones(len(one)), (one, two)), shape=(len(columns),) * 2)
    for root in range(len(columns)):
        if sign[root] == 0:
            reached, parent = breadth_first_order(graph, root, directed=False)
            sign[root] = 1.0
            for v in reached[1:].tolist():
                u = int(parent[v])
                sign[v] = sign[u] * signs.get((u, v), signs.get((v, u), 1.0))
    own = own * sign[members]
    alike = np.abs(own.sum(axis=1)) == k
    return Subsets(whole[alike].astype(np.int64), members[alike], own[alike, 0], len(columns))


def local_columns(part: Floats) -> list[tuple[Index, Floats]]:
    """(support, entries ±1) of the columns of W that vanish outside some rows, `part` (rows, n) of
    V."""
    values, vectors = eigh(part @ part.T)
    E = vectors[:, values > 1 - ONE]
    q = E.shape[1]
    if not q:
        return []
    # Rows with one of these columns only have its direction; two rows and more with one direction
    # are a column.
    size = np.linalg.norm(E, axis=1)
    rows = np.flatnonzero(size > 0.05)
    unit = E[rows] / size[rows, None]
    same = np.abs(unit @ unit.T) > 1 - ALIKE**2
    directions: list[Floats] = []
    left = np.ones(len(rows), bool)
    for i in np.argsort(-same.sum(axis=1), kind="stable"):
        if left[i] and same[i].sum() >= 2:
            directions.append(unit[i])
            left &= ~same[i]
    if len(directions) != q:
        return []
    A = np.array(directions)
    if np.linalg.cond(A) > 1e3:
        return []
    out = []
    for w in np.linalg.inv(A).T:
        column = E @ w
        column /= np.abs(column).max()
        whole = np.rint(column)
        if np.abs(column - whole).max() < WHOLE:
            support = np.flatnonzero(whole)
            out.append((support, whole[support]))
    return out
