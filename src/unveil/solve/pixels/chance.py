"""Evidence against chance: how probable is it that a wrong subset reproduces an encoding?

Subsets drawn at random are held against encodings, pixel by pixel. How often they fit, within what
counts as zero, is what one reproduced value is worth: −log of it, in nats. Continuous pixels are
worth ten and more, two levels less than one. No distribution is assumed, and 13 continuous columns
prove what 13 binary ones do not.

Under noise nothing is exact, and few pixels with a wide tolerance are fitted by anything. What fits
is then weighed as a code: n vectors say as much as n encodings do, every other encoding costs the
choice of its subset, and whether it is explained at all must be told. Only what is shorter than the
encodings as chance would have them (pixels independent of each other, each with the values it has)
is more than chance. Hidden signs cost too: n values give r encodings many patterns of signs,
and a reading picks the one that fits best, at every pixel anew.
"""

from __future__ import annotations

from math import comb, log

import numpy as np
from numpy.typing import NDArray

from unveil.relations.sketch import WIDTH, nats_against_chance
from unveil.solve.model import Values

DRAWS = 2000
"""Random subsets that measure chance; their nearest twentieth, a hundred of them, is
extrapolated."""
LUCK = 12.0
"""Nats beyond the number of subsets that were possible: one proof in 160,000 may be luck."""
BLOCK = 256
"""Pixels at a time: `DRAWS` times as many numbers, a few megabytes."""
MOST_MEASURED, PLENTY = 256, 3_000.0
"""Pixels after which no further ones are measured, if they say so many nats together: a proof takes
a hundred, also of a vector most of whose values are open. The others then count for nothing, so
that evidence is never made larger."""
PERMUTED = 5000
"""Vectors up to which random subsets are drawn without repeats, by sorting; beyond, repeats are too
rare to matter."""


def needed_nats(n: int, k: int, m: int) -> float:
    """What an encoding must say for its subset to be no luck: as many nats as there are choices,
    and `LUCK` more."""
    return log(max(comb(n, k), 1)) + log(max(m, 1)) + LUCK


def fit_nats(
    y: NDArray[np.floating], total: NDArray[np.floating], noise: float, rng: np.random.Generator
) -> float:
    """What an encoding y (rows, d) says against chance when its sum `total` (rows, d) fits it up to
    noise, in nats: sums are held against the encodings of other rows, pixel by pixel."""
    if len(y) < 2:
        return 0.0
    # A sum and an encoding that do not belong together: two different rows.
    rows = rng.integers(0, len(y), DRAWS)
    others = (rows + rng.integers(1, len(y), DRAWS)) % len(y)
    out = 0.0
    for start in range(0, y.shape[1], BLOCK):
        part = slice(start, start + BLOCK)
        distance = np.abs(total[rows, part].astype(np.float64) - y[others, part])
        out += float(nats_against_chance(distance, np.full(distance.shape[1], noise)).sum())
    return out


def pattern_nats(rows: int, n: int) -> float:
    """log of how many patterns of signs n values can give `rows` sums of them, at most.

    A hyperplane for each sum cuts the space of values: rows of them through the origin leave at
    most 2·Σ_{i<n} C(rows−1, i) regions (Cover 1965), half of them mirror images of the others.
    The sum is at most (e·(rows−1)/(n−1))^(n−1), and never more than all patterns.
    """
    free, all_patterns = n - 1, (rows - 1) * log(2.0)
    if rows < 2 or free < 1:
        return 0.0
    return min(free * (1 + log((rows - 1) / free)), all_patterns) if free < rows else all_patterns


def spare_nats(nats: float, rows: int, n: int, k: int, m: int, hidden: int) -> float:
    """What is left of `nats` per encoding when `rows` of m encodings are explained by k of n
    vectors each: less than nothing means that chance explains as much.

    hidden : int
        Pixels whose signs the reading had to choose: all, or none where signs were kept.
    """
    # Kept off 0 and 1, where share·log(share) is 0 all the same.
    share = min(max(rows / max(m, 1), 1e-12), 1 - 1e-12)
    # Whether each encoding is explained: m times the entropy of that share.
    told = -m * (share * log(share) + (1 - share) * log(1 - share))
    told += hidden * pattern_nats(rows, n)
    return max(rows - n, 0) * nats - rows * log(max(comb(n, k), 1)) - told - LUCK


def chance_nats(
    y: Values,
    c: Values | None,
    values: NDArray[np.float64],
    k: int,
    bound: NDArray[np.float64],
    rng: np.random.Generator,
    plenty: float = PLENTY,
) -> NDArray[np.float64]:
    """(d,) what one reproduced value is worth at each pixel, y (m, d) = |Σx + c|, unit weights; 0
    where it was not measured because others say enough."""
    n, d = values.shape
    rows = rng.integers(0, len(y), DRAWS)
    subsets = (
        np.argsort(rng.random((DRAWS, n)), axis=1)[:, :k]
        if n <= PERMUTED
        else rng.integers(0, n, (DRAWS, k))
    )
    out = np.zeros(d)
    # From everywhere: values that are open often lie side by side.
    order = rng.permutation(d)
    for start in range(0, d, BLOCK):
        if start >= MOST_MEASURED and out.sum() >= plenty:
            break
        part = order[start : start + BLOCK]
        x = np.ascontiguousarray(values[:, part])
        total = x[subsets].sum(axis=1) + (0 if c is None else c[rows[:, None], part])
        out[part] = nats_against_chance(
            np.abs(np.abs(total) - y[rows[:, None], part]), bound[part] / WIDTH
        )
    return out
