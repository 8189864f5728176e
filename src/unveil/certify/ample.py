"""Pixels of few levels where encodings are many: how likely is it that values agree so that another
solution fits?

x and x' = x − 2a both solve |Wx + c| = y at a pixel if every row has W_r·a = 0 (its sign stays) or
W_r·a = z_r, the row's own sum (its sign turns). Values in general position leave a = 0 and a = x
alone. On a grid of levels agreements happen. See `docs/certificate.md`, "One pixel, many
encodings":

  small S   S, the vectors with a ≠ 0. Rows that meet S in i alone have z_r = a_i. At most μ_i rows
            of i have one sum, so that all its other rows meet S twice. In a design that expands
            this takes a share α of all vectors, at least: 1 − β − λ ≤ (k−1)·α, β the largest μ_i /
            deg(i), λ the second eigenvalue of who meets whom. The same for x − a
  large S   n rows, each with its two choices, fix a: 2^n candidates. Another row agrees with one of
            them by chance q at most: it misses S, or its a cancel (one half, for any values), or
            its sum happens to be right (β)

so that fewer than 2^n·q^(m−n) other solutions are to be expected. The first part is a proof, the
second is chance: it takes rows for random ones, as the spectrum of W must show that they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log

import numpy as np
from scipy.linalg import eigvalsh

from unveil.solve.signs.sign_search import Bools, Floats, Index

SURE = 12.0
"""Nats beyond the number of pixels: one pixel in e^12 = 160,000 recoveries."""
LEAST = 0.3
"""The smallest eigenvalue of the normalised WᵀW that random rows have, from about six rows per
vector on ((1 − √(n/m))²). In structured designs a that cancel in nearly all rows make it small."""


@dataclass(frozen=True)
class Spread:
    """What the design says: the second eigenvalue of who meets whom; whether rows look random; rows
    of each vector."""

    second: float
    random: bool
    degree: Index


def spread_of(members: Index, n: int) -> Spread:
    """The design of `members` (rows, k), each row once."""
    # Divided by the degrees, the largest eigenvalue is k for any design: the second one tells how
    # well rows mix.
    W = np.zeros((len(members), n))
    W[np.arange(len(members))[:, None], members] = 1
    degree = W.sum(axis=0)
    scale = 1 / np.sqrt(np.maximum(degree, 1))
    values = eigvalsh(scale[:, None] * (W.T @ W) * scale)
    return Spread(
        float(values[-2]) - 1,
        bool(values[0] >= LEAST and degree.min() > 0),
        degree.astype(np.int64),
    )


def settled_by_chance(
    members: Index, total: Floats, near: Floats, spread: Spread, pixels: int
) -> Bools:
    """(pixels here,) whether another solution is less likely than e^−`SURE` at any of `pixels`;
    total (rows, here): Wx + c."""
    m, k = members.shape
    n = len(spread.degree)
    out = np.zeros(total.shape[1], bool)
    if not spread.random or m <= n or n < 2:
        return out
    # 1. β: how often the commonest value occurs among the rows of a vector, at worst.
    rows = np.argsort(members.ravel(), kind="stable") // k
    ends = np.append(0, np.cumsum(spread.degree))
    share = np.zeros(total.shape[1])
    for i in range(n):
        most = _most_alike(total[rows[ends[i] : ends[i + 1]]], near)
        share = np.maximum(share, most / spread.degree[i])
    # 2. α, the share of vectors that must change, and how likely that many rows allow it by chance.
    for p in range(len(out)):
        least = (1 - share[p] - spread.second) / (k - 1)
        if least <= 0:
            continue
        chance = 0.5 * (1 + (1 - min(least, 1.0)) ** k) + share[p]
        out[p] = chance < 1 and (n - m) * log(chance) - n * log(2) >= SURE + log(pixels)
    return out


def _most_alike(values: Floats, near: Floats) -> Index:
    """(pixels,) how often the commonest value of each column occurs, values within `near` of the
    next taken as one."""
    ordered = np.sort(values, axis=0)
    run = np.ones(values.shape[1], np.int64)
    most = run.copy()
    for one, two in pairwise(ordered):
        run = np.where(two - one <= near, run + 1, 1)
        most = np.maximum(most, run)
    return most
