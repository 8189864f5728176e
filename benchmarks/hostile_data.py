"""Private vectors that are not in general position: levels, zeros, ties, dependence, sizes far
apart. Each makes (n, d)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rng = np.random.Generator


def gaussian(rng: Rng, n: int, d: int) -> Floats:
    return np.asarray(rng.standard_normal((n, d)))


def _dependent(rng: Rng, n: int, d: int) -> Floats:
    """Vectors that are sums and differences of others: a + b − c, −(a + b + c), a + u − v and b + v
    − u."""
    X = gaussian(rng, n, d)
    for _ in range(int(rng.integers(1, 4))):
        a, b, c, e = rng.choice(n, 4, replace=False)
        kind = int(rng.integers(3))
        if kind == 0:
            X[e] = X[a] + X[b] - X[c]
        elif kind == 1:
            X[e] = -(X[a] + X[b] + X[c])
        else:
            X[a], X[b] = X[a] + X[c] - X[e], X[b] + X[e] - X[c]
    return X


def _equal(rng: Rng, n: int, d: int) -> Floats:
    """Equal, opposite and nearly equal vectors."""
    X = gaussian(rng, n, d)
    X[1] = X[0] * rng.choice([1, -1])
    X[2] = X[3] + 1e-3 * rng.standard_normal(d)
    X[4] = np.abs(X[5])
    return X


def _discrete(rng: Rng, n: int, d: int) -> Floats:
    levels = int(rng.choice([2, 3, 5, 17, 256]))
    X = rng.integers(0, levels, (n, d)) / (levels - 1) * 2 - 1
    keep = rng.random(d) < rng.choice([0.0, 0.5, 0.95])
    return np.asarray(np.where(keep, rng.standard_normal((n, d)), X))


def _sparse(rng: Rng, n: int, d: int) -> Floats:
    return np.asarray(
        rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.choice([0.1, 0.3, 0.7, 0.99]))
    )


def _non_negative(rng: Rng, n: int, d: int) -> Floats:
    X = rng.random((n, d)) if rng.random() < 0.5 else np.abs(rng.standard_normal((n, d)))
    if rng.random() < 0.5:
        X = X * (rng.random((n, d)) < 0.6)
    if rng.random() < 0.3:
        X[int(rng.integers(n))] *= -1
    return np.asarray(X)


def _zero_pixels(rng: Rng, n: int, d: int) -> Floats:
    X = gaussian(rng, n, d)
    X[rng.integers(0, n, 6), rng.integers(0, d, 6)] = 0
    p = int(rng.integers(d))
    X[:, p] = X[0, p] * rng.choice([-1, 1], n)
    return X


def _integers(rng: Rng, n: int, d: int) -> Floats:
    """Whole numbers: pixel values, counts, ages; some columns of one value only."""
    top = int(rng.choice([3, 10, 100, 255]))
    X = rng.integers(-top if rng.random() < 0.5 else 0, top + 1, (n, d)).astype(np.float64)
    if rng.random() < 0.3:
        X[:, rng.random(d) < 0.5] = float(rng.integers(1, top + 1))
    return X


def _heavy(rng: Rng, n: int, d: int) -> Floats:
    """Heavy tails, or one pixel or one vector that is larger than all others together."""
    X, how, much = gaussian(rng, n, d), int(rng.integers(4)), 10.0 ** rng.uniform(1, 5)
    if how == 0:
        X = rng.standard_cauchy((n, d))
    elif how == 1:
        X[:, int(rng.integers(d))] *= much
    elif how == 2:
        X[int(rng.integers(n))] *= much
    else:
        X[int(rng.integers(n)), int(rng.integers(d))] *= much
    return np.asarray(X)


def _multiples(rng: Rng, n: int, d: int) -> Floats:
    """Vectors that are multiples, sums, means, or differences of others; or all of few."""
    X = gaussian(rng, n, d)
    if rng.random() < 0.2:
        few = int(rng.integers(2, n))
        return np.asarray(rng.integers(-2, 3, (n, few)) @ X[:few])
    for _ in range(int(rng.integers(1, 5))):
        a, b, c = rng.choice(n, 3, replace=False)
        X[a] = [
            2 * X[b],
            -X[b],
            0.5 * X[b],
            X[b] + X[c],
            X[b] - X[c],
            (X[b] + X[c]) / 2,
            -X[b] - X[c],
            0 * X[b],
        ][int(rng.integers(8))]
    return X


def _one_hot(rng: Rng, n: int, d: int) -> Floats:
    """Blocks of which one entry is 1, as categories are coded, beside a few continuous columns."""
    levels = int(rng.integers(2, 6))
    blocks = max(1, d // levels)
    X = np.eye(levels)[rng.integers(0, levels, (n, blocks))].reshape(n, -1)
    X = np.hstack([X, np.zeros((n, max(0, d - X.shape[1])))])
    some = int(rng.choice([0, 0, 3, 10]))
    X[:, :some] = rng.standard_normal((n, some))
    return X


def _nearly_equal(rng: Rng, n: int, d: int) -> Floats:
    """Vectors that are equal but for one pixel, or but for a little everywhere; or all alike, with
    small parts of their own."""
    X = gaussian(rng, n, d)
    if rng.random() < 0.3:
        return np.asarray(X[:1] + 10 ** rng.uniform(-3, 0) * X)
    for a in range(0, n - 1, 2)[: int(rng.integers(1, 4))]:
        X[a + 1] = X[a]
        if rng.random() < 0.5:
            X[a + 1, int(rng.integers(d))] += rng.choice([0.05, 1.0])
        else:
            X[a + 1] += 10 ** rng.uniform(-4, -1) * rng.standard_normal(d)
    return X


def _rounded(rng: Rng, n: int, d: int) -> Floats:
    """Half precision, or two decimals."""
    X = gaussian(rng, n, d)
    return (
        X.astype(np.float16).astype(np.float64)
        if rng.random() < 0.5
        else np.round(X, int(rng.integers(1, 3)))
    )


def _repeated_pixels(rng: Rng, n: int, d: int) -> Floats:
    """Few columns, again and again: many pixels that say little."""
    few = int(rng.integers(1, 12))
    X = gaussian(rng, n, few) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], (n, few))
    return np.asarray(X[:, rng.integers(0, few, d)] * rng.choice([1.0, 1.0, -1.0, 2.0], d))


def _smooth(rng: Rng, n: int, d: int) -> Floats:
    """Random walks, or waves of few frequencies."""
    if rng.random() < 0.5:
        X = np.cumsum(rng.standard_normal((n, d)), axis=1)
        return np.asarray(np.clip(2 * X / np.abs(X).max(), -1, 1))
    waves = np.cos(np.outer(np.arange(1, 9), np.linspace(0, np.pi, d)))
    return np.asarray(rng.standard_normal((n, 8)) @ waves + 1e-3 * rng.standard_normal((n, d)))


DATA: dict[str, Callable[[Rng, int, int], Floats]] = {
    "dependent": _dependent,
    "equal or opposite": _equal,
    "discrete": _discrete,
    "sparse": _sparse,
    "non-negative": _non_negative,
    "zero pixels": _zero_pixels,
    "integers": _integers,
    "heavy tails": _heavy,
    "multiples": _multiples,
    "one-hot": _one_hot,
    "nearly equal": _nearly_equal,
    "rounded": _rounded,
    "repeated pixels": _repeated_pixels,
    "smooth": _smooth,
}
