"""How far to trust each overlap, and how many are wrong: posterior probabilities from the evidence
the blocks brought home.

For an entry rounded to q with rival r the engine knows the log-likelihood ratio between them. With
π, the fraction of pairs at each overlap,

    P(wrong) = 1 / (1 + (π_q/π_r)·e^margin).

π is found by expectation–maximisation on the table of margins: what is rounded to q, minus what the
margins say is wrong, plus what was dropped unseen. The expected number of wrong pairs is the sum of
P(wrong) over all pairs, those rounded to 0 included, plus the pairs with an overlap that fell below
a cut. Private and public vectors are drawn independently, so π is the same for every number of
shared public vectors. Cost: the table only; entries are touched once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from unveil.gram.engine.blocks import BIN, BINS, LOWEST, Block
from unveil.gram.engine.plan import OverlapPlan
from unveil.gram.levels import Levels

ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Evidence:
    """fractions (k+1,) of all pairs at each overlap; wrong pairs to expect among those kept, and
    overlapping pairs missed."""

    fractions: NDArray[np.float64]
    wrong_kept: float
    missed: float

    @property
    def expected_errors(self) -> float:
        return self.wrong_kept + self.missed


def weigh_evidence(table: NDArray[np.int64], plan: OverlapPlan, levels: Levels) -> Evidence:
    """π by expectation–maximisation, and the errors that follow from it."""
    pairs = plan.m * (plan.m - 1) / 2
    top = table.shape[0] - 1
    if pairs == 0:
        return Evidence(np.eye(top + 1)[0], 0.0, 0.0)
    lost = _lost(plan, levels)
    margin = LOWEST + BIN * (np.arange(BINS) + 0.5)
    counts = table.sum(axis=(1, 2)).astype(np.float64)
    counts[0] = pairs - counts[1:].sum()
    pi = np.maximum(counts, 0.5) / pairs
    moved = np.zeros(table.shape)
    for _ in range(ROUNDS):
        for q in range(top + 1):
            for side, r in ((0, q - 1), (1, q + 1)):
                if 0 <= r <= top:
                    odds = np.log(pi[r] / pi[q]) - margin
                    moved[q, side] = table[q, side] / (1 + np.exp(-np.clip(odds, -500, 500)))
        new = counts - moved.sum(axis=(1, 2))
        new[1:] += moved[:-1, 1].sum(axis=1)
        new[:-1] += moved[1:, 0].sum(axis=1)
        new[1:] += pairs * pi[1:] * lost[1:]
        new[0] = pairs - new[1:].sum()
        new = np.maximum(new, 1e-3) / pairs
        done = np.abs(new - pi).max() < 1e-6 * pi.min() + 1e-15
        pi = new
        if done:
            break
    wrong_zero = float(moved[0].sum())
    return Evidence(
        pi, float(moved[1:].sum()), wrong_zero + float(pairs * (pi[1:] * lost[1:]).sum())
    )


def assemble(
    blocks: Sequence[Block], m: int, k: int, fractions: NDArray[np.float64]
) -> tuple[sparse.csr_array, NDArray[np.float32]]:
    """The symmetric matrix with k on its diagonal, and the confidence of each entry in the order of
    its data.

    `blocks` come in the order of (i, j). Writing the lower half first, block by block, then the
    diagonal, then the upper half leaves every row sorted: no sort, and no copy beyond the result.
    """
    degree = np.ones(m, np.int64)
    for block in blocks:
        _add_degrees(block.rows, block.columns, degree)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    small = indptr[-1] < 2**31
    indices = np.empty(indptr[-1], np.int32)
    data = np.empty(indptr[-1], np.int8)
    confidence = np.empty(indptr[-1], np.float32)
    at = indptr[:-1].copy()
    trust = [_confidence(block, fractions) for block in blocks]
    for block, t in zip(blocks, trust, strict=True):
        _place(block.columns, block.rows, block.overlap, t, at, indices, data, confidence)
    indices[at], data[at], confidence[at] = np.arange(m), k, 1.0
    at += 1
    for block, t in zip(blocks, trust, strict=True):
        _place(block.rows, block.columns, block.overlap, t, at, indices, data, confidence)
    pointers = indptr.astype(np.int32) if small else indptr
    matrix = sparse.csr_array((data, indices, pointers), shape=(m, m))
    matrix.has_sorted_indices = True
    return matrix, confidence


def _confidence(block: Block, fractions: NDArray[np.float64]) -> NDArray[np.float32]:
    odds = np.log(fractions[block.rival] / fractions[block.overlap]) - block.margin
    return (1 / (1 + np.exp(np.clip(odds, -80, 80)))).astype(np.float32)


def _lost(plan: OverlapPlan, levels: Levels) -> NDArray[np.float64]:
    """P(dropped unseen) at each overlap: below the last cut or, at overlap 1, in a screen. Averaged
    over shared public vectors."""
    out = np.zeros(levels.mean.shape[1])
    for p, share in enumerate(plan.shared):
        for q in range(1, len(out)):
            out[q] += share * float(levels.below(plan.cuts[-1], p, q, plan.d))
            for cut, e in zip(plan.cuts[:-1], plan.edges[:-1], strict=True):
                out[q] += share * float(levels.of_part(e / plan.d).below(cut * plan.d / e, p, q, e))
    return np.minimum(out, 1.0)


@njit(cache=True, nogil=True)
def _add_degrees(rows, columns, degree):  # type: ignore[no-untyped-def]
    for t in range(len(rows)):
        degree[rows[t]] += 1
        degree[columns[t]] += 1


@njit(cache=True, nogil=True)
def _place(rows, columns, overlap, trust, at, indices, data, confidence):  # type: ignore[no-untyped-def]
    for t in range(len(rows)):
        x = at[rows[t]]
        indices[x], data[x], confidence[x] = columns[t], overlap[t], trust[t]
        at[rows[t]] = x + 1
