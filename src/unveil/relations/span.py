"""Who mixes whom where relations are few: signs first, then the space that the signed encodings span.

Few relations do not determine subsets by themselves (`relations.subspace`), but they fix the signs of nearly all encodings at nearly
every pixel (`relations.signs`). With signs D·z = D·W·x is linear. Where there are more pixels than vectors,

    1  Z (rows, pixels) ← signed encodings        rows and pixels without any sign unknown
    2  V ← column space of Z                       the same as that of D·W: the rank is the number of vectors
    3  P ← V·Vᵀ                                    large where two rows share a vector, about 1/(its number of rows)
    4  columns ← eigenvectors of P restricted to the few rows Ω that are near to one row, eigenvalue 1: a vector of the
                 span that vanishes outside Ω is fixed by P[Ω, Ω], and every column of D·W is one, once Ω holds all its rows

Step 4 is exact and local: no iteration, no matrix larger than some dozen rows, and what one place does not give does no harm to another.
Cost: an eigenproblem of the pixels that are used, and the products m·pixels² and m²·n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.gram.whitened import rank_of
from unveil.relations.sketch import Floats, Index
from unveil.relations.subspace import WHOLE, Subsets, _assembled, _distinct

PIXELS = 0.25
"""Pixels per row that are tried first: vectors are at most a fifth as many as encodings where there are relations enough."""
ROOM = 0.9
"""A rank above this share of the pixels may be cut off by them; more pixels are needed then."""
NEAR = 3
"""Rows near to one row that are looked at, as a multiple of the rows its vectors have on average: the largest have twice that."""
ONE = 1e-4
"""Eigenvalues of P[Ω, Ω] that count as one: float32 leaves about 1e-6, the next below are 0.9 and less."""
ALIKE = 1e-3
"""Directions closer than this are one."""


@dataclass(frozen=True, eq=False)
class Signed:
    """Encodings with signs, z (rows, pixels), at the places rows and pixels of what was given."""

    rows: Index
    pixels: Index
    z: Floats


def complete_part(sign: NDArray[np.int8], most: int) -> tuple[Index, Index]:
    """(rows, pixels) with no sign unknown: `most` pixels, without the rows that stand in the way of them.

    Rows that are unknown at many pixels are dropped first, as few as leave so many pixels complete.
    """
    unknown = sign == 0
    rank = np.empty(len(sign), np.int64)
    rank[np.argsort(-unknown.sum(axis=1), kind="stable")] = np.arange(len(sign))
    # A pixel is complete once its last unknown row is dropped.
    last = np.where(unknown, rank[:, None], -1).max(axis=0)
    pixels = np.sort(np.argsort(last, kind="stable")[:most])
    rows = np.flatnonzero(rank > last[pixels].max(initial=-1))
    return rows.astype(np.int64), pixels.astype(np.int64)


def column_space(z: Floats) -> Floats | None:
    """V (rows, n), orthonormal; None where the pixels do not show a rank."""
    values, right = eigh(z.T @ z)
    values, right = values[::-1], right[:, ::-1]
    n = rank_of(values)
    if n is None or n > ROOM * z.shape[1] or n >= len(z):
        return None
    return np.asarray(z @ (right[:, :n] / np.sqrt(values[:n])))


def local_subsets(V: Floats, k: int, rng: np.random.Generator) -> Subsets:
    """Rows of V as sums of k sparse vectors of its span, up to a sign: those that are, exactly."""
    m, n = V.shape
    near = min(m, int(NEAR * k * m * k / n) + 8)
    narrow = V.astype(np.float32)
    found: list[Floats] = []
    times = np.zeros(m, np.int64)
    order = rng.permutation(m)
    for start in range(0, m, 256):
        part = order[start : start + 256]
        part = part[times[part] < k]
        if not len(part):
            continue
        P = np.abs(narrow[part] @ narrow.T)
        close = np.argpartition(-P, near - 1, axis=1)[:, :near]
        for inside in close:
            for support, values in local_columns(V[inside]):
                rows = inside[support]
                column = np.zeros(m)
                column[rows] = values
                if (times[rows] < k).any():
                    found.append(column)
                    times[rows] += 1
    if not found:
        return Subsets(np.empty(0, np.int64), np.empty((0, k), np.int64), np.empty(0), 0)
    return _assembled(_distinct(np.column_stack(found)), k)


def local_columns(part: Floats) -> list[tuple[Index, Floats]]:
    """(support, entries ±1) of the columns of W that vanish outside some rows, `part` (rows, n) of V."""
    values, vectors = eigh(part @ part.T)
    E = vectors[:, values > 1 - ONE]
    q = E.shape[1]
    if not q:
        return []
    # Rows with one of these columns only have its direction; two rows and more with one direction are a column.
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
        if np.abs(column - whole).max() < 100 * np.sqrt(WHOLE):
            support = np.flatnonzero(whole)
            out.append((support, whole[support]))
    return out
