"""Jennrich's algorithm: the columns w_1, …, w_r of W from M = Σ_i w_i ⊗ w_i and T = Σ_i w_i ⊗ w_i ⊗
w_i.

Of T only contractions T(·,·,v) = Σ_i ⟨w_i, v⟩ w_i ⊗ w_i are needed:

    B ← M = BBᵀ, r columns                      the column space; W = BQ for some orthogonal Q, whatever B is taken
    A_v ← B⁺ T(·,·,v) B⁺ᵀ = Q diag(Wᵀv) Qᵀ      one for each random v
    Q ← diagonalises A_v for the first v        by itself Jennrich's algorithm, and enough if nothing is wrong
    Q ← diagonalises all A_v as well as can be  Jacobi rotations (Cardoso and Souloumiac, SIAM J. Matrix Anal. Appl. 17, 1996)
    W ← BQ, each column with its larger side up

The textbook takes two contractions with random v and the eigenvectors of one times the inverse of
the other. Here M is
known: it is the contraction with a v for which all ⟨w_i, v⟩ are 1, so that whitening by it leaves a
symmetric problem with an orthogonal solution. With wrong entries in T, eigenvectors whose
eigenvalues are close mix, and among r random numbers some always are close; several contractions
have no close eigenvalues in common.

Needs independent columns. Cost: one partial eigendecomposition of M, and some sweeps of r³/2
rotations times the number of contractions.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

SWEEPS = 30
STILL = 1e-6
"""Rotations by a smaller angle are not worth doing."""


def jennrich(values: Matrix, vectors: Matrix, contractions: Matrix) -> Matrix:
    """W (m, r), columns in any order, from the r largest eigenvalues and eigenvectors of M, and
    contractions (count, m, m)."""
    root = np.sqrt(values)
    whiten = vectors / root
    A = np.stack([whiten.T @ contraction @ whiten for contraction in contractions])
    Q = jointly_diagonal(A)
    W: Matrix = (vectors * root) @ Q
    return W * np.where(W.sum(axis=0) < 0, -1.0, 1.0)


def jointly_diagonal(A: Matrix) -> Matrix:
    """An orthogonal Q (r, r) for which QᵀAQ is as diagonal as can be, for all symmetric matrices A
    (count, r, r) at once."""
    _, Q = np.linalg.eigh(A[0])
    # The matrices are the last axis: a rotation then runs over memory in order.
    rotated = np.ascontiguousarray(np.moveaxis(Q.T @ A @ Q, 0, -1))
    turned = np.ascontiguousarray(Q.T)
    _rotate(rotated, turned, SWEEPS, STILL)
    return turned.T


@njit(cache=True, nogil=True)
def _rotate(A, Q, sweeps, still):  # type: ignore[no-untyped-def]
    """Sweeps over all planes in place: A (r, r, count), Q (r, r) with a vector in each row."""
    r, count = A.shape[0], A.shape[2]
    for _ in range(sweeps):
        moved = False
        for p in range(r - 1):
            for q in range(p + 1, r):
                on = off = 0.0
                for s in range(count):
                    gap, cross = A[p, p, s] - A[q, q, s], 2 * A[p, q, s]
                    on += gap * gap - cross * cross
                    off += 2 * gap * cross
                angle = 0.5 * np.arctan2(off, on + np.sqrt(on * on + off * off))
                if abs(angle) <= still:
                    continue
                moved = True
                co, si = np.cos(angle), np.sin(angle)
                for i in range(r):
                    for s in range(count):
                        x, y = A[p, i, s], A[q, i, s]
                        A[p, i, s], A[q, i, s] = co * x + si * y, co * y - si * x
                    x, y = Q[p, i], Q[q, i]
                    Q[p, i], Q[q, i] = co * x + si * y, co * y - si * x
                for i in range(r):
                    for s in range(count):
                        x, y = A[i, p, s], A[i, q, s]
                        A[i, p, s], A[i, q, s] = co * x + si * y, co * y - si * x
        if not moved:
            break
