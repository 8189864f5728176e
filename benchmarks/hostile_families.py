"""Hostile instances by family: designs with a second reading, data that are not in general
position, wrong lists, damage.

A family makes private vectors, who mixes whom, and a public part; `family` makes encodings of them,
as the attacker is told. Everything is small, so that thousands of them can be run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import unveil

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Trap:
    """Encodings as the attacker is told about them, the vectors that are really behind them, and
    what they share, if known."""

    kind: str
    encodings: unveil.Encodings
    public: NDArray[np.float32] | None
    private: NDArray[np.float32]
    overlaps: unveil.Overlaps | None = None


def family(kind: str, seed: int, signs: str = "absolute") -> Trap:
    """One instance of a family, k_private 2 to 4, some with a public part, with the size of pixels
    told or not."""
    rng = np.random.default_rng([seed, sorted({**DESIGNS, **DATA, **LISTS, **DAMAGE}).index(kind)])
    k = int(rng.choice([2, 2, 2, 3, 3, 4]))
    rows = np.sort(DESIGNS.get(kind, _random)(rng, k), axis=1)
    n, m = int(rows.max()) + 1, len(rows)
    d = int(rng.choice([20, 50, 120, 250, 500]))
    X = DATA.get(kind, _gaussian)(rng, n, d)
    k_public = int(rng.choice([1, 2])) if kind in LISTS else int(rng.choice([0, 0, 0, 1]))
    if kind == "private in public" and rng.random() < 0.5:
        k, rows = 1, rng.integers(0, n, (m, 1))
    n_public = int(rng.integers(k_public, 16)) if k_public else 0
    P = float(rng.choice([0.5, 1.0])) * rng.standard_normal((n_public, d))
    if kind == "private in public" and n_public:
        P[: n_public // 2] = X[rng.integers(0, n, n_public // 2)]
    Q = np.array([rng.choice(n_public, k_public, replace=False) for _ in range(m)]).reshape(
        m, k_public
    )
    scheme = unveil.Scheme(k, k_public, str(rng.choice(["equal", "paper"])), signs)
    Z = scheme.private_weight * X[rows].sum(axis=1)
    if k_public:
        Z = Z + scheme.public_weight * P[Q].sum(axis=1)
    Y = Z if signs == "kept" else np.abs(Z)
    if kind in DAMAGE:
        Y = DAMAGE[kind](rng, Y)
    if kind in LISTS:
        P = LISTS[kind](rng, P)
    rms = 1.0 if kind not in DATA and rng.random() < 0.5 else None
    told = unveil.Encodings(Y.astype(np.float32), scheme, rms)
    W = np.zeros((m, n), np.int64)
    np.put_along_axis(W, rows, 1, axis=1)
    shared = unveil.Overlaps.from_array(W @ W.T, k)
    return Trap(
        kind, told, P.astype(np.float32) if k_public else None, X.astype(np.float32), shared
    )


def _random(rng: Rng, k: int, n: int | None = None, m: int | None = None) -> Index:
    n = int(rng.integers(2 * k + 2, 22)) if n is None else n
    m = int(n * rng.uniform(1.5, 8)) if m is None else m
    return np.array([rng.choice(n, k, replace=False) for _ in range(m)])


def _bipartite(rng: Rng, k: int) -> Index:
    """One member from each of two halves; sometimes with a few rows inside a half."""
    h = int(rng.integers(k, 9))
    rows = [
        np.append(rng.choice(h, 1), h + rng.choice(h, k - 1, replace=False))
        for _ in range(int(rng.integers(2, 5)) * h)
    ]
    return np.array(
        rows + [rng.choice(h, k, replace=False) for _ in range(int(rng.integers(0, 4)))]
    )


def _blocks(rng: Rng, k: int) -> Index:
    """Two blocks that meet in one or two vectors."""
    h, shared = int(rng.integers(2 * k + 1, 11)), int(rng.integers(1, 3))
    size = int(h * rng.uniform(2, 5))
    return np.vstack([_random(rng, k, h, size), _random(rng, k, h, size) + h - shared])


def _cyclic(rng: Rng, k: int) -> Index:
    n = int(rng.integers(2 * k + 1, 16))
    steps = [np.arange(k), np.append(np.arange(k - 1), k + int(rng.integers(0, 3)))][
        : int(rng.integers(1, 3))
    ]
    rows = np.vstack([(np.arange(n)[:, None] + step) % n for step in steps])
    return np.vstack([rows, _random(rng, k, n, int(rng.integers(0, n)) + 1)])


def _chains(rng: Rng, k: int) -> Index:
    """A dense core, and chains of vectors of two rows each that begin and end in it."""
    core, rows = int(rng.integers(2 * k + 2, 12)), []
    new = core
    for _ in range(int(rng.integers(1, 4))):
        length = int(rng.integers(1, 5))
        links = [int(rng.integers(core)), *range(new, new + length), int(rng.integers(core))]
        new += length
        for a, b in pairwise(links):
            if a != b:
                others = np.setdiff1d(np.arange(core), [a, b])
                rows.append(np.append([a, b], rng.choice(others, k - 2, replace=False)))
    dense = _random(rng, k, core, 5 * core)
    return np.vstack([dense, np.array(rows).reshape(-1, k), _random(rng, k, core, 1)]).astype(
        np.int64
    )


def _tree(rng: Rng, k: int) -> Index:
    n = int(rng.integers(k + 3, 16))
    rows = [np.append(v, rng.choice(v, k - 1, replace=False)) for v in range(k, n)]
    return np.array([np.arange(k), *rows, *_random(rng, k, n, int(rng.integers(1, 4)))])


def _bridge(rng: Rng, k: int) -> Index:
    """Two dense cores joined by one or two rows."""
    h = int(rng.integers(2 * k + 2, 11))
    rows = np.vstack([_random(rng, k, h, 4 * h), _random(rng, k, h, 4 * h) + h])
    across = [
        np.append(rng.choice(h, k - 1, replace=False), h + rng.integers(h))
        for _ in range(int(rng.integers(1, 3)))
    ]
    return np.vstack([rows, across])


def _complements(rng: Rng, k: int) -> Index:
    n = 2 * k + int(rng.integers(0, 2))
    return _random(rng, k, n, int(rng.integers(n + 2, 6 * n)))


def _sunflower(rng: Rng, k: int) -> Index:
    """Most rows share the first vectors."""
    n, core = int(rng.integers(2 * k + 2, 18)), int(rng.integers(1, k))
    petals = [
        np.append(np.arange(core), core + rng.choice(n - core, k - core, replace=False))
        for _ in range(3 * n)
    ]
    return np.vstack([petals, _random(rng, k, n, int(rng.integers(1, n)))])


def _even_set(rng: Rng, k: int) -> Index:
    """2s vectors that every row meets in 0 or s: their complements fit as well, inside."""
    s = max(1, min(k - 1, int(rng.integers(1, k + 1))))
    n = int(rng.integers(2 * k + 2, 14))
    inside = [
        np.append(rng.choice(2 * s, s, replace=False), 2 * s + rng.choice(n, k - s, replace=False))
        for _ in range(40)
    ]
    return np.vstack([inside, _random(rng, k, n, 40) + 2 * s])


def _tiny_surplus(rng: Rng, k: int) -> Index:
    n = int(rng.integers(2 * k + 2, 18))
    return _random(rng, k, n, n + int(rng.integers(0, 6)))


def _gaussian(rng: Rng, n: int, d: int) -> Floats:
    return np.asarray(rng.standard_normal((n, d)))


def _dependent(rng: Rng, n: int, d: int) -> Floats:
    """Vectors that are sums and differences of others: a + b − c, −(a + b + c), a + u − v and b + v
    − u."""
    X = _gaussian(rng, n, d)
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
    X = _gaussian(rng, n, d)
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
    X = _gaussian(rng, n, d)
    X[rng.integers(0, n, 6), rng.integers(0, d, 6)] = 0
    p = int(rng.integers(d))
    X[:, p] = X[0, p] * rng.choice([-1, 1], n)
    return X


def _damaged(rng: Rng, Y: Floats) -> Floats:
    """A few encodings are wrong: at some pixels, at all, swapped pixels, or a copy with noise."""
    Y = Y.copy()
    for r in rng.choice(len(Y), min(len(Y), int(rng.integers(1, 6))), replace=False):
        how, d = int(rng.integers(4)), Y.shape[1]
        if how == 0:
            Y[r, rng.random(d) < 0.1] += 0.5
        elif how == 1:
            Y[r] = np.abs(rng.standard_normal(d))
        elif how == 2:
            Y[r] = rng.permutation(Y[r])
        else:
            Y[r] = Y[r] + 0.01 * rng.standard_normal(d)
    return Y


def _planted(rng: Rng, Y: Floats) -> Floats:
    """Encodings of vectors that are not there: sums and differences of encodings."""
    Y = Y.copy()
    for r in rng.choice(len(Y), min(len(Y), int(rng.integers(1, 6))), replace=False):
        a, b, c = rng.choice(len(Y), 3, replace=False)
        Y[r] = np.abs(Y[a] + Y[b] - Y[c]) if rng.random() < 0.5 else np.abs(Y[a] - Y[b])
    return Y


def _signs_flipped(rng: Rng, P: Floats) -> Floats:
    """Some vectors of the list have the right magnitudes, with other signs."""
    flip = rng.random(len(P)) < 0.5
    return np.asarray(np.where(flip[:, None], P * rng.choice([-1, 1], P.shape), P))


DESIGNS: dict[str, Callable[[Rng, int], Index]] = {
    "bipartite": _bipartite,
    "blocks": _blocks,
    "cyclic": _cyclic,
    "chains": _chains,
    "tree": _tree,
    "bridge": _bridge,
    "complements": _complements,
    "sunflower": _sunflower,
    "even sets": _even_set,
    "tiny surplus": _tiny_surplus,
}
DATA: dict[str, Callable[[Rng, int, int], Floats]] = {
    "dependent": _dependent,
    "equal or opposite": _equal,
    "discrete": _discrete,
    "sparse": _sparse,
    "non-negative": _non_negative,
    "zero pixels": _zero_pixels,
}
LISTS: dict[str, Callable[[Rng, Floats], Floats]] = {
    "permuted public": lambda rng, P: P[:, rng.permutation(P.shape[1])],
    "negated public": lambda rng, P: P * np.where(rng.random(len(P)) < 0.5, -1, 1)[:, None],
    "flipped public": _signs_flipped,
    "private in public": lambda rng, P: P,
    "part of public": lambda rng, P: np.where(
        (rng.random(len(P)) < 0.3)[:, None], rng.standard_normal(P.shape), P
    ),
}
DAMAGE: dict[str, Callable[[Rng, Floats], Floats]] = {"damaged": _damaged, "planted": _planted}
FAMILIES = (*DESIGNS, *DATA, *LISTS, *DAMAGE)
