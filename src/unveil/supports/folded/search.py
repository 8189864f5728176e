"""LearnPublic by search over supports in the folded-normal likelihood: the strong method.

The private part is Gaussian noise inside the modulus. Given S, an encoding is folded normal around
μ_S = a·Σ_{i∈S} p_i,

    maximise  L(S) = Σ_j log[N(y_j; μ_S, s²) + N(y_j; −μ_S, s²)]                              (*)

over the k-subsets S of the public vectors.

The recipe, for a block of encodings at once; every pass over the public vectors is one matrix
product (`supports.folded.screen`):

  1  pool: the 100 public vectors of the largest centred, clipped Σ y²p²; one pass, over as many
     pixels as a member needs to stand out
  2  starts: pair matrix of the pool, each vector grown to k; the likeliest of six goes on
     (`supports.folded.starts`)
  3  Newton, hard threshold over all public vectors: w ← the k largest of w + ⟨p, r⟩/(d·J); about
     two passes (`supports.folded.newton`)
  4  swaps with candidates from the gradient and from leave-one-out residuals; one pass
     (`supports.folded.swaps`)
  5  confidence: swap margin, evidence margin, fit (`supports.folded.confidence`)
  6  more starts from larger pools, and swaps with every member left out in turn, where the fit is
     bad or a margin small
  7  where public vectors correlate, nothing is called certain before every member was left out in
     turn

Where it departs from the paper: no SDP, and no top eigenvector of a thresholded diagonal. The SDP
relaxes the second-order expansion of (*) at μ = 0, which is where step 2 starts. The name is from
step 3: with J = 1 it is the EM algorithm, whose hidden variable is the sign of y; that one sticks
from the same starts where Newton's does not (docs/paper_map.md).

Cost: about six products of the block with all public vectors, where the paper's screen is one; many
times that for encodings that cannot be solved. Memory: one block of public vectors and a few
residuals per encoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unveil.cluster import results
from unveil.encodings import Encodings
from unveil.mapped import let_go
from unveil.parallel import count_rows, rows_per_block
from unveil.records import Progress
from unveil.supports.folded.confidence import MARGIN, evidence_margin, fit_of, is_certain
from unveil.supports.folded.likelihood import Floats, Indices, Model, log_likelihood
from unveil.supports.folded.newton import newton
from unveil.supports.folded.screen import ROWS, screen
from unveil.supports.folded.starts import start_supports
from unveil.supports.folded.survey import Public
from unveil.supports.folded.swaps import (
    is_correlated,
    largest_correlation,
    leave_one_out,
    leave_one_out_sum,
    swap_to_better,
)

POOL, STARTS = 100, 6
"""Vectors the pair matrix is made of, and supports grown from it; those who need more get them in
further rounds."""
STEPS, CANDIDATES = 8, 16
"""Newton steps, which mostly end earlier by themselves; vectors kept as candidates of a swap."""
STANDS_OUT = 8.0
"""Standard errors by which a member stands out of the screen on the pixels of the first round:
three for the best hundred of 10⁵ vectors, and five so that one in a million is lost. Whoever is
lost is searched again on all pixels."""
IN_TURN = 12
"""Candidates per member where each is left out in turn: its near-twins are among the first."""
TWINS = 5.0
"""Standard errors at which a candidate counts as correlated with a member."""
SPARE = 100_000_000
"""Bytes one block may use beyond its residuals when the limit allows."""
LONG = 1 << 30
"""Bytes of public vectors from which on blocks are fewer: every block reads the list some times,
and a gigabyte is not read for nothing."""
SWEEPS = 4
"""How often rivals are searched again after a swap."""
SAMPLE = 96
"""Public vectors whose correlations with all others are looked at before any encoding is called
certain."""


class Round(NamedTuple):
    """One more round: for whom (fit below), how many starts from how large a pool, Newton steps for
    each."""

    fit: float
    starts: int
    pool: int
    steps: int


# Each round costs three to four times the one before, and is for those that fit worse.
ROUNDS = (Round(-2.5, 8, 200, 6), Round(-3.0, 32, 400, 8), Round(-4.0, 96, 1200, 8))


@dataclass(frozen=True, eq=False)
class FoundSupports:
    """Supports (m, k) sorted, their L, the margin to the best rival or the evidence of all others,
    the fit z."""

    indices: Indices
    log_likelihood: NDArray[np.float64]
    margin: NDArray[np.float64]
    fit: NDArray[np.float64]


def block_rows(m: int, d: int, limit: int, listed: int = 0) -> int:
    """Encodings per block: an eighth of all, so that a few workers are busy, within 64 to 512 and
    the limit; a quarter beside a long list, `listed` its bytes."""
    parts = 4 if listed > LONG else 8
    return rows_per_block(24 * d, limit // 4, most=min(m, max(64, min(512, -(-m // parts)))))


def block_columns(d: int, limit: int) -> int:
    """Public vectors per product."""
    return rows_per_block(4 * d + 4 * ROWS, limit // 4, most=4096)


def folded_em(
    encodings: Encodings,
    public: Public,
    model: Model,
    *,
    limit: int,
    workers: int,
    progress: Progress | None = None,
) -> FoundSupports:
    """Maximise (*) for every encoding. Needs model.k of at least 1 and at most the number of usable
    public vectors."""
    m, d, k = encodings.m, encodings.d, model.k
    found = FoundSupports(np.empty((m, k), np.int64), np.empty(m), np.empty(m), np.empty(m))
    block = block_rows(m, d, limit, public.vectors.nbytes)
    # Fewer blocks at a time where the limit asks for it, so that the blocks, and with them the
    # answer, do not depend on the number of workers.
    spare = max(1, min(limit // 4, SPARE))
    at_once = max(
        1, min(workers, limit // (24 * d * block + 4 * (d + ROWS) * public.columns + 2 * spare))
    )
    correlated = is_correlated(public, _sample(public, m))
    job = _Job(encodings, public, model, spare, correlated, block)
    done = count_rows(progress, "learn public", block, m)
    for start, part in results(_searched, job, range(0, m, block), workers=at_once):
        rows = slice(start, start + block)
        for name, values in vars(part).items():
            getattr(found, name)[rows] = values
        done(start)
    return found


@dataclass(frozen=True, eq=False)
class _Job:
    """What all blocks of encodings share; block: encodings in each."""

    encodings: Encodings
    public: Public
    model: Model
    spare: int
    correlated: bool
    block: int


def _searched(job: _Job, start: int) -> FoundSupports:
    """The block of encodings from `start` on."""
    magnitudes = job.encodings.magnitudes(slice(start, start + job.block))
    here = _Search(magnitudes, job.public, job.model, job.spare)
    here.run(job.correlated)
    return FoundSupports(here.supports, here.likelihood, here.margin, here.fit)


class _Search:
    """The state of one block of encodings: the best support of each so far, and what is known
    against it."""

    def __init__(self, magnitudes: Floats, public: Public, model: Model, spare: int) -> None:
        self.y, self.public, self.model, self.spare = magnitudes, public, model, spare
        n = len(magnitudes)
        self.rows = np.arange(n)
        self.supports = np.empty((n, model.k), np.int64)
        self.likelihood = np.full(n, -np.inf)
        self.lacking = np.full((n, CANDIDATES), -1, np.int64)
        self.candidates = np.full((n, 2 * CANDIDATES + model.k), -1, np.int64)
        self.swap = np.full(n, np.inf)
        self.evidence = np.empty(n)
        self.other = np.full(n, -np.inf)  # L of the best other local optimum

    @property
    def margin(self) -> NDArray[np.float64]:
        return np.asarray(
            np.minimum(
                np.minimum(self.swap, self.evidence), np.maximum(self.likelihood - self.other, 0)
            )
        )

    @property
    def fit(self) -> NDArray[np.float64]:
        return fit_of(self.y, self.public, self.rows, self.supports, self.likelihood, self.model)

    def run(self, correlated: bool) -> None:
        """Steps 1 to 7 of the recipe."""
        self._first_round()  # steps 1 to 5
        # 6. With k = 1 there is nothing to combine: the pool has said it all.
        for number, effort in enumerate(ROUNDS if self.model.k > 1 else ()):
            unsettled = (self.fit < effort.fit) | (self.evidence < MARGIN / 2)
            if number == 0:
                unsettled |= self.swap < MARGIN
            self._further_round(np.flatnonzero(unsettled), effort)
        # 7. Twins of a member hide from the gradient.
        if self.model.k > 1:
            sure = np.flatnonzero(is_certain(self.margin, self.fit))
            if not correlated:
                nearest = largest_correlation(
                    self.public, self.supports[sure], self.candidates[sure]
                )
                sure = sure[nearest > TWINS / np.sqrt(self.y.shape[1])]
            self._leave_out_in_turn(sure)
            self._weigh(sure)

    def _first_round(self) -> None:
        model, rows, k = self.model, self.rows, self.model.k
        step = _step(model, self.y.shape[1])
        pool = screen(self.y, self.public, POOL, step=step)
        some, vectors = self.y[:, ::step], self.public.vectors[:, ::step]
        starts = start_supports(some, vectors, pool, k, STARTS, k - 1, self.spare)
        flat = starts.reshape(-1, k)
        L = log_likelihood(
            self.y, self.public.vectors, np.repeat(rows, STARTS), flat, model.weight, model.variance
        )
        L[flat[:, 0] < 0] = -np.inf
        chosen = starts[rows, L.reshape(-1, STARTS).argmax(axis=1)]
        self.supports, self.likelihood, self.lacking = newton(
            self.y, self.public, rows, chosen, model, STEPS, CANDIDATES
        )
        # After a move there may be a better neighbour still.
        active = rows
        for _ in range(SWEEPS):
            if len(active) == 0:
                break
            if k == 1:
                more = pool[active, : CANDIDATES + k]
            else:
                more = leave_one_out_sum(
                    self.y, self.public, active, self.supports[active], model, CANDIDATES + k
                )
            self.candidates[active, :CANDIDATES] = self.lacking[active]
            self.candidates[active, CANDIDATES : CANDIDATES + more.shape[1]] = more
            active = self._swap(active, self.candidates[active])
        self._weigh(rows)

    def _further_round(self, unsettled: Indices, effort: Round) -> None:
        k, count = self.model.k, effort.starts
        # Starts that share most of their members end in the same optimum.
        most_shared = k // 2 if k >= 4 else max(k - 2, 0)
        block = rows_per_block(4 * self.y.shape[1] * count, self.spare, most=max(1, len(unsettled)))
        for first in range(0, len(unsettled), block):
            hard = unsettled[first : first + block]
            pool = screen(self.y[hard], self.public, effort.pool)
            starts = start_supports(
                self.y[hard], self.public.vectors, pool, k, count, most_shared, self.spare
            )
            flat, rows = starts.reshape(-1, k), np.repeat(hard, count)
            flat, rows = flat[flat[:, 0] >= 0], rows[flat[:, 0] >= 0]
            optima, L, lacking = newton(
                self.y, self.public, rows, flat, self.model, effort.steps, CANDIDATES
            )
            # Every optimum that is not the best is a rival: it bounds the margin.
            for t in np.lexsort((-L, rows)):
                i = rows[t]
                if (optima[t] == self.supports[i]).all():
                    continue
                self.other[i] = max(self.other[i], min(L[t], self.likelihood[i]))
                if L[t] > self.likelihood[i]:
                    self.supports[i], self.likelihood[i] = optima[t], L[t]
                    self.candidates[i, :CANDIDATES] = lacking[t]
            self._leave_out_in_turn(hard)
            self._weigh(hard)

    def _leave_out_in_turn(self, active: Indices) -> None:
        for _ in range(SWEEPS):
            if len(active) == 0:
                return
            more = leave_one_out(
                self.y,
                self.public,
                active,
                self.supports[active],
                self.model,
                IN_TURN + self.model.k,
                self.spare,
            )
            active = self._swap(active, np.concatenate([self.candidates[active], more], axis=1))

    def _swap(self, active: Indices, candidates: Indices) -> Indices:
        """Move to better neighbours; returns who moved."""
        self.supports[active], self.likelihood[active], self.swap[active], moved = swap_to_better(
            self.y,
            self.public,
            active,
            self.supports[active],
            self.likelihood[active],
            candidates,
            self.model,
        )
        let_go(self.public.vectors)
        return active[moved]

    def _weigh(self, rows: Indices) -> None:
        self.evidence[rows] = evidence_margin(
            self.y, self.public, rows, self.supports[rows], self.likelihood[rows], self.model
        )
        let_go(self.public.vectors)


def _step(model: Model, d: int) -> int:
    """Every which pixel is enough for a start: y² and the p² of a member correlate as the square of
    its share."""
    share = model.spread / (model.k * model.spread + model.variance)
    return max(1, int(d * (share / STANDS_OUT) ** 2))


def _sample(public: Public, m: int) -> Indices:
    """Some of the usable public vectors, the same every time."""
    usable = np.flatnonzero(public.usable)
    return np.sort(np.random.default_rng(0).permutation(usable)[: min(SAMPLE, max(16, m))])
