"""Rivals of a support: the supports one swap away that explain an encoding almost as well, or
better.

A swap exchanges a member i ∈ S for another public vector. Two passes over all public vectors say
which are worth trying:

    r(S)           the gradient at S: vectors S lacks
    Σ_i r(S∖i)     the sum of the leave-one-out residuals: vectors that could stand in for some
                   member, its near-twins included, which the gradient at S does not see
    r(S∖i), each   k products instead of one: sure where the sum drowns a twin among k residuals

All swaps with these candidates are ranked by the efficient score of the newcomer given S∖i (its
first and second Hermite coefficient at variance s² + a²), the best for every member and the best
few overall are evaluated exactly.
"""

from __future__ import annotations

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

from unveil.folded import fold32, signed32
from unveil.parallel import rows_per_block
from unveil.supports.folded.likelihood import Floats, Indices, Model, gradient
from unveil.supports.folded.screen import top_products
from unveil.supports.folded.survey import Public

EXACT = 4
"""Swaps evaluated exactly besides the best one for each member."""
MOVES = 8
"""Swaps followed one after the other: a start that is nearly right needs one or two."""
GAIN = 1e-3
"""Nats a swap must gain: less is rounding, and would go round in circles."""
NO_SWAP = -1e30
"""The score of a swap that is not possible, below that of any other."""


