"""LearnPublic where pixels are not independent Gaussian: search in the likelihood of a tree, and
margins that are measured.

The recipe, after `supports.folded.search` has given one support of every encoding as a start:

  1  which law: plain, or the one measured on the public vectors; the likelier one on a sample of
     encodings, both searched
  2  beam: every public vector alone, the rest of the public part being noise of the same law; the
     best 12 go on, and grow by the vectors of the largest product with the residual, to k members
  3  swaps: every member is left out in turn, the best newcomers are tried, from the two best of the
     beam and from the start
  4  margin, measured

A margin D = L(S) − L(S′) is log odds only if the likelihood is right. If it is, D is a sum of terms
with mean Δ and variance 2Δ. Both are measured instead: V, the sum of the squares of the terms, is
large where few pixels decide (heavy tails, wrong variances); c, what the square of such a sum is
beyond the sum of the squares, where pixels repeat each other. For c two vectors that are not
members take the same place: their difference has mean 0, whatever the data. A normal variable of
mean −D and variance cV is positive and D or more with odds of exp(−2D²/(cV)), so that the margin is

    D·min(1, 2D/(cV)),    the least over all rivals, less log n for their number.

Certain means: at least log 1000 beyond that, and no support with one member more or fewer is
likelier than S. Cost: n passes of one encoding over the pixels and about 100·k more of a slower
kind; ten times `folded_em` and more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.cluster import results
from unveil.encodings import Encodings
from unveil.parallel import count_rows, rows_per_block
from unveil.records import Progress
from unveil.supports.correlated.pixel_law import PixelLaw, measure_law, plain_law
from unveil.supports.correlated.tree_block import BEAM, PAIRS, PLACES, TreeBlock, TreeSetting
from unveil.supports.folded.likelihood import Indices
from unveil.supports.folded.survey import Public

SAMPLE = 32
"""Encodings that choose the law: likelihoods differ by tens of nats in each."""
CERTAIN = float(np.log(1000))
"""Nats beyond log n: one certain support in a thousand may be wrong."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Supports (m, k) sorted, L, the measured margin less log n, whether k itself stands, c, and
    the law that was used."""

    indices: Indices
    log_likelihood: NDArray[np.float64]
    margin: NDArray[np.float64]
    stands: NDArray[np.bool_]
    repeats: float
    law: PixelLaw

    @property
    def certain(self) -> NDArray[np.bool_]:
        return np.asarray((self.margin >= CERTAIN) & self.stands)

    @property
    def confidence(self) -> NDArray[np.float64]:
        """1/(1 + e^−margin), and at most one half where another number of members is likelier."""
        sure = 1 / (1 + np.exp(-np.clip(self.margin, -700, 700)))
        return np.asarray(np.where(self.stands, sure, np.minimum(sure, 0.5)))


def measured_search(
    encodings: Encodings,
    public: Public,
    start: Indices,
    *,
    limit: int,
    workers: int,
    progress: Progress | None = None,
) -> Measured:
    """Steps 1 to 4 for every encoding, from supports `start` (m, k)."""
    # 1. The law.
    m, k = start.shape
    chosen = np.unique(np.linspace(0, m - 1, min(m, SAMPLE)).astype(np.int64))
    some = replace(encodings, values=encodings.values[chosen])
    laws = [
        TreeSetting(encodings, public, law, k) for law in (plain_law(public), measure_law(public))
    ]
    values = [
        float(TreeBlock(setting, some.magnitudes(), limit).find(start[chosen])[1].sum())
        for setting in laws
    ]
    setting = laws[int(np.argmax(values))]
    # 2. and 3. in blocks; what the margins need is kept for 4, which pools c over all encodings.
    draws = np.random.default_rng(0).integers(len(public.vectors), size=(m, 2 * PAIRS))
    indices, likelihood = np.empty((m, k), np.int64), np.empty(m)
    difference, squares = np.empty((m, k * PLACES)), np.empty((m, k * PLACES))
    pooled, stands = np.zeros((m, 2)), np.empty(m, bool)
    block = rows_per_block(4 * encodings.d * 2 * BEAM, limit // 4, most=min(m, 64))
    at_once = max(1, min(workers, limit // (4 * encodings.d * (public.columns + 4 * BEAM * block))))
    job = _Job(encodings, setting, start, draws, limit, block)
    done = count_rows(progress, "learn public", block, m)
    for first, part in results(_searched, job, range(0, m, block), workers=at_once):
        rows = slice(first, first + block)
        indices[rows], likelihood[rows], difference[rows], squares[rows], stands[rows] = part[:5]
        pooled[rows] = part[5]
        done(first)
    # 4. The margin.
    repeats = max(1.0, float(pooled[:, 0].sum() / max(pooled[:, 1].sum(), 1e-300)))
    ratio = 2 * difference / np.maximum(repeats * squares, 1e-12)
    margin = np.min(difference * np.clip(ratio, 0, 1), axis=1, initial=np.inf)
    return Measured(
        indices, likelihood, margin - np.log(public.count), stands, repeats, setting.law
    )


@dataclass(frozen=True, eq=False)
class _Job:
    """What all blocks of encodings share; block: encodings in each."""

    encodings: Encodings
    setting: TreeSetting
    start: Indices
    draws: Indices
    limit: int
    block: int


def _searched(job: _Job, first: int) -> tuple[NDArray[Any], ...]:
    """Steps 2 and 3 for the block of encodings from `first` on."""
    rows = slice(first, first + job.block)
    here = TreeBlock(job.setting, job.encodings.magnitudes(rows), job.limit)
    indices, likelihood = here.find(job.start[rows])
    against = here.against(indices, likelihood)
    return indices, likelihood, *against, here.repeats(indices, job.draws[rows])
