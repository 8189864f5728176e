"""From relations to subsets: the null space of the relations is what the columns of W span, and W
is sparse in it.

Let R hold one row per relation, with the signs that make it vanish. Every pixel gives such signs,
up to one sign per encoding, so that one good pixel is enough: R·D·W = 0 for some diagonal D of
signs. Where the relations are many, nothing else is in the null space, and its dimension is the
number of private vectors. No pixel values are needed beyond that, so that it does not matter
whether there are more pixels than vectors.

    1  V ← null space of R                     (m, n) orthonormal, one dense eigenproblem
    2  C ← V·A, A orthogonal, Σ C⁴ largest     the sparsest basis there is: columns of D·W, nearly
                                               (A ← polar((VA)³ᵀV)ᵀ)
    3  exact columns ← the only vector of the span that vanishes wherever a column of C is small;
                       its entries are 0 and ±1
    4  every row with k members is a subset; what is not explained yet goes through 2 and 3 again

Step 2 is dictionary learning by ℓ4 maximisation (Zhai, Yang, Liao, Wright, Ma: "Complete dictionary
learning via ℓ4-norm maximization over the orthogonal group", JMLR 2020): some twenty products of
n×m matrices. The signs of D do no harm there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from unveil.relations.sketch import WIDTH, Floats, Index, Sketch

PATTERNS = np.array(
    [[1, a, b, c] for a in (1, -1) for b in (1, -1) for c in (1, -1)], dtype=np.float64
)
"""Signs of four encodings, up to a common one."""
CLEAR = (12.0, 5.0, 3.5)
"""Signs are taken where the second best leave so many spreads more than the best: none is wrong, or
one in a million, or one in a thousand."""
ENOUGH = 0.5
"""The share of the encodings in relations whose subsets are enough to go on from; the others follow
by matching."""
RICH = 2.5
"""Encodings there must be for each dimension of the null space: with fewer most of it is what
relations do not tie."""
NULL = 1e-9
"""Eigenvalues of RᵀR below this share of the largest are zero: those that are not are whole
numbers' work, above 1e-4."""
STEPS = 200
"""Steps of the ℓ4 ascent; it takes twenty, and a hundred where encodings are few."""
SETTLED = 1e-10
"""How little the directions of a basis still turn when the ascent has ended."""
SPANNED = 1e-9
"""Eigenvalues within this of 1 are 1: rounding leaves 1e-12, other columns leave a part of
themselves outside."""
STARTS = 6
"""Ascents from different random bases, where one ends short of a sparse basis."""
SUPPORTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""Where the support of an approximate column may be cut, relative to its largest entries; the
widest that has one answer."""
WHOLE = 1e-6
"""How near to 0 and ±1 the entries of an exact column are: whole numbers, up to rounding."""


@dataclass(frozen=True, eq=False)
class Subsets:
    """rows (r,) with the vectors each mixes, members (r, k) named 0 … columns−1, and the sign (r,)
    each row has in V."""

    rows: Index
    members: Index
    sign: Floats
    columns: int


def subsets_of(sketch: Sketch, quads: Index, k: int, rng: np.random.Generator) -> Index:
    """members (m, k) of the encodings of a sketch, −1 where relations do not tell.

    Signs are first taken only where they are certain. Under noise that leaves too few relations,
    and signs that are wrong now and then do better: a wrong one takes away no more than the columns
    it touches.
    """
    best = np.full((sketch.m, k), -1, np.int64)
    most = len(np.unique(quads))
    for clear in CLEAR:
        rows, V = null_space(relation_matrix(sketch, quads, clear))
        if RICH * V.shape[1] > len(rows):
            continue
        told = subsets(V, k, rng)
        if len(told.rows) > (best[:, 0] >= 0).sum():
            best[:] = -1
            best[rows[told.rows]] = told.members
        if len(told.rows) > ENOUGH * most:
            break
    return best


def relation_matrix(sketch: Sketch, quads: Index, clear: float = 0.0) -> sparse.csr_array:
    """R (relations, m): by the pixel that fixes the signs of most relations; with a public part the
    order of `quads` has them.

    clear: by how many spreads the second best signs must be worse; 0 for `CLEAR[0]`
    """
    if not sketch.free:
        return _rows(quads, np.tile([1.0, -1.0, -1.0, 1.0], (len(quads), 1)), sketch.m)
    best: tuple[int, Floats, NDArray[np.bool_]] = -1, np.empty((0, 4)), np.empty(0, bool)
    for p in range(len(sketch.pixels)):
        residual = np.abs(sketch.hi[quads, p] @ PATTERNS.T)
        two = np.partition(residual, 1, axis=1)[:, :2]
        spread = sketch.spread[p]
        sure = (two[:, 0] <= WIDTH * spread) & (
            two[:, 1] - two[:, 0] > (clear or CLEAR[0]) * spread
        )
        if sure.sum() > best[0]:
            best = int(sure.sum()), PATTERNS[residual.argmin(axis=1)], sure
    return _rows(quads[best[2]], best[1][best[2]], sketch.m)


def _rows(quads: Index, signs: Floats, m: int) -> sparse.csr_array:
    at = np.repeat(np.arange(len(quads)), 4)
    return sparse.csr_array((signs.ravel(), (at, quads.ravel())), shape=(len(quads), m))


def null_space(R: sparse.csr_array) -> tuple[Index, Floats]:
    """(rows that take part in a relation, an orthonormal basis (rows, n) of what vanishes under
    R)."""
    rows = np.flatnonzero(np.diff(R.tocsc().indptr)).astype(np.int64)
    if not len(rows):
        return rows, np.empty((0, 0))
    part = R[:, rows]
    values, vectors = eigh((part.T @ part).toarray())
    return rows, np.asarray(vectors[:, values < NULL * max(float(values[-1]), 1.0)])


def sparse_basis(V: Floats, rng: np.random.Generator) -> Floats:
    """C (m, n), orthonormal, spanning what V spans, with the largest sum of fourth powers that an
    ascent finds."""
    n = V.shape[1]
    A = np.linalg.qr(rng.standard_normal((n, n)))[0]
    C = V @ A
    for _ in range(STEPS):
        left, _, right = np.linalg.svd(V.T @ C**3)
        new = left @ right
        moved = float(np.abs(np.abs(np.einsum("ij,ij->j", new, A)) - 1).max())
        A = new
        C = V @ A
        if moved < SETTLED:
            break
    return np.asarray(C)


def subsets(V: Floats, k: int, rng: np.random.Generator) -> Subsets:
    """Rows of V as sums of k sparse vectors of its span, up to a sign: those that are, exactly."""
    m, n = V.shape
    columns = np.empty((m, 0))
    if not k < n < m:
        return Subsets(np.empty(0, np.int64), np.empty((0, k), np.int64), np.empty(0), 0)
    rest = V
    for _ in range(STARTS):
        # 1. An approximate sparse basis of what is not explained yet; 2. each of its vectors made
        # exact.
        found = [exact_column(V, c) for c in sparse_basis(rest, rng).T]
        before = columns.shape[1]
        columns = _distinct(np.column_stack([columns, *(c for c in found if c is not None)]))
        if columns.shape[1] >= n:
            break
        # 3. Columns that are missing vanish in the rows that have k members already. Where that
        # leads nowhere: another start.
        full = V[np.count_nonzero(columns, axis=1) == k]
        values, vectors = eigh(full.T @ full)
        rest = V @ vectors[:, values < NULL]
        if columns.shape[1] == before or not rest.shape[1]:
            rest = V
    return _assembled(columns, k)


def exact_column(V: Floats, c: Floats) -> Floats | None:
    """The vector of 0 and ±1 in the span of V whose support is where c is large; None where there
    is none, or several.

    V is orthonormal: vectors of its span that vanish outside Ω are those on which V restricted to Ω
    has singular value 1. They come from the eigenvalues of its products with itself, which never
    fail; singular values can.
    """
    size = np.sort(np.abs(c))[::-1]
    for share in SUPPORTS:
        inside = np.flatnonzero(np.abs(c) > share * size[:3].mean())
        part = V[inside]
        values, left = eigh(part @ part.T) if len(part) < V.shape[1] else eigh(part.T @ part)
        ones = int((values > 1 - SPANNED).sum())
        if ones > 1:
            continue  # a smaller support
        if ones == 0:
            return None
        column = V @ (part.T @ left[:, -1] if len(part) < V.shape[1] else left[:, -1])
        column /= np.median(np.abs(column[np.abs(column) > 0.5 * np.abs(column).max()]))
        whole = np.rint(column)
        fits = np.abs(column - whole).max() < WHOLE and np.abs(whole).max() == 1
        return whole if fits else None
    return None


def _distinct(columns: Floats) -> Floats:
    """Each column once, up to sign."""
    first = np.argmax(columns != 0, axis=0)
    turned = columns * np.sign(columns[first, np.arange(columns.shape[1])])
    return np.asarray(np.unique(turned, axis=1))


def _assembled(columns: Floats, k: int) -> Subsets:
    """Rows with k members of one sign, once every column has the sign that makes it so in most
    rows."""
    n = columns.shape[1]
    whole = np.flatnonzero(np.count_nonzero(columns, axis=1) == k)
    members = np.nonzero(columns[whole])[1].reshape(len(whole), k).astype(np.int64)
    own = columns[whole[:, None], members]
    own = own * _column_signs(members, own, n)[members]
    alike = np.abs(own.sum(axis=1)) == k
    return Subsets(whole[alike].astype(np.int64), members[alike], own[alike, 0], n)


def _column_signs(members: Index, sign: Floats, n: int) -> Floats:
    """One sign per column so that, in most rows, the members' entries have one sign: the leading
    eigenvector of who agrees."""
    if not len(members):
        return np.ones(n)
    A = np.zeros((n, n))
    for i in range(members.shape[1]):
        for j in range(members.shape[1]):
            if i != j:
                np.add.at(A, (members[:, i], members[:, j]), sign[:, i] * sign[:, j])
    return np.asarray(np.where(eigh(A)[1][:, -1] < 0, -1.0, 1.0))
