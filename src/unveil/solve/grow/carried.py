"""From the encodings that a feedback explains to the others, on the same few pixels, by exact
matching.

A right subset reproduces its encoding within rounding; so what holds is solved exactly, and
whatever is left is held against sums of the vectors that similarity names, or shows a vector that
was missing (`solve.grow.exact_growth`). Where the feedback stalls with a third of its rows, this
carries on from them: statistics only say in which order subsets are tried.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.relations.sketch import ROUNDING, WIDTH
from unveil.solve.grow.exact_growth import Growth
from unveil.solve.model import Members, Values
from unveil.solve.pixels.settle import settle

Carried = tuple[NDArray[np.int64], Members, Values]
"""Rows (r,), their members (r, k), and x (n, pixels)."""


def carry(
    y: Values,
    rows: NDArray[np.int64],
    members: Members,
    similarity: NDArray[np.float64],
    rng: np.random.Generator,
) -> Carried | None:
    """y (m, p) = |Σ x|, unit weights, at pixels in the order of what they tell; start from `rows`
    with their `members`. None: too little of it holds."""
    # 1. What of the feedback holds exactly, on these pixels.
    held = settle(y, None, rows, members, None, rng, completing=False)
    if held is None:
        return None
    solved = np.flatnonzero(held.solution.solved)
    if len(solved) < 2:
        return None
    # 2. Exact matching from there. Rounding of y is what counts as zero.
    x = held.solution.values[:, solved]
    start = np.full((len(y), members.shape[1]), -1, np.int64)
    start[held.rows] = held.members
    bound = (WIDTH * ROUNDING * np.maximum(y[:, solved].max(axis=0), 1e-30)).astype(np.float64)
    grown = Growth(y[:, solved], None, start, x, np.zeros(x.shape, bool), bound, similarity)
    grown.run(np.arange(len(solved)))
    known = np.flatnonzero((grown.members >= 0).all(axis=1))
    return known, grown.members[known], grown.values.astype(np.float32)
