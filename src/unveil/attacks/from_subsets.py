"""From subsets to vectors: what every attack has left to do that finds out, by whatever means, who mixes whom.

    x ← every pixel, twice, from the subsets given; those that do not hold are dropped        (`solve.settle`)
    status ← Certificate, vector by vector                                                    (`solve.certificate`)
    where nothing holds exactly: x ← most likely under noise                                  (`solve.noisy`)

No subset is looked for here: encodings without one stay unexplained, so that what comes out is the merit of the attack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.certified import approximate, certified
from unveil.attacks.units import in_units
from unveil.parallel import Stopwatch
from unveil.records import Encodings, Progress, Recovery, Supports
from unveil.solve.descent import Members, Values
from unveil.solve.noisy import solve_noisy
from unveil.solve.settle import settle

NOISE = 0.1
"""Noise to start from where nothing fits exactly, in units of a private pixel's rms."""
MOST_NOISE = 0.3
"""More than so much of the encodings left as noise: the subsets are of chance. Of random numbers they leave 0.55."""


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
    progress: Progress | None = None,
) -> Recovery:
    """The recovery when encodings `rows` (r,) mix the private vectors `members` (r, k), named 0, 1, …; some may be wrong.

    public, supports: the public part, where the scheme has one
    """
    facts, k = facts or {}, encodings.scheme.k_private
    used, names = np.unique(members, return_inverse=True)
    members = names.reshape(members.shape).astype(np.int64)
    if len(used) <= k or len(rows) <= k + 2:
        why = f"subsets of {len(rows)} encodings were found: too few to solve for private vectors"
        return Recovery.empty(encodings, name, why, clock.seconds)
    task = in_units(encodings, public, supports)
    with clock("pixels"):
        settled = settle(task.y, task.offsets, rows, members, None, rng, completing=False, progress=progress)
    if settled is not None and settled.solution.solved.any():
        part = None if task.public is None else replace(task.public, weight=task.public.weight * task.unit)
        return certified(encodings, name, settled, task.unit, part, clock, facts)
    noisy = None
    if 2 * len(rows) >= encodings.m and len(rows) > len(used):
        with clock("pixels"):
            noisy = solve_noisy(task.y, task.offsets, rows, members, len(used), NOISE, rng, progress=progress)
    if noisy is not None and 2 * len(noisy.rows) >= encodings.m and noisy.noise < MOST_NOISE * np.sqrt(k):
        return approximate(encodings, name, noisy, task.unit, task.public is not None, clock, facts)
    why = "the subsets that were found do not hold: overlaps were misread, or k_private is another"
    return Recovery.empty(encodings, name, why, clock.seconds)
