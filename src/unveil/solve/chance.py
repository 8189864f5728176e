"""Evidence against chance: how probable is it that a wrong subset reproduces an encoding?

Subsets drawn at random are held against encodings, pixel by pixel. How often they fit, within what counts as zero, is what one
reproduced value is worth: −log of it, in nats. Continuous pixels are worth ten and more, two levels less than one. No
distribution is assumed, and 13 continuous columns prove what 13 binary ones do not.
"""

from __future__ import annotations

from math import comb, log

import numpy as np
from numpy.typing import NDArray

from unveil.relations.sketch import WIDTH, nats_against_chance
from unveil.solve.descent import Values

DRAWS = 2000
"""Random subsets that measure chance; their nearest twentieth, a hundred of them, is extrapolated."""
LUCK = 12.0
"""Nats beyond the number of subsets that were possible: one proof in 160,000 may be luck."""
BLOCK = 256


def needed_nats(n: int, k: int, m: int) -> float:
    """What an encoding must say for its subset to be no luck: as many nats as there are choices, and `LUCK` more."""
    return log(max(comb(n, k), 1)) + log(max(m, 1)) + LUCK


def chance_nats(
    y: Values, c: Values | None, values: NDArray[np.float64], k: int, bound: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """(d,) what one reproduced value is worth at each pixel, y (m, d) = |Σx + c|, unit weights."""
    n, d = values.shape
    rows = rng.integers(0, len(y), DRAWS)
    subsets = np.argsort(rng.random((DRAWS, n)), axis=1)[:, :k] if n <= 5000 else rng.integers(0, n, (DRAWS, k))
    out = np.empty(d)
    for start in range(0, d, BLOCK):
        part = slice(start, start + BLOCK)
        total = values[:, part][subsets].sum(axis=1) + (0 if c is None else c[rows, part])
        out[part] = nats_against_chance(np.abs(np.abs(total) - y[rows, part]), bound[part] / WIDTH)
    return out
