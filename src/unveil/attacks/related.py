"""Relations among the encodings of an attack: found, counted, and which encodings they join.

Where values were rounded, relations hold up to the step of their grid: `rounding` reads it off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from unveil.attacks.few_relations import ENOUGH_FOR_SIGNS
from unveil.attacks.units import Task
from unveil.records import Progress
from unveil.relations.find import ENOUGH, LUCK, Relations, comparisons, find_relations
from unveil.relations.sketch import ROUNDING, WIDTH, Sketch, sketch
from unveil.relations.supported import support
from unveil.solve.determined import undetermined_by

LARGEST = 4000
"""Encodings up to which the null space is computed: a dense eigenproblem of about ten seconds."""
FEWEST = 8
"""Relations below which there is nothing to go by."""
LEAST_LUCK, SLACK = -8.0, 0.999
"""Nats of evidence, beyond the number of comparisons, from which on relations that hold by chance,
three thousand at most, can be sorted out; and how much of all evidence is asked for: all columns
must agree, up to rounding."""
OUTNUMBERED, FEW_BY_CHANCE, SUPPORTED = 3.0, 0.1, 3
"""So many times as many relations must there be as chance makes; up to so many of those are none;
and in how many relations a pair of encodings must be to be believed where they are more."""
FINEST = 4e-6
"""The finest grid that is told from continuous values, relative to the largest one: float32 has
6e-8 of it."""


def rounding(values: NDArray[np.float32]) -> float:
    """The step of the grid that values lie on, 0 where there is none: whole numbers, bytes,
    decimals; of float16 the widest."""
    some = np.abs(values[:, :: max(1, values.shape[1] // 64)])
    top = float(some.max(initial=0.0))
    if not top:
        return 0.0
    half = top <= float(np.finfo(np.float16).max)
    if half and np.array_equal(some.astype(np.float16).astype(np.float32), some):
        # Ten bits follow the leading one, so that large values have the widest step. Not the
        # largest: it may stand alone.
        return float(np.quantile(some, 0.99)) * 2.0**-10
    levels = np.unique(some)
    gaps = np.diff(levels)
    if len(levels) < 3 or gaps.max() < FINEST * top:
        return 0.0
    gaps = gaps[gaps > FINEST * top]  # the same level, rounded in float32 in different ways
    step = float(np.median(gaps[gaps <= 1.5 * gaps.min()]))
    off = np.abs(levels / step - np.rint(levels / step))
    # Multiples up to float32: a tenth of a step, where values on no grid are off by up to half.
    return step if off.max() < 0.1 else 0.0


@dataclass(frozen=True, eq=False)
class Found:
    """Relations among the encodings of a sketch, what counts as zero (d,) at each pixel, and the
    noise of an encoding."""

    sketch: Sketch
    relations: Relations
    bound: NDArray[np.float64]
    noise: float


def find_among(
    task: Task,
    once: NDArray[np.int64],
    noise: float,
    limit: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Found:
    # Not copied where all are different: a wide table is large.
    y = task.y if len(once) == len(task.y) else task.y[once]
    c = None if task.offsets is None else task.offsets[once]
    view = sketch(y, c, noise, rng)
    enough = ENOUGH if len(once) <= LARGEST else ENOUGH_FOR_SIGNS
    found = find_relations(view, noisy=noise > 0, limit=limit, progress=progress, enough=enough)
    bound = np.maximum(
        WIDTH * 2 * noise, WIDTH * ROUNDING * np.maximum(y.max(axis=0), 1e-30)
    ).astype(np.float64)
    return Found(view, found, bound, noise)


def find_by_support(
    task: Task,
    once: NDArray[np.int64],
    limit: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Found | None:
    """The same where columns say too little to tell every relation from chance: those that all
    columns confirm, and others support. None where chance makes too many, or there are no more
    than it makes."""
    if task.offsets is not None or len(once) > LARGEST:
        return None
    y = task.y if len(once) == len(task.y) else task.y[once]
    view = sketch(y, None, 0.0, rng)
    luck = min(float(view.nats.sum()) * SLACK - comparisons(len(once)), LUCK)
    if luck < LEAST_LUCK:
        return None
    found = find_relations(view, limit=limit, progress=progress, luck=luck)
    by_chance = exp(-luck)
    if len(found) < FEWEST + OUTNUMBERED * by_chance:
        return None
    if by_chance > FEW_BY_CHANCE:
        found = replace(found, quads=found.quads[support(found.quads) >= SUPPORTED])
    bound = WIDTH * ROUNDING * np.maximum(y.max(axis=0), 1e-30)
    return Found(view, found, bound.astype(np.float64), 0.0) if len(found) >= FEWEST else None


def joined_by_relations(
    members: NDArray[np.int64], quads: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows, relations among them, by position in rows): the largest set of known rows that
    relations join, without the rows of vectors that it does not determine. Signs of rows that no
    relation joins say nothing about each other."""
    keep = np.asarray((members >= 0).all(axis=1))
    while keep.any():
        inside = quads[keep[quads].all(axis=1)]
        ends = np.repeat(inside[:, 0], 3), inside[:, 1:].ravel()
        graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(len(members),) * 2)
        group = connected_components(graph, directed=False)[1]
        size = np.bincount(group[keep])
        best = keep & (group == int(size.argmax()))
        rows = np.flatnonzero(best)
        if len(rows) <= members.shape[1] + 2:
            break
        used, names = np.unique(members[rows], return_inverse=True)
        named = names.reshape(len(rows), -1).astype(np.int64)
        open_ = undetermined_by(named, len(used))
        if not open_.any():
            place = np.full(len(members), -1, np.int64)
            place[rows] = np.arange(len(rows))
            return rows.astype(np.int64), place[inside[best[inside].all(axis=1)]]
        keep = best
        keep[rows[open_[named].any(axis=1)]] = False
    return np.empty(0, np.int64), np.empty((0, 4), np.int64)


def too_few(found: Found, m: int) -> str:
    """Why relations lead nowhere, m encodings being different from each other."""
    if m < 4:
        return f"{m} different encodings: a relation takes four"
    if not found.relations.possible:
        return (
            "the pixels take too few values for exact relations: any four encodings fulfil them by "
            "chance"
        )
    told = f"{len(found.relations)} exact relations among {m} different encodings"
    if len(found.relations) < FEWEST:
        return f"{told}: too few to go by; more encodings are needed"
    return f"{told} do not tell who mixes whom: more encodings, or pixels that differ, are needed"
