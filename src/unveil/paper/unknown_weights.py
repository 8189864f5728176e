"""LearnPublic when the weights, and perhaps the number of public vectors, are unknown.

    maximise  L(S, w, s²) − |S|·(log n + 1.5)

over supports S, weights w ≥ 0 and the private variance s², for each encoding by itself, L the
folded log-likelihood of `folded_search`. log n nats is what choosing one of n public vectors is
worth: what gains less cannot be told from the best of n others.

Stepwise: the best pairs of the pool's pair matrix start; the best of all public vectors by gradient
is added, weights and variance are fitted again, as long as it pays; members that do not pay are
dropped and the search goes on. With k given there is no price: the weakest member is replaced
instead. Where weights are equal but k is unknown, a sample solved like this tells k, weight and
variance of all (`estimate_scheme`).

Cost: about k products for each of four starts and as many again for every repair, ten times
`folded_em` and more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

from unveil.encodings import Encodings
from unveil.engine.blocks import count_rows, results
from unveil.engine.folded import fold32, tanh32
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
    block = max(1, block_rows(m, d, limit) // starts)
    at_once = max(1, min(workers, limit // (4 * d * (public.columns + 8 * starts * block))))
    job = _Job(encodings, public, k, k_public is not None, min(limit // 4, 10**8), block, starts)
    found = Weighted(np.empty((m, k), np.int64), np.empty((m, k)), *np.empty((3, m)))
    done = count_rows(progress, "learn public", block, m)
    for start, part in results(_stepped, job, range(0, m, block), workers=at_once):
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


@dataclass(frozen=True, eq=False)
class _Job:
    """What all blocks of encodings share; fixed: k is known; block: encodings in each."""

    encodings: Encodings
    public: Public
    k: int
    fixed: bool
    spare: int
    block: int
    starts: int


def _stepped(job: _Job, start: int) -> Weighted:
    """The block of encodings from `start` on."""
    return _Stepwise(job, job.encodings.magnitudes(slice(start, start + job.block))).run()


class _Stepwise:
    """Stepwise search for a block of encodings, several starts each; one slot per member, −1 where
    it is empty."""

    def __init__(self, job: _Job, Y: Floats) -> None:
        self.y, self.public, self.k, self.fixed = Y, job.public, job.k, job.fixed
        self.price = 0.0 if job.fixed else price_of(job.public)
        size, P = min(2, job.k), job.public.vectors
        pool = screen(Y, job.public, 100)
        starts = pool[:, : job.starts, None]
        if size == 2:
            starts = start_supports(Y, P, pool, 2, job.starts, 1, job.spare)
        rows, flat = np.repeat(np.arange(len(Y)), starts.shape[1]), starts.reshape(-1, size)
        self.rows, flat = rows[flat[:, 0] >= 0], flat[flat[:, 0] >= 0]
        n = len(flat)
        total = np.einsum("ij,ij->i", Y, Y, dtype=np.float64)[self.rows] / Y.shape[1] + 1e-20
        self.supports, weights = np.full((n, self.k), -1, np.int64), np.zeros((n, self.k))
        self.supports[:, :size] = flat
        # Two members of 0.16 each of mean y², and the rest.
        weights[:, :size] = 0.4 * np.sqrt(total / self.public.power)[:, None]
        self.following = np.full(n, -np.inf)
        fitted = self._fit(self.rows, self.supports, weights, 0.68 * total, 30)
        self.weights, self.variance, self.likelihood = fitted

    def run(self, repairs: int = 3) -> Weighted:
        everybody = np.arange(len(self.rows))
        self._grow(everybody)
        for _ in range(repairs):
            if not self._repair():
                break
        weakest = self._without_each(everybody)[0].min(axis=1)
        # The best start of every encoding, members in order.
        score = self.likelihood - self.price * (self.supports >= 0).sum(axis=1)
        order = np.lexsort((-score, self.rows))
        first = order[np.unique(self.rows[order], return_index=True)[1]]
        S = self.supports[first]
        by_index = np.argsort(np.where(S >= 0, S, np.iinfo(np.int64).max), axis=1, kind="stable")
        S = np.take_along_axis(S, by_index, axis=1)
        weights = np.where(S >= 0, np.take_along_axis(self.weights[first], by_index, axis=1), 0)
        return Weighted(S, weights, self.variance[first], weakest[first], self.following[first])

    def _grow(self, active: Indices, tried: int = 4) -> None:
        """Add the best vector of all while it pays and there is room; tried: newcomers fitted."""
        for _ in range(self.k + 2):
            if len(active) == 0:
                return
            # 1. The best newcomers by gradient, each beside the members there are, fitted again.
            S, W, v = self.supports[active], self.weights[active], self.variance[active]
            at = gradient(self.y, self.public.vectors, self.rows[active], S, W, v)
            values, added = top_others(at.residual, self.public, S, tried)
            step = np.where(added >= 0, values, 0) / (self.y.shape[1] * self.public.power)
            step /= np.clip(at.information, 0.2, 1)[:, None]
            supports = np.repeat(np.pad(S, ((0, 0), (0, 1)), constant_values=-1), tried, axis=0)
            weights = np.repeat(np.pad(W, ((0, 0), (0, 1))), tried, axis=0)
            supports[:, -1], weights[:, -1] = added.ravel(), step.ravel()
            v = np.repeat(v, tried)
            v = np.maximum(v - self.public.power * weights[:, -1] ** 2, v / 2)
            weights, v, L = self._fit(np.repeat(self.rows[active], tried), supports, weights, v, 12)
            # 2. The best of them; where it pays and a slot is free, it is a member.
            L = np.where(added >= 0, L.reshape(-1, tried), -np.inf)
            best = np.arange(len(active)) * tried + L.argmax(axis=1)
            gain = L.max(axis=1) - self.likelihood[active]
            self.following[active] = gain
            pays = (gain > self.price) & (S < 0).any(axis=1)
            active, best = active[pays], best[pays]
            slot = (self.supports[active] < 0).argmax(axis=1)
            new = weights[best, : self.k]
            new[np.arange(len(best)), slot] = weights[best, -1]
            self.supports[active, slot] = supports[best, -1]
            self._set(active, new, v[best], L.ravel()[best])

    def _without_each(self, active: Indices) -> tuple[Reals, ...]:
        """Drop each member in turn and fit again: the loss (N, k), inf for empty slots; weights,
        variance and L."""
        n, k = len(active), self.k
        supports = np.repeat(self.supports[active], k, axis=0)
        weights = np.repeat(self.weights[active], k, axis=0)
        every = np.arange(n * k)
        supports[every, every % k], weights[every, every % k] = -1, 0
        rows, v = np.repeat(self.rows[active], k), np.repeat(self.variance[active], k)
        weights, v, L = self._fit(rows, supports, weights, v, 12)
        L = L.reshape(n, k)
        loss = np.where(self.supports[active] >= 0, self.likelihood[active][:, None] - L, np.inf)
        return loss, weights.reshape(n, k, k), v.reshape(n, k), L

    def _repair(self) -> bool:
        """Drop the weakest member, where it does not pay or k is given, and grow again; False:
        nothing changed."""
        size = (self.supports >= 0).sum(axis=1)
        loss, weights, variance, L = self._without_each(np.arange(len(self.rows)))
        poor = size > 1 if self.fixed else (size > 0) & (loss.min(axis=1) < self.price)
        active = np.flatnonzero(poor)
        if len(active) == 0:
            return False
        state = self.supports, self.weights, self.variance, self.likelihood
        before = [values[active].copy() for values in state]
        slot = loss.argmin(axis=1)[active]
        self.supports[active, slot] = -1
        self._set(active, weights[active, slot], variance[active, slot], L[active, slot])
        self._grow(active)
        if not self.fixed:
            return True
        # A replacement that does not help is taken back.
        worse = self.likelihood[active] <= before[3] + 1e-3
        for values, old in zip(state, before, strict=True):
            values[active[worse]] = old[worse]
        return not worse.all()

    def _fit(
        self, rows: Indices, supports: Indices, weights: Reals, variance: Reals, steps: int
    ) -> tuple[Reals, Reals, Reals]:
        return fit_weights(self.y, self.public.vectors, rows, supports, weights, variance, steps)

    def _set(self, at: Indices, weights: Reals, variance: Reals, likelihood: Reals) -> None:
        self.weights[at], self.variance[at], self.likelihood[at] = weights, variance, likelihood


def fit_weights(
    Y: Floats,
    P: Floats,
    rows: Indices,
    supports: Indices,
    weights: Reals,
    variance: NDArray[np.float64],
    steps: int = 30,
) -> tuple[Reals, Reals, Reals]:
    """Maximum-likelihood weights (N, k) and variance (N,) of encoding rows[t] on supports[t], from
    those given; and L.

    EM steps, w ← w + (XXᵀ)⁻¹Xr, never lose; a Newton step on the observed information
    X·diag(1 − y²sech²(yμ/s²)/s²)·Xᵀ is taken instead where that is positive and gains.
    """
    weights, variance, likelihood = weights.copy(), variance.copy(), np.empty(len(rows))
    _fit(Y, P, rows, supports, weights, variance, likelihood, steps)
    return weights, variance, likelihood


@njit(fastmath=True, cache=True, nogil=True)
def _fit(Y, P, rows, supports, weights, variance, likelihood, steps):  # type: ignore[no-untyped-def]
    d = Y.shape[1]
    mu = np.empty(d, np.float32)
    r = np.empty(d, np.float32)
    h = np.empty(d, np.float32)
    for t in range(len(rows)):
        y = Y[rows[t]]
        slots = np.flatnonzero(supports[t] >= 0)
        q = len(slots)
        total = 1e-20  # an encoding of zeros divides by something
        for j in range(d):
            total += y[j] * y[j] / d
        X = np.empty((q, d), np.float32)
        w = np.empty(q)
        for i in range(q):
            # Value by value: Numba takes seconds to compile one array written into another.
            for j in range(d):
                X[i, j] = P[supports[t, slots[i]], j]
            w[i] = weights[t, slots[i]]
        # 1. What does not change: the products of members, with a ridge, since equal vectors leave
        #    the system singular; bounds. At weight 0 the likelihood is flat, and no step leaves.
        h[:] = 1
        G = np.empty((q, q))
        H = np.empty((q, q))
        g = np.empty(q)
        _products(X, h, G)
        size = (np.trace(G) / q if q else 0.0) + 1e-20
        for i in range(q):
            G[i, i] += 1e-6 * size
        floor = 1e-4 * np.sqrt(total * d / size)
        v = max(variance[t], 1e-6 * total) if q else total
        _mean(X, w, mu)
        current = fold32(y, mu, float32(1 / v))
        for _ in range(steps if q else 0):
            # 2. Residual, information per pixel, and what they are on the members.
            precision = float32(1 / v)
            for j in range(d):
                th = tanh32(y[j] * mu[j] * precision)
                r[j] = y[j] * th - mu[j]
                h[j] = float32(1) - y[j] * y[j] * (float32(1) - th * th) * precision
            for i in range(q):
                s = float32(0)
                for j in range(d):
                    s += r[j] * X[i, j]
                g[i] = s
            _products(X, h, H)
            # 3. A Newton step where it may be trusted, else or if it loses an EM step; and the
            #    variance that goes with it, the expected square of what is left.
            best = -1e300
            best_w = w
            best_v = v
            for newton in (True, False):
                if newton and np.linalg.eigvalsh(H)[0] < 0.05 * size:
                    continue
                trial = np.maximum(w + np.linalg.solve(H if newton else G, g), floor)
                _mean(X, trial, mu)
                s = float32(0)
                for j in range(d):
                    m = mu[j]
                    s += y[j] * y[j] - 2 * y[j] * m * tanh32(y[j] * m * precision) + m * m
                trial_v = max(s / d, 1e-6 * total)
                x = fold32(y, mu, float32(1 / trial_v))
                if x > best:
                    best = x
                    best_w = trial
                    best_v = trial_v
                if best > current:
                    break
            # 4. Stop where nothing is gained; rounding may lose a little.
            if best < current - 1e-2:
                break
            gain = best - current
            w = best_w
            v = best_v
            current = best
            _mean(X, w, mu)
            if gain < 1e-3:
                break
        for i in range(q):
            weights[t, slots[i]] = w[i]
        variance[t] = v
        likelihood[t] = current


@njit(fastmath=True, cache=True, nogil=True)
def _products(X, h, out):  # type: ignore[no-untyped-def]
    """X·diag(h)·Xᵀ."""
    for i in range(len(X)):
        for k in range(i + 1):
            s = float32(0)
            for j in range(X.shape[1]):
                s += h[j] * X[i, j] * X[k, j]
            out[i, k] = s
            out[k, i] = s


@njit(fastmath=True, cache=True, nogil=True)
def _mean(X, w, mu):  # type: ignore[no-untyped-def]
    mu[:] = 0
    for i in range(len(X)):
        for j in range(X.shape[1]):
            mu[j] += float32(w[i]) * X[i, j]
