"""Which private vectors does every encoding use? By annealing, where clusters are small.

Refinement (`factor.all_vectors`) moves all rows at once, and gets stuck where a vector is in few
encodings: at two encodings per vector with a third of the rows right or fewer. Here one row moves
at a time, and may move uphill. What counts is the likelihood of every pair's similarity: that of q
shared vectors is normal about its own mean, with its own variance (`gram.similarity.moments`). A
squared error of S − WWᵀ, in its place, has its minimum at a wrong W from k = 6 on.

  energy   E(W) = Σ_{i<j} U_ij((WWᵀ)_ij), U_ij(q) = −log p(S_ij | q), in nats
  move     row i gives up vector a and takes b, with probability ∝ exp(−E/T) over all b, a among
           them (a heat bath). With D_ij = U_ij(q + 1) − U_ij(q) at the q that i and j share without
           a, the energy of b is Σ D_ij over the rows j that hold b
  cooling  T from half of what all encodings of a vector say of one of them, down to 1: there rows
           are drawn by their posterior probability
  columns  some more than vectors are expected; those that end up tiny hold nothing but chance. They
           are dropped, and the rest is annealed again, from a lower temperature
  result   the k likeliest columns of each row, by how often it had them in the last sweeps

Cost: sweeps × m² × k.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.factor.all_vectors import TINY, Factorisation, Matrix, take_best
from unveil.gram.similarity import moments

SWEEPS, AGAIN = 600, 150
"""Passes over all members of all rows, each at its own temperature; and those after tiny columns
were dropped. With half as many two instances of k = 6 in five end far from the truth."""
COUNTED = 50
"""Last passes, at temperature 1, in which columns are counted: enough to tell a sure row."""
HOT, WARM = 0.35, 0.28
"""The first temperatures, relative to what the mk/n encodings of a vector say of one of them: at
the first rows move about freely, at the second they keep most of what they found."""
MOST_WORK = 6e6
"""m²k beyond which it is not tried: some ten seconds. So many encodings have clusters that are
large enough for refinement."""
MOST_TIMES, ALL_WORK = 6, 2e6
"""How often it is tried where it leads nowhere, and m²k of all tries but the first. Of six
instances of k = 6 at two encodings per vector three lead somewhere at the first go."""
NEVER = 30.0
"""Temperatures above the best column at which a column is never taken: exp(−30) is 1e-13."""


def annealings(m: int, k: int) -> int:
    """How often annealing is a matter of seconds."""
    work = m * m * k
    return min(MOST_TIMES, 1 + int(ALL_WORK // work)) if work <= MOST_WORK else 0


def anneal(S: Matrix, k: int, columns: int, d: int, rng: np.random.Generator) -> Factorisation:
    """The likeliest W by the similarities S of d pixels (`gram.similarity.similarity`), from random
    rows; scores are posterior probabilities. `columns`: somewhat more than there are vectors."""
    m = len(S)
    D, told = differences(S, k, d)
    hot = max(HOT * told * m * k / columns, 1.0)
    warm = max(WARM * told * m * k / columns, 1.0)
    seed = rng.integers(1, 2**63 - 1, size=2, dtype=np.uint64)
    # 1. From random rows, with too many columns.
    members = take(rng.random((m, columns)), k)
    count = np.zeros((m, columns))
    _anneal(D, members, columns, np.geomspace(hot, 1.0, SWEEPS), seed[0], count, 0)
    # 2. Again without those that hold nothing but chance; their rows take any other. In a column
    # of s rows s − 1 pairs speak for each: for more than a choice among all columns is worth?
    size = np.bincount(members.ravel(), minlength=columns)
    kept = np.flatnonzero(size >= min(TINY * m * k / columns, 1 + np.log(columns) / told))
    if len(kept) <= k:
        kept = np.arange(columns)
    lead = np.zeros((m, columns))
    np.put_along_axis(lead, members, 1.0, axis=1)
    members = take(lead[:, kept] + 0.5 * rng.random((m, len(kept))), k)
    count = np.zeros((m, len(kept)))
    cooling = np.append(np.geomspace(warm, 1.0, AGAIN - COUNTED), np.ones(COUNTED))
    _anneal(D, members, len(kept), cooling, seed[1], count, COUNTED)
    # 3. What each row had most often.
    count /= COUNTED
    return Factorisation(take_best(count, k), count, np.ones(m))


def take(scores: Matrix, k: int) -> NDArray[np.int64]:
    """(m, k): the k best columns of each row."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int64)


