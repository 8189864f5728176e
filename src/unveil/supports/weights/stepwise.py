"""LearnPublic when the weights, and perhaps the number of public vectors, are unknown.

    maximise  L(S, w, s²) − |S|·(log n + 1.5)

over supports S, weights w ≥ 0 and the private variance s², for each encoding by itself.

log n nats is what choosing one of n public vectors is worth, so a vector must gain more than that
to count as a member; what gains less cannot be told from the best of n others. Stepwise: the best
pairs of the pool's pair matrix start; the best of all public vectors by gradient is added, weights
and variance are fitted again (`supports.weights.fit`), as long as it pays; members that do not pay
are dropped and the search goes on. With k given there is no price: the weakest member is replaced
instead.

Where weights are equal but k is unknown, a sample solved like this tells k, weight and variance of
all (`estimate_scheme`), and the stronger search of `supports.folded.search` does the rest.

Cost: about k products for each of four starts and as many again for every repair, ten times
`folded_em` and more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.cluster import results
from unveil.encodings import Encodings
from unveil.parallel import count_rows
from unveil.records import Progress
from unveil.supports.folded.likelihood import Floats, Indices, gradient
from unveil.supports.folded.screen import screen, top_others
from unveil.supports.folded.search import SPARE, block_rows
from unveil.supports.folded.starts import start_supports
from unveil.supports.folded.survey import Public
from unveil.supports.weights.fit import fit_weights

K_MAX = 8
"""Members at most where k is unknown: twice what the schemes in use mix."""
STARTS, POOL = 4, 100
"""Pairs to start from, each a search of its own, and the vectors they are made of."""
CANDIDATES, REPAIRS = 4, 3
"""Newcomers fitted in each step; rounds of dropping the weakest member and growing again."""
FIRST_WEIGHT, FIRST_VARIANCE = 0.4, 0.68
"""Where the fit of a pair starts, in units of mean y²: two members of 0.16 each and the rest."""
LEAST_TOLD = 0.2
"""Least information per pixel in a Newton step: where signs are lost it tends to 0."""
FIRST_STEPS, MORE_STEPS = 30, 12
"""Steps of a fit from scratch, and of one that goes on from a fitted support."""
EMPTY = 1e-20
"""Added to mean squares, so that an encoding of zeros divides by something."""
GAIN = 1e-3
"""Nats a repair must gain: less is rounding."""
PRICE = 1.5
"""Nats a member must gain beyond log n."""
SAMPLE = 64
"""Encodings that tell k, weight and variance of all: the most frequent k counts, so that most of
them must be right, not all."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """indices (m, k) sorted, padded with −1; weights (m, k), 0 there; private variance and L (m,);

    weakest (m,): what dropping the weakest member loses; following (m,): what the best vector left
    out would gain.
    """

    indices: Indices
    weights: NDArray[np.float64]
    variance: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    weakest: NDArray[np.float64]
    following: NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """k_public, the weight of a member and the private variance of an equal-weight scheme."""

    k: int
    weight: float
    variance: float


def learn_weights(
    encodings: Encodings,
    public: Public,
    *,
    k_public: int | None,
    k_max: int = K_MAX,
    limit: int,
    workers: int,
    progress: Progress | None = None,
) -> Weighted:
    """Support, weights and private variance of every encoding; k_public=None: as many members as
    pay, up to k_max."""
    m = encodings.m
    k = min(public.count, k_max if k_public is None else k_public)
    found = Weighted(
        np.empty((m, k), np.int64),
        np.empty((m, k)),
        np.empty(m),
        np.empty(m),
        np.empty(m),
        np.empty(m),
    )
    # Every row is searched from several starts at once, and each worker holds a block of them.
    block = max(1, block_rows(m, encodings.d, limit) // STARTS)
    at_once = max(
        1, min(workers, limit // (4 * encodings.d * (public.columns + 8 * STARTS * block)))
    )
    job = _Job(encodings, public, k, k_public is not None, min(limit // 4, SPARE), block)
    done = count_rows(progress, "learn public", block, m)
    for start, part in results(_stepped, job, range(0, m, block), workers=at_once):
        for name, values in part.items():
            getattr(found, name)[start : start + block] = values
        done(start)
    return found


@dataclass(frozen=True, eq=False)
class _Job:
    """What all blocks of encodings share; fixed: k is known; block: encodings in each."""

    encodings: Encodings
    public: Public
    k: int
    fixed: bool
    spare: int
    block: int


def _stepped(job: _Job, start: int) -> dict[str, NDArray[np.floating] | Indices]:
    """The block of encodings from `start` on."""
    magnitudes = job.encodings.magnitudes(slice(start, start + job.block))
    return _Stepwise(magnitudes, job.public, job.k, job.fixed, job.spare).run()


def estimate_scheme(encodings: Encodings, public: Public, *, limit: int, workers: int) -> Estimate:
    """The equal-weight scheme behind most of a sample of the encodings."""
    chosen = np.sort(np.random.default_rng(0).permutation(encodings.m)[:SAMPLE])
    sample = Encodings(encodings.values[chosen], encodings.scheme, encodings.pixel_rms)
    found = learn_weights(sample, public, k_public=None, limit=limit, workers=workers)
    size = (found.indices >= 0).sum(axis=1)
    k = int(np.bincount(size).argmax())
    weight = float(found.weights[size == k][:, :k].mean()) if k else 0.0
    return Estimate(k, weight, float(found.variance[size == k].mean()))


class _Stepwise:
    """Stepwise search for a block of encodings, several starts each; one slot per member, −1 where
    it is empty."""

    def __init__(self, magnitudes: Floats, public: Public, k: int, fixed: bool, spare: int) -> None:
        self.y, self.public, self.k, self.fixed = magnitudes, public, k, fixed
        self.price = 0.0 if fixed else np.log(public.count) + PRICE
        self._start(spare)

    def run(self) -> dict[str, NDArray[np.floating] | Indices]:
        everybody = np.arange(len(self.rows))
        self._grow(everybody)
        for _ in range(REPAIRS):
            if not self._repair():
                break
        losses = self._without_each(everybody)[0]
        return self._best(losses.min(axis=1))

    def _start(self, spare: int) -> None:
        m, k = len(self.y), self.k
        pool = screen(self.y, self.public, POOL)
        size = min(2, k)
        starts = pool[:, :STARTS, None]
        if size == 2:
            starts = start_supports(self.y, self.public.vectors, pool, 2, STARTS, 1, spare)
        # One row per start; encodings with fewer starts have fewer rows.
        self.rows = np.repeat(np.arange(m), starts.shape[1])
        flat = starts.reshape(-1, size)
        self.rows, flat = self.rows[flat[:, 0] >= 0], flat[flat[:, 0] >= 0]
        n = len(flat)
        total = (
            np.einsum("ij,ij->i", self.y, self.y, dtype=np.float64)[self.rows] / self.y.shape[1]
            + EMPTY
        )
        self.supports = np.full((n, k), -1, np.int64)
        self.supports[:, :size] = flat
        self.weights = np.zeros((n, k))
        self.weights[:, :size] = FIRST_WEIGHT * np.sqrt(total / self.public.power)[:, None]
        self.variance = FIRST_VARIANCE * total
        self.likelihood = np.empty(n)
        self.following = np.full(n, -np.inf)
        self._set(
            np.arange(n),
            *self._fit(self.rows, self.supports, self.weights, self.variance, FIRST_STEPS),
        )

    def _grow(self, active: Indices) -> None:
        """Add the best vector of all while it pays and there is room."""
        for _ in range(self.k + 2):
            if len(active) == 0:
                return
            # 1. The best newcomers, each beside the members there are, fitted again.
            added, step = self._newcomers(active)
            # One slot more than k: what lies beyond it tells how much the next vector would gain.
            count = added.shape[1]
            supports = np.repeat(
                np.pad(self.supports[active], ((0, 0), (0, 1)), constant_values=-1), count, axis=0
            )
            weights = np.repeat(np.pad(self.weights[active], ((0, 0), (0, 1))), count, axis=0)
            supports[:, -1], weights[:, -1] = added.ravel(), step.ravel()
            variance = np.repeat(self.variance[active], count)
            variance = np.maximum(variance - self.public.power * weights[:, -1] ** 2, variance / 2)
            weights, variance, likelihood = self._fit(
                np.repeat(self.rows[active], count), supports, weights, variance, MORE_STEPS
            )
            # 2. The best of them, and what it gains.
            likelihood = np.where(added >= 0, likelihood.reshape(-1, count), -np.inf)
            best = np.arange(len(active)) * count + likelihood.argmax(axis=1)
            gain = likelihood.max(axis=1) - self.likelihood[active]
            self.following[active] = gain
            # 3. Where that pays and a slot is free, it is a member.
            pays = (gain > self.price) & (self.supports[active] < 0).any(axis=1)
            active, best = active[pays], best[pays]
            slot = (self.supports[active] < 0).argmax(axis=1)
            new = weights[best, : self.k]
            new[np.arange(len(best)), slot] = weights[best, -1]
            self.supports[active, slot] = supports[best, -1]
            self._set(active, new, variance[best], likelihood.ravel()[best])

    def _newcomers(self, active: Indices) -> tuple[Indices, NDArray[np.float64]]:
        """The few public vectors of the largest gradient, −1 where there are none, and a Newton
        step for their weight."""
        supports = self.supports[active]
        at = gradient(
            self.y,
            self.public.vectors,
            self.rows[active],
            supports,
            self.weights[active],
            self.variance[active],
        )
        values, indices = top_others(at.residual, self.public, supports, CANDIDATES)
        indices[values == -np.inf] = -1
        values[values == -np.inf] = 0
        step = values.astype(np.float64) / (self.y.shape[1] * self.public.power)
        return indices, step / np.clip(at.information, LEAST_TOLD, 1)[:, None]

    def _without_each(self, active: Indices) -> tuple[NDArray[np.float64], ...]:
        """Drop each member in turn and fit again: the loss (N, k), inf for empty slots; weights,
        variance and L."""
        n, k = len(active), self.k
        supports, weights = (
            np.repeat(self.supports[active], k, axis=0),
            np.repeat(self.weights[active], k, axis=0),
        )
        every = np.arange(n * k)
        supports[every, every % k], weights[every, every % k] = -1, 0
        variance = np.repeat(self.variance[active], k)
        weights, variance, likelihood = self._fit(
            np.repeat(self.rows[active], k), supports, weights, variance, MORE_STEPS
        )
        likelihood = likelihood.reshape(n, k)
        loss = np.where(
            self.supports[active] >= 0, self.likelihood[active][:, None] - likelihood, np.inf
        )
        return loss, weights.reshape(n, k, k), variance.reshape(n, k), likelihood

    def _repair(self) -> bool:
        """Drop the weakest member, where it does not pay or k is given, and grow again; False:
        nothing changed."""
        size = (self.supports >= 0).sum(axis=1)
        every = np.arange(len(self.rows))
        loss, weights, variance, likelihood = self._without_each(every)
        # With k given the weakest member is replaced whether it pays or not: there is no price.
        weakest = loss.argmin(axis=1)
        active = np.flatnonzero(
            size > 1 if self.fixed else (size > 0) & (loss.min(axis=1) < self.price)
        )
        if len(active) == 0:
            return False
        before = (
            self.supports[active],
            self.weights[active],
            self.variance[active],
            self.likelihood[active],
        )
        slot = weakest[active]
        self.supports[active, slot] = -1
        self._set(active, weights[active, slot], variance[active, slot], likelihood[active, slot])
        self._grow(active)
        # A replacement that does not help is taken back.
        if self.fixed:
            worse = self.likelihood[active] <= before[3] + GAIN
            self.supports[active[worse]] = before[0][worse]
            self._set(active[worse], before[1][worse], before[2][worse], before[3][worse])
            return not worse.all()
        return True

    def _best(self, weakest: NDArray[np.float64]) -> dict[str, NDArray[np.floating] | Indices]:
        """The best start of every encoding, members in order."""
        score = self.likelihood - self.price * (self.supports >= 0).sum(axis=1)
        order = np.lexsort((-score, self.rows))
        first = order[np.unique(self.rows[order], return_index=True)[1]]
        supports = self.supports[first]
        by_index = np.argsort(
            np.where(supports >= 0, supports, np.iinfo(np.int64).max), axis=1, kind="stable"
        )
        supports = np.take_along_axis(supports, by_index, axis=1)
        weights = np.take_along_axis(self.weights[first], by_index, axis=1)
        return {
            "indices": supports,
            "weights": np.where(supports >= 0, weights, 0),
            "variance": self.variance[first],
            "log_likelihood": self.likelihood[first],
            "weakest": weakest[first],
            "following": self.following[first],
        }

    def _fit(
        self,
        rows: Indices,
        supports: Indices,
        weights: NDArray[np.float64],
        variance: NDArray[np.float64],
        steps: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        return fit_weights(
            self.y,
            self.public.vectors,
            rows,
            supports,
            weights,
            variance,
            steps=steps,
        )

    def _set(
        self,
        at: Indices,
        weights: NDArray[np.float64],
        variance: NDArray[np.float64],
        likelihood: NDArray[np.float64],
    ) -> None:
        self.weights[at], self.variance[at], self.likelihood[at] = weights, variance, likelihood
