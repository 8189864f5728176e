"""Which vectors does every encoding use, and how strongly? Z ≈ PPᵀ off the diagonal, P ≥ 0, k
entries and sum 1 in each row.

A symmetric nonnegative factorisation whose rows lie in a simplex with one corner per vector. Where
weights vary, some encodings are almost nothing but one vector: they sit at the corners.

  count    n = the place of the largest drop in the spectrum of Z, near 1/(mean of Z), which is n for subsets drawn uniformly
  space    R = the n leading eigenvectors times √eigenvalue, the diagonal filled in from R itself
  corners  successive projection: the longest row is a corner; take its direction out of all rows; repeat n times
  refine   P = rows of R in the frame of the corners, its k largest entries; corners again by least squares
  extend   later, once most rows are explained: what they leave of the others is the share of vectors not counted yet

Cost one partial eigendecomposition of Z (m up to some thousands) for each filling of the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

Matrix = NDArray[np.float64]
WINDOW = (0.75, 1.35)
"""n is sought between these multiples of 1/(mean of Z)."""
SPREAD = 0.1
"""How far log n is trusted to lie from that, where the spectrum has no clear drop."""

NOTICEABLE = 0.08
"""A squared correlation of two encodings that is not chance."""


@dataclass(frozen=True, eq=False)
class Memberships:
    """members (m, k): columns by falling share; shares (m, k): their part of the encoding's power,
    in [0, 1]; n columns."""

    members: NDArray[np.int64]
    shares: Matrix
    n: int


def mixed_memberships(
    Z: Matrix, k: int, *, fillings: int = 3, refits: int = 2
) -> Memberships | None:
    """Count, space, corners, refine; None when Z tells of no more than k vectors."""
    Z = Z.copy()
    m = len(Z)
    np.fill_diagonal(Z, 0)
    mean = float(Z.sum()) / max(1, m * (m - 1))
    if m < k + 3 or mean <= 1 / m:
        return None
    low, high = (int(np.clip(side / mean, k + 1, m - 1)) for side in WINDOW)
    np.fill_diagonal(Z, 0.75)  # E[Σ u⁴] for two half-normal weights; what R says replaces it
    R: Matrix = np.empty((m, 0))
    n = 0
    for _ in range(fillings):
        values, vectors = eigh(Z, subset_by_index=[m - high - 1, m - 1])
        values, vectors = np.maximum(values[::-1], 1e-12), vectors[:, ::-1]
        counts = np.arange(low, high + 1)
        drop = np.log(values[low - 1 : high] / values[low : high + 1])
        n = int(counts[np.argmax(drop * np.exp(-0.5 * (np.log(counts * mean) / SPREAD) ** 2))])
        R = np.asarray(vectors[:, :n] * np.sqrt(values[:n]), dtype=np.float64)
        np.fill_diagonal(Z, np.einsum("ij,ij->i", R, R))
    frame = R[_corners(R, n)]
    members, shares = _largest(R, frame, k)
    for _ in range(refits - 1):
        P = np.zeros((m, n))
        np.put_along_axis(P, members, shares, axis=1)
        frame = np.asarray(np.linalg.lstsq(P, R, rcond=None)[0], dtype=np.float64)
        members, shares = _largest(R, frame, k)
    return Memberships(members, shares, n)


def extend(Z: Matrix, known: Memberships, explained: NDArray[np.bool_]) -> Memberships | None:
    """New columns for rows that are not explained; None when no two of them share an unknown
    vector.

    Explained rows hold known vectors only. So the regression of Z_ij, j explained, on the columns
    gives the known shares of row i without bias, and the rest of it belongs to vectors not counted
    yet.
    """
    k = known.members.shape[1]
    rows = np.flatnonzero(~explained)
    P = np.zeros((len(Z), known.n))
    np.put_along_axis(P, known.members, known.shares, axis=1)
    E = P[explained]
    shares = np.linalg.solve(E.T @ E + 1e-3 * np.eye(known.n), E.T @ Z[np.ix_(explained, rows)]).T
    partners = np.argsort(-shares, axis=1, kind="stable")[:, : k - 1]
    part = np.clip(np.take_along_axis(shares, partners, axis=1), 0, 1)
    unknown = np.maximum(1 - part.sum(axis=1), 0)
    own = np.zeros((len(rows), known.n))
    np.put_along_axis(own, partners, part, axis=1)
    rest = Z[np.ix_(rows, rows)] - own @ own.T
    np.fill_diagonal(rest, 0)
    members, out, n = known.members.copy(), known.shares.copy(), known.n
    free = unknown > 0.1
    for i in np.argsort(-unknown, kind="stable"):
        alike = free & (rest[i] > 0.5 * unknown[i] * unknown) & (rest[i] > NOTICEABLE)
        if not free[i] or alike.sum() < 2:
            continue
        alike[i] = True
        members[rows[alike]] = np.column_stack([partners[alike], np.full(alike.sum(), n)])
        out[rows[alike]] = np.column_stack([part[alike], unknown[alike]])
        free &= ~alike
        n += 1
    return (
        Memberships(members, out / np.maximum(out.sum(axis=1, keepdims=True), 1e-30), n)
        if n > known.n
        else None
    )


def _corners(R: Matrix, n: int) -> NDArray[np.int64]:
    """Successive projection: n rows that span the simplex."""
    rest = R.copy()
    chosen = np.empty(n, np.int64)
    for c in range(n):
        power = np.einsum("ij,ij->i", rest, rest)
        chosen[c] = power.argmax()
        direction = rest[chosen[c]] / np.sqrt(max(power[chosen[c]], 1e-30))
        rest -= np.outer(rest @ direction, direction)
    return chosen


def _largest(R: Matrix, frame: Matrix, k: int) -> tuple[NDArray[np.int64], Matrix]:
    """The k largest coordinates of each row in the frame, not negative, scaled to sum 1."""
    P = np.linalg.lstsq(frame.T, R.T, rcond=None)[0].T
    members = np.argsort(-P, axis=1, kind="stable")[:, :k].astype(np.int64)
    shares = np.maximum(np.take_along_axis(P, members, axis=1), 0)
    total = shares.sum(axis=1, keepdims=True)
    return members, np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / k)
