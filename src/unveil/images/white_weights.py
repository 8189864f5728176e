"""Which two images each encoding mixes among public white noise, and with what weights: the
likelihood of magnitudes themselves.

    log p(y) = Σ log cosh(y·M/v) − M²/2v − y²/2v − log v/2,     M = λ_j x_j + λ_l x_l

All pairs are compared by squares first, y² against M² at a few weights: a table of products of y²
with x_j·x_l has all of it; where some of the noise is known (`images.white_shared`), by signed
encodings as well. The best pairs are then fitted by expectation–maximisation over λ and v.
Each image is taken without what the encoding itself added to it, so that none vouches for itself;
with a hundred encodings of each image that made no difference to what came back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.epochs import Epochs
from unveil.images.reweigh import LEAST, Weighing
from unveil.images.task import unsure
from unveil.images.white_fit import WhiteFit
from unveil.images.white_pairs import Pairs

Floats = NDArray[np.float32]
PAIRS = 12
"""Pairs of each encoding that are fitted: the true one is mostly among the first by squares."""
LEVELS = (0.08, 0.2, 0.4)
"""Weights at which squares are compared: small, usual and large ones."""
SUM = 0.85
"""Weights of both together at most, where squares are compared: public images have a share."""
STEPS, STRIDE = 6, 1.5
"""Rounds of expectation–maximisation over the weights of a pair, and how far beyond its own step
each goes: under noise its own steps are short."""
USUAL = 0.2
"""Weight from which both start."""
QUIET = 0.002
"""Least variance of the noise: that of a public weight of 0.08."""
EMPTY = 1e-3
"""Added to the energy of an image, which may be zero."""
ALIKE = 1e-6
"""Least determinant of two images, by the product of their energies: two columns may be one
image."""
NUMBERS = 10_000_000
"""Gains of pairs held at once, to bound memory."""
VARIANCE = 0.3
"""That of a pixel: what is not known of a weight adds so much noise."""
SCALE = (0.7, 1.4)
"""Bounds of one correction of an image's scale, which encodings fix badly."""
SEEN = 3
"""An image with no more members than this says nothing of its scale."""


@dataclass(frozen=True, eq=False)
class WhiteWeighing:
    """The weighing, the expected variance of the noise (m,), and the log likelihood (m,) of the
    best pair."""

    weighing: Weighing
    noise: Floats
    likelihood: Floats

    def calibrated(self, mean: float) -> tuple[Floats, Floats]:
        """Expected weights and squares (m, n), with the mean of each image's weights made that of
        their law."""
        found, n = self.weighing, self.weighing.weights.shape[1]
        count = np.bincount(found.members.ravel(), minlength=n)
        total = np.bincount(found.members.ravel(), found.best.ravel(), minlength=n)
        ratio = np.clip(total / np.maximum(count, 1) / mean, *SCALE)
        scale = np.where(count > SEEN, ratio, 1).astype(np.float32)
        first, second = found.weights.toarray() / scale, found.squares.toarray() / scale**2
        return np.asarray(first, np.float32), np.asarray(second, np.float32)


def with_unsure(noise: NDArray[np.floating], A: Floats, A2: Floats) -> Floats:
    """The noise (m,) and what is not known of expected weights A, squares A2 (m, n)."""
    more = VARIANCE * unsure(sparse.csr_array(A), sparse.csr_array(A2))
    return np.asarray(noise + more, np.float32)


def weigh_pairs(
    Y: Floats,
    images: Floats,
    fit: WhiteFit,
    largest: float,
    epochs: Epochs | None = None,
    offsets: Floats | None = None,
) -> WhiteWeighing:
    """Pairs, weights and noise of every encoding; images (n, d) are those of `fit`, offsets (m, d)
    the noise that is known."""
    # 1. The likeliest pairs by squares, and by signs where noise is known.
    m, n = fit.weights.shape
    own = fit.own_part(Y, images, offsets)
    pairs = likely_pairs(Y, images)
    once = np.ones(pairs.shape[:2], bool)
    if offsets is not None:
        signed = fit.signed(Y, fit.weights @ images, offsets)
        pairs, once = _together(pairs, signed_pairs(signed, images, largest), n)
    # 2. Each is fitted; one that is there twice counts once.
    count = pairs.shape[1]
    fitted = np.full((m, count, 2), USUAL, np.float32)
    noise = np.repeat(fit.noise[:, None], count, axis=1)
    likelihood = np.full((m, count), -np.inf, np.float32)
    for c in range(count):
        rows = np.flatnonzero(once[:, c])
        first, second = (
            images[column] - (fit.weights[rows, column] / fit.noise[rows])[:, None] * own[rows]
            for column in pairs[rows, c].T
        )
        known = None if offsets is None else offsets[rows]
        fitted[rows, c], noise[rows, c], likelihood[rows, c] = fit_pair(
            Y[rows], first, second, fit.noise[rows], largest, known
        )
    # 3. Expected weights: averages over pairs, by likelihood.
    found = Pairs(pairs, likelihood, fitted, fitted**2, noise)
    odds = found.odds(n, epochs)
    weights, squares, expected = found.expected(odds, n)
    best, at = odds.argmax(axis=1), np.arange(m)
    mixed = weights @ images
    misfit = ((fit.signed(Y, mixed, offsets) - mixed) ** 2).mean(axis=1) / expected
    weighing = Weighing(
        sparse.csr_array(weights),
        sparse.csr_array(squares),
        pairs[at, best],
        fitted[at, best],
        misfit.astype(np.float32),
    )
    return WhiteWeighing(weighing, expected, likelihood.max(axis=1))


