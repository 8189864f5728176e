"""The full attack: every private vector, from about n·log n encodings, with far fewer pixels than
rounding overlaps needs.

    0  c ← LearnPublic                           the public part of every encoding, where there is
                                                 one
    1  S ← similarity of all pairs of encodings, not rounded
    2  W ← FactorOverlaps(S)                     first guess at every encoding's k vectors
                                                 (`factor.all_vectors`)
    3  W, c, x ← Feedback on a few hundred pixels   until encodings are explained exactly
                                                 (`solve.subsets.feedback`)
    4  x ← every pixel, twice                    from the explained encodings
                                                 (`solve.pixels.settle`); under noise
                                                 `solve.pixels.noisy`
    5  status ← Certificate                      vector by vector (`certify.certificate`)

Weights that are new and unknown in every encoding take another way (`attacks.unequal`). The number
of private vectors is estimated from the mean similarity and corrected by the feedback, which frees
columns nobody needs and adds those that are missing. With a public part signs are determined,
without one they are up to a common one per pixel. Dense in m: up to some thousand encodings. Where
there is no public part and single overlaps can be read, the sparse route (`attacks.large`) is much
faster, and has no such limit: it is tried first. Where pixels go together, as in images, S says
little, and patches of pixels take its place (`attacks.by_patches`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.attacks.alone import alone
from unveil.attacks.by_patches import applies as in_patches
from unveil.attacks.by_patches import by_patches
from unveil.attacks.finish import approximate, certified
from unveil.attacks.large import large
from unveil.attacks.unequal import full_unequal
from unveil.attacks.units import Task, in_units
from unveil.certify.relabelling import relabelled
from unveil.factor.all_vectors import factor_overlaps
from unveil.gram.similarity import assisted_similarity, estimate_vectors, similarity
from unveil.parallel import Stopwatch, must_fit, one_blas_thread
from unveil.parallel import memory_limit as bytes_allowed
from unveil.records import (
    EXACT_WEIGHTINGS,
    Encodings,
    InputError,
    Overlaps,
    Progress,
    Recovery,
    Scheme,
    Supports,
    as_public,
)
from unveil.seeds import Rng, child, root
from unveil.solve.model import SETTLED, PublicPart, Values, renamed, reproduced, rms
from unveil.solve.pixels.noisy import NoisySolution, solve_noisy
from unveil.solve.pixels.settle import Settled, settle
from unveil.solve.subsets.feedback import Assignment, feedback
from unveil.supports.learn_public import learn_public

NAME = "full"
LARGEST = 6000
"""Encodings that m×m matrices are made for: beyond, they take gigabytes and their factors hours."""
SPARSE_FROM = 500
"""Encodings from which the sparse route is tried first; it must explain `ENOUGH` of them."""
ENOUGH = 0.99
"""The share of encodings that a faster route must explain to have the last word: the rest may use
vectors that no other encoding does."""
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
SEARCHED = 1000
"""Pixels on which a public part is looked for again; what is found must hold at all of them."""


def applies(encodings: Encodings) -> bool:
    """Whether `full` can take these encodings on."""
    scheme = encodings.scheme
    sparse_route = scheme.k_private >= 2 and not scheme.k_public and scheme.fixed_weights
    exact = scheme.k_private >= 1 and scheme.weighting in EXACT_WEIGHTINGS
    return exact and (encodings.m <= LARGEST or sparse_route)


def full(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector the encodings determine, each with its status and the reason for it.

    `overlaps`: to start from, where they are known from elsewhere; some may be wrong. Refused where
    nothing reads them: unknown weights, and k_private = 1 without a public part.
    """
    # 1. Can these be attacked at all?
    scheme, m = encodings.scheme, encodings.m
    k = scheme.k_private
    if k < 1:
        raise InputError(
            f"k_private={k}: there is nothing private to recover; use k_private of 1 or more"
        )
    scheme.require_weighting(*EXACT_WEIGHTINGS)
    if not applies(encodings):
        raise InputError(
            f"m={m}: with a public part, unknown weights or k_private=1 the full attack handles "
            f"up to {LARGEST} encodings; pass a part of them, or use attack='paper'"
        )
    P = as_public(public, encodings)
    P = P if scheme.k_public else None
    given = None if overlaps is None else overlaps.of(encodings)
    if given is not None and (not scheme.fixed_weights or (k == 1 and P is None)):
        raise InputError(
            f"overlaps= with k_private={k}, weighting={scheme.weighting!r} and no public part: "
            "nothing reads them there; leave them out"
        )
    limit = bytes_allowed(memory_limit)
    # 2. Schemes with a route of their own.
    if k == 1:
        return alone(encodings, P, given, NAME, limit, progress)
    if not scheme.fixed_weights:
        return full_unequal(encodings, NAME, rng=rng, limit=limit, progress=progress)
    # 3. Pixels that go together: patches. One clock for all routes: what a failed one took counts.
    seed, clock = root(rng), Stopwatch()
    if P is None and given is None and m <= LARGEST and in_patches(encodings, limit):
        recovery = by_patches(encodings, seed, clock, progress=progress)
        if recovery.verified.any() or recovery.explained >= ENOUGH * m:
            return recovery
    # 4. Overlaps that can be read one by one.
    if P is None and m >= SPARSE_FROM:
        least = ENOUGH if m <= LARGEST else 0.0
        recovery = large(
            encodings,
            seed,
            clock,
            overlaps=given,
            least=least,
            memory_limit=memory_limit,
            progress=progress,
        )
        if recovery.explained >= least * m:
            return recovery
    # 5. All similarities at once.
    return _dense(encodings, P, given, seed, clock, memory_limit, progress)


