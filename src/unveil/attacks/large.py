"""The full attack for many encodings: overlaps are rounded, kept sparse, and every stage costs what
they hold.

    1  M ← GramExtract                      overlaps of all pairs, some of them wrong (`gram.gram_extract`)
    2  W ← cliques of M                     first guess at every encoding's subset (`factor.cliques`)
    3  W ← checked on a few hundred pixels  wrong subsets dropped or corrected, rare vectors added
                                            (k = 2: `solve.pairs.growth`, k ≥ 3:
                                            `solve.pairs.short_feedback`)
    4  x ← every pixel, twice               (k = 2: `solve.pairs.peeled`, k ≥ 3: `solve.pixels.settle`)
    5  status ← Certificate                 vector by vector (`certify.certificate`)

Where `full` pools noisy similarities over all encodings, this route needs most single overlaps to
be readable: for the same n and m two or three times the pixels. In return it is much faster,
nothing is m×m, and for k = 2 nothing is n×n: tens of thousands of encodings are a matter of a
minute or two. For k ≥ 3 an n×n inverse bounds the number of vectors. No public part.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unveil.attacks.finish import certified
from unveil.factor.cliques import Subsets, find_cliques
from unveil.gram.gram_extract import gram_extract
from unveil.parallel import Stopwatch, rows_per_block
from unveil.parallel import memory_limit as settle_limit
from unveil.records import Encodings, Overlaps, Progress, Recovery, row_blocks
from unveil.seeds import child
from unveil.solve.pairs.growth import settle_pairs
from unveil.solve.pairs.peeled import settle_by_peeling
from unveil.solve.pairs.short_feedback import short_feedback
from unveil.solve.pixels.settle import Settled, settle

NAME = "full"
PIXELS = 256
MOST_VECTORS = 3000
"""For k ≥ 3: a dense n×n matrix is inverted, and every pixel is multiplied by it some fifty
times."""

Solved = tuple[Settled, float]
"""What holds, and the unit of its values."""


def large(
    encodings: Encodings,
    seed: np.random.SeedSequence,
    *,
    overlaps: Overlaps | None = None,
    least: float = 0.0,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector the encodings determine, each with its status and the reason for it.

    `least`: the share of encodings that must be explained on a few pixels for the rest of the work
    to be done.
    """
    m, k = encodings.m, encodings.scheme.k_private
    clock, limit = Stopwatch(), settle_limit(memory_limit)
    if overlaps is None:
        with clock("overlaps"):
            overlaps = gram_extract(encodings, memory_limit=memory_limit, progress=progress)
    with clock("factor"):
        first = find_cliques(overlaps)
    if k > 2 and first.columns > MOST_VECTORS:
        why = f"about {first.columns} private vectors: with k_private={k} the full attack handles up to {MOST_VECTORS}; "
        return Recovery.empty(
            encodings,
            NAME,
            why + "pass a part of the encodings, or use attack='paper'",
            clock.seconds,
        )
    solved, rounds = None, 0
    if first.columns > k:
        solved, rounds = (_pairs if k == 2 else _subsets)(
            encodings, first, seed, least, limit, clock, progress
        )
    if solved is None:
        return Recovery.empty(encodings, NAME, _nothing(encodings, overlaps), clock.seconds)
    facts = {
        "overlaps": _pairs_that_overlap(overlaps),
        "wrong_overlaps_expected": overlaps.expected_errors,
        "feedback_rounds": rounds,
    }
    recovery = certified(encodings, NAME, *solved, None, clock, facts)
    if 2 * recovery.evidence["encodings_explained"] < m:
        return replace(
            recovery, explanation=f"{recovery.explanation}; {_nothing(encodings, overlaps)}"
        )
    return recovery


def _pairs(
    encodings: Encodings,
    first: Subsets,
    seed: np.random.SeedSequence,
    least: float,
    limit: int,
    clock: Stopwatch,
    progress: Progress | None,
) -> tuple[Solved | None, int]:
    """k = 2: growth, then peeling of the vectors it reaches."""
    m, d, a = encodings.m, encodings.d, encodings.scheme.private_weight
    with clock("growth"):
        some = np.abs(encodings.values[:, : rows_per_block(64 * m, limit, most=min(d, PIXELS))])
        grown = settle_pairs(
            some, a, first.members, first.columns, child(seed, "growth"), progress=progress
        )
    if grown.right.mean() < least:
        return None, grown.rounds
    rows = np.flatnonzero(grown.right)
    unit = max(_rms(encodings) / np.sqrt(2) / a, 1e-30)
    with clock("pixels"):
        settled = settle_by_peeling(
            encodings.values,
            None,
            a,
            unit,
            rows,
            grown.members[rows],
            child(seed, "pixels"),
            limit=limit,
            progress=progress,
        )
    return None if settled is None else (settled, unit), grown.rounds


def _subsets(
    encodings: Encodings,
    first: Subsets,
    seed: np.random.SeedSequence,
    least: float,
    limit: int,
    clock: Stopwatch,
    progress: Progress | None,
) -> tuple[Solved | None, int]:
    """k ≥ 3: the short feedback, then every pixel by the affine iteration; in units of a private
    pixel's rms."""
    a, k = encodings.scheme.private_weight, encodings.scheme.k_private
    unit = max(_rms(encodings) / np.sqrt(k) / a, 1e-30)
    y = encodings.magnitudes() / np.float32(a * unit)
    with clock("feedback"):
        some = np.ascontiguousarray(
            y[:, : rows_per_block(64 * encodings.m, limit, most=min(encodings.d, PIXELS))]
        )
        found = short_feedback(
            some, first.members, first.columns, child(seed, "feedback"), progress=progress
        )
    rows = np.flatnonzero(found.exact)
    if found.exact.mean() < least or len(rows) <= k + 2:
        return None, found.rounds
    with clock("pixels"):
        settled = settle(
            y, None, rows, found.members[rows], found.x, child(seed, "pixels"), progress=progress
        )
    if settled is None:
        return None, found.rounds
    return (settled, unit), found.rounds


def _rms(encodings: Encodings) -> float:
    power = sum(
        float(np.square(part, dtype=np.float64).sum()) for _, part in row_blocks(encodings.values)
    )
    return float(np.sqrt(power / encodings.values.size))


def _nothing(encodings: Encodings, overlaps: Overlaps) -> str:
    return (
        f"no consistent explanation of the {encodings.m} encodings: of {_pairs_that_overlap(overlaps)} overlaps "
        f"{overlaps.expected_errors:.2g} are expected to be wrong; use more pixels, or another k_private"
    )


def _pairs_that_overlap(overlaps: Overlaps) -> int:
    return int(overlaps.matrix.nnz - np.count_nonzero(overlaps.matrix.diagonal())) // 2
