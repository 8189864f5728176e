"""LearnPublic when the weights, and perhaps the number of public vectors, are unknown.

    maximise  L(S, w, s²) − |S|·(log n + 1.5)

over supports S, weights w ≥ 0 and the private variance s², for each encoding by itself, L the
folded log-likelihood of `folded_search`. log n nats is what choosing one of n public vectors is
worth: what gains less cannot be told from the best of n others. With k given there is no price.

Stepwise, from the best pairs of the pool's pair matrix: the best of all public vectors by gradient
is added while there is room and it pays, else it takes the place of the member that it serves best,
as long as L rises; in the end members that do not pay are dropped. After every move weights and
variance are fitted again. Where weights are equal but k is unknown, a sample solved like this tells
k, weight and variance of all (`estimate_scheme`).

Cost: about k products for each of four starts, and k fits for every exchange; ten times `folded_em`
and more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unveil.encodings import Encodings
from unveil.engine.blocks import count_rows, results
from unveil.paper.folded_search import (
    Floats,
    Indices,
    Public,
    Reals,
    block_rows,
    gradient,
    screen,
    start_supports,
    top_others,
)
from unveil.records import Progress


@dataclass(frozen=True, eq=False)
class Weighted:
    """indices (m, k) sorted, padded with −1; weights (m, k), 0 there; private variance (m,);

    weakest (m,): what dropping the weakest member loses; following (m,): what the best vector left
    out would gain.
    """

    indices: Indices
    weights: Reals
    variance: Reals
    weakest: Reals
    following: Reals


def price_of(public: Public) -> float:
    """Nats a member must gain."""
    return float(np.log(public.count)) + 1.5


def learn_weights(
    encodings: Encodings,
    public: Public,
    *,
    k_public: int | None,
    k_max: int = 8,
    limit: int,
    workers: int,
    starts: int = 4,
    progress: Progress | None = None,
) -> Weighted:
    """Support, weights and private variance of every encoding; k_public=None: as many members as
    pay, up to k_max; starts: pairs to begin with, each a search of its own."""
    m, d = encodings.m, encodings.d
    k = min(public.count, k_max if k_public is None else k_public)
    price = price_of(public) if k_public is None else 0.0
    block = max(1, block_rows(m, d, limit) // starts)
    at_once = max(1, min(workers, limit // (4 * d * (public.columns + 8 * starts * block))))
    job = encodings, public, k, price, min(limit // 4, 10**8), block, starts
    found = Weighted(np.empty((m, k), np.int64), np.empty((m, k)), *np.empty((3, m)))
    done = count_rows(progress, "learn public", block, m)
    for start, part in results(_stepwise, job, range(0, m, block), workers=at_once):
        for name, values in vars(part).items():
            getattr(found, name)[start : start + block] = values
        done(start)
    return found


def estimate_scheme(
    encodings: Encodings, public: Public, *, limit: int, workers: int, sample: int = 64
) -> tuple[int, float, float]:
    """(k_public, weight of a member, private variance) of the equal-weight scheme behind most of a
    sample of the encodings."""
    chosen = np.sort(np.random.default_rng(0).permutation(encodings.m)[:sample])
    some = replace(encodings, values=encodings.values[chosen], labels=None)
    found = learn_weights(some, public, k_public=None, limit=limit, workers=workers)
    size = (found.indices >= 0).sum(axis=1)
    k = int(np.bincount(size).argmax())
    weight = float(found.weights[size == k][:, :k].mean()) if k else 0.0
    return k, weight, float(found.variance[size == k].mean())


def _stepwise(job: tuple[Encodings, Public, int, float, int, int, int], start: int) -> Weighted:
    """The block of encodings from `start` on, several starts each; one slot per member, −1 where it
    is empty."""
    encodings, public, k, price, spare, block, starts = job
    Y, P, size = encodings.magnitudes(slice(start, start + block)), public.vectors, min(2, k)
    # 1. Starts; two members of 0.16 each of mean y², and the rest.
    pool = screen(Y, public, 100)
    pairs = pool[:, :starts, None]
    if size == 2:
        pairs = start_supports(Y, P, pool, 2, starts, 1, spare)
    rows, flat = np.repeat(np.arange(len(Y)), pairs.shape[1]), pairs.reshape(-1, size)
    rows, flat = rows[flat[:, 0] >= 0], flat[flat[:, 0] >= 0]
    n = len(flat)
    total = _power(Y)[rows]
    S, W = np.full((n, k), -1, np.int64), np.zeros((n, k))
    S[:, :size], W[:, :size] = flat, 0.4 * np.sqrt(total / public.power)[:, None]
    W, v, L = fit_weights(Y, P, rows, S, W, 0.68 * total, 30)
    following, active = np.full(n, -np.inf), np.arange(n)
    for _ in range(2 * k + 4):
        if len(active) == 0:
            break
        # 2. The best newcomer by gradient, beside the members there are.
        at = gradient(Y, P, rows[active], S[active], W[active], v[active])
        value, new = top_others(at.residual, public, S[active], 1)
        slope = np.clip(at.information, 0.2, 1)[:, None] * (Y.shape[1] * public.power)
        both = np.hstack([S[active], new])
        weights = np.hstack([W[active], np.where(new >= 0, value, 0) / slope])
        wide = fit_weights(Y, P, rows[active], both, weights, v[active])
        gain = np.where(new[:, 0] >= 0, wide[2] - L[active], -np.inf)
        following[active] = gain
        # 3. In a free slot, where it pays.
        adds = (gain > price) & (S[active] < 0).any(axis=1)
        grown, slot = active[adds], (S[active[adds]] < 0).argmax(axis=1)
        W[grown], v[grown], L[grown] = wide[0][adds, :k], wide[1][adds], wide[2][adds]
        W[grown, slot], S[grown, slot] = wide[0][adds, k], new[adds, 0]
        # 4. Elsewhere in the place of each member, by turns; the best one, where L rises.
        rest, every = np.flatnonzero(~adds & (new[:, 0] >= 0)), np.arange(k)
        swapped = np.repeat(both[rest, None, :k], k, axis=1)
        swapped[:, every, every] = new[rest]
        weights = np.repeat(weights[rest, None, :k], k, axis=1)
        weights[:, every, every] = wide[0][rest, k:]
        flat_rows, flat_v = np.repeat(rows[active[rest]], k), np.repeat(wide[1][rest], k)
        tried = fit_weights(Y, P, flat_rows, swapped.reshape(-1, k), weights.reshape(-1, k), flat_v)
        likely = np.where(both[rest, :k] >= 0, tried[2].reshape(-1, k), -np.inf)
        best = likely.argmax(axis=1)
        up = likely.max(axis=1) > L[active[rest]] + 1e-3
        moved, one = active[rest[up]], (np.flatnonzero(up) * k + best[up])
        S[moved], W[moved] = swapped.reshape(-1, k)[one], tried[0][one]
        v[moved], L[moved] = tried[1][one], tried[2][one]
        active = np.concatenate([grown, moved])
    # 5. Members that do not pay go, the weakest first.
    weakest, left = np.full(n, np.inf), np.arange(n)
    for _ in range(k + 1):
        members = np.repeat(S[left, None], k, axis=1)
        members[:, np.arange(k), np.arange(k)] = -1
        each = np.repeat(rows[left], k), members.reshape(-1, k), np.repeat(W[left], k, axis=0)
        less = fit_weights(Y, P, *each, np.repeat(v[left], k))
        loss = np.where(S[left] >= 0, L[left, None] - less[2].reshape(-1, k), np.inf)
        weakest[left] = loss.min(axis=1)
        poor = np.flatnonzero(weakest[left] < price)
        one = poor * k + loss[poor].argmin(axis=1)
        left = left[poor]
        S[left], W[left] = members.reshape(-1, k)[one], less[0][one]
        v[left], L[left] = less[1][one], less[2][one]
    weakest[total <= 1e-20] = 0  # zeros say nothing
    # 6. The best start of every encoding, members in order.
    score = L - price * (S >= 0).sum(axis=1)
    order = np.lexsort((-score, rows))
    first = order[np.unique(rows[order], return_index=True)[1]]
    S = S[first]
    by_index = np.argsort(np.where(S >= 0, S, np.iinfo(np.int64).max), axis=1, kind="stable")
    S = np.take_along_axis(S, by_index, axis=1)
    W = np.where(S >= 0, np.take_along_axis(W[first], by_index, axis=1), 0)
    return Weighted(S, W, v[first], weakest[first], following[first])


def fit_weights(
    Y: Floats,
    P: Floats,
    rows: Indices,
    supports: Indices,
    weights: Reals,
    variance: Reals,
    steps: int = 15,
) -> tuple[Reals, Reals, Reals]:
    """Maximum-likelihood weights (N, k) and variance (N,) of encoding rows[t] on supports[t], from
    those given; and L.

    Expectation–maximisation, w ← w + (XXᵀ)⁻¹Xr, taken up to twice as far where the information J
    per pixel is small: below two it still converges.
    """
    k, d = supports.shape[1], Y.shape[1]
    total = _power(Y)[rows]
    # Products of members, with a ridge, since equal vectors leave the system singular.
    gram, used = np.empty((len(rows), k, k)), supports >= 0
    for t, support in enumerate(supports):
        X = P[support] * used[t][:, None]
        gram[t] = X @ X.T
    size = np.trace(gram, axis1=1, axis2=2) / np.maximum(used.sum(axis=1), 1) + 1e-20
    ridge = gram + np.eye(k) * np.where(used, 1e-6, 1)[:, None] * size[:, None, None]
    # At weight 0 the likelihood is flat, and no step leaves.
    floor = np.where(used, 1e-4 * np.sqrt(total * d / size)[:, None], 0)
    w, v = np.where(used, np.maximum(weights, floor), 0), np.maximum(variance, 1e-6 * total)
    for _ in range(steps):
        at = gradient(Y, P, rows, supports, w, v)
        members = at.members.astype(np.float64)
        signed = members + np.einsum("tij,tj->ti", gram, w)
        step = np.linalg.solve(ridge, members[..., None])[..., 0]
        w = np.where(
            used, np.maximum(w + step / np.clip(at.information, 0.5, 1)[:, None], floor), 0
        )
        left = np.einsum("ti,tij,tj->t", w, gram, w) - 2 * (w * signed).sum(axis=1)
        v = np.maximum(total + left / d, 1e-6 * total)
    return w, v, gradient(Y, P, rows, supports, w, v).log_likelihood


def _power(Y: Floats) -> Reals:
    """The mean square of every encoding; zeros divide by something."""
    return np.asarray(np.einsum("ij,ij->i", Y, Y, dtype=np.float64) / Y.shape[1] + 1e-20)
