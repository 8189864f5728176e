"""LearnPublic where pixels are not independent Gaussian: images, tables, smooth or heavy tails.

`folded_search` takes all vectors for independent standard Gaussian pixels. Smooth, heavy-tailed,
discrete or non-negative vectors are not; `departures` says so in words. Then the law of a pixel is
measured on the public vectors: mean, deviation, and the correlation with one other pixel, the
neighbours being a tree (Chow and Liu 1968: the maximum spanning tree of |correlation| is the
likeliest). The private vectors are taken to be alike up to one factor, which the mean of y² tells.

    y = |μ_S + g|,   g_j = ν_j + slope_j·(g_parent − ν_parent) + N(0, v_j)
    L = log Σ_s Π_j N(s_j·y_j; …),   the sum over all 2^d signs

On a tree that sum is exact in one pass from the leaves to the root, two numbers per pixel: each
pixel tells its parent how well everything below is explained under either sign of the parent. A
pass back gives E[s_j], and with it ∂L/∂μ = Q·(E[s]∘y − μ), Q the precision of g, which new vectors
are multiplied with. Without links this is L of `folded_search`.

Search: every vector alone, a beam of supports that grows one member at a time, then swaps, from the
beam and from the support of `folded_search`. Of a thousand CIFAR-10 images, equal weights, it finds
95% of the supports at k_public = 1 and all at 2, where the plain search finds 12% and 5%. How sure
a support is it does not say: pixels beyond neighbours on the tree repeat each other. Cost: n passes
of one encoding over the pixels and some hundred·k more; ten times `folded_em` and more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import float32, njit
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from unveil.encodings import Encodings
from unveil.engine.blocks import count_rows, results, rows_per_block
from unveil.paper.folded_search import (
    Floats,
    Indices,
    Public,
    Reals,
    mean_square,
    screen,
    top_products,
)
from unveil.records import Progress


def departures(public: Public, sample: int = 500, sigmas: float = 6.0) -> str:
    """In words: how the public vectors differ from independent Gaussian pixels of mean 0; empty:
    they do not. At six standard errors one Gaussian list in a hundred million fails."""
    X = _sample(public, sample, sample)
    n, d = X.shape
    power = float((X**2).mean()) or 1.0
    kurtosis = float((X**4).mean()) / power**2 - 3
    found = []
    # The fourth moment of a normal number has variance 96; up to 0.3 margins stay right.
    if abs(kurtosis) > 0.3 + sigmas * np.sqrt(96 / (n * d)):
        kind = "heavy-tailed" if kurtosis > 0 else "discrete or bounded"
        found.append(f"values are {kind} (excess kurtosis {kurtosis:.1f})")
    if float(X.mean()) ** 2 / power > 0.02 + sigmas**2 / (n * d):
        found.append(f"values have a mean ({X.mean() / np.sqrt(power):.2f} of their size)")
    # The mean of n squares has variance 2/n, that of d squared deviations about 8(1 + 6/n)/(d n²).
    uneven = float((((X**2).mean(axis=0) / power - 1) ** 2).mean())
    chance = sigmas * np.sqrt(8 * (1 + 6 / n) / d) / n * (3 + kurtosis)
    if n > 1 and uneven > 2 / n + chance:
        found.append("some pixels are brighter than others")
    # 1/n is the mean square of correlations that are 0. Of the two Gram matrices the smaller one:
    # their squares have the same sum.
    size = np.linalg.norm(X, axis=0)
    unit = X[:, size > 0] / size[size > 0]
    w = unit.shape[1]
    gram = unit.T @ unit if w <= n else unit @ unit.T
    square = float(((gram**2).sum() - w) / max(1, w * (w - 1)))
    if n > 2 and d > 1 and square > 1 / n + sigmas * 2 / (n * np.sqrt(d * (d - 1))):
        found.append(f"pixels are correlated ({np.sqrt(square - 1 / n):.2f} rms)")
    words = "public vectors are not independent Gaussian pixels"
    return f"{words} ({', '.join(found)})" if found else ""


def _sample(public: Public, vectors: int, pixels: int) -> Reals:
    def evenly(count: int, most: int) -> Indices:
        return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))

    usable = np.flatnonzero(public.usable)
    some = public.vectors[usable[evenly(len(usable), vectors)]]
    return np.asarray(some[:, evenly(some.shape[1], pixels)], np.float64)


@dataclass(frozen=True, eq=False)
class PixelLaw:
    """Mean and deviation of every pixel; correlation with its parent (0: none) in an order that
    puts parents first; `parent` holds positions in `order`, −1 for roots."""

    mean: Reals
    deviation: Reals
    order: Indices
    parent: Indices
    correlation: Reals

    def noise(self, size: float, square: float) -> tuple[Any, ...]:
        """The sum of independent vectors of this law whose weights add up to `size`, their squares
        to `square`: order, parent, slope on it, ½/variance, mean, and the constant of L."""
        sd = np.sqrt(square) * self.deviation[self.order]
        # A pixel that never varies must not decide alone.
        variance = np.maximum(sd**2 * (1 - self.correlation**2), 1e-4 * float((sd**2).mean()))
        above = np.where(self.parent >= 0, sd[self.parent], 1.0)
        slope = np.where(
            self.correlation != 0, self.correlation * sd / np.maximum(above, 1e-30), 0.0
        )
        constant = float(-0.5 * np.log(2 * np.pi * variance).sum())
        parts = slope, 0.5 / variance, size * self.mean[self.order]
        return self.order, self.parent, *(x.astype(np.float32) for x in parts), constant


def measure_law(public: Public, sample: int = 2000, linked: int = 4096) -> PixelLaw:
    """Mean, deviation and tree of the public vectors, each as far as two halves of them agree on
    it; pixels beyond `linked` have no tree. Cost sample·d²."""
    X = _sample(public, sample, public.vectors.shape[1])
    n, d = X.shape
    halves = (X[::2], X[1::2]) if n > 3 else (X, np.zeros((1, d)))
    common, error = float(X.mean()), float(X.mean(axis=1).std()) / np.sqrt(n)
    trust = _agreement(halves[0].mean(axis=0), halves[1].mean(axis=0))
    mean = common * (abs(common) > 5 * error) + trust * (X.mean(axis=0) - common)
    # Deviations, on a logarithmic scale.
    power = float(((X - mean) ** 2).mean()) or 1.0
    logs = np.log(((X - mean) ** 2).mean(axis=0) + 1e-6 * power)
    trust = _agreement(*(np.log(half.var(axis=0) + 1e-6 * power) for half in halves))
    variance = np.exp(logs.mean() + trust * (logs - logs.mean()))
    variance *= power / variance.mean()
    order: Any = np.arange(d)
    parent, correlation = np.full(d, -1), np.zeros(d)
    if 1 < d <= linked and n > 3:
        Z = (X - X.mean(axis=0)).astype(np.float32)
        Z /= np.maximum(np.linalg.norm(Z, axis=0), np.float32(1e-12))
        R = Z.T @ Z
        tree = minimum_spanning_tree(1.001 - np.minimum(np.abs(R), 1))  # an entry of 0 is no edge
        order, before = breadth_first_order(tree, 0, directed=False)
        place, above = np.argsort(order), np.maximum(before[order], 0)
        parent = np.where(before[order] >= 0, place[above], -1)
        correlation = np.clip(np.where(parent >= 0, R[order, above], 0), -0.9999, 0.9999)
        # The largest of d²/2 correlations that are 0 is about √(2·log(d²)/n).
        correlation[np.abs(correlation) < np.sqrt(4 * np.log(d) / n)] = 0
    places = order.astype(np.int64), parent.astype(np.int64)
    return PixelLaw(mean, np.sqrt(variance), *places, correlation.astype(np.float64))


def _agreement(first: Reals, second: Reals) -> float:
    """How much of a profile over pixels is real, 0 to 1, from two halves (Spearman and Brown)."""
    a, b = first - first.mean(), second - second.mean()
    r = float(a @ b) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-30)
    return 2 * r / (1 + r) if r > 3 / np.sqrt(len(a)) else 0.0


def tree_search(
    encodings: Encodings,
    public: Public,
    start: Indices,
    *,
    limit: int,
    workers: int,
    progress: Progress | None = None,
) -> Indices:
    """Supports (m, k), sorted, from supports `start`."""
    m, d = encodings.m, encodings.d
    block = rows_per_block(96 * d, limit // 4, most=min(m, 64))
    at_once = max(1, min(workers, limit // (4 * d * (public.columns + 48 * block))))
    job = encodings, _Setting(encodings, public, measure_law(public)), start, limit, block
    out, done = np.empty_like(start), count_rows(progress, "learn public", block, m)
    for first, found in results(_searched, job, range(0, m, block), workers=at_once):
        out[first : first + block] = found
        done(first)
    return out


def _searched(job: tuple[Any, ...], first: int) -> Indices:
    encodings, setting, start, limit, block = job
    rows = slice(first, first + block)
    return _Block(setting, encodings.magnitudes(rows), limit).find(start[rows])


class _Setting:
    """One law, and the noise when 0 to k members are unknown: those, and the private part at the
    scale that the mean of y² tells."""

    def __init__(self, encodings: Encodings, public: Public, law: PixelLaw) -> None:
        scheme = encodings.scheme
        self.public, self.k, self.weight = public, scheme.k_public, scheme.public_weight
        k, a, count, b = self.k, self.weight, scheme.k_private, scheme.private_weight
        mean, power = float((law.mean**2).mean()), float((law.deviation**2).mean())
        total = mean_square(encodings.values)
        # For the size q of private vectors: second·q² + 2·first·q = total − public part.
        second, first = count * b * b * (power + count * mean), count * b * k * a * mean
        left = max(total - k * a * a * power - (k * a) ** 2 * mean, 1e-3 * total)
        q = (np.sqrt(first**2 + second * left) - first) / second if second > 0 else 0.0
        self.noise = [
            law.noise(q * b * count + r * a, max(q * q * b * b * count + r * a * a, 1e-12))
            for r in range(k + 1)
        ]


class _Block:
    """The search for a block of encodings."""

    def __init__(
        self, setting: _Setting, Y: Floats, limit: int, beam: int = 12, tried: int = 16
    ) -> None:
        """beam: supports kept while they grow; tried: newcomers of the largest product."""
        self.y, self.setting, self.public, self.k = Y, setting, setting.public, setting.k
        self.limit, self.beam, self.tried = limit, beam, tried
        # Every vector alone, the other members being noise; of a long list the best of the screen.
        every = np.flatnonzero(self.public.usable)
        pool = np.tile(every, (len(Y), 1)) if len(every) <= 4096 else screen(Y, self.public, 4096)
        self.alone = self._best(pool[:, :, None], self.k - 1, soft=False)[:, :, 0]

    def find(self, start: Indices, sweeps: int = 8) -> Indices:
        """The likeliest support found, from the beam and from `start`."""
        m, k = len(self.y), self.k
        beam = self.alone[:, :, None]
        for size in range(1, k):
            rows, flat = np.repeat(np.arange(m), beam.shape[1]), beam.reshape(-1, size)
            new = self._newcomers(rows, flat, flat, k - size)
            grown = np.repeat(flat[:, None], new.shape[1], axis=1)
            grown = np.concatenate([grown, new[:, :, None]], axis=2)
            grown[(grown < 0).any(axis=2)] = -1
            beam = self._best(np.sort(grown, axis=2).reshape(m, -1, size + 1), k - size - 1)
        # Swaps: each member left out in turn, the best newcomer in its place, as long as it gains.
        S = np.concatenate([beam[:, :2], start[:, None]], axis=1)
        tried = S.shape[1]
        rows, S = np.repeat(np.arange(m), tried), S.reshape(-1, k)
        S = np.sort(np.where(S < 0, start[rows], S), axis=1)
        value = self._values(rows, S[:, None])[:, 0]
        active = np.arange(len(S))
        for _ in range(sweeps):
            n, every = len(active), np.arange(len(active) * k)
            each = np.repeat(S[active], k, axis=0)
            without = each.copy()
            without[every, every % k] = -1
            new = self._newcomers(np.repeat(rows[active], k), without, each, 1)
            rivals = np.repeat(each[:, None], new.shape[1], axis=1)
            rivals[every, :, every % k] = new
            rivals = rivals.reshape(n, -1, k)
            L = self._values(rows[active], rivals)
            L[(rivals < 0).any(axis=2)] = -np.inf
            best, here = L.argmax(axis=1), np.arange(n)
            up = L[here, best] > value[active] + 1e-3
            moved = active[up]
            S[moved], value[moved] = np.sort(rivals[here, best][up], axis=1), L[here, best][up]
            active = moved
            if len(active) == 0:
                break
        top = value.reshape(-1, tried).argmax(axis=1) + tried * np.arange(m)
        return np.asarray(S[top])

    def _best(self, supports: Indices, unknown: int, *, soft: bool = True) -> Indices:
        """The likeliest of supports (m, N, size), best first, none twice."""
        value = self._values(np.arange(len(self.y)), supports, unknown, soft=soft)
        value[supports[:, :, 0] < 0] = -np.inf
        for row, L in zip(supports, value, strict=True):
            twice = np.ones(len(row), bool)
            twice[np.unique(row, axis=0, return_index=True)[1]] = False
            L[twice] = -np.inf
        order = np.argsort(-value, axis=1, kind="stable")[:, : self.beam]
        kept = np.take_along_axis(supports, order[:, :, None], axis=1)
        kept[np.take_along_axis(value, order, axis=1) == -np.inf] = -1
        return kept

    def _values(
        self, rows: Indices, supports: Indices, unknown: int = 0, *, soft: bool = True
    ) -> Reals:
        """L of supports (N, count, size) of the encodings `rows`; soft=False takes the best signs
        instead of all: several times faster, good for ranking."""
        count, size = supports.shape[1:]
        *law, constant = self.setting.noise[unknown]
        out, at = np.empty(len(rows) * count), np.repeat(rows, count)
        P, a = self.public.vectors, float32(self.setting.weight)
        _likelihoods(self.y, P, at, supports.reshape(-1, size), a, *law, soft, out)  # type: ignore[call-arg]
        return np.asarray(out + constant).reshape(-1, count)

    def _newcomers(self, rows: Indices, at: Indices, members: Indices, unknown: int) -> Indices:
        """(N, tried + beam): the vectors of the largest product with ∂L/∂μ at supports `at`, and
        the best alone, since signs are unknown where no member is bright; −1 for members."""
        *law, _ = self.setting.noise[unknown]
        new = np.empty((len(rows), self.tried), np.int64)
        step = rows_per_block(8 * self.y.shape[1], self.limit // 4, most=max(1, len(rows)))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            u = np.empty((len(rows[part]), self.y.shape[1]), np.float32)
            P, a = self.public.vectors, float32(self.setting.weight)
            _residuals(self.y, P, rows[part], at[part], a, *law, u)  # type: ignore[call-arg]
            new[part] = top_products(u, self.public, self.tried)[1]
        new = np.concatenate([new, self.alone[rows]], axis=1)
        return np.where((new[:, :, None] == members[:, None, :]).any(axis=2), -1, new)


@njit(fastmath=True, inline="always")
def _cost(h, e):  # type: ignore[no-untyped-def]
    """e²/(2v), at most 10 nats: a Gaussian pixel costs more once in 10⁵, and without a cap an
    outlier would outvote all others."""
    return min(h * e * e, float32(10))


@njit(fastmath=True, inline="always")
def _either(a, b, soft):  # type: ignore[no-untyped-def]
    """log(eᵃ + eᵇ), or the larger; beyond 17 the smaller one is less than float32 can tell."""
    gap = abs(a - b)
    more = soft and gap < float32(17)
    return max(a, b) + (np.log(float32(1) + np.exp(-gap)) if more else float32(0))


@njit(fastmath=True, inline="always")
def _upward(  # type: ignore[no-untyped-def]
    y, P, support, weight, order, parent, slope, half, mean, soft, mu, plus, minus, sent
):
    """L but for its constant. mu: the centre of the signed encoding; plus, minus: what a pixel's
    subtree says of its sign; sent: its messages to the parent, normalised, the logarithms of their
    norms adding up to L."""
    d = len(y)
    for j in range(d):
        mu[j] = mean[j]
    for q in range(len(support)):
        if support[q] >= 0:
            for j in range(d):
                mu[j] += weight * P[support[q], order[j]]
    plus[:] = 0
    minus[:] = 0
    total = 0.0
    for j in range(d - 1, -1, -1):
        h = half[j]
        if slope[j] == 0:
            a, b = plus[j] - _cost(h, y[j] - mu[j]), minus[j] - _cost(h, y[j] + mu[j])
            total += _either(a, b, soft)
            continue
        up = parent[j]
        shift, lean = slope[j] * mu[up] - mu[j], slope[j] * y[up]
        # Signs of the pixel and of its parent: ++, −+, +−, −−.
        a, b = plus[j] - _cost(h, y[j] + shift - lean), minus[j] - _cost(h, -y[j] + shift - lean)
        high = _either(a, b, soft)
        a, b = plus[j] - _cost(h, y[j] + shift + lean), minus[j] - _cost(h, -y[j] + shift + lean)
        low = _either(a, b, soft)
        norm = _either(high, low, soft)
        total += norm
        sent[0, j], sent[1, j] = high - norm, low - norm
        plus[up] += high - norm
        minus[up] += low - norm
    return total


@njit(fastmath=True, cache=True, nogil=True)
def _likelihoods(  # type: ignore[no-untyped-def]
    Y, P, rows, supports, weight, order, parent, slope, half, mean, soft, out
):
    y, mu, plus, minus = np.empty((4, Y.shape[1]), np.float32)
    sent = np.empty((2, Y.shape[1]), np.float32)
    for t in range(len(rows)):
        # Rows come in runs: the pixels of one are put in order once.
        if t == 0 or rows[t] != rows[t - 1]:
            for j in range(len(y)):
                y[j] = Y[rows[t], order[j]]
        out[t] = _upward(
            y, P, supports[t], weight, order, parent, slope, half, mean, soft, mu, plus, minus, sent
        )


@njit(fastmath=True, cache=True, nogil=True)
def _residuals(  # type: ignore[no-untyped-def]
    Y, P, rows, supports, weight, order, parent, slope, half, mean, out
):
    d = Y.shape[1]
    y, mu, plus, minus = np.empty((4, d), np.float32)
    sent = np.empty((2, d), np.float32)
    for t in range(len(rows)):
        for j in range(d):
            y[j] = Y[rows[t], order[j]]
        _upward(
            y, P, supports[t], weight, order, parent, slope, half, mean, True, mu, plus, minus, sent
        )
        # 1. From the root on, plus and minus become the whole evidence for either sign.
        for j in range(d):
            h = half[j]
            if slope[j] == 0:
                plus[j] -= _cost(h, y[j] - mu[j])
                minus[j] -= _cost(h, y[j] + mu[j])
                continue
            up = parent[j]
            high, low = plus[up] - sent[0, j], minus[up] - sent[1, j]
            shift, lean = slope[j] * mu[up] - mu[j], slope[j] * y[up]
            a, b = high - _cost(h, y[j] + shift - lean), low - _cost(h, y[j] + shift + lean)
            plus[j] += _either(a, b, True)
            a, b = high - _cost(h, -y[j] + shift - lean), low - _cost(h, -y[j] + shift + lean)
            minus[j] += _either(a, b, True)
        # 2. E[s]·y − μ, then Q times it: Q = (1 − B)ᵀ·diag(1/v)·(1 − B), B the slopes. Beyond the
        #    cap a pixel says nothing more.
        for j in range(d):
            plus[j] = y[j] * np.tanh(float32(0.5) * (plus[j] - minus[j])) - mu[j]
        for j in range(d):
            e = plus[j] - (slope[j] * plus[parent[j]] if slope[j] != 0 else float32(0))
            minus[j] = 2 * half[j] * e if half[j] * e * e < 10 else float32(0)
        for j in range(d):
            out[t, order[j]] = minus[j]
        for j in range(d):
            if slope[j] != 0:
                out[t, order[parent[j]]] -= slope[j] * minus[j]
