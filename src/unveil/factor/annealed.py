"""Which private vectors does every encoding use? By annealing, where clusters are small.

S ≈ WWᵀ off the diagonal, with k ones in every row of W, as in `factor.all_vectors`. Refinement
moves all rows at once towards a projection, and gets stuck where a vector is in few encodings: at
two encodings per vector and k = 3 with a third of the rows right, though nearly all overlaps can be
read. Here one row moves at a time, and may move uphill:

  energy   E(W) = Σ_{i<j} (S_ij − (WWᵀ)_ij)²
  move     row i gives up vector a and takes b, with probability ∝ exp(−E/T) over all b, a among
           them (a heat bath). With R = S − WWᵀ, Q = RW and G = WᵀW the change is
           2(Q_ia − Q_ib) + G_aa − 1 + G_bb − 2·G_ab: no sum is needed
  cooling  T from half of what one encoding of a vector shares with the others, down to what the
           noise of S makes of a pair

Cost: sweeps × m × k × (m + n). S is dense, and linear in the overlap (`gram.similarity.counted`).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.factor.all_vectors import Factorisation, Matrix, row_scores

SWEEPS = 120
"""Passes over all members of all rows, each at its own temperature: with half as many one row in a
hundred more is wrong."""
HOT, COLD = 0.5, 0.3
"""The first temperature, relative to mk/n, the encodings of a vector: rows then move about freely.
The last one, at which a row no longer leaves a vector that it shares with one other."""
MOST_WORK = 5e6
"""m × k × (m + n) beyond which it is not tried: some ten seconds. So many encodings have clusters
that are large enough for refinement."""


def affordable(m: int, k: int, n: int) -> bool:
    """Whether annealing is a matter of seconds."""
    return m * k * (m + n) <= MOST_WORK


def anneal(
    S: Matrix, first: Matrix, k: int, columns: int, rng: np.random.Generator
) -> Factorisation:
    """The W that annealing ends with, or `first` (m, n) where that has less energy; `columns`
    columns at least."""
    m, n = first.shape
    columns = max(columns, n)
    S = np.ascontiguousarray(S, dtype=np.float64).copy()
    np.fill_diagonal(S, 0)
    members = np.argsort(-first, axis=1, kind="stable")[:, :k].astype(np.int64)
    hot = max(HOT * m * k / columns, 2 * COLD)
    temperatures = np.geomspace(hot, COLD, SWEEPS)
    seed = rng.integers(1, 2**63 - 1, dtype=np.uint64)
    found = members.copy()
    _anneal(S, found, columns, temperatures, seed)
    best = min((members, found), key=lambda those: energy(S, those, columns))
    W = np.zeros((m, columns))
    np.put_along_axis(W, best, 1.0, axis=1)
    return Factorisation(W, row_scores(S, W), np.ones(m))


def energy(S: Matrix, members: NDArray[np.int64], columns: int) -> float:
    """E(W) of the members (m, k); the diagonal of S is zero."""
    W = np.zeros((len(S), columns))
    np.put_along_axis(W, members, 1.0, axis=1)
    rest = S - W @ W.T
    np.fill_diagonal(rest, 0)
    return float(np.square(rest).sum() / 2)


@njit(cache=True, nogil=True)
def _anneal(S, members, n, temperatures, seed):  # type: ignore[no-untyped-def]
    """members (m, k) in place, one heat bath after the other."""
    m, k = members.shape
    W = np.zeros((m, n))
    for i in range(m):
        for q in range(k):
            W[i, members[i, q]] = 1
    R = S - W @ W.T
    for i in range(m):
        R[i, i] = 0
    Q = R @ W
    G = W.T @ W
    change = np.empty(n)
    state = seed
    for temperature in temperatures:
        for i in range(m):
            for q in range(k):
                # 1. What each column in the place of this member would change.
                a = members[i, q]
                lowest = 0.0
                for b in range(n):
                    if b == a:
                        change[b] = 0.0
                    elif W[i, b] > 0:
                        change[b] = np.inf
                    else:
                        change[b] = 2 * (Q[i, a] - Q[i, b]) + G[a, a] - 1 + G[b, b] - 2 * G[a, b]
                    lowest = min(lowest, change[b])
                total = 0.0
                for b in range(n):
                    change[b] = np.exp((lowest - change[b]) / temperature)
                    total += change[b]
                # 2. One of them, by a random number (xorshift).
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                left = total * ((state >> np.uint64(11)) * 2.0**-53)
                chosen = a
                for b in range(n):
                    left -= change[b]
                    if left < 0:
                        chosen = b
                        break
                if chosen != a:
                    _move(R, Q, G, W, members, i, q, chosen)


@njit(cache=True, nogil=True)
def _move(R, Q, G, W, members, i, q, b):  # type: ignore[no-untyped-def]
    """Row i takes column b for its member q; R, Q, G and W follow."""
    m, k = members.shape
    a = members[i, q]
    members[i, q] = b
    for p in range(k):
        c = members[i, p]
        if p != q:
            G[c, a] -= 1
            G[a, c] -= 1
            G[c, b] += 1
            G[b, c] += 1
    G[a, a] -= 1
    G[b, b] += 1
    W[i, a], W[i, b] = 0, 1
    for j in range(m):
        if j == i:
            continue
        Q[j, a] -= R[j, i]
        Q[j, b] += R[j, i]
        less = W[j, a] - W[j, b]
        if less != 0:
            R[i, j] += less
            R[j, i] += less
            for p in range(k):
                Q[j, members[i, p]] += less
                Q[i, members[j, p]] += less
