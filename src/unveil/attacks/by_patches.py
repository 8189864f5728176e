"""The full attack for data whose pixels go together, as images have them: a start from patches,
carried on exactly.

    1  S ← similarity of all pairs            by patches of pixels that share a sign
                                              (`gram.patches`)
    2  W ← FactorOverlaps(S)                  first guess at every encoding's k vectors
                                              (`factor.all_vectors`)
    3  W, x ← Feedback on telling pixels      until some encodings are explained exactly
                                              (`solve.subsets.feedback`)
    4  W, x ← all others on the same pixels   by exact matching, and vectors that were missed
                                              (`solve.grow.carried`)
    5  x ← every pixel, twice                 from the explained encodings
                                              (`solve.pixels.settle`)
    6  status ← Certificate                   vector by vector (`certify.certificate`)

Under noise nothing is exact, and steps 4 to 6 are likelihoods: the most likely members of every
encoding, vectors that were missed (pairs only), then every pixel with its standard error
(`solve.grow.noisy_growth`).

Nothing is known of n: the eigenvalues of S that stand out are a lower bound, and larger numbers are
tried until most encodings are explained. Equal weights, no public part. Dense in m: up to some
thousand encodings.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.dense import more_columns
from unveil.attacks.finish import certified
from unveil.attacks.finish_noisy import approximate
from unveil.attacks.units import in_units
from unveil.encodings import Encodings
from unveil.factor.all_vectors import factor_overlaps
from unveil.gram.patches import go_together, patch_similarity
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.records import Progress, Recovery
from unveil.relations.sketch import sketch
from unveil.seeds import child
from unveil.solve.grow.carried import Carried, carry
from unveil.solve.grow.noisy_growth import hold_noisy, on_all_pixels
from unveil.solve.model import FEEDBACK
from unveil.solve.pixels.settle import settle
from unveil.solve.subsets.feedback import feedback

NAME = "full"
PIXELS = 300
"""Pixels on which subsets are found; the certificate sees all of them."""
ENOUGH = 0.99
"""The share of encodings that must be explained for no other number of vectors to be tried."""
TRIED = (1.1, 1.4, 1.8)
"""Numbers of vectors that are tried, relative to the eigenvalues that stand out: nearly all of them
do so with 15 encodings for each vector, half of them with five. Too many cost little, and exact
matching finds those that are missing."""
ROUNDS = 12
"""Of feedback: what has not begun to fit by then does so with another number of vectors, or
never."""
ARRAYS = 6
"""Arrays of m×m numbers that are held at a time."""


def applies(encodings: Encodings, limit: int) -> bool:
    """Whether the pixels of these encodings go together, and the arrays fit into `limit` bytes."""
    return ARRAYS * 8 * encodings.m**2 <= limit and go_together(encodings.magnitudes())


def by_patches(
    encodings: Encodings,
    seed: np.random.SeedSequence,
    clock: Stopwatch,
    *,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector the encodings determine, each with its status and the reason for it."""
    m, k = encodings.m, encodings.scheme.k_private
    task = in_units(encodings, None, None)
    # 1. Who is like whom, and how many vectors there are at least.
    with clock("similarity"), one_blas_thread():
        S = patch_similarity(task.y, child(seed, "patches"))
        least = outstanding(S)
    telling = sketch(task.y, None, 0.0, child(seed, "sketch"), PIXELS).pixels
    y = np.ascontiguousarray(task.y[:, telling])
    # 2–4. Subsets of most encodings, for one number of vectors after the other.
    best: Carried | None = None
    facts = {"outstanding_eigenvalues": least}
    for share in TRIED:
        n = round(share * least)
        if not k + 2 <= n < m:
            continue
        with clock("factor"), one_blas_thread():
            first = factor_overlaps(S / typical_overlap(S, k, n), k, n)
        if first.W.shape[1] <= k:
            continue
        with clock("feedback"), one_blas_thread():
            columns, draw = more_columns(n), child(seed, f"feedback {n}")
            assignment = feedback(y, k, first, columns, draw, rounds=ROUNDS, progress=progress)
        rows, carried = np.flatnonzero(assignment.exact), None
        # Under noise nothing is exact: where the feedback holds most rows, likelihoods go on.
        if assignment.noise > FEEDBACK.near * np.sqrt(k) and 2 * len(rows) >= m:
            members, draw = assignment.members[rows], child(seed, f"noise {n}")
            with clock("noise"):
                noisy = hold_noisy(y, rows, members, assignment.noise, draw, progress=progress)
                noisy = on_all_pixels(task.y, telling, noisy, draw, progress)
            if noisy is not None:
                facts |= {"estimated_n_private": n, "feedback_rounds": assignment.rounds}
                return approximate(encodings, NAME, noisy, task.unit, False, clock, facts)
        # Exact matching takes over from the rows that are explained; few will not do.
        if len(rows) > k + 2:
            with clock("growth"):
                draw = child(seed, f"carry {n}")
                carried = carry(y, rows, assignment.members[rows], S, draw)
        if carried is not None and (best is None or len(carried[0]) > len(best[0])):
            best = carried
            facts = {
                "outstanding_eigenvalues": least,
                "estimated_n_private": n,
                "feedback_rounds": assignment.rounds,
            }
        if best is not None and len(best[0]) >= ENOUGH * m:
            break
    if best is None:
        return Recovery.empty(
            encodings,
            NAME,
            f"no consistent explanation of the {m} encodings from patches",
            clock.seconds,
        )
    # 5. Every pixel.
    with clock("pixels"):
        settled = settle(
            task.y, None, best[0], best[1], None, child(seed, "pixels"), progress=progress
        )
    if settled is None:
        return Recovery.empty(
            encodings,
            NAME,
            f"no consistent explanation of the {m} encodings at all pixels",
            clock.seconds,
        )
    # 6. What is proved.
    return certified(encodings, NAME, settled, task.unit, None, clock, facts)


def outstanding(S: NDArray[np.float64]) -> int:
    """Eigenvalues above all that chance has: its spectrum is about symmetric, and the similarities'
    own is not below zero. The lowest one belongs to the mean that was taken out."""
    values = np.linalg.eigvalsh(S)
    return int((values > -values[1]).sum()) if len(values) > 1 else 0


def typical_overlap(S: NDArray[np.float64], k: int, n: int) -> float:
    """The median similarity of pairs that share something: those on top, as many as n vectors drawn
    at random make."""
    share = 1 - comb(n - k, k) / comb(n, k)
    return max(float(np.quantile(S[np.triu_indices(len(S), 1)], 1 - share / 2)), 1e-30)
