"""Symmetric sparse Boolean factorisation: W ∈ {0,1}^{m×n} with k ones per row and WWᵀ = M, by
tensor decomposition.

    n ← k² / mean overlap; eigenvectors of M    those of eigenvalues that are not 0: as many as there are vectors
    T(·,·,v) ← what three encodings share       for a few random v (`rivals.tensor.intersections`)
    W ← Jennrich(M, T(·,·,v)), rounded          (`rivals.tensor.jennrich`)
    W ← M W (WᵀW)⁻¹, rounded                    as long as that brings WWᵀ nearer to M; rows not decomposed come in here

From Chen, Song, Tao, Zhang: "Symmetric Sparse Boolean Matrix Factorization and Applications", ITCS
2022. They prove that the columns of a random W are independent once m is a little more than n, and
Jennrich's algorithm needs no more. Columns can depend on each other all the same: two vectors used
by the same encodings only, or, for k = 2, a graph of pairs with a part that is bipartite. There it
loses a vector or all, and WWᵀ ≠ M shows it. Wrong overlaps make columns of a few rows, and rows of
more than k columns: the largest k are kept.

Cost: that of the tensor, the eigenvectors and the rotations, each about cubic. Memory: `BYTES` for
each pair of the rows decomposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from unveil.factor.floral.expectation import estimate_n_private
from unveil.parallel import rows_per_block
from unveil.records import Overlaps, Progress
from unveil.rivals.tensor.intersections import bytes_per_pair, contractions
from unveil.rivals.tensor.jennrich import Matrix, jennrich

CONTRACTIONS = 8
ROWS = 3000
"""Rows decomposed at most; the others are read off their overlaps with these."""
FEWEST, ENOUGH = 500, 30
"""Rows decomposed in any case, where there are as many, and encodings per vector beyond which more
rows are not needed."""
BYTES = bytes_per_pair(CONTRACTIONS) + 24
REPAIRS = 6
FLOOR = 1e-3
"""Eigenvalues below are 0, or say nothing."""


@dataclass(frozen=True, eq=False)
class BooleanFactor:
    """W (m, n) of zeros and ones; fit (m,): the share of the overlaps WWᵀ of each row that are in M
    too; decomposed: how many rows took part in the decomposition."""

    W: NDArray[np.bool_]
    fit: NDArray[np.float64]
    decomposed: int

    def subsets(self, k: int, least: float = 0.75) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(rows, members (rows, k)): the rows that have k ones and fit."""
        rows = np.flatnonzero((self.W.sum(axis=1) == k) & (self.fit >= least))
        return rows, np.nonzero(self.W[rows])[1].reshape(len(rows), k).astype(np.int64)


def boolean_factor(
    overlaps: Overlaps,
    rng: np.random.Generator,
    *,
    memory_limit: int,
    progress: Progress | None = None,
) -> BooleanFactor | None:
    """W up to the order of its columns; None where the overlaps do not look like those of
    k-subsets."""
    m, k = overlaps.m, overlaps.k_private
    n = estimate_n_private(overlaps)
    most = min(m, ROWS, int(np.sqrt(memory_limit / BYTES)))
    if not k + 1 < n < most:
        return None
    chosen = np.sort(rng.permutation(m)[: min(most, max(FEWEST, ceil(ENOUGH * n / k)))])
    M = np.clip(overlaps.matrix[chosen][:, chosen].toarray(), 0, k).astype(np.int8)
    np.fill_diagonal(M, k)
    values, vectors = column_space(M, n)
    directions = rng.standard_normal((CONTRACTIONS, len(chosen)))
    tensor = contractions(M, k, n, directions, progress=progress)
    guesses = [
        _decomposed(M, k, values[:rank], vectors[:, :rank], tensor)
        for rank in sorted({len(values), widest(values, n)})
    ]
    del tensor
    W = min(guesses, key=lambda guess: (_wrong(M, guess) > 0, nats(M, guess, k)))
    if W.shape[1] <= k:
        return None
    whole = W
    if len(chosen) < m:
        whole = least_squares(overlaps.matrix[:, chosen].astype(np.float32), W)
        whole &= np.cumsum(whole, axis=1) <= k
        whole[chosen] = W
    return BooleanFactor(whole, _fit(overlaps, whole, memory_limit), len(chosen))


