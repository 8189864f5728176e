"""Where the search for a support starts: the pair matrix of the pool, each of its vectors grown
greedily to k.

To second order around μ = 0 the folded log-likelihood is a quadratic form in the weights. With G
the pool (K, d) and z the centred squares of the encoding, its matrix is

    M = G·diag(z)·Gᵀ          (the moment matrix M̃ of the paper restricted to the pool),

so Σ_{a,b∈S} M_ab ranks supports S. Growing from every one of the K vectors costs K²k and replaces
the top eigenvector of the paper's experiments, which mixes true vectors with whatever else
correlates.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unveil.mapped import let_go
from unveil.parallel import rows_per_block
from unveil.supports.folded.likelihood import Floats, Indices
from unveil.supports.folded.screen import pixel_weights

TAKEN = -1e30
"""The gain of a vector that is already a member: less than any sum of squares, so never the
best."""


def start_supports(
    magnitudes: Floats,
    public: Floats,
    pool: Indices,
    k: int,
    count: int,
    most_shared: int,
    limit: int,
) -> Indices:
    """(m, count, k) supports, best first, no two of one encoding sharing more than `most_shared`;
    −1 where there are fewer."""
    m, kept = pool.shape
    out = np.full((m, count, k), -1, np.int64)
    block = rows_per_block(8 * kept * (public.shape[1] + kept), limit, most=8)
    plain = np.empty((block, kept, public.shape[1]), np.float32)
    weighted = np.empty_like(plain)
    for first in range(0, m, block):
        chosen = pool[first : first + block]
        size = len(chosen)
        _gather(public, chosen, pixel_weights(magnitudes[first : first + block]), plain, weighted)
        let_go(public)
        pairs = np.matmul(plain[:size], weighted[:size].transpose(0, 2, 1))
        positions = np.full((size, count, k), -1, np.int64)
        _grow(pairs, most_shared, positions)
        rows = np.arange(size)[:, None, None]
        out[first : first + block] = np.where(positions >= 0, chosen[rows, positions], -1)
    return out


@njit(fastmath=True, cache=True, nogil=True)
def _gather(P, pool, z, plain, weighted):  # type: ignore[no-untyped-def]
    for t in range(pool.shape[0]):
        for q in range(pool.shape[1]):
            p = P[pool[t, q]]
            for j in range(P.shape[1]):
                plain[t, q, j] = p[j]
                weighted[t, q, j] = p[j] * z[t, j]


@njit(fastmath=True, cache=True, nogil=True)
def _grow(pairs, most_shared, out):  # type: ignore[no-untyped-def]
    """Every position grown greedily to k in the quadratic form; the best supports that differ
    enough, into `out`."""
    count, k = out.shape[1:]
    K = pairs.shape[1]
    gain = np.empty(K, np.float32)
    grown = np.empty((K, k), np.int64)
    value = np.empty(K, np.float32)
    for b in range(pairs.shape[0]):
        # 1. Every vector of the pool grown to k: the next one is that which adds most to Σ M.
        M = pairs[b]
        for i in range(K):
            value[i] = M[i, i]
            grown[i, 0] = i
            for j in range(K):
                gain[j] = M[j, j] + 2 * M[i, j]
            gain[i] = TAKEN
            for q in range(1, k):
                best = gain.argmax()
                value[i] += gain[best]
                grown[i, q] = best
                row = M[best]
                for j in range(K):
                    gain[j] += 2 * row[j]
                gain[best] = TAKEN
        # 2. The best of these, as long as they differ from those before.
        taken = 0
        for i in np.argsort(-value):
            new = True
            for e in range(taken):
                shared = 0
                for q in range(k):
                    for s in range(k):
                        shared += grown[i, q] == out[b, e, s]
                if shared > most_shared:
                    new = False
                    break
            if new:
                out[b, taken] = grown[i]
                taken += 1
                if taken == count:
                    break
