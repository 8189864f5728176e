"""From subsets to vectors: what every attack has left to do that finds out, by whatever means, who
mixes whom.

    1  x ← every pixel, twice, from the subsets given; those that do not hold are dropped
           (`solve.pixels.settle`; pairs: checked on a few hundred pixels, then
           `solve.pairs.peeled`, which is faster)
    2  status ← Certificate, vector by vector (`certify.certificate`)
    3  where nothing holds exactly: x ← most likely under noise (`solve.pixels.noisy`)

No subset is looked for here: encodings without one stay unexplained, so that what comes out is the
merit of the attack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.finish import certified
from unveil.attacks.finish_noisy import approximate
from unveil.attacks.units import Task, in_units
from unveil.encodings import Encodings
from unveil.parallel import Stopwatch, rows_per_block
from unveil.parallel import memory_limit as bytes_allowed
from unveil.records import Progress, Recovery, Supports
from unveil.solve.model import Members, Values, renamed
from unveil.solve.pairs.growth import near_sums, right_pairs
from unveil.solve.pairs.peeled import solve_by_peeling
from unveil.solve.pairs.peeling import sums
from unveil.solve.pixels.noisy import solve_noisy
from unveil.solve.pixels.settle import Settled, settle

MOST_VECTORS = 3000
"""Vectors up to which an n×n matrix is inverted."""
PIXELS = 256
"""Pixels on which pairs are checked against each other."""
BYTES_PER_ROW = 64
"""Memory for an encoding at one pixel and what is made of it."""
ENOUGH = 0.9
"""The share of the pairs that peeling must explain to be the answer, where there is another way."""
NOISE = 0.1
"""Noise to start from where nothing fits exactly, in units of a private pixel's rms."""
MOST_NOISE = 0.3
"""More than so much of the encodings left as noise: the subsets are of chance. Of random numbers
they leave 0.55."""


def from_subsets(
    encodings: Encodings,
    name: str,
    rows: NDArray[np.int64],
    members: Members,
    rng: np.random.Generator,
    clock: Stopwatch,
    *,
    public: Values | None = None,
    supports: Supports | None = None,
    facts: Mapping[str, Any] | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """The recovery when encodings `rows` (r,) mix the private vectors `members` (r, k), named 0, 1,
    …; some may be wrong.

    public, supports: the public part, where the scheme has one
    """
    facts, k = facts or {}, encodings.scheme.k_private
    used, members = renamed(members)
    if len(used) <= k or len(rows) <= k + 2:
        why = f"subsets of {len(rows)} encodings were found: too few to solve for private vectors"
        return Recovery.empty(encodings, name, why, clock.seconds)
    # 1. Every pixel: pairs by peeling, and where that explains too little, or k ≥ 3, by iteration.
    task = in_units(encodings, public, supports)
    settled = None
    with clock("pixels"):
        if k == 2:
            settled = _peeled(task, rows, members, len(used), rng, memory_limit, progress)
        if len(used) <= MOST_VECTORS and _rank(settled) < (True, ENOUGH * len(rows)):
            second = settle(
                task.y, task.offsets, rows, members, None, rng, completing=False, progress=progress
            )
            settled = max(settled, second, key=_rank)
    # 2. The certificate.
    if settled is not None and settled.solution.solved.any():
        part = task.public
        part = None if part is None else replace(part, weight=part.weight * task.unit)
        return certified(encodings, name, settled, task.unit, part, clock, facts)
    # 3. Under noise: most encodings must have a subset, and the noise must be small beside them.
    noisy = None
    if 2 * len(rows) >= encodings.m and MOST_VECTORS >= len(used) < len(rows):
        with clock("pixels"):
            noisy = solve_noisy(
                task.y, task.offsets, rows, members, len(used), NOISE, rng, progress=progress
            )
    if (
        noisy is not None
        and 2 * len(noisy.rows) >= encodings.m
        and noisy.noise < MOST_NOISE * np.sqrt(k)
    ):
        return approximate(encodings, name, noisy, task.unit, task.public is not None, clock, facts)
    why = "the subsets that were found do not hold: overlaps were misread, or k_private is another"
    return Recovery.empty(encodings, name, why, clock.seconds)


def _peeled(
    task: Task,
    rows: NDArray[np.int64],
    members: Members,
    n: int,
    rng: np.random.Generator,
    memory_limit: int | None,
    progress: Progress | None,
) -> Settled | None:
    """Pairs that agree with each other on a few hundred pixels, and every pixel from those."""
    limit = bytes_allowed(memory_limit)
    most = min(task.y.shape[1], PIXELS)
    pixels = slice(rows_per_block(BYTES_PER_ROW * len(rows), limit, most=most))
    c = None if task.offsets is None else task.offsets[rows, pixels]
    hi, lo = sums(task.y[rows, pixels], c, 1.0)
    members, right, _, _ = right_pairs(hi, lo, members, n, near_sums(hi), rng)
    return solve_by_peeling(
        task.y,
        task.offsets,
        1.0,
        1.0,
        rows[right],
        members[right],
        rng,
        limit=limit,
        progress=progress,
    )


def _rank(settled: Settled | None) -> tuple[bool, float]:
    """Which of two is better: all pixels solved, then the number of rows."""
    if settled is None:
        return False, 0
    return bool(settled.solution.solved.all()), len(settled.rows)
