"""The overlap engine: every pair of encodings once, in blocks, from product to rounded overlap.

    plan     a pair is scored on a few pixels by a matrix product; survivors are scored on further
             pixels, stage by stage, and dropped as soon as they fall below the line that a pair
             with overlap 1 stays above but for the share `loss`. Of all numbers of screening pixels
             the cheapest is taken, in multiply-adds of a matrix product (`make_plan`)
    block    a pure function of (encodings, plan, i, j): product, compaction, further pixels for
             survivors, rounding, likelihood for pairs in doubt (`OverlapEngine.block`)
    weigh    P(wrong) of an entry rounded to q with rival r is 1/(1 + (π_q/π_r)·e^margin), π the
             share of pairs at each overlap, by expectation–maximisation on a table of margins
             (`weigh_evidence`); the sum of P(wrong) is the number of errors to expect

BLAS has one thread inside a task and tasks run side by side, so that the bytes do not depend on the
number of workers. Cost: m²/2·(screening pixels) multiply-adds at the speed of BLAS, and little
more. Memory: a block, its features, and the sparse result.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from unveil.engine.blocks import one_blas_thread
from unveil.paper.overlap_levels import (
    Array,
    Floats,
    KnownPublic,
    Levels,
    Statistic,
    feature_rows,
    lattice,
    log_ratios,
    pixel_order,
    ratio_thresholds,
)
from unveil.scheme import Scheme

# Margins are counted in bins of a quarter nat from −30 on: the layout of `Block.table`.
BIN, LOWEST, BINS = 0.25, -30.0, 320


# --- Plan ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OverlapPlan:
    """What the engine will do, and what to expect of it.

    edges, cuts       after edges[s] pixels a pair below cuts[s] is dropped; one entry: one pass
    thresholds        (k_public+1, k_private): scores from which on the overlap is at least 1, 2, …
    doubt             log-likelihood ratio below which a pair is decided by its likelihood; 0: never
    occupancy         share of pairs with a private overlap
    shared            share of pairs with 0, 1, … shared public vectors
    expected_errors   wrong pairs by the product alone; work: multiply-adds for all pairs
    """

    m: int
    d: int
    statistic: Statistic
    edges: tuple[int, ...]
    cuts: tuple[float, ...]
    thresholds: tuple[tuple[float, ...], ...]
    doubt: float
    block: int
    loss: float
    occupancy: float
    shared: tuple[float, ...]
    expected_errors: float
    work: float

    @property
    def blocks(self) -> int:
        return -(-self.m // self.block)

    @property
    def bytes_per_task(self) -> int:
        return task_bytes(self.block, self.d)

    @property
    def tasks(self) -> list[tuple[int, int]]:
        """Block pairs (i, j), i ≤ j; every second row backwards, so that features still in memory
        are used again."""
        n = self.blocks
        back = (range(n - 1, i - 1, -1) if i % 2 else range(i, n) for i in range(n))
        return [(i, j) for i, columns in enumerate(back) for j in columns]


def task_bytes(block: int, d: int) -> int:
    return 4 * block * block + 12 * block * d


def make_plan(
    levels: Levels,
    m: int,
    d: int,
    *,
    statistic: Statistic = "folded",
    occupancy: float,
    shared: tuple[float, ...] = (1.0,),
    limit: int = 8 << 30,
    loss: float = 1e-6,
    doubt: float = 0.0,
    screen: int | None = None,
    smallest_screened: int = 2048,
    growth: float = 1.25,
    pick: float = 36.0,
    score: float = 10.0,
) -> OverlapPlan:
    """The cheapest plan.

    loss                share of pairs with an overlap that screening may lose, nine tenths of it at
                        the first cut
    screen              screening pixels; None: the cheapest number
    smallest_screened   fewer encodings are not worth a screen
    growth              pixels grow by this factor from stage to stage
    pick, score         what it costs to look at a score, and to score one pixel of a survivor, in
                        multiply-adds of a matrix product (`python -m benchmarks.overlaps`)
    """
    thresholds = levels.balanced()
    pairs = max(m * (m - 1) / 2, 1.0)
    firsts = [d]
    if screen is not None:
        firsts = [min(screen, d)]
    elif m >= smallest_screened:
        firsts += list(range(128, d, 64))
    best: tuple[float, tuple[int, ...], tuple[float, ...]] | None = None
    for first in firsts:
        # 1. Stages of whole vector registers; a last one of less than a tenth is not worth it.
        stages = [first]
        while stages[-1] * growth < 0.9 * d:
            stages.append(int(stages[-1] * growth) // 16 * 16)
        edges = (*stages, d) if stages[-1] < d else (d,)
        # 2. Cuts, and how many pairs of overlap 0 pass each of them. A sum over e of d pixels is
        #    e/d times an average.
        work, alive, cuts = edges[0] + pick, 1.0, []
        for s, e in enumerate(edges[:-1]):
            part = levels.of_part(e / d)
            lost = 0.9 * loss if s == 0 else 0.1 * loss / max(len(edges) - 2, 1)
            cut = min(part.quantile(lost, p, 1, e) for p in range(len(levels.mean)))
            idle = sum(
                share * (1 - float(part.below(cut, p, 0, e))) for p, share in enumerate(shared)
            )
            alive = min(alive, occupancy + (1 - occupancy) * idle)
            work += score * alive * (edges[s + 1] - e)
            cuts.append(cut * e / d)
        if best is None or work < best[0]:
            best = work, edges, tuple(cuts)
    assert best is not None
    work, edges, early = best
    # 3. The last cut keeps what is in doubt; blocks are the largest power of two that fits. The
    #    number of workers has no say in it: results must not depend on them.
    last = min(_doubt_line(levels, thresholds, p, doubt, d) for p in range(len(thresholds)))
    block = 1024
    while block < 8192 and block * 64 < m:
        block *= 2
    while block > 1 and task_bytes(block, d) > limit // 4:
        block //= 2
    lost = loss if len(edges) > 1 else 0.0
    up, down = 1 - levels.below(thresholds[0, 0], 0, 0, d), levels.below(thresholds[0, 0], 0, 1, d)
    beyond = 1 - levels.below(thresholds[0, 1], 0, 1, d) if thresholds.shape[1] > 1 else 0.0
    wrong = (1 - occupancy) * float(up) + occupancy * float(down + beyond + lost)
    lines, costs = tuple(map(tuple, thresholds.tolist())), (wrong * pairs, work * pairs)
    all_cuts = (*early, last)
    return OverlapPlan(
        m, d, statistic, edges, all_cuts, lines, doubt, block, lost, occupancy, shared, *costs
    )


def _doubt_line(levels: Levels, thresholds: Array, p: int, doubt: float, d: int) -> float:
    """The lowest score at which overlap 0 is still in doubt."""
    t = float(thresholds[p, 0])
    if doubt <= 0:
        return t
    scores = np.linspace(min(float(levels.mean[p, 0]), t), t, 400)
    clear = np.flatnonzero(levels.log_odds(scores, p, 0, d) < -doubt)
    return float(scores[clear[-1] if len(clear) else 0])


# --- Blocks --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Block:
    """The entries of one block above its diagonal: overlap, its rival (one more or one less), and
    the log-likelihood ratio between them.

    table (k+1, 2, BINS): pairs by overlap, rival (0: one less, 1: one more) and margin; overlap 0
    only as far as in doubt.
    """

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    overlap: NDArray[np.int8]
    rival: NDArray[np.int8]
    margin: Floats
    table: NDArray[np.int64]


class OverlapEngine:
    """What a worker needs: encodings, plan, levels, public part. Picklable; features already made
    stay behind."""

    def __init__(
        self,
        values: Floats,
        scheme: Scheme,
        plan: OverlapPlan,
        levels: Levels,
        public: KnownPublic | None = None,
        cache_bytes: int = 256 << 20,
    ) -> None:
        self.values, self.scheme, self.plan, self.levels = values, scheme, plan, levels
        self.public, self.cache_bytes = public, cache_bytes
        self._start()

    def _start(self) -> None:
        self._order = pixel_order(self.plan.d, self.plan.edges[0])
        self._kept: OrderedDict[int, tuple[Floats, Floats, Floats]] = OrderedDict()
        self._lock = threading.Lock()
        per_block = 4 * self.plan.block * (self.plan.d + self.plan.edges[0])
        self._most = max(0, self.cache_bytes // max(per_block, 1))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def features(self, index: int) -> tuple[Floats, Floats, Floats]:
        """(screening pixels, all pixels, offsets) of a block of rows."""
        with self._lock:
            if index in self._kept:
                self._kept.move_to_end(index)
                return self._kept[index]
        start, first = index * self.plan.block, self.plan.edges[0]
        rows = self.values[start : start + self.plan.block]
        full, offset = feature_rows(rows, self.plan.statistic, self._order, self.public, start)
        some = full if first == self.plan.d else np.ascontiguousarray(full[:, :first])
        # Two threads may make the same features; the last one stays, and both are right.
        with self._lock:
            self._kept[index] = some, full, offset
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return some, full, offset

    def decided_by(self) -> tuple[list[str], list[NDArray[Any] | None]]:
        """All that decides the blocks, for a checkpoint."""
        public = self.public or KnownPublic(np.empty((0, 0), np.int32), None, 0.0, 0.0, 0.0)
        facts = [repr(self.scheme), repr(self.plan), repr((public.weight, public.variance))]
        levels = [self.levels.mean, self.levels.sd, self.levels.skew]
        return facts, [self.values, *levels, public.supports, public.vectors]

    def block(self, i: int, j: int) -> Block:
        """The entries between row blocks i ≤ j; for i = j those above the diagonal."""
        plan, levels, size = self.plan, self.levels, self.plan.block
        # 1. Scores of all pairs that pass the cuts.
        A1, A, offset_a = self.features(i)
        B1, B, offset_b = (A1, A, offset_a) if i == j else self.features(j)
        edges, cuts = np.array(plan.edges), np.array(plan.cuts, dtype=np.float32)
        r, c, score = _survivors(A1 @ B1.T, A, B, edges, cuts, i == j)
        # 2. How many public vectors they share, which decides the thresholds; then round.
        shared = np.zeros(len(r), np.int8)
        if self.public is not None:
            S = self.public.supports
            _count_shared(S[i * size :], S[j * size :], r, c, shared)
        q, rival, margin = round_scores(score, shared, plan, levels)
        # 3. Pairs in doubt by their likelihood; at the top of the lattice there is no density.
        z, line = lattice(self.scheme), ratio_thresholds(self.scheme) if plan.doubt > 0 else None
        low = np.minimum(q, rival)
        doubtful = np.flatnonzero(margin < plan.doubt)
        if line is not None:
            doubtful = doubtful[np.isfinite(line[shared[doubtful], low[doubtful]])]
            p, low = shared[doubtful], low[doubtful]
            ratio = log_ratios(
                A, B, offset_a, offset_b, r[doubtful], c[doubtful], z[p, low], z[p, low + 1]
            )
            higher = ratio >= line[p, low] * plan.d
            q[doubtful], rival[doubtful] = low + higher, low + ~higher
            margin[doubtful] = np.where(higher, ratio, -ratio)
        # 4. The table counts doubtful zeros too; the entries are those above 0.
        table = np.zeros((levels.mean.shape[1], 2, BINS), np.int64)
        counted = (q > 0) | (margin < plan.doubt)
        bins = np.clip((margin[counted] - LOWEST) / BIN, 0, BINS - 1).astype(np.intp)
        above = (rival[counted] > q[counted]).astype(np.intp)
        np.add.at(table, (q[counted].astype(np.intp), above, bins), 1)
        on = q > 0
        at = r[on] + np.int32(i * size), c[on] + np.int32(j * size)
        return Block(*at, q[on], rival[on], margin[on].astype(np.float32), table)


def score_rows(
    values: Floats, rows: NDArray[np.intp], statistic: Statistic, public: KnownPublic | None
) -> tuple[Floats, NDArray[np.int8]]:
    """Scores on all pixels of every two of the given rows, and the public vectors they share."""
    if public is not None:
        public = replace(public, supports=public.supports[rows])
    F, _ = feature_rows(values[rows], statistic, np.arange(values.shape[1]), public)
    shared = np.zeros((len(rows), len(rows)), np.int8)
    if public is not None:
        for column in public.supports.T:
            shared += (column[:, None, None] == public.supports).sum(axis=2, dtype=np.int8)
    with one_blas_thread():
        return F @ F.T, shared


def round_scores(
    score: Floats, shared: NDArray[np.int8], plan: OverlapPlan, levels: Levels
) -> tuple[NDArray[np.int8], NDArray[np.int8], Array]:
    """Overlap, the neighbouring level that comes closest, and the log-likelihood ratio against
    it."""
    law = levels.mean, levels.sd, levels.skew
    q, rival, margin = _round(score, shared, np.array(plan.thresholds), *law, plan.d)
    return q, rival, margin


@njit(cache=True, nogil=True, fastmath=True)
def _survivors(C, A, B, edges, cuts, upper):  # type: ignore[no-untyped-def]
    """Pairs whose running score stays at or above every cut, with the score on all pixels; C holds
    the scores on the first edges[0] pixels. A row is compacted without branches: write, then move
    on if kept."""
    rows, columns = C.shape
    line = np.empty(columns, np.int32)
    value = np.empty(columns, np.float32)
    room = 1024
    r, c, s = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.float32)
    count = 0
    for i in range(rows):
        # 1. The screen: what passes the first cut.
        kept = 0
        for j in range(i + 1 if upper else 0, columns):
            line[kept] = j
            value[kept] = C[i, j]
            kept += C[i, j] >= cuts[0]
        # 2. Further pixels, stage by stage, for those still in.
        for stage in range(1, len(edges)):
            first, last, cut = edges[stage - 1], edges[stage], cuts[stage]
            before, kept = kept, 0
            a = A[i, first:last]
            for x in range(before):
                j = line[x]
                b = B[j, first:last]
                total = value[x]
                # Counting from 0 lets the compiler use vector instructions.
                for pixel in range(len(a)):
                    total += a[pixel] * b[pixel]
                line[kept] = j
                value[kept] = total
                kept += total >= cut
        # 3. What is left is noted; room is doubled where it runs out.
        if count + kept > room:
            room = 2 * (count + kept)
            r = np.concatenate((r[:count], np.empty(room - count, np.int32)))
            c = np.concatenate((c[:count], np.empty(room - count, np.int32)))
            s = np.concatenate((s[:count], np.empty(room - count, np.float32)))
        for x in range(kept):
            r[count], c[count], s[count] = i, line[x], value[x]
            count += 1
    return r[:count].copy(), c[:count].copy(), s[:count].copy()


@njit(cache=True, nogil=True)
def _count_shared(left, right, r, c, out):  # type: ignore[no-untyped-def]
    """How many public vectors each pair shares; supports are sorted, so two fingers do."""
    k = left.shape[1]
    for t in range(len(r)):
        i, j, x, y, n = r[t], c[t], 0, 0, 0
        while x < k and y < k:
            a, b = left[i, x], right[j, y]
            n += a == b
            x += a <= b
            y += b <= a
        out[t] = n


@njit(cache=True, nogil=True)
def _round(score, shared, thresholds, mean, sd, skew, d):  # type: ignore[no-untyped-def]
    n, top = len(score), mean.shape[1] - 1
    q = np.empty(n, np.int8)
    rival = np.empty(n, np.int8)
    margin = np.empty(n, np.float64)
    root = np.sqrt(d)
    density = np.empty(top + 1)
    for t in range(n):
        p = shared[t]
        level = 0
        while level < top and score[t] >= thresholds[p, level]:
            level += 1
        # The level and its neighbours: which of the two comes closest?
        for v in range(max(level - 1, 0), min(level + 1, top) + 1):
            x = (score[t] - mean[p, v]) * root / sd[p, v]
            s = skew[p, v] / root
            # As `Levels.normal_scale`: the correction stops where it would turn back.
            reach = 1.5 / max(abs(s), 1e-9)
            w = min(max(x, -reach), reach)
            u = x - s * (w * w - 1) / 6
            density[v] = -u * u / 2 - np.log(sd[p, v])
        best = level - 1 if level > 0 else 1
        if 0 < level < top and density[level + 1] > density[level - 1]:
            best = level + 1
        q[t], rival[t], margin[t] = level, best, density[level] - density[best]
    return q, rival, margin


# --- Evidence ------------------------------------------------------------------------------------


def weigh_evidence(
    table: NDArray[np.int64], plan: OverlapPlan, levels: Levels, rounds: int = 200
) -> tuple[Array, float]:
    """(fractions (k+1,) of all pairs at each overlap, wrong pairs to expect)."""
    pairs, top = plan.m * (plan.m - 1) / 2, table.shape[0] - 1
    if pairs == 0:
        return np.eye(top + 1)[0], 0.0
    # Dropped unseen: below the last cut or, at overlap 1, in a screen.
    lost = np.zeros(top + 1)
    for p, share in enumerate(plan.shared):
        for q in range(1, top + 1):
            for cut, e in zip(plan.cuts, plan.edges, strict=True):
                part = levels.of_part(e / plan.d)
                lost[q] += share * float(part.below(cut * plan.d / e, p, q, e))
    lost = np.minimum(lost, 1.0)
    margin = LOWEST + BIN * (np.arange(BINS) + 0.5)
    counts = table.sum(axis=(1, 2)).astype(np.float64)
    # Pairs that were never written down share nothing, as far as anybody knows.
    counts[0] = pairs - counts[1:].sum()
    pi, moved = np.maximum(counts, 0.5) / pairs, np.zeros(table.shape)
    for _ in range(rounds):
        # 1. How many of those rounded to q belong to a neighbour, by their margins and π.
        for q in range(top + 1):
            for side, r in ((0, q - 1), (1, q + 1)):
                if 0 <= r <= top:
                    odds = np.log(pi[r] / pi[q]) - margin
                    moved[q, side] = table[q, side] / (1 + np.exp(-np.clip(odds, -500, 500)))
        # 2. Move them, and add what was dropped unseen; the rest of the pairs share nothing.
        new = counts - moved.sum(axis=(1, 2))
        new[1:] += moved[:-1, 1].sum(axis=1) + pairs * pi[1:] * lost[1:]
        new[:-1] += moved[1:, 0].sum(axis=1)
        new[0] = pairs - new[1:].sum()
        new = np.maximum(new, 1e-3) / pairs
        settled = np.abs(new - pi).max() < 1e-6 * pi.min() + 1e-15
        pi = new
        if settled:
            break
    return pi, float(moved.sum() + pairs * (pi[1:] * lost[1:]).sum())


def assemble(
    blocks: Sequence[Block], m: int, k: int, fractions: Array
) -> tuple[sparse.csr_array, Floats]:
    """The symmetric matrix with k on its diagonal, and the confidence of each entry in the order of
    its data.

    `blocks` come in the order of (i, j). Writing the lower half first, block by block, then the
    diagonal, then the upper half leaves every row sorted: no sort, and no copy beyond the result.
    """
    degree = np.ones(m, np.int64)
    for block in blocks:
        degree += np.bincount(block.rows, minlength=m) + np.bincount(block.columns, minlength=m)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.int8)
    confidence, at = np.empty(indptr[-1], np.float32), indptr[:-1].copy()
    trust = []
    for block in blocks:
        odds = np.log(fractions[block.rival] / fractions[block.overlap]) - block.margin
        trust.append((1 / (1 + np.exp(np.clip(odds, -80, 80)))).astype(np.float32))
        _place(block.columns, block.rows, block.overlap, trust[-1], at, indices, data, confidence)
    indices[at], data[at], confidence[at] = np.arange(m), k, 1.0
    at += 1
    for block, sure in zip(blocks, trust, strict=True):
        _place(block.rows, block.columns, block.overlap, sure, at, indices, data, confidence)
    pointers = indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr
    matrix = sparse.csr_array((data, indices, pointers), shape=(m, m))
    matrix.has_sorted_indices = True
    return matrix, confidence


@njit(cache=True, nogil=True)
def _place(  # type: ignore[no-untyped-def]
    rows, columns, overlap, trust, at, indices, data, confidence
):
    for t in range(len(rows)):
        x = at[rows[t]]
        indices[x], data[x], confidence[x] = columns[t], overlap[t], trust[t]
        at[rows[t]] = x + 1
