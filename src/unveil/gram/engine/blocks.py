"""The overlap engine: every pair of encodings once, in blocks, from product to rounded overlap with
its evidence.

A block task is a pure function of (features, i, j, plan): product of the screening pixels,
compaction of what passes, further pixels for the survivors only, rounding, and the likelihood for
pairs in doubt. It returns the entries of the block and a table of evidence: how many pairs were
rounded to q with which margin against which rival. BLAS runs on one thread inside a task and tasks
run side by side, so the bytes do not depend on the number of workers.

Features are made per block of rows, from memory or from a memory-mapped file, and kept as long as
the memory allows. Cost: m²/2·(screening pixels) multiply-adds at the speed of BLAS, and a few
percent more (`gram/engine/plan.py`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.gram.engine.likelihood import LARGEST, log_ratios, ratio_thresholds
from unveil.gram.engine.plan import OverlapPlan
from unveil.gram.levels import NO_SKEW, REACH, Levels, lattice
from unveil.gram.statistics import Floats, KnownPublic, Statistic, feature_rows, pixel_order
from unveil.parallel import one_blas_thread
from unveil.scheme import Scheme

BIN, LOWEST, BINS = 0.25, -30.0, 320
"""Margins are counted in bins of this width, from this one on."""


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
        self.values, self.scheme, self.plan, self.levels, self.public = (
            values,
            scheme,
            plan,
            levels,
            public,
        )
        self.cache_bytes = cache_bytes
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
        start = index * self.plan.block
        rows = self.values[start : start + self.plan.block]
        full, offset = feature_rows(rows, self.plan.statistic, self._order, self.public, start)
        first = self.plan.edges[0]
        made = (
            full if first == self.plan.d else np.ascontiguousarray(full[:, :first]),
            full,
            offset,
        )
        # Two threads may make the same features; the last one stays, and both are right.
        with self._lock:
            self._kept[index] = made
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made

    def block(self, i: int, j: int) -> Block:
        """The entries between row blocks i ≤ j; for i = j those above the diagonal."""
        plan, levels = self.plan, self.levels
        # 1. Scores of all pairs that pass the cuts.
        A1, A, offset_a = self.features(i)
        B1, B, offset_b = (A1, A, offset_a) if i == j else self.features(j)
        edges, cuts = np.array(plan.edges), np.array(plan.cuts, dtype=np.float32)
        r, c, score = _survivors(A1 @ B1.T, A, B, edges, cuts, i == j)
        # 2. How many public vectors they share, which decides the thresholds; then round.
        shared = np.zeros(len(r), np.int8)
        if self.public is not None:
            S = self.public.supports
            start_a, start_b = i * plan.block, j * plan.block
            _count_shared(
                S[start_a : start_a + plan.block], S[start_b : start_b + plan.block], r, c, shared
            )
        thresholds = np.array(plan.thresholds)
        q, rival, margin = _weigh(
            score, shared, thresholds, levels.mean, levels.sd, levels.skew, plan.d
        )
        # 3. Pairs in doubt by their likelihood.
        if plan.doubt > 0:
            self._settle(A, B, offset_a, offset_b, r, c, shared, q, rival, margin)
        # 4. The table counts doubtful zeros too; the entries are those above 0.
        here = (q > 0) | (margin < plan.doubt)
        if not here.all():
            r, c, q, rival, margin = r[here], c[here], q[here], rival[here], margin[here]
        table = _count(q, rival, margin, levels.mean.shape[1])
        if not q.all():
            here = q > 0
            r, c, q, rival, margin = r[here], c[here], q[here], rival[here], margin[here]
        shift = plan.block
        return Block(
            r + np.int32(i * shift),
            c + np.int32(j * shift),
            q,
            rival,
            margin.astype(np.float32),
            table,
        )

    def _settle(
        self,
        A: Floats,
        B: Floats,
        offset_a: Floats,
        offset_b: Floats,
        r: NDArray[np.int32],
        c: NDArray[np.int32],
        shared: NDArray[np.int8],
        q: NDArray[np.int8],
        rival: NDArray[np.int8],
        margin: NDArray[np.float64],
    ) -> None:
        """Pairs in doubt are rounded again, in place, by the log-likelihood ratio of the two levels
        in question."""
        # At the top of the lattice there is no density: those pairs stay as the product has them.
        z = lattice(self.scheme)
        low = np.minimum(q, rival)
        pick = np.flatnonzero((margin < self.plan.doubt) & (z[shared, low + 1] < LARGEST))
        if not len(pick):
            return
        low = low[pick]
        line = ratio_thresholds(self.scheme)
        p = shared[pick]
        ratio = log_ratios(A, B, offset_a, offset_b, r[pick], c[pick], z[p, low], z[p, low + 1])
        higher = ratio >= line[p, low] * self.plan.d
        q[pick] = np.where(higher, low + 1, low)
        rival[pick] = np.where(higher, low, low + 1)
        margin[pick] = np.where(higher, ratio, -ratio)


def score_rows(
    values: Floats, rows: NDArray[np.intp], statistic: Statistic, public: KnownPublic | None
) -> tuple[Floats, NDArray[np.int64]]:
    """Scores on all pixels of every two of the given rows, and the public vectors they share: for
    samples, and for plans."""
    if public is not None:
        public = replace(public, supports=public.supports[rows])
    F, _ = feature_rows(values[rows], statistic, np.arange(values.shape[1]), public)
    shared = np.zeros((len(rows), len(rows)), np.int64)
    if public is not None:
        for column in public.supports.T:
            shared += (column[:, None, None] == public.supports).sum(axis=2)
    with one_blas_thread():
        return F @ F.T, shared


def _count(
    q: NDArray[np.int8], rival: NDArray[np.int8], margin: NDArray[np.float64], levels: int
) -> NDArray[np.int64]:
    table = np.zeros((levels, 2, BINS), np.int64)
    bins = np.clip((margin - LOWEST) / BIN, 0, BINS - 1).astype(np.int64)
    np.add.at(table, (q.astype(np.intp), (rival > q).astype(np.intp), bins), 1)
    return table


@njit(cache=True, nogil=True, fastmath=True)
def _survivors(C, A, B, edges, cuts, upper):  # type: ignore[no-untyped-def]
    """Pairs whose running score stays at or above every cut, with the score on all pixels.

    C holds the scores on the first edges[0] pixels. The list of a row is compacted without
    branches: write, then move on if kept.
    """
    rows, columns = C.shape
    line = np.empty(columns, np.int32)
    value = np.empty(columns, np.float32)
    room = 1024
    r, c, s = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.float32)
    count = 0
    stages = len(edges)
    for i in range(rows):
        # 1. The screen: what passes the first cut.
        kept = 0
        for j in range(i + 1 if upper else 0, columns):
            line[kept] = j
            value[kept] = C[i, j]
            kept += C[i, j] >= cuts[0]
        # 2. Further pixels, stage by stage, for those still in.
        for stage in range(1, stages):
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
            r2, c2, s2 = (
                np.empty(room, np.int32),
                np.empty(room, np.int32),
                np.empty(room, np.float32),
            )
            for old in range(count):
                r2[old], c2[old], s2[old] = r[old], c[old], s[old]
            r, c, s = r2, c2, s2
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
def _weigh(score, shared, thresholds, mean, sd, skew, d):  # type: ignore[no-untyped-def]
    """Round each score; name the neighbouring level that comes closest, and the log-likelihood
    ratio against it."""
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
            # As `levels.normal_scale`: the correction stops where it would turn back.
            reach = REACH / max(abs(s), NO_SKEW)
            w = min(max(x, -reach), reach)
            u = x - s * (w * w - 1) / 6
            density[v] = -u * u / 2 - np.log(sd[p, v])
        best = level - 1 if level > 0 else 1
        if 0 < level < top and density[level + 1] > density[level - 1]:
            best = level + 1
        q[t], rival[t], margin[t] = level, best, density[level] - density[best]
    return q, rival, margin
