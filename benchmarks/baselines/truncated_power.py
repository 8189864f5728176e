"""Truncated power method for sparse PCA (Yuan & Zhang, JMLR 14, 2013) on the moment matrix of
LearnPublic.

    max xᵀM̃x  subject to  ‖x‖ = 1, ‖x‖₀ ≤ k,      M̃ = (1/d) Σ_j (y_j²/σ² − 1)·(p_j p_jᵀ − I)

Published steps (their algorithm 1): x ← M̃x; keep the s entries of largest modulus; normalise;
repeat. As they advise, s falls in stages (8k, 4k, 2k, k), each stage starting where the last one
ended, and the best of several starts is kept. We start from the ten columns of largest diagonal.

Private part: it enters M̃ as noise of mean zero (`lem:population`), so nothing is done about it.
Ours: weights are known to be positive, so "largest" needs no modulus. M̃ is never formed: M̃x =
P(z∘(Pᵀx))/d, z = y²/σ² − 1 of mean zero. The shift that would make M̃ positive semidefinite, which
their proof of ascent wants, is left out: for n_public > d it is so large that nothing moves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

STARTS = 10
STEPS = 12
"""Steps in each stage; a stage ends earlier when no set of kept entries changes."""


def support(
    y: NDArray[np.float32],
    public: NDArray[np.float32],
    k: int,
    *,
    starts: int = STARTS,
    steps: int = STEPS,
) -> NDArray[np.int64]:
    m, d = y.shape
    n = len(public)
    square = y * y
    z = square / square.mean(axis=1, keepdims=True) - 1
    starts = min(starts, n)
    first = _largest(z @ np.square(public).T, starts)
    row = np.repeat(np.arange(m), starts)
    x = sparse.csr_array(
        (np.ones(m * starts, np.float32), (np.arange(m * starts), first.ravel())),
        shape=(m * starts, n),
    )
    value = np.full(m * starts, -np.inf)
    for s in (min(n, factor * k) for factor in (8, 4, 2, 1)):
        kept = np.full((m * starts, s), -1)
        for _ in range(steps):
            Mx = (z[row] * (x @ public)) @ public.T / d
            value = x.multiply(Mx).sum(axis=1)
            before, kept = kept, _largest(Mx, s)
            entries = np.maximum(np.take_along_axis(Mx, kept, axis=1), 1e-9)
            entries /= np.linalg.norm(entries, axis=1, keepdims=True)
            x = sparse.csr_array(
                (entries.ravel(), kept.ravel(), np.arange(0, kept.size + 1, s)), shape=x.shape
            )
            if (before == kept).all():
                break
    best = value.reshape(m, starts).argmax(axis=1)
    return kept.reshape(m, starts, k)[np.arange(m), best]


def _largest(values: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    return np.sort(np.argpartition(-values, count - 1, axis=1)[:, :count], axis=1)