def _together(
    first: NDArray[np.int64], second: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """All pairs (m, c, 2) of both, and (m, c) whether each is there for the first time."""
    pairs = np.concatenate([first, second], axis=1)
    name = pairs[..., 0] * n + pairs[..., 1]
    order = np.argsort(name, axis=1, kind="stable")
    name = np.take_along_axis(name, order, axis=1)
    once = np.ones(name.shape, bool)
    once[:, 1:] = name[:, 1:] != name[:, :-1]
    return np.take_along_axis(pairs, order[..., None], axis=1), once


def signed_pairs(signed: Floats, images: Floats, largest: float) -> NDArray[np.int64]:
    """(m, PAIRS, 2): pairs that explain most of signed encodings (m, d), by least squares."""
    products, gram = signed @ images.T, images @ images.T
    gram[np.diag_indices(len(gram))] += EMPTY
    i, j = np.triu_indices(len(images), 1)
    g11, g22, g12 = gram[i, i], gram[j, j], gram[i, j]
    determinant = np.maximum(g11 * g22 - g12**2, ALIKE * g11 * g22)
    count = min(PAIRS, len(i))
    out = np.empty((len(signed), count, 2), np.int64)
    step = max(1, NUMBERS // len(i))
    for start in range(0, len(signed), step):
        h1, h2 = products[start : start + step, i], products[start : start + step, j]
        one = np.clip((g22 * h1 - g12 * h2) / determinant, LEAST, largest)
        two = np.clip((g11 * h2 - g12 * h1) / determinant, LEAST, largest)
        gain = 2 * (one * h1 + two * h2) - (one**2 * g11 + two**2 * g22 + 2 * one * two * g12)
        top = np.argpartition(-gain, count - 1, axis=1)[:, :count]
        out[start : start + step] = np.stack([i[top], j[top]], axis=-1)
    return out


def likely_pairs(Y: Floats, images: Floats) -> NDArray[np.int64]:
    """(m, PAIRS, 2): pairs whose mixture has squares most like those of each encoding."""
    # 1. Products of y² with those of any two images, levels taken off.
    n = len(images)
    squares = Y * Y
    squares -= squares.mean(axis=1, keepdims=True)
    i, j = np.triu_indices(n)
    products = images[i] * images[j]
    products -= products.mean(axis=1, keepdims=True)
    seen = squares @ products.T
    gram = products @ products.T
    place = np.zeros((n, n), np.int64)
    place[i, j] = place[j, i] = np.arange(len(i))
    # 2. Least squares at each level of both weights: (λ_j x_j + λ_l x_l)² is a sum of products.
    a, b = np.triu_indices(n, 1)
    terms = place[a, a], place[b, b], place[a, b]
    best = np.full((len(Y), len(a)), -np.inf, np.float32)
    for first in LEVELS:
        for second in LEVELS:
            if first + second > SUM:
                continue
            factors = np.array([first**2, second**2, 2 * first * second], np.float32)
            gain = sum(factor * seen[:, term] for factor, term in zip(factors, terms, strict=True))
            size = sum(
                f * g * gram[s, t]
                for f, s in zip(factors, terms, strict=True)
                for g, t in zip(factors, terms, strict=True)
            )
            np.maximum(best, gain - size / 2, out=best)
    # 3. The best of them.
    count = min(PAIRS, len(a))
    top = np.argpartition(-best, count - 1, axis=1)[:, :count]
    return np.stack([a[top], b[top]], axis=-1)


def fit_pair(
    Y: Floats,
    first: Floats,
    second: Floats,
    noise: Floats,
    largest: float,
    offsets: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Weights (m, 2), noise (m,) and log likelihood (m,) of two images (m, d) in each encoding,
    next to the noise that is known, offsets (m, d)."""
    # 1. What of the normal equations is the same in every step.
    m, d = Y.shape
    known = np.zeros((1, 1), np.float32) if offsets is None else offsets
    energy = np.einsum("ij,ij->i", Y, Y)
    g11 = np.einsum("ij,ij->i", first, first) + EMPTY
    g22 = np.einsum("ij,ij->i", second, second) + EMPTY
    g12 = np.einsum("ij,ij->i", first, second)
    determinant = np.maximum(g11 * g22 - g12**2, ALIKE * g11 * g22)
    # 2. Expectation of signs, then weights and noise.
    one = np.full(m, USUAL, np.float32)
    two, v = one.copy(), noise
    mixed = one[:, None] * first + two[:, None] * second + known
    for _ in range(STEPS):
        signed = np.tanh(Y * mixed / v[:, None]) * Y
        total = energy if offsets is None else energy + ((known - 2 * signed) * known).sum(axis=1)
        signed -= known
        h1, h2 = np.einsum("ij,ij->i", signed, first), np.einsum("ij,ij->i", signed, second)
        one += STRIDE * ((g22 * h1 - g12 * h2) / determinant - one)
        two += STRIDE * ((g11 * h2 - g12 * h1) / determinant - two)
        one, two = np.clip(one, LEAST, largest), np.clip(two, LEAST, largest)
        explained = one**2 * g11 + two**2 * g22 + 2 * one * two * g12
        missed = total - 2 * (one * h1 + two * h2) + explained
        v = np.maximum(missed / d, QUIET).astype(np.float32)
        mixed = one[:, None] * first + two[:, None] * second + known
    # 3. The likelihood of magnitudes.
    size = np.abs(Y * mixed / v[:, None])
    folded = (size + np.log1p(np.exp(-2 * size)) - mixed**2 / (2 * v[:, None])).sum(axis=1)
    likelihood = folded - energy / (2 * v) - d / 2 * np.log(v)
    return np.stack([one, two], axis=1), v, likelihood.astype(np.float32)
