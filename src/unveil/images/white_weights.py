"""Which two images each encoding mixes among public white noise, and with what weights: the
likelihood of magnitudes themselves.

    log p(y) = Σ log cosh(y·M/v) − M²/2v − y²/2v − log v/2,     M = λ_j x_j + λ_l x_l

All pairs are compared by squares first, y² against M² at a few weights: a table of products of y²
with x_j·x_l has all of it. The best pairs are then fitted by expectation–maximisation over λ and v.
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
QUIET = 0.004
"""Least variance of the noise: that of a public weight of a tenth."""
EMPTY = 1e-3
"""Added to the energy of an image, which may be zero."""


@dataclass(frozen=True, eq=False)
class WhiteWeighing:
    """The weighing, the expected variance of the noise (m,), and the log likelihood (m,) of the
    best pair."""

    weighing: Weighing
    noise: Floats
    likelihood: Floats


def weigh_pairs(
    Y: Floats, images: Floats, fit: WhiteFit, largest: float, epochs: Epochs | None = None
) -> WhiteWeighing:
    """Pairs, weights and noise of every encoding; images (n, d) are those of `fit`."""
    # 1. The likeliest pairs by squares, each fitted.
    m, n = fit.weights.shape
    own = fit.own_part(Y, images)
    pairs = likely_pairs(Y, images)
    count = pairs.shape[1]
    fitted = np.empty((m, count, 2), np.float32)
    noise, likelihood = np.empty((m, count), np.float32), np.empty((m, count), np.float32)
    rows = np.arange(m)
    for c in range(count):
        first, second = (
            images[column] - (fit.weights[rows, column] / fit.noise)[:, None] * own
            for column in pairs[:, c].T
        )
        fitted[:, c], noise[:, c], likelihood[:, c] = fit_pair(Y, first, second, fit.noise, largest)
    # 2. Expected weights: averages over pairs, by likelihood.
    found = Pairs(pairs, likelihood, fitted, fitted**2, noise)
    odds = found.odds(n, epochs)
    weights, squares, expected = found.expected(odds, n)
    best = odds.argmax(axis=1)
    mixed = weights @ images
    misfit = ((fit.signed(Y, mixed) - mixed) ** 2).mean(axis=1) / expected
    weighing = Weighing(
        sparse.csr_array(weights),
        sparse.csr_array(squares),
        pairs[rows, best],
        fitted[rows, best],
        misfit.astype(np.float32),
    )
    return WhiteWeighing(weighing, expected, likelihood.max(axis=1))


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
    Y: Floats, first: Floats, second: Floats, noise: Floats, largest: float
) -> tuple[Floats, Floats, Floats]:
    """Weights (m, 2), noise (m,) and log likelihood (m,) of two images (m, d) in each encoding."""
    m, d = Y.shape
    energy = np.einsum("ij,ij->i", Y, Y)
    g11 = np.einsum("ij,ij->i", first, first) + EMPTY
    g22 = np.einsum("ij,ij->i", second, second) + EMPTY
    g12 = np.einsum("ij,ij->i", first, second)
    # Two columns may be one image: solvable all the same.
    determinant = np.maximum(g11 * g22 - g12**2, 1e-6 * g11 * g22)
    one = np.full(m, USUAL, np.float32)
    two, v = one.copy(), noise
    mixed = one[:, None] * first + two[:, None] * second
    for _ in range(STEPS):
        signed = np.tanh(Y * mixed / v[:, None]) * Y
        h1, h2 = np.einsum("ij,ij->i", signed, first), np.einsum("ij,ij->i", signed, second)
        one += STRIDE * ((g22 * h1 - g12 * h2) / determinant - one)
        two += STRIDE * ((g11 * h2 - g12 * h1) / determinant - two)
        one, two = np.clip(one, LEAST, largest), np.clip(two, LEAST, largest)
        explained = one**2 * g11 + two**2 * g22 + 2 * one * two * g12
        v = np.maximum((energy - explained) / d, QUIET).astype(np.float32)
        mixed = one[:, None] * first + two[:, None] * second
    size = np.abs(Y * mixed / v[:, None])
    folded = (size + np.log1p(np.exp(-2 * size)) - mixed**2 / (2 * v[:, None])).sum(axis=1)
    likelihood = folded - energy / (2 * v) - d / 2 * np.log(v)
    return np.stack([one, two], axis=1), v, likelihood.astype(np.float32)
