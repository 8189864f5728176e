"""The full attack for many encodings: overlaps are rounded, kept sparse, and every stage costs what
they hold.

    0  c ← LearnPublic                      the public part of every encoding, where there is one
    1  M ← GramExtract                      overlaps of all pairs, some of them wrong
                                            (`gram.gram_extract`)
    2  W ← cliques of M                     first guess at every encoding's subset
                                            (`factor.cliques`)
    3  W ← checked on a few hundred pixels  wrong subsets dropped or corrected, rare vectors added
                                            (k = 2: `solve.pairs.growth`, k ≥ 3:
                                            `solve.pairs.short_feedback`)
    4  x ← every pixel, twice               (k = 2: `solve.pairs.peeled`, k ≥ 3:
                                            `solve.pixels.settle`)
    5  status ← Certificate                 vector by vector (`certify.certificate`)

Of 20,000 encodings and more (k = 2, no public part) 1 and 2 see half, a quarter of the pairs; 3
holds the others against the vectors found. Where that explains too few, all are compared.

Where `full` pools noisy similarities over all encodings, this route needs most single overlaps to
be readable: for the same n and m two or three times the pixels. In return it is much faster,
nothing is m×m, and for k = 2 nothing is n×n: tens of thousands of encodings are a matter of a
minute or two. For k ≥ 3 an n×n inverse bounds the number of vectors. A public part for k = 2 alone:
growth and peeling take it off every sum, and it settles the signs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unveil.attacks.finish import certified
from unveil.attacks.units import Task, in_units
from unveil.encodings import Encodings
from unveil.factor.cliques import TRUSTED, CliqueSubsets, find_cliques
from unveil.paper.gram_extract import gram_extract
from unveil.paper.learn_public import learn_public
from unveil.parallel import Stopwatch, rows_per_block
from unveil.parallel import memory_limit as bytes_allowed
from unveil.records import Overlaps, Progress, Recovery
from unveil.seeds import child
from unveil.solve.model import Values, rms
from unveil.solve.pairs.growth import grow_pairs
from unveil.solve.pairs.peeled import solve_by_peeling
from unveil.solve.pairs.short_feedback import short_feedback
from unveil.solve.pixels.settle import Settled, settle

NAME = "full"
PIXELS = 256
"""Pixels on which subsets are checked: a wrong pair fits 0.1% of them (`solve.model`)."""
BYTES_PER_ROW = 64
"""Memory for an encoding at one pixel and what is made of it."""
MANY = 20_000
"""Encodings from which on the overlaps of half of them are tried first."""
ENOUGH_SHARED = 8.0
"""Others of the half that an encoding must share a vector with, on average: with five encodings for
each vector few have less than two."""
EXPLAINED = 0.99
"""Share of all encodings that the vectors of the half must explain; else all are compared."""
LOST = 0.01
"""Share of the overlapping pairs that the screen may lose there: cliques are found without them,
and at d = 1,024 the levels say that about 2% are too doubtful to be used anyway."""
MOST_VECTORS = 3000
"""For k ≥ 3: a dense n×n matrix is inverted, and every pixel is multiplied by it some fifty
times."""

Solved = tuple[Settled, float]
"""What holds, and the unit of its values."""


def large(
    encodings: Encodings,
    P: Values | None,
    seed: np.random.SeedSequence,
    clock: Stopwatch,
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
    limit = bytes_allowed(memory_limit)
    # 0. The public part.
    supports = task = None
    if P is not None:
        with clock("learn public"):
            supports = learn_public(encodings, P, memory_limit=memory_limit, progress=progress)
        task = in_units(encodings, P, supports)
    # 1–4. Of very many encodings half will do, where their vectors explain the others.
    solved, rounds = None, 0
    if overlaps is None and P is None and k == 2 and m >= MANY:
        compared, first = _of_half(encodings, seed, clock, memory_limit, progress)
        if _degree(compared) >= ENOUGH_SHARED:
            solved, rounds = _pairs(encodings, None, first, seed, EXPLAINED, limit, clock, progress)
        overlaps = compared if solved is not None else None
    # 1–2. Overlaps, and the subsets that their cliques suggest.
    if overlaps is None:
        with clock("overlaps"):
            overlaps = gram_extract(
                encodings, P, supports=supports, memory_limit=memory_limit, progress=progress
            )
    if solved is None:
        with clock("factor"):
            first = find_cliques(overlaps)
        if k > 2 and first.columns > MOST_VECTORS:
            why = f"about {first.columns} private vectors: with k_private={k} the full attack "
            why += f"handles up to {MOST_VECTORS}; pass a part of the encodings, or use "
            why += "attack='paper'"
            return Recovery.empty(encodings, NAME, why, clock.seconds)
        # 3–4. Subsets checked, then every pixel.
        if first.columns > k and k == 2:
            solved, rounds = _pairs(encodings, task, first, seed, least, limit, clock, progress)
        elif first.columns > k:
            solved, rounds = _subsets(encodings, first, seed, least, limit, clock, progress)
    if solved is None:
        return Recovery.empty(encodings, NAME, _nothing(encodings, overlaps), clock.seconds)
    # 5. The certificate.
    facts = {
        "encodings_compared": overlaps.m,
        "overlaps": _pairs_that_overlap(overlaps),
        "wrong_overlaps_expected": overlaps.expected_errors,
        "feedback_rounds": rounds,
    }
    part = None if task is None else task.public_in_pixels()
    recovery = certified(encodings, NAME, *solved, part, clock, facts)
    # Where most is left unexplained, say why that may be.
    if 2 * recovery.explained < m:
        return replace(
            recovery, explanation=f"{recovery.explanation}; {_nothing(encodings, overlaps)}"
        )
    return recovery


def _of_half(
    encodings: Encodings,
    seed: np.random.SeedSequence,
    clock: Stopwatch,
    memory_limit: int | None,
    progress: Progress | None,
) -> tuple[Overlaps, CliqueSubsets]:
    """The overlaps of half of the encodings, and what they say of all: nothing of the others, whose
    vectors growth finds among those of the half. A quarter of the pairs."""
    m = encodings.m
    with clock("overlaps"):
        rows = np.sort(child(seed, "half").permutation(m)[: m // 2])
        half = Encodings(encodings.values[rows], encodings.scheme, encodings.pixel_rms)
        overlaps = gram_extract(half, loss=LOST, memory_limit=memory_limit, progress=progress)
    with clock("factor"):
        found = find_cliques(overlaps)
        members = np.full((m, 2), -1, np.int64)
        members[rows] = found.members
    return overlaps, CliqueSubsets(members, found.columns)


def _degree(overlaps: Overlaps) -> float:
    """Others that an encoding shares a vector with, on average; as far as that is likelier than
    not."""
    sure = overlaps.matrix.nnz
    if overlaps.confidence is not None:
        sure = int(np.count_nonzero(overlaps.confidence >= TRUSTED))
    return sure / overlaps.m - 1


def _pairs(
    encodings: Encodings,
    task: Task | None,
    first: CliqueSubsets,
    seed: np.random.SeedSequence,
    least: float,
    limit: int,
    clock: Stopwatch,
    progress: Progress | None,
) -> tuple[Solved | None, int]:
    """k = 2: growth, then peeling of the vectors it reaches. `task`: the encodings beside their
    public part; without one they are taken as they are, which saves a copy."""
    m, d = encodings.m, encodings.d
    if task is None:
        values, offsets, a = encodings.values, None, encodings.scheme.private_weight
        scale = unit = rms(encodings.values) / np.sqrt(2) / a
    else:
        values, offsets, a = task.y, task.offsets, 1.0
        scale, unit = 1.0, task.unit
    with clock("growth"):
        pixels = rows_per_block(BYTES_PER_ROW * m, limit, most=min(d, PIXELS))
        grown = grow_pairs(
            np.abs(values[:, :pixels]),
            a,
            first.members,
            first.columns,
            child(seed, "growth"),
            offsets=None if offsets is None else offsets[:, :pixels],
            progress=progress,
        )
    # Too little holds on a few pixels: the dense route is left to try.
    if grown.right.mean() < least:
        return None, grown.rounds
    rows = np.flatnonzero(grown.right)
    with clock("pixels"):
        settled = solve_by_peeling(
            values,
            offsets,
            a,
            scale,
            rows,
            grown.members[rows],
            child(seed, "pixels"),
            limit=limit,
            progress=progress,
        )
    return None if settled is None else (settled, unit), grown.rounds


def _subsets(
    encodings: Encodings,
    first: CliqueSubsets,
    seed: np.random.SeedSequence,
    least: float,
    limit: int,
    clock: Stopwatch,
    progress: Progress | None,
) -> tuple[Solved | None, int]:
    """k ≥ 3: the short feedback, then every pixel by the affine iteration; in units of a private
    pixel's rms."""
    m, d = encodings.m, encodings.d
    a, k = encodings.scheme.private_weight, encodings.scheme.k_private
    unit = rms(encodings.values) / np.sqrt(k) / a
    y = encodings.magnitudes() / np.float32(a * unit)
    with clock("feedback"):
        pixels = rows_per_block(BYTES_PER_ROW * m, limit, most=min(d, PIXELS))
        some, draw = np.ascontiguousarray(y[:, :pixels]), child(seed, "feedback")
        found = short_feedback(some, first.members, first.columns, draw, progress=progress)
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


def _nothing(encodings: Encodings, overlaps: Overlaps) -> str:
    return (
        f"no consistent explanation of the {encodings.m} encodings: of "
        f"{_pairs_that_overlap(overlaps)} overlaps {overlaps.expected_errors:.2g} are expected to "
        "be wrong; use more pixels, or another k_private"
    )


def _pairs_that_overlap(overlaps: Overlaps) -> int:
    return int(overlaps.matrix.nnz - np.count_nonzero(overlaps.matrix.diagonal())) // 2
