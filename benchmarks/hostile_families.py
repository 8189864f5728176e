"""Hostile instances by family: designs with a second reading, data that are not in general
position, wrong lists, damage.

A family makes private vectors (`hostile_data`), who mixes whom (`hostile_designs`), and a public
part; `family` makes encodings of them, as the attacker is told. "compound" takes one of each at
random. Everything is small, so that thousands can be run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from benchmarks.hostile_data import DATA, Floats, Rng, gaussian
from benchmarks.hostile_designs import DESIGNS, random_rows
from numpy.typing import NDArray

import unveil


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
    """One instance of a family, k_private 1 to 6, some with a public part, with the size of pixels
    told or not."""
    # 1. One of each: who mixes whom, vectors, a public list, damage.
    rng = np.random.default_rng([seed, crc32(kind.encode())])
    if kind == "nothing private":
        return _nothing_private(rng)
    kinds = {kind}
    if kind == "compound":
        kinds = {
            str(rng.choice(list(some)))
            for some in (DESIGNS, DATA, LISTS, DAMAGE)
            if rng.random() < 0.6
        }
    design, data, listed, damage = (
        next(iter(kinds & set(some)), "") for some in (DESIGNS, DATA, LISTS, DAMAGE)
    )
    k = int(rng.choice([2, 2, 2, 3, 3, 4]))
    rows = np.sort(DESIGNS.get(design, random_rows)(rng, k), axis=1)
    (m, k), n = rows.shape, int(rows.max()) + 1
    d = int(rng.choice([20, 50, 120, 250, 500]))
    X = DATA.get(data, gaussian)(rng, n, d)
    # 2. The public part.
    k_public = int(rng.choice([1, 2])) if listed else int(rng.choice([0, 0, 0, 1]))
    if (listed == "private in public" and rng.random() < 0.5) or kind == "alone":
        k, rows, k_public = 1, rng.integers(0, n, (m, 1)), max(1, k_public)
    n_public = int(rng.integers(k_public, 16)) if k_public else 0
    P = float(rng.choice([0.5, 1.0])) * rng.standard_normal((n_public, d))
    if listed in ("private in public", "mixtures in public", "alike in public") and n_public:
        P = _with_private(rng, P, X, listed)
    Q = np.array([rng.choice(n_public, k_public, replace=False) for _ in range(m)]).reshape(
        m, k_public
    )
    # 3. Encodings, and what is told about them.
    own = kind.startswith("unequal")
    weighting = "half-normal" if own else str(rng.choice(["equal", "paper"]))
    scheme = unveil.Scheme(k, 0 if own else k_public, weighting, signs)
    if own:
        weights = np.abs(rng.standard_normal((m, k, 1)))
        Z, k_public = (X[rows] * (weights / weights.sum(axis=1, keepdims=True))).sum(axis=1), 0
    else:
        Z = scheme.private_weight * X[rows].sum(axis=1)
    if damage in MEMBERS:
        Z = Z + scheme.private_weight * MEMBERS[damage](rng, X, rows)
    if k_public:
        Z = Z + scheme.public_weight * P[Q].sum(axis=1)
    if kind == "unequal, noisy":
        Z = Z + rng.choice([0.02, 0.1, 0.3]) * rng.standard_normal(Z.shape)
    Y = Z if signs == "kept" else np.abs(Z)
    if damage and damage not in MEMBERS:
        Y = DAMAGE[damage](rng, Y)
    if listed:
        P = LISTS[listed](rng, P)
    rms = 1.0 if not data and rng.random() < 0.5 else None
    told = unveil.Encodings(Y.astype(np.float32), scheme, rms)
    W = np.zeros((m, n), np.int64)
    np.put_along_axis(W, rows, 1, axis=1)
    shared = unveil.Overlaps.from_array(W @ W.T, k)
    return Trap(
        kind, told, P.astype(np.float32) if k_public else None, X.astype(np.float32), shared
    )


def _nothing_private(rng: Rng) -> Trap:
    """Mixtures of public vectors alone, 2 to 4 times as many pixels as vectors: of any kind of data,
    some with the magnitudes of others, some nearly equal, the list damaged or not."""
    n, k, m = int(rng.integers(6, 15)), int(rng.integers(1, 4)), int(rng.integers(1, 20))
    d = int(n * rng.uniform(2, 6)) + int(rng.integers(2, 40))
    data = str(rng.choice([*DATA, "gaussian"]))
    P = DATA.get(data, gaussian)(rng, n, d)
    for i in range(1, n):
        if rng.random() < 0.2:
            P[i] = P[i - 1] * rng.choice([-1, 1], d)
        elif rng.random() < 0.1:
            P[i] = P[i - 1]
            P[i, int(rng.integers(d))] += rng.choice([0.0, 0.05, 1.0])
    Q = np.array([rng.choice(n, k, replace=False) for _ in range(m)])
    scheme = unveil.Scheme(0, k)
    Y = np.abs(scheme.public_weight * P[Q].sum(axis=1))
    # A list that names other vectors of the same magnitudes cannot be told from the right one.
    damage = str(rng.choice(["permuted public", "negated public", "scaled public"]))
    listed = P if rng.random() < 0.6 else LISTS[damage](rng, P)
    # What is mixed, as the list has it; up to size, which the weights carry.
    product = (listed * P).sum(axis=1) ** 2
    same = product > (1 - 1e-9) * (listed**2).sum(axis=1) * (P**2).sum(axis=1)
    used = np.unique(Q)
    true = np.vstack([listed[used[same[used]]], P[used]]).astype(np.float32)
    told = unveil.Encodings(Y.astype(np.float32), scheme, None)
    return Trap("nothing private", told, listed.astype(np.float32), true)


def _with_private(rng: Rng, P: Floats, X: Floats, how: str) -> Floats:
    """A list that knows the private vectors: some of them, sums and negatives of them; or vectors
    that are nearly equal."""
    P = P.copy()
    for i in range((len(P) + 1) // 2):
        a, b = rng.choice(len(X), 2, replace=False)
        if how == "private in public":
            P[i] = X[a]
        elif how == "mixtures in public":
            P[i] = [
                X[a] + X[b],
                (X[a] + X[b]) / 2,
                X[a] - X[b],
                -X[a],
                2 * X[a],
                np.abs(X[a] + X[b]),
            ][int(rng.integers(6))]
        else:
            P[i] = P[-1 - i]
            P[i, int(rng.integers(P.shape[1]))] += rng.choice([0.0, 0.05, 1.0])
    return P


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


def _moved_too(rng: Rng, P: Floats) -> Floats:
    """Every vector a second time, shifted by one vector or mirrored at one."""
    t = rng.standard_normal(P.shape[1])
    return np.vstack([P, P + t if rng.random() < 0.5 else t - P])


def _signs_flipped(rng: Rng, P: Floats) -> Floats:
    """Some vectors of the list have the right magnitudes, with other signs."""
    flip = rng.random(len(P)) < 0.5
    return np.asarray(np.where(flip[:, None], P * rng.choice([-1, 1], P.shape), P))


def _scaled_rows(rng: Rng, Y: Floats) -> Floats:
    """Rows of another size, of zeros, of one value, or a copy of another row."""
    Y = Y.copy()
    for r in rng.choice(len(Y), min(len(Y), int(rng.integers(1, 6))), replace=False):
        Y[r] = [
            Y[r] * rng.choice([0.5, 1.01, 2.0]),
            0 * Y[r],
            0 * Y[r] + 1.0,
            Y[int(rng.integers(len(Y)))],
        ][int(rng.integers(4))]
    return Y


def _one_pixel(rng: Rng, Y: Floats) -> Floats:
    """Single values are wrong: one in a row, one in every row, a pixel of all rows."""
    Y, how = Y.copy(), int(rng.integers(3))
    if how == 0:
        Y[rng.integers(0, len(Y), 3), rng.integers(0, Y.shape[1], 3)] += 0.3
    elif how == 1:
        Y[np.arange(len(Y)), rng.integers(0, Y.shape[1], len(Y))] *= 1.2
    else:
        Y[:, int(rng.integers(Y.shape[1]))] = rng.permutation(Y[:, 0])
    return Y


def _one_more(rng: Rng, X: Floats, rows: NDArray[np.int64]) -> Floats:
    """Some rows hold one vector more, one fewer, or one twice."""
    out = np.zeros((len(rows), X.shape[1]))
    for r in rng.choice(len(rows), min(len(rows), int(rng.integers(1, 6))), replace=False):
        first = X[rows[r, 0]]
        out[r] = [X[int(rng.integers(len(X)))], -first, first][int(rng.integers(3))]
    return out


LISTS: dict[str, Callable[[Rng, Floats], Floats]] = {
    "permuted public": lambda rng, P: P[:, rng.permutation(P.shape[1])],
    "negated public": lambda rng, P: P * np.where(rng.random(len(P)) < 0.5, -1, 1)[:, None],
    "flipped public": _signs_flipped,
    "private in public": lambda rng, P: P,
    "mixtures in public": lambda rng, P: P,
    "alike in public": lambda rng, P: P,
    "scaled public": lambda rng, P: (
        P * np.where(rng.random(len(P)) < 0.5, rng.choice([0.5, 1.02, 2.0]), 1)[:, None]
    ),
    "moved public": _moved_too,
    "part of public": lambda rng, P: np.where(
        (rng.random(len(P)) < 0.3)[:, None], rng.standard_normal(P.shape), P
    ),
}
MEMBERS: dict[str, Callable[[Rng, Floats, NDArray[np.int64]], Floats]] = {"one more": _one_more}
"""What comes on top of the sums of some rows."""
DAMAGE: dict[str, Callable[[Rng, Floats], Floats]] = {
    "damaged": _damaged,
    "planted": _planted,
    "scaled rows": _scaled_rows,
    "one pixel": _one_pixel,
    "one more": lambda rng, Y: Y,
}
ALONE = ("alone", "unequal", "unequal, noisy", "nothing private", "compound")
"""Families that are no change of one part."""
FAMILIES = (*DESIGNS, *DATA, *LISTS, *DAMAGE, *ALONE)
