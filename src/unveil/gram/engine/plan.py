"""Before any work: how many pixels to screen on, where to cut, what it will cost and how many
entries will be wrong.

A pair is screened on a few pixels by a matrix product. Survivors are scored on further pixels,
stage by stage, and dropped as soon as they fall below the line that a pair with overlap 1 crosses
with probability `loss` (nine tenths of it at the screen). What reaches the end is rounded; pairs
left in doubt are decided by their likelihood, as far as the budget allows.

The cost of a plan is a number of multiply-adds of a matrix product (`_UNIT`: other operations in
the same coin, measured by `benchmarks/overlaps.py`). The cheapest plan wins; where screening does
not pay (high k, few pixels, dense overlaps, few encodings) that is one pass over all pixels, which
loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unveil.gram.levels import Levels, normal_scale
from unveil.gram.psi import psi
from unveil.gram.statistics import Statistic
from unveil.records import InputError

Rounding = Literal["balanced", "paper"]
ROUNDINGS: tuple[Rounding, ...] = ("balanced", "paper")
Doubt = Literal["never", "affordable", "always"]
"""When pairs in doubt are decided by their likelihood."""

LOSS = 1e-6
"""Largest fraction of pairs with overlap 1 or more that screening may lose."""
DOUBT = 14.0
"""Log-likelihood ratio below which a rounding is in doubt: one error in a million."""
SMALLEST_BLOCK, LARGEST_BLOCK, BLOCKS = 1024, 8192, 64
"""Rows per block as memory allows, for about BLOCKS blocks: diagonal ones compute a half for
nothing, tasks have a price."""
SMALLEST_SCREENED = 2048
"""Fewer encodings than this are not worth a screen."""
SHARE = 0.25
FLOOR = 2.5e9
"""Deciding doubtful pairs may cost this share of the rest, and always this much (a tenth of a
second)."""


@dataclass(frozen=True)
class _Unit:
    pick: float = 36.0
    score: float = 10.0
    likelihood: float = 600.0


_UNIT = _Unit()


@dataclass(frozen=True)
class OverlapPlan:
    """What the engine will do, and what to expect of it. `str(plan)` says it in words.

    edges, cuts       after edges[s] pixels a pair below cuts[s] is dropped; one entry each means one pass
    thresholds        (k_public+1, k_private) scores from which on the overlap is at least 1, 2, …
    doubt             log-likelihood ratio below which a pair is decided by its likelihood (0: never)
    occupancy, shared fraction of pairs with a private overlap, and with 0, 1, … shared public
    vectors, in a sample
    """

    m: int
    d: int
    statistic: Statistic
    rounding: Rounding
    edges: tuple[int, ...]
    cuts: tuple[float, ...]
    thresholds: tuple[tuple[float, ...], ...]
    doubt: float
    block: int
    loss: float
    occupancy: float
    shared: tuple[float, ...]
    survivors: float
    expected_errors: float
    work: float
    bytes_per_task: int

    @property
    def blocks(self) -> int:
        return -(-self.m // self.block)

    @property
    def tasks(self) -> list[tuple[int, int]]:
        """Block pairs (i, j), i ≤ j; every second row backwards, so that features still in memory
        are used again."""
        n = self.blocks
        return [
            (i, j)
            for i in range(n)
            for j in (range(i, n) if i % 2 == 0 else range(n - 1, i - 1, -1))
        ]

    def __str__(self) -> str:
        if len(self.edges) == 1:
            how = f"one pass over {self.d} pixels"
        else:
            how = (
                f"screen on {self.edges[0]} of {self.d} pixels (about {self.survivors:.2%} of the pairs survive, at most "
                f"{self.loss:.0e} of the overlapping ones are lost), then up to {len(self.edges) - 1} stages on the survivors"
            )
        doubt = f", likelihood where the odds are below e^{self.doubt:.0f}" if self.doubt else ""
        return (
            f"{self.m * (self.m - 1) // 2} pairs in blocks of {self.block}, {self.statistic} statistic: {how}{doubt}; "
            f"about {self.expected_errors:.2g} wrong entries expected"
        )


def make_plan(
    levels: Levels,
    m: int,
    d: int,
    *,
    statistic: Statistic,
    rounding: Rounding = "balanced",
    z: NDArray[np.float64] | None = None,
    doubt: Doubt = "never",
    occupancy: float = 0.01,
    shared: tuple[float, ...] = (1.0,),
    limit: int = 1 << 30,
    loss: float = LOSS,
    screen: int | None = None,
) -> OverlapPlan:
    """The cheapest plan for m encodings of d pixels. `screen` fixes the number of screening pixels;
    `z` is for rounding="paper"."""
    if not 0 < loss < 0.5:
        raise InputError(
            f"loss={loss!r}: give the fraction of overlapping pairs that may be lost, between 0 and 0.5"
        )
    thresholds = level_thresholds(levels, rounding, z)
    pairs = max(m * (m - 1) / 2, 1.0)
    candidates = [d]
    if screen is not None:
        candidates = [min(screen, d)]
    elif rounding != "paper" and m >= SMALLEST_SCREENED:
        candidates += list(range(128, d, 64))
    plans = []
    for first in candidates:
        edges = _edges(first, d)
        line = float(thresholds[:, 0].min())
        cuts = _cuts(levels, edges, line, loss)
        work, survivors = _work(levels, edges, cuts, occupancy, shared)
        plans.append((work, edges, cuts, survivors))
    work, edges, cuts, survivors = min(plans, key=lambda plan: plan[0])
    band = 0.0
    if doubt != "never" and rounding != "paper":
        budget = np.inf if doubt == "always" else max(SHARE * work * pairs, FLOOR) / pairs
        band = _band(levels, thresholds, d, occupancy, budget / (_UNIT.likelihood * d))
        cuts = (
            *cuts[:-1],
            min(_doubt_line(levels, thresholds, p, band, d) for p in range(len(thresholds))),
        )
    block = _block(m, d, limit)
    return OverlapPlan(
        m=m,
        d=d,
        statistic=statistic,
        rounding=rounding,
        edges=edges,
        cuts=cuts,
        thresholds=tuple(map(tuple, thresholds.tolist())),
        doubt=band,
        block=block,
        loss=loss if len(edges) > 1 else 0.0,
        occupancy=occupancy,
        shared=shared,
        survivors=survivors,
        expected_errors=_errors(levels, thresholds, d, occupancy, loss if len(edges) > 1 else 0.0)
        * pairs,
        work=work * pairs,
        bytes_per_task=_task_bytes(block, d),
    )


def level_thresholds(
    levels: Levels, rounding: Rounding, z: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """(k_public+1, k_private): the score from which on, given p, the private overlap is at least q
    = 1, 2, …

    "balanced": both errors equally many standard deviations away; "paper": Ψ half-way between
    neighbouring correlations `z`.
    """
    if rounding == "balanced":
        return levels.balanced()
    assert z is not None
    return psi((z[:, :-1] + z[:, 1:]) / 2)


def log_odds(
    levels: Levels, score: NDArray[np.float64], p: int, q: int, d: int
) -> NDArray[np.float64]:
    """Log-likelihood ratio of q+1 against q, given the score and p."""

    def log_density(level: int) -> NDArray[np.float64]:
        sd = levels.sd[p, level]
        u = normal_scale(score, levels.mean[p, level], sd, levels.skew[p, level], d)
        return np.asarray(-u * u / 2 - np.log(sd))

    return np.asarray(log_density(q + 1) - log_density(q))


def _edges(first: int, d: int) -> tuple[int, ...]:
    """Stages grow by a quarter, so that a pair that is clear early costs little."""
    edges = [first]
    while edges[-1] * 1.25 < 0.9 * d:
        edges.append(int(edges[-1] * 1.25) // 16 * 16)
    return (*edges, d) if edges[-1] < d else (d,)


def _cuts(levels: Levels, edges: tuple[int, ...], line: float, loss: float) -> tuple[float, ...]:
    """Features are divided by √d for all pixels, so a sum over e of them is e/d times an
    average."""
    d, later = edges[-1], 0.1 * loss / max(len(edges) - 2, 1)
    cuts = []
    for s, e in enumerate(edges[:-1]):
        share = 0.9 * loss if s == 0 else later
        cuts.append(
            min(levels.of_part(e / d).quantile(share, p, 1, e) for p in range(len(levels.mean)))
            * e
            / d
        )
    return (*cuts, line)


def _work(
    levels: Levels,
    edges: tuple[int, ...],
    cuts: tuple[float, ...],
    occupancy: float,
    shared: tuple[float, ...],
) -> tuple[float, float]:
    """Multiply-adds per pair, and the fraction of pairs that the screen lets through."""
    d = edges[-1]
    work = edges[0] + _UNIT.pick
    alive = first = 1.0
    for s, e in enumerate(edges[:-1]):
        idle = sum(
            share * (1 - float(levels.of_part(e / d).below(cuts[s] * d / e, p, 0, e)))
            for p, share in enumerate(shared)
        )
        alive = min(alive, occupancy + (1 - occupancy) * idle)
        first = alive if s == 0 else first
        work += _UNIT.score * alive * (edges[s + 1] - e)
    return work, first


def _doubt_line(
    levels: Levels, thresholds: NDArray[np.float64], p: int, band: float, d: int
) -> float:
    """The lowest score at which overlap 0 is still in doubt."""
    t = float(thresholds[p, 0])
    if band <= 0:
        return t
    scores = np.linspace(min(float(levels.mean[p, 0]), t), t, 400)
    clear = log_odds(levels, scores, p, 0, d) < -band
    return float(scores[np.flatnonzero(clear)[-1]]) if clear.any() else float(scores[0])


def _band(
    levels: Levels, thresholds: NDArray[np.float64], d: int, occupancy: float, budget: float
) -> float:
    """The widest doubt for which at most the fraction `budget` of the pairs is decided by
    likelihood."""
    scores = np.linspace(
        levels.mean[0, 0] - levels.sd[0, 0] / np.sqrt(d),
        levels.mean[0, 1] + 6 * levels.sd[0, 1] / np.sqrt(d),
        2000,
    )
    odds = np.abs(log_odds(levels, scores, 0, 0, d))
    mass = (1 - occupancy) * np.diff(levels.below(scores, 0, 0, d)) + occupancy * np.diff(
        levels.below(scores, 0, 1, d)
    )
    order = np.argsort(odds[:-1])
    affordable = np.cumsum(mass[order]) <= budget
    if affordable.all():
        return DOUBT
    widest = float(odds[:-1][order][int(np.argmin(affordable))])
    return min(DOUBT, widest) if widest >= 1.0 else 0.0


def _errors(
    levels: Levels, thresholds: NDArray[np.float64], d: int, occupancy: float, loss: float
) -> float:
    """Wrong entries per pair by the product alone, when no public vector is shared: an upper bound
    where likelihood decides."""
    up = 1 - float(levels.below(thresholds[0, 0], 0, 0, d))
    down = float(levels.below(thresholds[0, 0], 0, 1, d))
    beyond = 1 - float(levels.below(thresholds[0, 1], 0, 1, d)) if thresholds.shape[1] > 1 else 0.0
    return (1 - occupancy) * up + occupancy * (down + beyond + loss)


def _task_bytes(block: int, d: int) -> int:
    return 4 * block * block + 12 * block * d


def _block(m: int, d: int, limit: int) -> int:
    """The largest power of two whose task fits a quarter of the limit. The number of workers has no
    say in it: results must not depend on them."""
    block = SMALLEST_BLOCK
    while block < LARGEST_BLOCK and block * BLOCKS < m:
        block *= 2
    while block > 1 and _task_bytes(block, d) > limit // 4:
        block //= 2
    return block
