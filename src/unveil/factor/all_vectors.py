"""Which private vectors does every encoding use? All of them at once, from noisy overlaps.

Given a matrix S with E[S_ij] = 0 for encodings that share nothing and 1 for those that share one
vector, find W ∈ {0,1}^{m×n} with k ones per row and S ≈ WWᵀ off the diagonal. Single entries of S
may be far too noisy to round; what counts is that each vector is in mk/n encodings, and a cluster
of that size pools as many entries.

  seeds    U = the n leading eigenvectors of S; from each pair with a large (UUᵀ)_ij grow a cluster C ← rows with the largest
           (UUᵀ·1_C), first half the expected size, then the expected size, then those above half
           the mean of the best half
  select   greedily the clusters that lie best in the span of U, and overlap the chosen ones by less than half
  refine   scores S·W(WᵀW + ½I)⁻¹ without each row's own part; every row takes its k best columns; to a fixed point
  reseed   columns that are weak or tiny are dropped and sought again in what is unexplained

Cost a few products of m×m with m×n matrices, and one partial eigendecomposition. Sizes: m up to
some thousands (S is dense).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Factorisation:
    """W (m, n) with k ones per row; scores (m, n): how strongly each row leans towards each column,
    about 1 for members;
    trust (m,): 0 for rows that took no part, 1 for the others."""

    W: Matrix
    scores: Matrix
    trust: Matrix


def factor_overlaps(
    S: Matrix, k: int, n: int, *, among: NDArray[np.bool_] | None = None, rounds: int = 6
) -> Factorisation:
    """Seeds, then refinement and reseeding; the best W by squared error of S − WWᵀ off the
    diagonal.

    `among` (m,): rows to rely on; the others are only scored against the columns found.
    """
    if among is not None and not among.all():
        rows = np.flatnonzero(among)
        first = factor_overlaps(S[np.ix_(rows, rows)], k, n, rounds=rounds)
        onto = first.W.T @ first.W + 0.5 * np.eye(first.W.shape[1])
        scores: Matrix = np.asarray(np.linalg.solve(onto, first.W.T @ S[rows]).T, dtype=np.float64)
        scores[rows] = first.scores
        W = take_best(scores, k)
        W[rows] = first.W
        return Factorisation(W, scores, among.astype(np.float64))
    S = S.copy()
    np.fill_diagonal(S, 0)
    m = len(S)
    n = min(n, m - 1)
    W = _select(*_grow(S, k, n), n)
    best: tuple[float, Matrix] | None = None
    for _ in range(rounds):
        W = _refine(S, W, k)
        rest = S - W @ W.T
        np.fill_diagonal(rest, 0)
        error = float((rest**2).sum())
        if best is None or error < best[0]:
            best = error, W
        size = W.sum(axis=0)
        within = 1 + np.einsum("ic,ic->c", W, rest @ W) / np.maximum(size * (size - 1), 1)
        bad = (within < 0.5) | (size < 0.35 * m * k / n)
        if not bad.any() and W.shape[1] >= n:
            break
        kept = W[:, ~bad]
        lacking = k - kept.sum(axis=1)
        rows = np.flatnonzero(lacking > 0)
        need = min(n - kept.shape[1], len(rows) - 1)
        if len(rows) < 3 or need <= 0:
            break
        part = (S - kept @ kept.T)[np.ix_(rows, rows)]
        np.fill_diagonal(part, 0)
        new = np.zeros((m, 0))
        found = _select(*_grow(part, float(lacking.sum()) / len(rows), need), need)
        new = np.zeros((m, found.shape[1]))
        new[rows] = found
        W = np.hstack([kept, new])
    assert best is not None
    return Factorisation(best[1], row_scores(S, best[1]), np.ones(m))


def row_scores(S: Matrix, W: Matrix, ridge: float = 0.5) -> Matrix:
    """Least squares of S on the columns of W, each member's own part taken out of its column (S has
    a zero diagonal)."""
    size = W.sum(axis=0)
    scores = np.linalg.solve(W.T @ W + ridge * np.eye(W.shape[1]), W.T @ S).T
    return np.asarray(np.where(W > 0, scores * size / np.maximum(size - 1, 1), scores))


def take_best(scores: Matrix, k: int) -> Matrix:
    """Ones at the k largest scores of each row."""
    W = np.zeros_like(scores)
    np.put_along_axis(
        W, np.argpartition(-scores, min(k, scores.shape[1]) - 1, axis=1)[:, :k], 1.0, axis=1
    )
    return W


def _refine(S: Matrix, W: Matrix, k: int, steps: int = 40) -> Matrix:
    for _ in range(steps):
        new = take_best(row_scores(S, W), k)
        if np.array_equal(new, W):
            break
        W = new
    return W


def _grow(
    S: Matrix, k: float, n: int, steps: int = 12
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Clusters (m, seeds) grown from promising pairs, and how well each lies in the leading
    eigenspace."""
    m = len(S)
    U = eigh(S, subset_by_index=[m - n, m - 1])[1].astype(np.float32)
    P = U @ U.T
    np.fill_diagonal(P, -1)
    partners = min(int(np.clip(4000 // m, 2, 12)), m - 1)
    best = np.argpartition(-P, partners - 1, axis=1)[:, :partners]
    i, j = np.repeat(np.arange(m), partners), best.ravel()
    _, first = np.unique(np.minimum(i, j) * m + np.maximum(i, j), return_index=True)
    i, j = i[first], j[first]
    V = U @ (U[i] + U[j]).T
    full = max(3, round(m * k / n))
    half = max(3, full // 2)
    C = np.zeros_like(V)
    for step in range(steps):
        if step < 4:
            size = min(half if step < 2 else full, m)
            bound = -np.partition(-V, size - 1, axis=0)[size - 1]
        else:
            bound = 0.5 * -np.partition(-V, min(half, m) - 1, axis=0)[: min(half, m)].mean(axis=0)
        new = (bound <= V).astype(np.float32)
        if step > 4 and np.array_equal(new, C):
            break
        C = new
        V = U @ (U.T @ C)
    return C, (V * C).sum(axis=0) / np.maximum(C.sum(axis=0), 1)


def _select(C: NDArray[np.float32], quality: NDArray[np.float32], n: int) -> Matrix:
    size = C.sum(axis=0)
    chosen: list[int] = []
    for c in np.argsort(-quality, kind="stable"):
        if size[c] < 3:
            continue
        if chosen and (C[:, c] @ C[:, chosen] > 0.5 * np.minimum(size[c], size[chosen])).any():
            continue
        chosen.append(int(c))
        if len(chosen) == n:
            break
    return C[:, chosen].astype(np.float64)
