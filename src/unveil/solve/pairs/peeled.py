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
from unveil.solve.pairs.peeling import peel, reachable
from unveil.solve.pixels.settle import Settled, with_leftovers
from unveil.solve.subsets.descent import Members, Values


def settle_by_peeling(
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
    n, members = _renamed(members)
    if not n:
        return None
    keep = reachable(members, n, rng)[members].all(axis=1)
    rows, (n, members) = rows[keep], _renamed(members[keep])
    if len(rows) <= 4:
        return None
    values = np.abs(y if len(rows) == m else y[rows])
    offsets = None if c is None else c[rows]
    block = rows_per_block(64 * len(rows) * worker_count(where().workers), limit, most=64)
    solution = peel(values, offsets, members, n, a, rng, block=block, progress=progress)
    solution = replace(solution, values=solution.values / unit)
    left = np.setdiff1d(np.arange(m), rows)
    rest = (np.abs(y[left]) / (a * unit)).astype(np.float32)
    theirs = None if c is None else (c[left] / (a * unit)).astype(np.float32)
    rms = (
        float(np.sqrt(2))
        if c is None
        else float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) / (a * unit)
    )
    return with_leftovers(rows, members, solution, left, rest, theirs, rms)


def _renamed(members: Members) -> tuple[int, Members]:
    used, names = np.unique(members, return_inverse=True)
    return len(used), names.reshape(members.shape).astype(np.int64)