def swap_to_better(
    magnitudes: Floats,
    public: Public,
    rows: Indices,
    supports: Indices,
    likelihood: NDArray[np.float64],
    candidates: Indices,
    model: Model,
) -> tuple[Indices, NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Follow swaps as long as they gain: supports, their L, the margin to the best rival left, and
    who moved."""
    supports, likelihood = supports.copy(), likelihood.copy()
    margin = np.full(len(rows), np.inf)
    moved = np.zeros(len(rows), bool)
    active = np.arange(len(rows))
    # Room for the members swapped out, so that they stay candidates.
    width = candidates.shape[1]
    candidates = np.concatenate([candidates, np.full((len(rows), MOVES), -1, np.int64)], axis=1)
    for move in range(MOVES):
        best, leaves, enters = best_swap(
            magnitudes, public, rows[active], supports[active], candidates[active], model
        )
        margin[active] = likelihood[active] - best
        up = np.flatnonzero(best > likelihood[active] + GAIN)
        if len(up) == 0:
            break
        active = active[up]
        candidates[active, width + move] = supports[active, leaves[up]]
        supports[active, leaves[up]] = enters[up]
        likelihood[active] = best[up]
        margin[active] = 0
        moved[active] = True
    supports.sort(axis=1)
    return supports, likelihood, margin, moved


def best_swap(
    magnitudes: Floats,
    public: Public,
    rows: Indices,
    supports: Indices,
    candidates: Indices,
    model: Model,
) -> tuple[NDArray[np.float64], Indices, Indices]:
    """The best support one swap away: its L (−inf: no swap), the position that leaves, the vector
    that enters."""
    best = np.empty(len(rows))
    leaves, enters = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    a, v, power = np.float32(model.weight), np.float32(model.variance), np.float32(model.power)
    _best_swaps(
        magnitudes,
        public.vectors,
        rows,
        supports,
        a,
        v,
        power,
        candidates,
        EXACT,
        best,
        leaves,
        enters,
    )
    best[enters < 0] = -np.inf
    return best, leaves, enters


def leave_one_out_sum(
    magnitudes: Floats, public: Public, rows: Indices, supports: Indices, model: Model, kept: int
) -> Indices:
    """Candidates (N, kept) of the summed leave-one-out residual: one product per encoding."""
    total = np.empty((len(rows), magnitudes.shape[1]), np.float32)
    a, v = np.float32(model.weight), np.float32(model.variance + model.spread)
    _sum_residuals(magnitudes, public.vectors, rows, supports, a, v, total)
    return top_products(total, public, kept)[1]


def leave_one_out(
    magnitudes: Floats,
    public: Public,
    rows: Indices,
    supports: Indices,
    model: Model,
    kept: int,
    limit: int,
) -> Indices:
    """Candidates (N, k·kept) of the residual at S without each member in turn: k products per
    encoding."""
    k = supports.shape[1]
    others = np.array([[q for q in range(k) if q != i] for i in range(k)], np.int64).reshape(
        k, k - 1
    )
    out = np.empty((len(rows), k * kept), np.int64)
    block = rows_per_block(4 * k * magnitudes.shape[1], limit, most=len(rows))
    for first in range(0, len(rows), block):
        part = slice(first, first + block)
        without = supports[part][:, others].reshape(-1, k - 1)
        at = gradient(
            magnitudes,
            public.vectors,
            np.repeat(rows[part], k),
            without,
            model.weight,
            model.variance + model.spread,
        )
        out[part] = top_products(at.residual, public, kept)[1].reshape(-1, k * kept)
    return out


def largest_correlation(
    public: Public, supports: Indices, candidates: Indices
) -> NDArray[np.float64]:
    """(N,): the largest |correlation| of a member of supports[t] with one of candidates[t] outside
    the support."""
    out = np.empty(len(supports))
    _largest_correlations(public.vectors, supports, candidates, out)
    return out


def is_correlated(public: Public, members: Indices) -> bool:
    """Whether any of `members` correlates with another public vector by more than chance explains
    for independent ones.

    Chance: the largest of N standard normal numbers stays below √(2 log N) + 1 in all but 1 in 100
    cases (N of 10⁵ and more).
    """
    P = public.vectors
    d = P.shape[1]
    X = P[members]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    bound = (np.sqrt(2 * np.log(max(2, len(members) * len(P)))) + 1) / np.sqrt(d)
    for first, block in public.blocks():
        norms = np.sqrt(np.einsum("ij,ij->i", block, block))
        product = np.abs(X @ block.T)
        product[members[:, None] == np.arange(first, first + len(block))] = 0
        product[:, ~public.usable[first : first + len(block)]] = 0
        if (product > bound * norms).any():
            return True
    return False


@njit(fastmath=True, cache=True, nogil=True)
def _best_swaps(  # type: ignore[no-untyped-def]
    Y, P, rows, supports, a, v, power, candidates, exact, best, leaves, enters
):
    d = Y.shape[1]
    k = supports.shape[1]
    C = candidates.shape[1]
    precision = float32(1) / v
    loose = float32(1) / (v + a * a * power)
    mu = np.empty(d, np.float32)
    part = np.empty(d, np.float32)
    first = np.empty(d, np.float32)
    second = np.empty(d, np.float32)
    score = np.empty((k, C))
    for t in range(len(rows)):
        y = Y[rows[t]]
        S = supports[t]
        # 1. μ of the support as it is.
        mu[:] = 0
        for q in range(k):
            p = P[S[q]]
            for j in range(d):
                mu[j] += a * p[j]
        # 2. Every member left out in turn: first and second Hermite coefficient of a newcomer,
        # which counts as noise until it is chosen.
        score[:] = NO_SWAP
        for i in range(k):
            p = P[S[i]]
            offset = float32(0)
            for j in range(d):
                m = mu[j] - a * p[j]
                part[j] = m
                x = signed32(y[j], m, loose)
                first[j] = (x - m) * a * loose
                second[j] = (
                    float32(0.5)
                    * a
                    * a
                    * loose
                    * ((y[j] * y[j] - 2 * x * m + m * m) * loose - float32(1))
                )
                offset += second[j] * power
            # 3. The score of every candidate in its place.
            base = fold32(y, part, loose) - offset
            for c in range(C):
                g = candidates[t, c]
                skip = g < 0
                for q in range(k):
                    skip |= S[q] == g
                if skip:
                    continue
                p = P[g]
                s = float32(0)
                for j in range(d):
                    s += p[j] * (first[j] + second[j] * p[j])
                score[i, c] = base + s
        # 4. The best for each member, and the best few of all, evaluated exactly.
        best[t] = NO_SWAP
        leaves[t] = -1
        enters[t] = -1
        for e in range(k + exact):
            if e < k:
                i = e
                c = score[i].argmax()
            else:
                flat = score.argmax()
                i = flat // C
                c = flat % C
            if score[i, c] <= NO_SWAP / 10:
                continue
            g = candidates[t, c]
            # A candidate may be listed twice; it is tried once.
            for c2 in range(C):
                if candidates[t, c2] == g:
                    score[i, c2] = NO_SWAP
            p = P[S[i]]
            new = P[g]
            for j in range(d):
                part[j] = mu[j] + a * (new[j] - p[j])
            x = fold32(y, part, precision)
            if x > best[t]:
                best[t] = x
                leaves[t] = i
                enters[t] = g


@njit(fastmath=True, cache=True, nogil=True)
def _sum_residuals(Y, P, rows, supports, a, v, out):  # type: ignore[no-untyped-def]
    d = Y.shape[1]
    k = supports.shape[1]
    precision = float32(1) / v
    mu = np.empty(d, np.float32)
    for t in range(len(rows)):
        y = Y[rows[t]]
        r = out[t]
        mu[:] = 0
        for q in range(k):
            p = P[supports[t, q]]
            for j in range(d):
                mu[j] += a * p[j]
        r[:] = 0
        for q in range(k):
            p = P[supports[t, q]]
            for j in range(d):
                m = mu[j] - a * p[j]
                r[j] += signed32(y[j], m, precision) - m


@njit(fastmath=True, cache=True, nogil=True)
def _largest_correlations(P, supports, candidates, out):  # type: ignore[no-untyped-def]
    d = P.shape[1]
    k = supports.shape[1]
    for t in range(len(out)):
        out[t] = 0.0
        for c in range(candidates.shape[1]):
            g = candidates[t, c]
            skip = g < 0
            for q in range(k):
                skip |= supports[t, q] == g
            if skip:
                continue
            p = P[g]
            for q in range(k):
                x = P[supports[t, q]]
                xy = float32(0)
                xx = float32(0)
                yy = float32(0)
                for j in range(d):
                    xy += x[j] * p[j]
                    xx += x[j] * x[j]
                    yy += p[j] * p[j]
                out[t] = max(out[t], abs(xy) / np.sqrt(xx * yy))
