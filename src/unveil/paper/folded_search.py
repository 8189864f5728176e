"""LearnPublic by search in the folded-normal likelihood: the strong method ("folded-em").

Inside the modulus the private part is Gaussian noise: y = |μ_S + g|, μ_S = a·Σ_{i∈S} p_i and
g ~ N(0, s²) at every pixel. So the support is the k-subset S that maximises

    L(S) = Σ_j log[N(y_j; μ_j, s²) + N(y_j; −μ_j, s²)],       r = y·tanh(yμ/s²) − μ,
    ∂L/∂w_i = ⟨r, p_i⟩/s²,       J = 1 − mean(y²·sech²(yμ/s²))/s²,

r being the posterior mean of the signed y less μ, and J the information per pixel: 1 where signs
are obvious, near 0 where μ is small. For a block of encodings at once; a *pass* is one matrix
product with all public vectors, which may be a memory-mapped file:

  1  pool: the 100 vectors of the largest Σ y²p², y² centred and both sides clipped. Centring lifts
     every member by √(3/2) standard deviations, clipping keeps a bright pixel from lifting many
     wrong vectors together. One pass
  2  starts: L to second order around μ = 0 is Σ_{a,b∈S} M_ab, M the paper's moment matrix M̃ on the
     pool; each vector of the pool is grown greedily to k, the likeliest of six goes on
  3  Newton with a hard threshold: w ← the k largest of w + ⟨p, r⟩/(d·J). With J = 1 it is the EM
     algorithm, whose hidden variable is the sign of y. About two passes
  4  swaps: each member is left out in turn, and the vectors of the largest ⟨r, p⟩ there are tried
     in its place. k passes, again after every move
  5  margin (below); where it is small or the fit is bad, more starts from larger pools

The SDP of the paper relaxes the second-order expansion of step 2.

*Margin*, in nats: the least of L(S) less the best L one swap away; less that of any other optimum
met; and less log[C(n−k, k−|A|)·L(μ_A; s² + (k−|A|)·a²)] for A ⊂ S of sizes 0, 1, k−1: what all
supports that share only A with S explain together, a vector nobody knows being Gaussian noise.
*Fit*: under the true support the law of L is known; z is L standardised with the pixel means of y,
y², |μ| and μ² as control variates, about standard normal under the truth. *Certain* means a margin
of 10 nats (odds of 5e-5 against) and z > −4.

Cost: about 6 + k products of the block with all public vectors, where the paper's screen is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import comb, inf, log
from typing import NamedTuple

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray
from scipy.stats import norm

from unveil.checks import let_go, row_blocks
from unveil.encodings import Encodings
from unveil.engine.blocks import count_rows, results, rows_per_block
from unveil.engine.folded import fold32, log_density, tanh32
from unveil.records import Progress

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
Reals = NDArray[np.float64]


# --- The public vectors, and the model -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Public:
    """The public vectors (n, d), which of them may be selected (n,), groups of equal ones, the mean
    square of a pixel; `columns`: how many of them a product takes at a time.

    Equal vectors cannot be told apart, so the first of each group stands for all; a vector of zeros
    leaves no trace and is never selected.
    """

    vectors: Floats
    usable: NDArray[np.bool_]
    interchangeable: tuple[tuple[int, ...], ...]
    power: float
    columns: int

    @property
    def count(self) -> int:
        """How many may be selected."""
        return int(self.usable.sum())

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """(first, vectors), as many at a time as a product takes."""
        return row_blocks(self.vectors, self.columns * self.vectors.shape[1])


def survey_public(vectors: Floats, limit: int) -> Public:
    """One pass over all vectors: equal ones, zeros, the mean square of the rest."""
    plain = np.asarray(vectors)
    n, d = plain.shape
    squares = np.empty(n)
    groups: dict[bytes, list[int]] = {}
    for start, block in row_blocks(plain, 1 << 22):
        squares[start : start + len(block)] = np.einsum("ij,ij->i", block, block, dtype=np.float64)
        for i, row in enumerate(block + np.float32(0), start):  # −0 becomes 0
            groups.setdefault(blake2b(row).digest(), []).append(i)
    usable = squares > 0
    equal = tuple(tuple(g) for g in groups.values() if len(g) > 1 and usable[g[0]])
    for same in equal:
        usable[list(same[1:])] = False
    power = float(squares[usable].mean() / d) if usable.any() else 1.0
    columns = rows_per_block(4 * (d + 512), limit // 4, most=4096)
    return Public(plain, usable, equal, power, columns)


def mean_square(vectors: Floats) -> float:
    """Of all numbers, in double precision, in blocks of 4 MiB."""
    total = sum(
        float(np.einsum("ij,ij->", block, block, dtype=np.float64))
        for _, block in row_blocks(vectors, 1 << 20)
    )
    return total / vectors.size


@dataclass(frozen=True)
class Model:
    """k members of one weight among public vectors of mean square `power`, and a private part of
    `variance` per pixel."""

    k: int
    weight: float
    variance: float
    power: float = 1.0

    @property
    def spread(self) -> float:
        """What one member adds to the variance of a pixel as long as nobody knows which it is."""
        return self.weight**2 * self.power


class Gradient(NamedTuple):
    """At N supports: residual (N, d), information (N,), log-likelihood (N,), ⟨residual, member⟩ (N,
    k)."""

    residual: Floats
    information: Floats
    log_likelihood: Reals
    members: Floats


def log_likelihood(
    Y: Floats,
    P: Floats,
    rows: Indices,
    supports: Indices,
    weights: float | NDArray[np.floating],
    variance: float,
) -> Reals:
    """L of encoding rows[t] at supports[t] (N, k); members < 0 are left out."""
    out = np.empty(len(rows))
    spread = _full(weights, supports.shape), _full(variance, rows.shape)
    _log_likelihoods(Y, P, rows, supports, *spread, out)
    return out


def gradient(
    Y: Floats,
    P: Floats,
    rows: Indices,
    supports: Indices,
    weights: float | NDArray[np.floating],
    variance: float | NDArray[np.floating],
) -> Gradient:
    """Residual, information and L of encoding rows[t] at supports[t]; members < 0 are left out."""
    n, k = supports.shape
    residual, information = np.empty((n, Y.shape[1]), np.float32), np.empty(n, np.float32)
    out = Gradient(residual, information, np.empty(n), np.empty((n, k), np.float32))
    _gradients(
        Y, P, rows, supports, _full(weights, supports.shape), _full(variance, rows.shape), *out
    )
    return out


def _full(value: float | NDArray[np.floating], shape: tuple[int, ...]) -> Floats:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, np.float32), shape))


@njit(fastmath=True, inline="always")
def _mix(P, support, weights, mu):  # type: ignore[no-untyped-def]
    mu[:] = 0
    for q in range(len(support)):
        if support[q] >= 0:
            p = P[support[q]]
            w = weights[q]
            for j in range(len(mu)):
                mu[j] += w * p[j]


@njit(fastmath=True, cache=True, nogil=True)
def _log_likelihoods(Y, P, rows, supports, weights, variance, out):  # type: ignore[no-untyped-def]
    mu = np.empty(Y.shape[1], np.float32)
    for t in range(len(rows)):
        _mix(P, supports[t], weights[t], mu)
        out[t] = fold32(Y[rows[t]], mu, float32(1) / variance[t])


@njit(fastmath=True, cache=True, nogil=True)
def _gradients(  # type: ignore[no-untyped-def]
    Y, P, rows, supports, weights, variance, residual, information, likelihood, members
):
    d = Y.shape[1]
    mu = np.empty(d, np.float32)
    for t in range(len(rows)):
        y, r = Y[rows[t]], residual[t]
        precision = float32(1) / variance[t]
        _mix(P, supports[t], weights[t], mu)
        lost = float32(0)
        for j in range(d):
            th = tanh32(y[j] * mu[j] * precision)
            r[j] = y[j] * th - mu[j]
            lost += y[j] * y[j] * (float32(1) - th * th)
        information[t] = 1 - lost * precision / d
        likelihood[t] = fold32(y, mu, precision)
        for q in range(supports.shape[1]):
            s = float32(0)
            if supports[t, q] >= 0:
                p = P[supports[t, q]]
                for j in range(d):
                    s += r[j] * p[j]
            members[t, q] = s


# --- Passes over all public vectors --------------------------------------------------------------


def top_products(
    rows: Floats, public: Public, kept: int, *, clip: float = 0.0, step: int = 1
) -> tuple[Floats, Indices]:
    """The `kept` largest ⟨row, p⟩, or ⟨row, min(p², clip)⟩ where clip > 0, over all public vectors,
    best first: values and indices, −inf and −1 where there are fewer. Rows have every step-th
    pixel."""
    values = np.full((len(rows), kept), -np.inf, np.float32)
    indices = np.full((len(rows), kept), -1, np.int64)
    for first, vectors in public.blocks():
        block = vectors[:, ::step]
        if clip > 0:
            block = np.minimum(block * block, np.float32(clip))
        names = np.arange(first, first + len(block))
        unusable = ~public.usable[names]
        for start in range(0, len(rows), 512):
            part = slice(start, start + 512)
            product = rows[part] @ block.T
            product[:, unusable] = -np.inf
            value = np.concatenate([values[part], product], axis=1)
            top = np.argpartition(-value, kept - 1, axis=1)[:, :kept]
            old = np.minimum(top, kept - 1)
            chosen = np.where(
                top < kept,
                np.take_along_axis(indices[part], old, axis=1),
                names[np.maximum(top - kept, 0)],
            )
            values[part], indices[part] = np.take_along_axis(value, top, axis=1), chosen
    order = np.argsort(-values, axis=1, kind="stable")
    values = np.take_along_axis(values, order, axis=1)
    indices = np.take_along_axis(indices, order, axis=1)
    return values, np.where(values == -np.inf, -1, indices)


def top_others(rows: Floats, public: Public, members: Indices, kept: int) -> tuple[Floats, Indices]:
    """The `kept` largest ⟨row, p⟩ over all public vectors but the members (N, k) of each row, best
    first."""
    values, indices = top_products(rows, public, kept + members.shape[1])
    values[(indices[:, :, None] == members[:, None, :]).any(axis=2)] = -np.inf
    order = np.argsort(-values, axis=1, kind="stable")[:, :kept]
    values = np.take_along_axis(values, order, axis=1)
    indices = np.take_along_axis(indices, order, axis=1)
    return values, np.where(values == -np.inf, -1, indices)


def centred_squares(Y: Floats, clip: float = 6.0) -> Floats:
    """Centred squares of every encoding, cut at `clip` times their mean (of normal numbers one in
    seventy is larger); zeros for an encoding of zeros."""
    square = Y * Y
    mean = square.mean(axis=1, keepdims=True)
    weights = np.minimum(square / np.where(mean > 0, mean, 1), np.float32(clip))
    weights -= weights.mean(axis=1, keepdims=True)
    return weights


def screen(Y: Floats, public: Public, kept: int, *, step: int = 1) -> Indices:
    """Step 1: the `kept` public vectors (m, kept) of the largest centred, clipped Σ y²p², best
    first; over every step-th pixel."""
    kept = min(kept, public.count)
    return top_products(
        centred_squares(Y[:, ::step]), public, kept, clip=6.0 * public.power, step=step
    )[1]


def start_supports(
    Y: Floats, P: Floats, pool: Indices, k: int, count: int, most_shared: int, limit: int
) -> Indices:
    """Step 2: (m, count, k) supports, best first, no two of one encoding sharing more than
    `most_shared`; −1 where there are fewer."""
    m, kept = pool.shape
    out = np.full((m, count, k), -1, np.int64)
    block = rows_per_block(12 * kept * (P.shape[1] + 2 * kept), limit, most=8)
    for first in range(0, m, block):
        chosen = pool[first : first + block]
        plain = P[chosen]
        weighted = plain * centred_squares(Y[first : first + block])[:, None]
        let_go(P)
        rows = np.arange(len(chosen))[:, None, None]
        M = np.matmul(plain, weighted.transpose(0, 2, 1))
        positions = _grow(M, k, count, most_shared)
        out[first : first + block] = np.where(positions >= 0, chosen[rows, positions], -1)
    return out


def _grow(M: Floats, k: int, count: int, most_shared: int) -> Indices:
    """Every position of each quadratic form M (B, K, K) grown greedily to k; of these the `count`
    best that differ enough (B, count, k), −1 where there are fewer."""
    B, K, _ = M.shape
    b, each, own = np.arange(B)[:, None], np.arange(K), np.diagonal(M, axis1=1, axis2=2)
    grown, value, gain = np.empty((B, K, k), np.int64), own.copy(), own[:, None] + 2 * M
    grown[:, :, 0] = each
    gain[:, each, each] = -np.inf  # never again
    for q in range(1, k):
        best = gain.argmax(axis=2)
        grown[:, :, q] = best
        value += gain[b, each, best]
        gain += 2 * M[b, best]
        gain[b, each, best] = -np.inf
    out = np.full((B, count, k), -1, np.int64)
    for found, tried, order in zip(out, grown, np.argsort(-value, axis=1), strict=True):
        taken = 0
        for support in tried[order]:
            shared = (found[:taken, :, None] == support).sum(axis=(1, 2))
            if (shared <= most_shared).all():
                found[taken] = support
                taken += 1
                if taken == count:
                    break
    return out


def newton(
    Y: Floats, public: Public, rows: Indices, starts: Indices, model: Model, steps: int
) -> tuple[Indices, Reals]:
    """Step 3, from starts (N, k) of the encodings `rows`: the likeliest support seen, sorted, and
    its L."""
    n, k = starts.shape
    current, best, likelihood = starts.copy(), starts.copy(), np.full(n, -np.inf)
    active = np.arange(n)
    for _ in range(steps):
        # 1. The gradient here, and the vectors outside that it favours; a step may lose.
        here = np.sort(current[active], axis=1)
        at = gradient(Y, public.vectors, rows[active], here, model.weight, model.variance)
        values, indices = top_others(at.residual, public, here, k)
        up = at.log_likelihood > likelihood[active]
        best[active[up]], likelihood[active[up]] = here[up], at.log_likelihood[up]
        # 2. A step for members and newcomers alike; the k largest weights are the next support.
        #    Where signs are lost the information tends to 0: a fifth is the least that counts.
        step = Y.shape[1] * model.power * np.clip(at.information, 0.2, 1)[:, None]
        weights = np.concatenate([model.weight + at.members / step, values / step], axis=1)
        largest = np.argpartition(-weights, k - 1, axis=1)[:, :k]
        both = np.concatenate([here, indices], axis=1)
        new = np.sort(np.take_along_axis(both, largest, axis=1), axis=1)
        current[active] = new
        active = active[(new != here).any(axis=1)]
        if len(active) == 0:
            return best, likelihood
    # 3. The last step may have led somewhere new.
    some = rows[active], current[active]
    last = log_likelihood(Y, public.vectors, *some, model.weight, model.variance)
    up = last > likelihood[active]
    best[active[up]], likelihood[active[up]] = current[active[up]], last[up]
    return np.sort(best, axis=1), likelihood


# --- How sure is a support? ----------------------------------------------------------------------


def is_certain(margin: Reals, fit: Reals) -> NDArray[np.bool_]:
    """A margin of 10 nats, and a fit the model does not refuse: the truth is below −4 once in
    30,000 times."""
    return np.asarray((margin >= 10) & (fit > -4))


def confidence(margin: Reals, fit: Reals | None = None) -> Reals:
    """The probability 1/(1 + e^−margin) that the support is right, if the model is. Below z = −4
    the model itself is in doubt: there the probability of so low a z, as a share of that of −4, is
    the cap."""
    sure = 1 / (1 + np.exp(-np.clip(margin, -700, 700)))  # e^±709 is the range of a double
    if fit is None:
        return np.asarray(sure)
    return np.asarray(np.minimum(sure, np.exp(norm.logcdf(fit) - norm.logcdf(-4)).clip(0, 1)))


def evidence_of_others(
    Y: Floats, public: Public, rows: Indices, supports: Indices, model: Model
) -> Reals:
    """(N,): the log of what all supports that share 0, 1 or k−1 members with S explain together,
    the largest of the three."""
    k, others = model.k, public.count - model.k
    best = np.full(len(rows), -np.inf)
    for size in sorted({0, 1, k - 1} - {k}):
        missing = k - size
        number = log(comb(others, missing)) if missing <= others else -inf
        for q in range(1 if size == 0 else k):
            keep = (np.arange(k) == q) == (size == 1) if size else np.zeros(k, bool)
            part = np.where(keep, supports, -1)
            variance = model.variance + missing * model.spread
            L = log_likelihood(Y, public.vectors, rows, part, model.weight, variance)
            best = np.maximum(best, L + number)
    return best


def fit_of(
    Y: Floats, public: Public, rows: Indices, supports: Indices, likelihood: Reals, model: Model
) -> Reals:
    """z (N,) of L at supports[t]."""
    law, d = _law(model.k * model.spread, model.variance), Y.shape[1]
    out = np.empty(len(rows))
    for t, (i, support) in enumerate(zip(rows, supports, strict=True)):
        y, mu = Y[i], np.float32(model.weight) * public.vectors[support].sum(axis=0)
        means = np.array([y.mean(), np.vdot(y, y) / d, np.abs(mu).mean(), np.vdot(mu, mu) / d])
        out[t] = (likelihood[t] / d - means @ law[:4] - law[4]) * np.sqrt(d) / law[5]
    return out


@lru_cache(maxsize=64)
def _law(public_variance: float, private_variance: float) -> Reals:
    """Regression of the log density of a pixel on y, y², |μ|, μ² and 1, and the standard deviation
    left over: by quadrature over μ ≥ 0 and the private part, right to 1e-4."""
    t = np.linspace(-6, 6, 401)
    mu, g = np.sqrt(public_variance) * t[t >= 0], np.sqrt(private_variance) * t
    weight = np.outer(np.exp(-0.5 * t[t >= 0] ** 2), np.exp(-0.5 * t**2))
    weight[0] /= 2  # μ = 0 stands for both signs
    mu, y = np.broadcast_arrays(mu[:, None], np.abs(mu[:, None] + g))
    density = log_density(y, mu, private_variance).ravel()
    columns = np.stack([y, y * y, mu, mu * mu, np.ones(y.shape)], axis=-1).reshape(-1, 5)
    # Least squares under the law of the pixels: rows weighted by the root of their probability.
    root = np.sqrt(weight.ravel() / weight.sum())
    law = np.linalg.lstsq(columns * root[:, None], density * root, rcond=None)[0]
    return np.append(law, np.linalg.norm((density - columns @ law) * root))


# --- The search ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FoundSupports:
    """Supports (m, k) sorted, their L, margin and fit."""

    indices: Indices
    log_likelihood: Reals
    margin: Reals
    fit: Reals


Effort = tuple[float, int, int, int]
"""One more round: for whom (fit below), how many starts from how large a pool, Newton steps."""


def folded_em(
    encodings: Encodings,
    public: Public,
    model: Model,
    *,
    limit: int,
    workers: int,
    rounds: tuple[Effort, ...] = ((-2.5, 8, 200, 6), (-3.0, 32, 400, 8), (-4.0, 96, 1200, 8)),
    spare: int = 100_000_000,
    progress: Progress | None = None,
) -> FoundSupports:
    """Maximise L for every encoding. Needs model.k of at least 1 and at most the number of usable
    public vectors.

    rounds   further rounds; each costs three to four times the one before, and is for those that
             fit worse
    spare    bytes one block may use beyond its residuals when the limit allows
    """
    m, d, k = encodings.m, encodings.d, model.k
    block = block_rows(m, d, limit, public.vectors.nbytes)
    # Fewer blocks at a time where the limit asks for it, so that the blocks, and with them the
    # answer, do not depend on the number of workers.
    spare = max(1, min(limit // 4, spare))
    each = 24 * d * block + 4 * (d + 512) * public.columns + 2 * spare
    job = encodings, public, model, spare, block, rounds
    found = FoundSupports(np.empty((m, k), np.int64), np.empty(m), np.empty(m), np.empty(m))
    done = count_rows(progress, "learn public", block, m)
    at_once = max(1, min(workers, limit // each))
    for start, part in results(_searched, job, range(0, m, block), workers=at_once):
        for name, values in vars(part).items():
            getattr(found, name)[start : start + block] = values
        done(start)
    return found


def block_rows(m: int, d: int, limit: int, listed: int = 0) -> int:
    """Encodings per block: an eighth of all, so that a few workers are busy, within 64 to 512 and
    the limit; a quarter beside a list of more than a gigabyte, which every block reads."""
    part = -(-m // (4 if listed > 1 << 30 else 8))
    return rows_per_block(24 * d, limit // 4, most=min(m, max(64, min(512, part))))


def _searched(
    job: tuple[Encodings, Public, Model, int, int, tuple[Effort, ...]], start: int
) -> FoundSupports:
    """Steps 1 to 5 for the block of encodings from `start` on."""
    encodings, public, model, spare, block, rounds = job
    here = _Search(encodings.magnitudes(slice(start, start + block)), public, model, spare)
    here.first_round()
    # With k = 1 there is nothing to combine: the pool has said it all.
    for number, (fit, *effort) in enumerate(rounds if model.k > 1 else ()):
        unsettled = (here.fit < fit) | (here.evidence < 5)
        if number == 0:
            unsettled |= here.swap < 10
        here.further_round(np.flatnonzero(unsettled), *effort)
    return FoundSupports(here.supports, here.likelihood, here.margin, here.fit)


class _Search:
    """A block of encodings: the best support of each so far, and what is known against it."""

    def __init__(self, Y: Floats, public: Public, model: Model, spare: int) -> None:
        self.y, self.public, self.model, self.spare = Y, public, model, spare
        self.rows = np.arange(len(Y))
        self.swap, self.evidence = np.full(len(Y), np.inf), np.empty(len(Y))
        self.other = np.full(len(Y), -np.inf)  # L of the best other optimum

    @property
    def margin(self) -> Reals:
        apart = np.maximum(self.likelihood - self.other, 0)
        return np.asarray(np.minimum(np.minimum(self.swap, self.evidence), apart))

    @property
    def fit(self) -> Reals:
        return fit_of(self.y, self.public, self.rows, self.supports, self.likelihood, self.model)

    def first_round(
        self, pool: int = 100, starts: int = 6, steps: int = 8, stands_out: float = 8.0
    ) -> None:
        """stands_out: standard errors by which a member stands out of the screen on the pixels that
        are used for it: three for the best hundred of 10⁵ vectors, and five so that one in a
        million is lost."""
        model, k, P = self.model, self.model.k, self.public.vectors
        # y² and the p² of a member correlate as the square of its share of the variance.
        share = model.spread / (k * model.spread + model.variance)
        step = max(1, int(self.y.shape[1] * (share / stands_out) ** 2))
        self.pool = screen(self.y, self.public, pool, step=step)
        grown = start_supports(
            self.y[:, ::step], P[:, ::step], self.pool, k, starts, k - 1, self.spare
        )
        flat, rows = grown.reshape(-1, k), np.repeat(self.rows, starts)
        L = log_likelihood(self.y, P, rows, flat, model.weight, model.variance)
        L[flat[:, 0] < 0] = -np.inf
        chosen = grown[self.rows, L.reshape(-1, starts).argmax(axis=1)]
        self.supports, self.likelihood = newton(
            self.y, self.public, self.rows, chosen, model, steps
        )
        self.swap_to_better(self.rows)

    def further_round(self, unsettled: Indices, count: int, pool: int, steps: int) -> None:
        """From `count` starts out of the `pool` best of the screen, on all pixels."""
        k = self.model.k
        # Starts that share most of their members end in the same optimum.
        shared = k // 2 if k >= 4 else max(k - 2, 0)
        block = rows_per_block(4 * self.y.shape[1] * count, self.spare, most=max(1, len(unsettled)))
        for first in range(0, len(unsettled), block):
            hard = unsettled[first : first + block]
            y, P = self.y[hard], self.public.vectors
            best = screen(y, self.public, pool)
            starts = start_supports(y, P, best, k, count, shared, self.spare).reshape(-1, k)
            rows = np.repeat(hard, count)[starts[:, 0] >= 0]
            starts = starts[starts[:, 0] >= 0]
            optima, L = newton(self.y, self.public, rows, starts, self.model, steps)
            # Every optimum that is not the best is a rival: it bounds the margin.
            for t in np.lexsort((-L, rows)):
                i = rows[t]
                if (optima[t] == self.supports[i]).all():
                    continue
                self.other[i] = max(self.other[i], min(L[t], self.likelihood[i]))
                if L[t] > self.likelihood[i]:
                    self.supports[i], self.likelihood[i] = optima[t], L[t]
            self.swap_to_better(hard)

    def swap_to_better(self, active: Indices, sweeps: int = 6, tried: int = 8) -> None:
        """Step 4: follow the best swap as long as it gains; tried: newcomers in each place."""
        model, k, P, changed = self.model, self.model.k, self.public.vectors, active
        others = np.array([[q for q in range(k) if q != i] for i in range(k)], np.int64)
        block = rows_per_block(8 * k * self.y.shape[1], self.spare, most=max(1, len(active)))
        for _ in range(sweeps):
            moved = []
            for first in range(0, len(active), block):
                rows = active[first : first + block]
                S = self.supports[rows]
                # 1. The best newcomers beside S without each member in turn.
                each = np.repeat(rows, k)
                if k == 1:
                    new = self.pool[rows, : tried + 1]
                    new = np.where(new == S, -1, new)[:, None]
                else:
                    without = S[:, others].reshape(-1, k - 1)
                    loose = model.variance + model.spread
                    at = gradient(self.y, P, each, without, model.weight, loose)
                    members = np.repeat(S, k, axis=0)
                    new = top_others(at.residual, self.public, members, tried)[1]
                    new = new.reshape(len(rows), k, tried)
                let_go(P)
                # 2. All of them exactly; the best one wins, or bounds the margin.
                count = k * new.shape[2]
                rivals = np.repeat(S[:, None], count, axis=1)
                place = np.repeat(np.arange(k), new.shape[2])
                rivals[:, np.arange(count), place] = new.reshape(len(rows), count)
                real = (rivals >= 0).all(axis=2)
                flat, at_rows = rivals.reshape(-1, k), np.repeat(rows, count)
                L = log_likelihood(self.y, P, at_rows, flat, model.weight, model.variance)
                L = np.where(real, L.reshape(len(rows), count), -np.inf)
                best, top = L.argmax(axis=1), L.max(axis=1)
                self.swap[rows] = self.likelihood[rows] - top
                up = top > self.likelihood[rows] + 1e-3  # less is rounding, and would go in circles
                self.supports[rows[up]] = np.sort(rivals[up, best[up]], axis=1)
                self.likelihood[rows[up]] = top[up]
                self.swap[rows[up]] = 0
                moved.append(rows[up])
            active = np.concatenate(moved) if moved else active[:0]
            if len(active) == 0:
                break
        let_go(P)
        explained = evidence_of_others(self.y, self.public, changed, self.supports[changed], model)
        self.evidence[changed] = self.likelihood[changed] - explained