def differences(S: Matrix, k: int, d: int) -> tuple[NDArray[np.float32], float]:
    """D (m, m, k + 1): what one more shared vector than q adds to the energy of a pair; and how
    many nats a pair says of one shared vector against none."""
    mean, variance = moments(k)
    variance = variance / d
    # Pixels that go together say less than d independent ones: half of the pairs that share nothing
    # are below zero, and show the spread.
    below = S[~np.eye(len(S), dtype=bool) & (S < 0)]
    if len(below):
        variance *= max(1.0, float(np.mean(below**2)) / variance[0])
    U = np.square(S[:, :, None] - mean) / (2 * variance) + np.log(variance) / 2
    D = np.zeros(U.shape, np.float32)
    D[:, :, :k] = np.diff(U, axis=2)
    D[np.arange(len(S)), np.arange(len(S))] = 0
    return D, float(1 / (2 * variance[0]))


def energy(D: NDArray[np.float32], members: NDArray[np.int64]) -> float:
    """E(W) of the members (m, k), to that of rows that share nothing."""
    m = len(D)
    W = np.zeros((m, int(members.max()) + 1))
    np.put_along_axis(W, members, 1.0, axis=1)
    shared = np.rint(W @ W.T).astype(np.int64)
    up_to = np.concatenate([np.zeros((m, m, 1)), np.cumsum(D, axis=2, dtype=np.float64)], axis=2)
    each = np.take_along_axis(up_to, shared[:, :, None], axis=2)[:, :, 0]
    return float(np.triu(each, 1).sum())


@njit(cache=True, nogil=True)
def _anneal(D, members, n, temperatures, seed, count, counted):  # type: ignore[no-untyped-def]
    """members (m, k) in place, one heat bath after the other; `count` (m, n): how often each row
    had each column in the last `counted` passes."""
    m, k = members.shape
    holds = np.zeros((n, m), np.bool_)
    for i in range(m):
        for q in range(k):
            holds[members[i, q], i] = True
    shared = np.zeros((m, m), np.int64)
    for i in range(m):
        for j in range(m):
            for q in range(k):
                shared[i, j] += holds[members[i, q], j]
    cost = np.empty(n)
    chance = np.empty(n)
    state = seed
    for turn in range(len(temperatures)):
        temperature = temperatures[turn]
        for i in range(m):
            # 1. What each column would cost this row, beside all that it has.
            cost[:] = 0.0
            for j in range(m):
                more = D[i, j, shared[i, j]]
                for p in range(k):
                    cost[members[j, p]] += more
            for q in range(k):
                # 2. Without this member.
                _shift(D, members, holds, shared, cost, i, members[i, q], -1)
                holds[members[i, q], i] = False
                lowest = np.inf
                for b in range(n):
                    if not holds[b, i]:
                        lowest = min(lowest, cost[b])
                total = 0.0
                for b in range(n):
                    above = (cost[b] - lowest) / temperature
                    chance[b] = 0.0 if holds[b, i] or above > NEVER else np.exp(-above)
                    total += chance[b]
                # 3. One column by a random number (xorshift).
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                left = total * ((state >> np.uint64(11)) * 2.0**-53)
                for b in range(n):
                    left -= chance[b]
                    if left < 0:
                        members[i, q] = b
                        break
                holds[members[i, q], i] = True
                _shift(D, members, holds, shared, cost, i, members[i, q], 1)
        if turn >= len(temperatures) - counted:
            for i in range(m):
                for q in range(k):
                    count[i, members[i, q]] += 1


@njit(cache=True, nogil=True)
def _shift(D, members, holds, shared, cost, i, b, by):  # type: ignore[no-untyped-def]
    """Row i takes (1) or gives up (−1) column b: what it shares with others, and what each column
    costs it."""
    for j in range(holds.shape[1]):
        if holds[b, j] and j != i:
            old = shared[i, j]
            shared[i, j] = shared[j, i] = old + by
            change = D[i, j, old + by] - D[i, j, old]
            for p in range(members.shape[1]):
                cost[members[j, p]] += change
