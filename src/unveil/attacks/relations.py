"""Exact relations: the encodings' own equations, for data of any distribution
(docs/exact_relations.md).

    0  c ← LearnPublic                        the public part of every encoding, where there is one
    1  Q ← relations of four encodings        z_a − z_b = z_c − z_d, some signs, every pixel
                                              (`relations.find`)
    2  W ← sparse basis of their null space   who mixes whom, exactly (`relations.subspace`)
    3  x ← every pixel                        and where other values fit as well
                                              (`solve.signs.relation_pixels`)
    4  W, x ← encodings left over             by exact matching (`solve.grow.exact_growth`)
    5  status ← Certificate                   vector by vector (`certify.certificate`)

For pairs 2 and 3 have another way where relations are few, and pixels more than vectors:
`attacks.few_relations`. Nothing is assumed of the vectors: they may be correlated, skewed,
discrete, images or tables. Nor are n or the scale. What is needed: weights that all encodings
share, and about n^(k/2) encodings, so that there are relations at all (`relations.expected`).
Rounded and noisy encodings are searched with the tolerance that they need.

Cost: m²/2 pairs for 1, an m×m eigenproblem for 2, a few dozen operations per encoding and pixel for
3.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from unveil.attacks.few_relations import solve_few
from unveil.attacks.finish import certified
from unveil.attacks.finish_noisy import approximate
from unveil.attacks.related import (
    FEWEST,
    LARGEST,
    Found,
    find_among,
    find_by_support,
    joined_by_relations,
    rounding,
    too_few,
)
from unveil.attacks.units import Task, in_units
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.paper.learn_public import learn_public
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.parallel import memory_limit as settle_limit
from unveil.records import Progress, Recovery
from unveil.relations.repeats import distinct
from unveil.relations.subspace import subsets_of
from unveil.scheme import FIXED_WEIGHTINGS
from unveil.seeds import Rng, child, root
from unveil.solve.determined import undetermined_by
from unveil.solve.grow.exact_growth import Growth
from unveil.solve.model import incidence
from unveil.solve.pixels.chance import chance_nats
from unveil.solve.pixels.noisy import NoisySolution
from unveil.solve.pixels.pixels import PixelSolution
from unveil.solve.pixels.settle import Settled, with_leftovers
from unveil.solve.signs.relation_pixels import RelationSolution, solve_by_relations

NAME = "relations"


def relations(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector that exact relations determine, each with its status, and its pixels in
    doubt."""
    scheme, clock = encodings.scheme, Stopwatch()
    if scheme.k_private < 2:
        raise InputError(
            f"k_private={scheme.k_private}: relations need two private vectors or more; "
            "use attack='full'"
        )
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    # 0. The public part: relations are among the private parts alone.
    P = as_public(public, encodings)
    P = P if scheme.k_public else None
    seed = root(rng)
    supports = None
    if P is not None:
        with clock("learn public"):
            supports = learn_public(encodings, P, memory_limit=memory_limit, progress=progress)
    task = in_units(encodings, P, supports)
    limit = settle_limit(memory_limit)
    # 1. Relations. Where exact ones are too few, values may have been rounded: again with the error
    # that a uniform rounding of their grid leaves, step/√12. Or columns say too little by
    # themselves: again with those that others support. Where columns say enough, that would be the
    # same search once more.
    with clock("relations"):
        once, copies = distinct(task.y, task.offsets)
        found = find_among(task, once, 0.0, limit, child(seed, "sketch"), progress)
        told_apart = found.relations.possible
        step = rounding(encodings.values) if len(found.relations) < FEWEST else 0.0
        if step:
            error = step / np.sqrt(12) / (scheme.private_weight * task.unit)
            found = find_among(task, once, error, limit, child(seed, "rounded"), progress)
        if len(found.relations) < FEWEST and not told_apart:
            lucky = find_by_support(task, once, limit, child(seed, "support"), progress)
            found = lucky or found
    facts = {
        "relations": len(found.relations),
        "different_encodings": len(once),
    }
    exact = bool(len(found.relations)) and not found.noise
    if len(found.relations) < FEWEST:
        return Recovery.empty(
            encodings, NAME, too_few(found, len(once)), clock.seconds, facts, exact=exact
        )
    # 2. Who mixes whom; where the null space is too large to compute, nothing is known here.
    with clock("subsets"), one_blas_thread():
        members = np.full((len(once), scheme.k_private), -1, np.int64)
        if len(once) <= LARGEST:
            members = subsets_of(
                found.sketch, found.relations.quads, scheme.k_private, child(seed, "subsets")
            )
    # 3–4. Values, and encodings left over: by signs where the null space told too little, else from
    # the subsets. Then encodings that were repeated again.
    told = _by_signs(task, found, once, members, child(seed, "signs"), clock, limit, progress)
    if told is None:
        if not (members >= 0).any():
            return Recovery.empty(
                encodings, NAME, too_few(found, len(once)), clock.seconds, facts, exact=exact
            )
        told = _by_subsets(task, found, once, members, child(seed, "pixels"), clock, progress)
    settled, doubtful = (
        (None, np.empty((0, 0), bool)) if told is None else _all_encodings(task, copies, *told)
    )
    if settled is None:
        return Recovery.empty(
            encodings,
            NAME,
            "the subsets that relations suggest do not hold",
            clock.seconds,
            facts,
            exact=exact,
        )
    # 5. The certificate. Of rounded values it may prove nothing: then they come with an error.
    part, solution = task.public_in_pixels(), settled.solution
    if found.noise:
        solution = replace(solution, solved=np.ones_like(solution.solved))
    judged = certified(
        encodings,
        NAME,
        replace(settled, solution=solution),
        task.unit,
        part,
        clock,
        facts,
        doubtful=doubtful,
    )
    if not found.noise or judged.verified.any():
        return judged
    with clock("chance"):
        # Up to rounding every pixel has signs of its own to pay for: all are measured.
        k, draw = scheme.k_private, child(seed, "chance")
        plenty = float("inf")
        nats = chance_nats(
            task.y, task.offsets, settled.solution.values, k, found.bound, draw, plenty
        )
    rounded = _rounded(settled, found, float(nats.sum()))
    return approximate(encodings, NAME, rounded, task.unit, P is not None, clock, facts, doubtful)


