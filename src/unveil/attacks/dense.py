"""The dense route of the full attack: similarities of all pairs of encodings, pooled, not rounded.

    0  c ← LearnPublic           the public part of every encoding, where there is one
    1  S ← similarity            of all pairs of encodings, not rounded (`gram.similarity`)
    2  W ← FactorOverlaps(S)     first guess at every encoding's k vectors (`factor.all_vectors`)
    3  W, c, x ← Feedback        on a few hundred pixels, until encodings are explained exactly
                                 (`solve.subsets.feedback`)
    4  W, c, x ← annealed        where that is stuck since encodings are few (`factor.annealed`);
                                 where noise is loud, and nothing is exact, the likeliest
                                 (`attacks.by_likelihood`)
    5  x ← every pixel, twice    from the explained encodings (`solve.pixels.settle`); under noise
                                 `solve.pixels.noisy`
    6  status ← Certificate      vector by vector (`certify.certificate`)

The number of private vectors is estimated from the mean similarity and corrected by the feedback,
which frees columns nobody needs and adds those that are missing. Dense in m: up to some thousand
encodings.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.by_likelihood import LOUD, by_likelihood, shared_level
from unveil.attacks.finish import certified
from unveil.attacks.finish_noisy import approximate
from unveil.attacks.units import Task, in_units
from unveil.encodings import Encodings
from unveil.factor.all_vectors import factor_overlaps
from unveil.factor.annealed import anneal, annealings
from unveil.gram.similarity import (
    above_chance,
    assisted_similarity,
    estimate_vectors,
    misfit,
    similarity,
)
from unveil.paper.learn_public import learn_public
from unveil.parallel import Stopwatch, must_fit, one_blas_thread
from unveil.parallel import memory_limit as bytes_allowed
from unveil.records import Overlaps, Progress, Recovery, Supports
from unveil.scheme import Scheme
from unveil.seeds import child
from unveil.solve.model import (
    FEEDBACK,
    SETTLED,
    PublicPart,
    Values,
    incidence,
    renamed,
    reproduced,
    rms,
)
from unveil.solve.pixels.noisy import NoisySolution, solve_noisy
from unveil.solve.pixels.settle import Settled, settle
from unveil.solve.relabelling import relabelled
from unveil.solve.subsets.feedback import Assignment, feedback

NAME = "full"
PIXELS = 300
"""Pixels on which subsets are found: a wrong one fits 2% of them (`solve.model`), so that more
would only cost time."""
RELIABLE, LEAST_RELIABLE = 0.5, 0.6
"""A public part is relied on from this confidence on, and in any case that of the better so many:
too few rows would not give a first guess."""
MORE_COLUMNS = 10, 3
"""Columns beyond the estimated number of vectors: one in so many, three at least. The estimate is
some percent off, and the feedback frees what nobody needs."""
BYTES_PER_PAIR, BYTES_PER_SEED = 32, 16
"""Memory of the dense route for each pair of encodings, four matrices in double precision; and for
each encoding and each start of the factorisation."""
CLEAN = 1.05
"""Misfit of the first guess up to which its rows are right, and noise is what lowers the level: 1.0
with all rows right, 1.13 and more where half of them are wrong (k = 6; 2.4 for k = 3)."""
MOST = 0.9
"""The share of encodings that the first guess must lead to: where that is stuck, half and more stay
unexplained."""
QUICK = 200
"""Encodings from which it is asked whether similarities are more than chance: fewer are soon
tried, and eigenvalues of so few scatter."""
ROUNDS, PROBED = 40, 12
"""Of feedback; fewer where noise seems loud: without noise four to nine are enough, also of few
pixels, and under loud noise none are."""
SEARCHED = 1000
"""Pixels on which a public part is looked for again; what is found must hold at all of them."""


def dense_bytes(m: int, d: int, public: bool) -> int:
    """Memory that the dense route takes: the encodings with their copies, and its m×m matrices."""
    # Starts of the factorisation: `factor.all_vectors`.
    seeds = 7 * m * min(max(4000 // m, 2), 12) // 10
    data = 4 * m * d * (5 if public else 3)
    return data + BYTES_PER_PAIR * m * m + BYTES_PER_SEED * m * seeds


def dense(
    encodings: Encodings,
    P: Values | None,
    overlaps: Overlaps | None,
    seed: np.random.SeedSequence,
    clock: Stopwatch,
    memory_limit: int | None,
    progress: Progress | None,
) -> Recovery:
    """Every private vector the encodings determine, each with its status and the reason for it."""
    m, k = encodings.m, encodings.scheme.k_private
    must_fit(
        dense_bytes(m, encodings.d, P is not None),
        f"attack='full' on {m:,} encodings of {encodings.d:,} pixels",
        bytes_allowed(memory_limit),
        "attack fewer of them",
    )
    # 0. The public part.
    supports = None
    if P is not None:
        with clock("learn public"):
            supports = learn_public(encodings, P, memory_limit=memory_limit, progress=progress)
    # 1–2. Similarities, and a first guess at the subsets.
    with clock("similarity"):
        S, n = _similarities(encodings, P, supports, overlaps)
    if not k + 2 <= n or m < n:
        return Recovery.empty(
            encodings,
            NAME,
            f"{m} encodings of about {n} private vectors: too few, or nothing shared",
            clock.seconds,
        )
    if P is None and overlaps is None and m >= QUICK and above_chance(S, encodings.d) < 2:
        return Recovery.empty(encodings, NAME, _like_chance(m), clock.seconds)
    with clock("factor"), one_blas_thread():
        first = factor_overlaps(S, k, n, among=_reliable(supports))
    if first.W.shape[1] <= k:
        return Recovery.empty(
            encodings,
            NAME,
            "no clusters among the overlaps: check k_private, or use more pixels",
            clock.seconds,
        )
    task = in_units(encodings, P, supports)
    columns = more_columns(n)
    # 3. Subsets and pixels by turns, on some of the pixels.
    some, c = np.ascontiguousarray(task.y[:, :PIXELS]), None
    if task.offsets is not None:
        c = np.ascontiguousarray(task.offsets[:, :PIXELS])

    def by_turns(rounds: int) -> Assignment:
        with clock("feedback"), one_blas_thread():
            draw = child(seed, "feedback")
            return feedback(
                some, k, first, columns, draw, offsets=c, rounds=rounds, progress=progress
            )

    level = shared_level(S, first.W)
    loud = P is None and overlaps is None and level < LOUD
    assignment = by_turns(PROBED if loud else ROUNDS)
    # 4. Where that leads nowhere: rows that are wrong, or noise? Few encodings are annealed; the
    # level tells. Second, since it takes ten times as long.
    found = assignment.exact.sum() >= MOST * m
    if loud and found:
        loud = shared_level(S, incidence(assignment.members, len(assignment.x))) < LOUD
    elif loud and misfit(S, first.W, level, encodings.d) > CLEAN:
        # It ends somewhere else each time, and as near: from some ends the others are found.
        wide = columns
        for turn in range(annealings(m, k)):
            with clock("factor"):
                cooled = anneal(S, k, wide, encodings.d, child(seed, f"annealing {turn}"))
            if shared_level(S, cooled.W) <= level:
                break
            first, columns = cooled, cooled.W.shape[1] + MORE_COLUMNS[1]
            loud = shared_level(S, first.W) < LOUD
            other = by_turns(PROBED if loud else ROUNDS)
            if turn == 0 or other.exact.sum() > assignment.exact.sum():
                assignment = other
            if loud or assignment.exact.sum() >= MOST * m:
                break
    rows = np.flatnonzero(assignment.exact)
    # 4'. Where noise is such that no equation survives it: the likeliest subsets. Second, since it
    # takes several times as long, and few pixels can look like noise.
    survives = 2 * len(rows) >= m and assignment.noise <= FEEDBACK.near * np.sqrt(k)
    if loud and not survives:
        recovery = by_likelihood(encodings, NAME, task, S, first, seed, clock, progress)
        if recovery is not None:
            return recovery
        if assignment.rounds >= PROBED:
            assignment = by_turns(ROUNDS)
            rows = np.flatnonzero(assignment.exact)
    if len(rows) <= k + 2:
        return Recovery.empty(encodings, NAME, _nothing(m), clock.seconds)
    # 5–6. Every pixel from what is explained exactly, and the certificate.
    facts = {"estimated_n_private": n, "feedback_rounds": assignment.rounds}
    draw = child(seed, "pixels")
    with clock("pixels"):
        settled = settle(
            task.y,
            task.offsets,
            rows,
            assignment.members[rows],
            assignment.x,
            draw,
            progress=progress,
        )
    if settled is not None and settled.solution.solved.any():
        with clock("public again"):
            settled, part = _research(
                task, settled, encodings.pixel_rms, memory_limit, draw, progress
            )
        if settled is not None:
            part = None if part is None else replace(part, weight=part.weight * task.unit)
            return certified(encodings, NAME, settled, task.unit, part, clock, facts)
    # 5'. Nothing is exact: every pixel under noise.
    with clock("pixels"):
        noisy = _solve_noisy(task, assignment, child(seed, "noisy"), progress)
    if noisy is not None:
        return approximate(encodings, NAME, noisy, task.unit, P is not None, clock, facts)
    return Recovery.empty(encodings, NAME, _nothing(m), clock.seconds)


def more_columns(n: int) -> int:
    """Columns for the feedback, where about n vectors are expected."""
    one_in, least = MORE_COLUMNS
    return n + max(least, n // one_in)


def _research(
    task: Task,
    settled: Settled,
    pixel_rms: float | None,
    memory_limit: int | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[Settled | None, PublicPart | None]:
    """The public part again, where it may be wrong: of encodings still unexplained, and of a vector
    that depends on it (`certify.relabelling`).

    With all other private vectors known nothing in them is noise: both parts are found together, as
    phase retrieval (`supports.weights.exact`), and everything is solved again.
    """
    part, x, scheme = task.public, settled.solution.values, task.scheme
    k = scheme.k_private
    if part is None or task.offsets is None or not settled.solution.solved.all():
        return settled, part
    if 4 * part.vectors.nbytes > bytes_allowed(memory_limit):
        return settled, part
    # 1. Which encodings.
    size = None if pixel_rms is None else pixel_rms / task.unit
    suspect = relabelled(settled.members, x, replace(part, names=part.names[settled.rows]), size)
    again = suspect[settled.members].any(axis=1)
    left = np.setdiff1d(np.arange(len(task.y)), np.append(settled.rows[~again], settled.repeats[0]))
    if not len(left) or (~suspect).sum() < k:
        return settled, part
    # 2. Public and known private vectors together, as if all were public.
    public, known = part.vectors * np.float32(part.weight), np.flatnonzero(~suspect)
    both = np.vstack([public, x[known].astype(np.float32)])
    mixed = Encodings(task.y[left, :SEARCHED], Scheme(0, scheme.k_public + k), None)
    found = learn_public(
        mixed, both[:, :SEARCHED], memory_limit=memory_limit, progress=progress
    ).indices
    # 3. Right numbers of both kinds (it bounds the number of members, and may find another), and
    # every pixel reproduced.
    whole = (found >= 0).sum(axis=1) == scheme.k_public + k
    left, found = left[whole], np.sort(found[whole], axis=1)[:, -(scheme.k_public + k) :]
    split = (found[:, : scheme.k_public] < len(public)).all(axis=1) & (
        found[:, scheme.k_public :] >= len(public)
    ).all(axis=1)
    left, found = left[split], found[split]
    miss = np.abs(np.abs(both[found].sum(axis=1)) - task.y[left])
    fits = reproduced(miss, SETTLED.near * rms(task.y[left]), SETTLED.share)
    left, found = left[fits], found[fits]
    if not len(left):
        return settled, part
    # 4. All again, with these public parts.
    c, names = task.offsets.copy(), part.names.copy()
    names[left] = found[:, : scheme.k_public]
    c[left] = public[names[left]].sum(axis=1)
    keep = ~np.isin(settled.rows, left)
    rows = np.append(settled.rows[keep], left)
    members = np.vstack([settled.members[keep], known[found[:, scheme.k_public :] - len(public)]])
    again_all = settle(task.y, c, rows, members, x.astype(np.float32), rng, progress=progress)
    return again_all, replace(part, names=names)


def _similarities(
    encodings: Encodings, P: Values | None, supports: Supports | None, overlaps: Overlaps | None
) -> tuple[NDArray[np.float64], int]:
    """S, 1 for each vector that two encodings share, and the number of vectors it suggests."""
    k = encodings.scheme.k_private
    if overlaps is not None:
        S = overlaps.toarray().astype(np.float64)
        return S, estimate_vectors(S, k, linear=True)
    if P is not None and supports is not None:
        S = assisted_similarity(encodings, P, supports)
        return S, estimate_vectors(S, k, linear=True)
    S = similarity(encodings.magnitudes(), k)
    return S, estimate_vectors(S, k)


def _reliable(supports: Supports | None) -> NDArray[np.bool_] | None:
    """Rows whose public part is probably right."""
    if supports is None:
        return None
    best = float(np.quantile(supports.confidence, 1 - LEAST_RELIABLE))
    return np.asarray(supports.confidence >= min(RELIABLE, best))


def _solve_noisy(
    task: Task, assignment: Assignment, rng: np.random.Generator, progress: Progress | None
) -> NoisySolution | None:
    """Under noise; None where most encodings stay unexplained, so that what was found may be
    anything."""
    rows = np.flatnonzero(assignment.exact)
    if 2 * len(rows) < len(task.y):
        return None
    used, members = renamed(assignment.members[rows])
    noisy = solve_noisy(
        task.y, task.offsets, rows, members, len(used), assignment.noise, rng, progress=progress
    )
    return noisy if noisy is not None and 2 * len(noisy.rows) >= len(task.y) else None


def _like_chance(m: int) -> str:
    return (
        f"the similarities of the {m} encodings are those of chance: they share nothing, or "
        "noise hides it; more pixels or more encodings are needed"
    )


def _nothing(m: int) -> str:
    return (
        f"no consistent explanation of the {m} encodings: more pixels or more encodings are "
        "needed, or another k_private"
    )
