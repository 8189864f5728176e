"""The leakage curve: fraction of records recovered against number of encodings, by adaptive search.

More encodings are more information, since the encodings of a draw are nested. So the curve is
sought where it changes: first the two ends, then again and again the middle of the interval whose
rise, times the logarithm of its width, is largest, until every rise is below `FLAT`, every interval
narrower than `NARROW`, or the effort is spent. Where the many give nothing, the few are not tried.

Effort is counted in forecast seconds, not in seconds passed: the same call makes the same trials on
a slow machine, and one that was interrupted goes on with those it lacks.

Band: Wilson's interval with one observation per draw, at 95 percent. Within a draw records come
back together or not at all, so that counting each as an observation would claim far too much;
fractions vary less than coins do, so this never claims too much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log, sqrt

import numpy as np

from unveil.auditing.intervals import wilson
from unveil.auditing.result import CurvePoint
from unveil.auditing.trial import Trial

FLAT = 0.1
"""Rise of the share between two numbers of encodings that is not worth another trial."""
NARROW = 1.2
"""Ratio of two numbers of encodings that needs none between them."""

Points = dict[int, list[Trial]]


def trace(
    low: int,
    high: int,
    trials: Callable[[int, int], Trial],
    cost: Callable[[int], float],
    *,
    draws: int,
    effort: float,
) -> Points:
    """Trials by number of encodings: trials(m, draw) makes one, cost(m) forecasts its seconds; at
    `high` all draws are made."""
    points: Points = {high: [trials(high, draw) for draw in range(draws)]}
    left = effort

    def add(m: int) -> bool:
        nonlocal left
        left -= draws * cost(m)
        if left < 0:
            return False
        points[m] = [trials(m, draw) for draw in range(draws)]
        return True

    # Where all encodings give nothing, fewer give nothing either.
    if _level(points[high]) == 0 or low >= high or not add(low):
        return points
    while (middle := _middle(points)) is not None and add(middle):
        pass
    return points


def curve(points: Points) -> tuple[CurvePoint, ...]:
    return tuple(_point(m, trials) for m, trials in sorted(points.items()))


def _middle(points: Points) -> int | None:
    """The number of encodings to try next, or None when the curve is known well enough."""
    ms = sorted(points)
    best, where = 0.0, None
    for a, b in pairwise(ms):
        rise = abs(_level(points[b]) - _level(points[a]))
        # Half way by factors: what an attack needs grows by factors.
        middle = round(sqrt(a * b))
        if rise < FLAT or b / a < NARROW or middle in (a, b):
            continue
        # The steepest gap in which most numbers lie is where a point says most.
        if rise * log(b / a) > best:
            best, where = rise * log(b / a), middle
    return where


def _level(trials: Sequence[Trial]) -> float:
    """Exact and approximate records: both are leaks."""
    return float(np.mean([trial.recovered for trial in trials]))


def _point(m: int, trials: Sequence[Trial]) -> CurvePoint:
    exact = float(np.mean([trial.exact for trial in trials]))
    low, high = wilson(exact, len(trials))
    return CurvePoint(m, exact, low, high, _level(trials) - exact, len(trials))