def _rounded(settled: Settled, found: Found, nats: float) -> NoisySolution:
    """What was solved from rounded encodings: least squares of their signed values, with its
    standard error."""
    n, members = len(settled.solution.values), settled.members
    W = incidence(members, n)
    error = found.noise * np.sqrt(np.diag(np.linalg.pinv(W.T @ W)))
    determined = ~undetermined_by(members, n)
    return NoisySolution(
        settled.solution.values, settled.rows, members, found.noise, error, determined, nats
    )


def _by_signs(
    task: Task,
    found: Found,
    once: NDArray[np.int64],
    members: NDArray[np.int64],
    rng: np.random.Generator,
    clock: Stopwatch,
    limit: int,
    progress: Progress | None,
) -> tuple[NDArray[np.int64], RelationSolution] | None:
    """(members of the different encodings, all values), where the null space of the relations told
    fewer than half of them."""
    if (
        2 * (members[:, 0] >= 0).sum() >= len(members)
        or task.offsets is not None
        or task.scheme.k_private != 2
    ):
        return None
    y = task.y if len(once) == len(task.y) else task.y[once]
    solved = solve_few(
        y,
        found.sketch,
        found.relations.quads,
        found.bound,
        rng,
        clock,
        limit=limit,
        progress=progress,
    )
    return None if solved is None else (solved.members, solved.solution)


def _by_subsets(
    task: Task,
    found: Found,
    once: NDArray[np.int64],
    members: NDArray[np.int64],
    rng: np.random.Generator,
    clock: Stopwatch,
    progress: Progress | None,
) -> tuple[NDArray[np.int64], RelationSolution] | None:
    """The same from the subsets that relations tell."""
    y = task.y if len(once) == len(task.y) else task.y[once]
    c = None if task.offsets is None else task.offsets[once]
    # 1. The encodings that hang together by relations, and determine their vectors.
    core, quads = joined_by_relations(members, found.relations.quads)
    if not len(core):
        return None
    used, names = np.unique(members[core], return_inverse=True)
    named = names.reshape(len(core), -1).astype(np.int64)
    with clock("pixels"):
        solution = solve_by_relations(
            y[core],
            None if c is None else c[core],
            named,
            len(used),
            quads,
            found.bound,
            rng,
            progress=progress,
        )
    if not np.isfinite(solution.misfit).any():
        return None
    # 2. The others, by exact matching.
    with clock("growth"):
        start = np.full(members.shape, -1, np.int64)
        start[core] = named
        grown = Growth(y, c, start, solution.values, solution.doubtful, found.bound)
        grown.run(found.sketch.pixels)
    return grown.members, RelationSolution(grown.values, grown.doubtful, solution.misfit)


def _all_encodings(
    task: Task, copies: NDArray[np.int64], members: NDArray[np.int64], solution: RelationSolution
) -> tuple[Settled, NDArray[np.bool_]]:
    """Repeated encodings again, and what is left; with the pixels in doubt."""
    rows = np.flatnonzero((members[copies] >= 0).all(axis=1)).astype(np.int64)
    named = np.sort(members[copies[rows]], axis=1)
    used, names = np.unique(named, return_inverse=True)
    named = names.reshape(named.shape).astype(np.int64)
    values, doubtful = solution.values[used], solution.doubtful[used]
    rms = float(np.sqrt(sum(float(y @ y) for y in task.y) / task.y.size))
    d = task.y.shape[1]
    group = _groups(named, len(used))
    misfit = np.where(np.isfinite(solution.misfit), solution.misfit, 0.0) / rms
    final = PixelSolution(values, misfit, np.ones(d, bool), np.zeros(len(used), np.int64), group)
    left = np.setdiff1d(np.arange(len(task.y)), rows)
    offsets = None if task.offsets is None else task.offsets[left]
    return with_leftovers(rows, named, final, left, task.y[left], offsets, rms), doubtful


def _groups(members: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Connected components of vectors that meet."""
    k = members.shape[1]
    ends = np.repeat(members[:, :1], k - 1, axis=1).ravel(), members[:, 1:].ravel()
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


ATTACK = relations
