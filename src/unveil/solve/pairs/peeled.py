"""From the pairs to every pixel, k_private = 2: peeling (`solve.pairs.peeling`) of what plans
reach, and what is left over.

What `solve.pixels.settle` does by inverting an n×n matrix takes a few operations per encoding and
pixel here. In return only what hangs together with one core is reached, not a vector that one
encoding uses, nor small pieces on their own; and pairs must be
right: with a wrong one no pixel is solved (`solve.pairs.growth.right_pairs` tells them apart).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.parallel import rows_per_block, where, worker_count
from unveil.records import Progress
from unveil.solve.model import Members, Values, renamed, rms
from unveil.solve.pairs.peeling import peel
from unveil.solve.pairs.plans import reachable
from unveil.solve.pixels.settle import Settled, with_leftovers

BYTES_PER_ROW, MOST_PIXELS = 64, 64
"""Memory for an encoding's sums at one pixel and what is made of them; and pixels of a block at
most, so that it stays in cache."""


def solve_by_peeling(
    y: Values,
    c: Values | None,
    a: float,
    unit: float,
    rows: NDArray[np.int64],
    members: Members,
    rng: np.random.Generator,
    *,
    limit: int,
    progress: Progress | None = None,
) -> Settled | None:
    """|y| (m, d) = |a(x_u + x_v) + c|; start from `rows` with their `members`. None: nothing is
    reached.

    `unit`: rms of a private pixel; what comes out is in units of it. `limit`: bytes for blocks of
    pixels
    """
    m = len(y)
    # 1. What one plan reaches.
    used, members = renamed(members)
    if not len(used):
        return None
    keep = reachable(members, len(used), rng)[members].all(axis=1)
    rows, (used, members) = rows[keep], renamed(members[keep])
    if len(rows) <= 4:
        return None
    # 2. Every pixel of it.
    values = np.abs(y if len(rows) == m else y[rows])
    offsets = None if c is None else c[rows]
    memory = BYTES_PER_ROW * len(rows) * worker_count(where().workers)
    block = rows_per_block(memory, limit, most=MOST_PIXELS)
    solution = peel(values, offsets, members, len(used), a, rng, block=block, progress=progress)
    solution = replace(solution, values=solution.values / unit)
    # 3. The other encodings. Without a public part units are such that y has rms √2.
    left = np.setdiff1d(np.arange(m), rows)
    rest = (np.abs(y[left]) / (a * unit)).astype(np.float32)
    theirs = None if c is None else (c[left] / (a * unit)).astype(np.float32)
    scale = float(np.sqrt(2)) if c is None else rms(values) / (a * unit)
    return with_leftovers(rows, members, solution, left, rest, theirs, scale)