def dense_bytes(m: int, d: int, public: bool) -> int:
    """Memory that the dense route takes: the encodings with their copies, and its m×m matrices."""
    # Starts of the factorisation: `factor.all_vectors`.
    seeds = 7 * m * min(max(4000 // m, 2), 12) // 10
    data = 4 * m * d * (5 if public else 3)
    return data + BYTES_PER_PAIR * m * m + BYTES_PER_SEED * m * seeds


def _dense(
    encodings: Encodings,
    P: Values | None,
    overlaps: Overlaps | None,
    seed: np.random.SeedSequence,
    clock: Stopwatch,
    memory_limit: int | None,
    progress: Progress | None,
) -> Recovery:
    """Steps 0 to 5 of this file's docstring, with m×m similarities."""
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
    with clock("factor"), one_blas_thread():
        first = factor_overlaps(S, k, n, among=_reliable(supports))
    if first.W.shape[1] <= k:
        return Recovery.empty(
            encodings,
            NAME,
            "no clusters among the overlaps: check k_private, or use more pixels",
            clock.seconds,
        )
    # 3. Subsets and pixels by turns, on some of the pixels.
    task = in_units(encodings, P, supports)
    some, c, columns = np.ascontiguousarray(task.y[:, :PIXELS]), None, more_columns(n)
    if task.offsets is not None:
        c = np.ascontiguousarray(task.offsets[:, :PIXELS])
    with clock("feedback"), one_blas_thread():
        draw = child(seed, "feedback")
        assignment = feedback(some, k, first, columns, draw, offsets=c, progress=progress)
    rows = np.flatnonzero(assignment.exact)
    if len(rows) <= k + 2:
        return Recovery.empty(encodings, NAME, _nothing(m), clock.seconds)
    # 4–5. Every pixel from what is explained exactly, and the certificate.
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
    # 4'. Nothing is exact: every pixel under noise.
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


def _nothing(m: int) -> str:
    return (
        f"no consistent explanation of the {m} encodings: more pixels or more encodings are "
        "needed, or another k_private"
    )


ATTACK = full