def _decomposed(
    M: NDArray[np.int8], k: int, values: Matrix, vectors: Matrix, tensor: Matrix
) -> NDArray[np.bool_]:
    W = at_most(distinct(jennrich(values, vectors, tensor) > 0.5), k)
    return repaired(M.astype(np.float32), W, k) if W.shape[1] > k else W


def column_space(M: NDArray[np.int8], n: float) -> tuple[Matrix, Matrix]:
    """The leading eigenvalues, the largest first, and eigenvectors of M: those that are not 0, up
    to twice the n that the mean overlap suggests. Where nothing is wrong these are as many as there
    are vectors."""
    m = len(M)
    most = min(m, ceil(2 * n) + 2)
    values, vectors = eigh(M.astype(np.float64), subset_by_index=[m - most, m - 1])
    kept = np.flatnonzero(values > FLOOR)[::-1]
    return values[kept], vectors[:, kept]


def widest(values: Matrix, n: float) -> int:
    """How many eigenvalues come before the widest gap, in proportion, from n/2 on.

    With wrong overlaps M has eigenvalues that belong to no vector. Where these are small the gap
    tells the number of vectors. Where they are not, too many are better than too few: what belongs
    to no vector makes columns of a few rows. Both are tried.
    """
    least = max(1, int(n / 2))
    if least >= len(values):
        return len(values)
    return least + int(np.argmax(values[least - 1 : -1] / values[least:]))


def nats(M: NDArray[np.int8], W: NDArray[np.bool_], k: int) -> float:
    """What it takes to write M down: the k columns of each row, and each wrong overlap. More
    columns have fewer wrong overlaps, right or not."""
    m, n = len(W), W.shape[1]
    return float(m * k * log(max(n, 1)) + 0.5 * _wrong(M, W) * log(m * m))


def distinct(W: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Each column once, without those of zeros only, in the order in which they come."""
    _, first = np.unique(W, axis=1, return_index=True)
    W = W[:, np.sort(first)]
    return W[:, W.any(axis=0)]


def at_most(W: NDArray[np.bool_], k: int) -> NDArray[np.bool_]:
    """W with the k largest columns of each row, which come first: a wrong overlap looks like one
    more vector, shared by these two rows only."""
    size = W.sum(axis=0)
    W = W[:, np.argsort(-size, kind="stable")]
    W = W & (np.cumsum(W, axis=1) <= k)
    return W[:, W.any(axis=0)]


def repaired(M: NDArray[np.float32], W: NDArray[np.bool_], k: int) -> NDArray[np.bool_]:
    """The W of fewest wrong overlaps on the way of W ← M W (WᵀW)⁻¹, rounded."""
    best, fewest = W, _wrong(M, W)
    for _ in range(REPAIRS):
        if not fewest:
            break
        W = at_most(least_squares(M, W), k)
        wrong = _wrong(M, W)
        if wrong >= fewest:
            break
        best, fewest = W, wrong
    return best


def least_squares(
    M: NDArray[np.float32] | sparse.csr_array, W: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """The rows whose overlaps with W are nearest to M, rounded to zeros and ones."""
    V = W.astype(np.float32)
    gram = (V.T @ V).astype(np.float64) + 1e-3 * np.eye(
        V.shape[1]
    )  # columns may depend on each other
    return np.asarray(np.linalg.solve(gram, np.asarray(M @ V).T).T > 0.5)


def _wrong(M: NDArray[np.float32] | NDArray[np.int8], W: NDArray[np.bool_]) -> int:
    V = W.astype(np.float32)
    return int(np.count_nonzero(V @ V.T != M))


def _fit(overlaps: Overlaps, W: NDArray[np.bool_], limit: int) -> NDArray[np.float64]:
    V = W.astype(np.float32)
    block = rows_per_block(24 * len(W), limit, most=1024)
    out = np.empty(len(W))
    for start in range(0, len(W), block):
        rows = slice(start, start + block)
        made = V[rows] @ V.T
        both = np.minimum(made, overlaps.matrix[rows].toarray())
        out[rows] = both.sum(axis=1) / np.maximum(made.sum(axis=1), 1)
    return out
