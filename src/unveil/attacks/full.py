"""The full attack: every private vector, from about n·log n encodings, with far fewer pixels than
rounding overlaps needs.

    0  c ← LearnPublic                           the public part of every encoding, where there is one
    1  S ← similarity of all pairs of encodings, not rounded
    2  W ← FactorOverlaps(S)                     first guess at every encoding's k vectors (`factor.all_vectors`)
    3  W, c, x ← Feedback on a few hundred pixels   until encodings are explained exactly (`solve.subsets.feedback`)
    4  x ← every pixel, twice                    from the explained encodings (`solve.pixels.settle`); under noise `solve.pixels.noisy`
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
from unveil.certify.relabelling import PublicPart, relabelled
from unveil.factor.all_vectors import factor_overlaps
from unveil.gram.similarity import assisted_similarity, estimate_vectors, similarity
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.parallel import memory_limit as settle_limit
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
from unveil.solve.pixels.noisy import NoisySolution, solve_noisy
from unveil.solve.pixels.settle import Settled, reproduced, settle
from unveil.solve.subsets.descent import Values
from unveil.solve.subsets.feedback import Assignment, feedback
from unveil.supports.learn_public import learn_public

NAME = "full"
LARGEST = 6000
SPARSE_FROM = 500
"""Encodings from which the sparse route is tried first; it must explain `ENOUGH` of them."""
ENOUGH = 0.99
PIXELS = 300
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

    `overlaps`: to start from, where they are known from elsewhere; some may be wrong.
    """
    scheme, m = encodings.scheme, encodings.m
    k = scheme.k_private
    if k < 1:
        raise InputError(
            f"k_private={k}: there is nothing private to recover; use k_private of 1 or more"
        )
    scheme.require_weighting(*EXACT_WEIGHTINGS)
    if not applies(encodings):
        raise InputError(
            f"m={m}: with a public part, unknown weights or k_private=1 the full attack handles up to {LARGEST} encodings; "
            "pass a part of them, or use attack='paper'"
        )
    P = as_public(public, encodings)
    P = P if scheme.k_public else None
    if k == 1:
        return alone(encodings, P, overlaps, NAME, memory_limit, progress)
    if not scheme.fixed_weights:
        return full_unequal(encodings, NAME, rng=rng, progress=progress)
    seed = root(rng)
    if (
        P is None
        and overlaps is None
        and m <= LARGEST
        and in_patches(encodings, settle_limit(memory_limit))
    ):
        recovery = by_patches(encodings, seed, progress=progress)
        if recovery.verified.any() or recovery.evidence.get("encodings_explained", 0) >= ENOUGH * m:
            return recovery
    if P is None and m >= SPARSE_FROM:
        given, least = (
            None if overlaps is None else overlaps.of(encodings),
            ENOUGH if m <= LARGEST else 0.0,
        )
        recovery = large(
            encodings,
            seed,
            overlaps=given,
            least=least,
            memory_limit=memory_limit,
            progress=progress,
        )
        if recovery.evidence.get("encodings_explained", 0) >= least * m:
            return recovery
    clock = Stopwatch()
    supports = None
    if P is not None:
        with clock("learn public"):
            supports = learn_public(encodings, P, memory_limit=memory_limit, progress=progress)
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
    task = in_units(encodings, P, supports)
    with clock("feedback"), one_blas_thread():
        assignment = feedback(
            np.ascontiguousarray(task.y[:, :PIXELS]),
            k,
            first,
            n + max(3, n // 10),
            child(seed, "feedback"),
            offsets=None
            if task.offsets is None
            else np.ascontiguousarray(task.offsets[:, :PIXELS]),
            progress=progress,
        )
    rows = np.flatnonzero(assignment.exact)
    if len(rows) <= k + 2:
        return Recovery.empty(encodings, NAME, _nothing(m), clock.seconds)
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
    with clock("pixels"):
        noisy = _solve_noisy(task, assignment, child(seed, "noisy"), progress)
    if noisy is not None:
        return approximate(encodings, NAME, noisy, task.unit, P is not None, clock, facts)
    return Recovery.empty(encodings, NAME, _nothing(m), clock.seconds)


def _research(
    task: Task,
    settled: Settled,
    pixel_rms: float | None,
    memory_limit: int | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[Settled | None, PublicPart | None]:
    """Encodings still unexplained may have a wrong public support, and so may those of a vector
    that needs them to be as they
    are (`certify.relabelling`): with all other private vectors known nothing is noise in them, so
    that both parts are found together as phase retrieval (`supports.weights.exact`), and everything
    is solved again."""
    part, x, scheme = task.public, settled.solution.values, task.scheme
    k = scheme.k_private
    if part is None or task.offsets is None or not settled.solution.solved.all():
        return settled, part
    if 4 * part.vectors.nbytes > settle_limit(memory_limit):
        return settled, part
    rms = None if pixel_rms is None else pixel_rms / task.unit
    suspect = relabelled(settled.members, x, replace(part, names=part.names[settled.rows]), rms)
    again = suspect[settled.members].any(axis=1)
    left = np.setdiff1d(np.arange(len(task.y)), np.append(settled.rows[~again], settled.repeats[0]))
    if not len(left) or (~suspect).sum() < k:
        return settled, part
    public, known = part.vectors * np.float32(part.weight), np.flatnonzero(~suspect)
    both = np.vstack([public, x[known].astype(np.float32)])
    mixed = Encodings(task.y[left, :SEARCHED], Scheme(0, scheme.k_public + k), None)
    found = learn_public(
        mixed, both[:, :SEARCHED], memory_limit=memory_limit, progress=progress
    ).indices
    whole = (found >= 0).sum(
        axis=1
    ) == scheme.k_public + k  # it bounds the number of members, and may find another
    left, found = left[whole], np.sort(found[whole], axis=1)[:, -(scheme.k_public + k) :]
    split = (found[:, : scheme.k_public] < len(public)).all(axis=1) & (
        found[:, scheme.k_public :] >= len(public)
    ).all(axis=1)
    left, found = left[split], found[split]
    fits = reproduced(task.y[left], both[found].sum(axis=1))
    left, found = left[fits], found[fits]
    if not len(left):
        return settled, part
    c, names = task.offsets.copy(), part.names.copy()
    names[left] = found[:, : scheme.k_public]
    c[left] = public[names[left]].sum(axis=1)
    keep = ~np.isin(settled.rows, left)
    rows = np.append(settled.rows[keep], left)
    members = np.vstack([settled.members[keep], known[found[:, scheme.k_public :] - len(public)]])
    return settle(task.y, c, rows, members, x.astype(np.float32), rng, progress=progress), replace(
        part, names=names
    )


def _similarities(
    encodings: Encodings, P: Values | None, supports: Supports | None, overlaps: Overlaps | None
) -> tuple[NDArray[np.float64], int]:
    k = encodings.scheme.k_private
    if overlaps is not None:
        S = overlaps.of(encodings).toarray().astype(np.float64)
        return S, estimate_vectors(S, k, linear=True)
    if P is not None and supports is not None:
        S = assisted_similarity(encodings, P, supports)
        return S, estimate_vectors(S, k, linear=True)
    S = similarity(encodings.magnitudes(), k)
    return S, estimate_vectors(S, k)


def _reliable(supports: Supports | None) -> NDArray[np.bool_] | None:
    """Rows whose public part is probably right; at least the better 60 percent."""
    if supports is None:
        return None
    return np.asarray(supports.confidence >= min(0.5, float(np.quantile(supports.confidence, 0.4))))


def _solve_noisy(
    task: Task, assignment: Assignment, rng: np.random.Generator, progress: Progress | None
) -> NoisySolution | None:
    """Under noise; None where most encodings stay unexplained, so that what was found may be
    anything."""
    rows = np.flatnonzero(assignment.exact)
    if 2 * len(rows) < len(task.y):
        return None
    used, names = np.unique(assignment.members[rows], return_inverse=True)
    members = names.reshape(len(rows), -1).astype(np.int64)
    noisy = solve_noisy(
        task.y, task.offsets, rows, members, len(used), assignment.noise, rng, progress=progress
    )
    return noisy if noisy is not None and 2 * len(noisy.rows) >= len(task.y) else None


def _nothing(m: int) -> str:
    return f"no consistent explanation of the {m} encodings: more pixels or more encodings are needed, or another k_private"


ATTACK = full
