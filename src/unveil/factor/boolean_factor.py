"""Symmetric sparse Boolean factorisation: W ∈ {0,1}^{m×n} with k ones per row and WWᵀ = M, by tensor decomposition.

    n, eigenvectors ← M                       its rank is the number of private vectors; about k²/(mean overlap)
    T(·,·,v) ← what three encodings share     for a few random v (`factor.intersection_tensor`)
    W ← Jennrich(M, T(·,·,v)), rounded        (`factor.jennrich`)
    W ← M W (WᵀW)⁻¹, rounded                  as long as that brings WWᵀ nearer to M; rows beyond `ROWS` come in here

From Chen, Song, Tao, Zhang: "Symmetric Sparse Boolean Matrix Factorization and Applications", ITCS 2022, who prove that the columns of
a random W are independent once m is a little more than n, which is all that Jennrich's algorithm needs. Two vectors used in the same
encodings only are equal columns; so are, for k = 2, the two sides of a bipartite graph of pairs, taken together: there it fails, and WWᵀ ≠ M shows it.

Cost: that of the tensor, the eigenvectors and the rotations, each about cubic. Memory: m×m for up to `ROWS` rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.factor.expectation import estimate_n_private
from unveil.factor.intersection_tensor import bytes_per_pair, contractions
from unveil.factor.jennrich import Matrix, jennrich
from unveil.records import Overlaps, Progress

CONTRACTIONS = 8
ROWS = 3000
"""Rows decomposed at most; the others are read off their overlaps with these."""
ENOUGH = 30
"""Encodings per vector among the rows decomposed: more do not help."""
REPAIRS = 6


@dataclass(frozen=True, eq=False)
class BooleanFactor:
    """W (m, n) of zeros and ones; fit (m,): the share of each row's overlaps that WWᵀ reproduces, of those that either of the
    two says are there; decomposed: how many rows took part in the decomposition."""

    W: NDArray[np.bool_]
    fit: NDArray[np.float64]
    decomposed: int

    def subsets(self, k: int, least: float = 0.5) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(rows, members (rows, k)): the rows that have k ones and fit."""
        rows = np.flatnonzero((self.W.sum(axis=1) == k) & (self.fit >= least))
        return rows, np.nonzero(self.W[rows])[1].reshape(len(rows), k).astype(np.int64)


def boolean_factor(
    overlaps: Overlaps, rng: np.random.Generator, *, memory_limit: int, progress: Progress | None = None
) -> BooleanFactor | None:
    """W up to the order of its columns; None where the overlaps do not look like those of k-subsets."""
    m, k = overlaps.m, overlaps.k_private
    n = estimate_n_private(overlaps)
    most = min(m, ROWS, int(np.sqrt(memory_limit / (bytes_per_pair(CONTRACTIONS) + 24))))
    if not k + 1 < n < most:
        return None
    chosen = np.sort(rng.permutation(m)[: min(most, max(500, ceil(ENOUGH * n / k)))])
    M = overlaps.matrix[chosen][:, chosen].toarray()
    M = np.clip(M, 0, k).astype(np.int8)
    np.fill_diagonal(M, k)
    values, vectors = column_space(M, n)
    directions = rng.standard_normal((CONTRACTIONS, len(chosen)))
    tensor = contractions(M, k, float(len(values)), directions, progress=progress)
    W = distinct(jennrich(values, vectors, tensor) > 0.5)
    del tensor
    if W.shape[1] <= k:
        return None
    W = repaired(M.astype(np.float32), W)
    every = overlaps.matrix[:, chosen].astype(np.float32)
    whole = least_squares(every, W)
    whole[chosen] = W
    return BooleanFactor(whole, _fit(overlaps, whole), len(chosen))


def column_space(M: NDArray[np.int8], n: float) -> tuple[Matrix, Matrix]:
    """The leading eigenvalues and eigenvectors of M, as many as stand out: those before the widest gap, in proportion, between
    half and twice the n that the mean overlap suggests."""
    m = len(M)
    most = min(m, ceil(2 * n) + 2)
    values, vectors = eigh(M.astype(np.float64), subset_by_index=[m - most, m - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    least = max(1, int(n / 2))
    size = np.maximum(values, FLOOR)
    rank = least + int(np.argmax(size[least - 1 : -1] / size[least:])) if least < most else most
    return values[:rank], vectors[:, :rank]


FLOOR = 1e-6
"""Eigenvalues below are rounding errors of zero."""


def distinct(W: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Each column once, without those of zeros only, in the order in which they come."""
    _, first = np.unique(W, axis=1, return_index=True)
    W = W[:, np.sort(first)]
    return W[:, W.any(axis=0)]


def repaired(M: NDArray[np.float32], W: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The W of fewest wrong overlaps on the way of W ← M W (WᵀW)⁻¹, rounded."""
    best, fewest = W, _wrong(M, W)
    for _ in range(REPAIRS):
        if not fewest:
            break
        W = least_squares(M, W)
        wrong = _wrong(M, W)
        if wrong >= fewest:
            break
        best, fewest = W, wrong
    return best


def least_squares(M: NDArray[np.float32], W: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The rows whose overlaps with W are nearest to M, rounded to zeros and ones."""
    V = W.astype(np.float32)
    gram = (V.T @ V).astype(np.float64) + 1e-3 * np.eye(V.shape[1])  # columns may depend on each other
    return np.asarray(np.linalg.solve(gram, np.asarray(M @ V).T).T > 0.5)


def _wrong(M: NDArray[np.float32], W: NDArray[np.bool_]) -> int:
    V = W.astype(np.float32)
    return int(np.count_nonzero(V @ V.T != M))


def _fit(overlaps: Overlaps, W: NDArray[np.bool_], block: int = 1024) -> NDArray[np.float64]:
    V = W.astype(np.float32)
    out = np.empty(len(W))
    for start in range(0, len(W), block):
        rows = slice(start, start + block)
        given, made = overlaps.matrix[rows].toarray(), V[rows] @ V.T
        there = ((given > 0) | (made > 0)).sum(axis=1)
        out[rows] = 1 - ((given != made).sum(axis=1) / np.maximum(there, 1))
    return out
