"""Tensor decomposition: how many encodings it needs, from true overlaps, and how many wrong
overlaps it bears.

Needed are the fewest encodings, in steps of a tenth, at which the subsets of all vectors used twice
or more are exactly right in 9 of 10 seeds, and in 5 of 10. Beside it, in the same run: the fewest
encodings that use every vector twice, below which no attack can have all; those from which on the
paper's attack can expect one floral; the tensor rounded from the number of encodings that avoid all
three and nothing else; and the cliques of `full`, which has the pixels to correct them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from unveil.factor.cliques import find_cliques

import unveil
from benchmarks.table import Row
from unveil.encode import draw_selection, selection_matrix
from unveil.paper.floral import encodings_needed
from unveil.rivals import tensor as intersection_tensor
from unveil.rivals.tensor import boolean_factor

SEEDS, STEP = 10, 1.1
SIZES = (25, 50, 100, 200)
MOST = 16
"""Encodings per vector beyond which nobody looks."""

Incidence = NDArray[np.int64]
Factor = Callable[[Incidence, int, int], Incidence]


def by_tensor(M: Incidence, k: int, n: int) -> Incidence:
    found = boolean_factor(
        unveil.Overlaps.from_array(M, k), np.random.default_rng(0), limit=2 << 30
    )
    return np.zeros((len(M), 0), np.int64) if found is None else found.astype(np.int64)


def by_union(M: Incidence, k: int, n: int) -> Incidence:
    with patch.object(intersection_tensor, "log_cells", union_alone):
        return by_tensor(M, k, n)


def _avoids(n, k, size):
    """C(n−size, k)/C(n, k): the probability that a random k-subset of n avoids a set."""
    steps = np.arange(k)
    return np.prod(np.maximum(n - size[..., None] - steps, 0) / np.maximum(n - steps, 1), axis=-1)


def union_alone(n: float, k: int) -> NDArray[np.float64]:
    """The likelihoods of avoiding all three, or not: nothing is told by which of them an encoding
    meets."""
    M_ab, M_ac, M_bc, T = np.indices((k + 1,) * 4).astype(np.float64)
    none = np.clip(_avoids(n, k, 3 * k - M_ab - M_ac - M_bc + T), 1e-9, 1 - 1e-9)
    return np.log(np.stack([none] + 7 * [1 - none], axis=-1))


def by_cliques(M: Incidence, k: int, n: int) -> Incidence:
    """The first guess of `full` for many encodings; pixels correct it there."""
    found = find_cliques(unveil.Overlaps.from_array(M, k))
    W = np.zeros((len(M), found.columns + 1), np.int64)
    np.put_along_axis(W, found.members, 1, axis=1)
    return W[:, :-1]


def draw(k: int, n: int, m: int, seed: int) -> Incidence:
    rng = np.random.default_rng([70_000 + seed, k, n, m])
    return (
        selection_matrix(draw_selection(unveil.Scheme(k), n, 0, m, rng, rng).private, n)
        .toarray()
        .astype(np.int64)
    )


def exact(factor: Factor, k: int, n: int, m: int, seed: int) -> bool:
    W = draw(k, n, m, seed)
    return _complete(factor(W @ W.T, k, n), W)


def used_twice(k: int, n: int, m: int, seed: int) -> bool:
    return bool((draw(k, n, m, seed).sum(axis=0) >= 2).all())


def fewest(
    succeeds: Callable[[int, int, int, int], bool], k: int, n: int, shares: tuple[int, ...] = (5, 9)
) -> list[int]:
    """The smallest m of the grid with so many successes of ten; 0 where there is none up to MOST
    times n."""
    m, out = float(n), [0] * len(shares)
    while not out[-1] and m <= MOST * n:
        hits = 0
        for seed in range(SEEDS):
            hits += succeeds(k, n, round(m), seed)
            if seed + 1 - hits > SEEDS - min(
                share for share, done in zip(shares, out, strict=True) if not done
            ):
                break
        out = [
            was or (round(m) if hits >= share else 0)
            for was, share in zip(out, shares, strict=True)
        ]
        m *= STEP
    return out


def misread(M: Incidence, k: int, share: float, rng: np.random.Generator) -> Incidence:
    """One more or one less at a share of the pairs; of a pair that shares nothing, one more."""
    M = M.copy()
    i, j = np.triu_indices(len(M), 1)
    pick = rng.random(len(i)) < share
    i, j = i[pick], j[pick]
    M[i, j] = np.clip(np.abs(M[i, j] + rng.choice([-1, 1], len(i))), 0, k)
    M[j, i] = M[i, j]
    return M


def borne(k: int, n: int, m: int) -> float:
    """The largest share of wrong overlaps, in steps of a quarter, at which all subsets are right in
    9 of 10 seeds."""
    best, share = 0.0, 0.005
    while share < 0.5:
        hits = 0
        for seed in range(SEEDS):
            W = draw(k, n, m, seed)
            hits += _complete(
                by_tensor(misread(W @ W.T, k, share, np.random.default_rng(seed)), k, n), W
            )
            if seed + 1 - hits > 1:
                break
        if hits < 9:
            break
        best, share = share, 1.25 * share
    return best


def needed(k: int) -> list[Row]:
    """Encodings needed over n, and the power of n that fits them."""
    out: list[Row] = []
    nine: list[int] = []
    for n in SIZES:
        half, most = fewest(partial(exact, by_tensor), k, n)
        floor = fewest(used_twice, k, n, (9,))[0]
        nine.append(most)
        paper = f"{encodings_needed(n, k):,}"
        measured = f"{most} (half of the seeds: {half}); every vector used twice: {floor}; one floral: {paper}"
        if n == SIZES[0]:
            others = {"union alone": by_union, "cliques": by_cliques}
            told = [
                f"{name} {fewest(partial(exact, factor), k, n, (9,))[0] or f'over {MOST * n}'}"
                for name, factor in others.items()
            ]
            measured += "; " + ", ".join(told)
        out.append(
            (
                f"k={k}, n={n}: encodings needed",
                "no more than every vector twice",
                measured,
                0 < most <= floor,
            )
        )
    if not all(nine):
        return out
    power, constant = np.polyfit(np.log(SIZES), np.log(nine), 1)
    out.append((f"k={k}: fit", "", f"{np.exp(constant):.2g}·n^{power:.2f}", None))
    return out


def _complete(found: Incidence, W: Incidence) -> bool:
    columns = {column.tobytes() for column in np.ascontiguousarray(found.T)}
    return all(
        column.tobytes() in columns for column in np.ascontiguousarray(W.T) if column.sum() >= 2
    )


def rows() -> list[Row]:
    out = [row for k in (2, 3, 4, 5) for row in needed(k)]
    for k in (2, 3, 4, 5):
        share = borne(k, 50, 350)
        out.append(
            (
                f"k={k}, n=50, m=350: share of wrong overlaps borne",
                "one in a hundred",
                f"{share:.1%}",
                share >= 0.01,
            )
        )
    return out
