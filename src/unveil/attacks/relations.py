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

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from unveil.attacks.few_relations import ENOUGH_FOR_SIGNS, solve_few
from unveil.attacks.finish import approximate, certified
from unveil.attacks.units import Task, in_units
from unveil.certify.certificate import undetermined_by
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.parallel import memory_limit as settle_limit
from unveil.records import Progress, Recovery
from unveil.relations.find import ENOUGH, Relations, find_relations
from unveil.relations.repeats import distinct
from unveil.relations.sketch import ROUNDING, WIDTH, Sketch, sketch
from unveil.relations.subspace import subsets_of
from unveil.scheme import FIXED_WEIGHTINGS
from unveil.seeds import Rng, child, root
from unveil.solve.grow.exact_growth import Growth
from unveil.solve.pixels.chance import chance_nats
from unveil.solve.pixels.noisy import NoisySolution
from unveil.solve.pixels.pixels import PixelSolution
from unveil.solve.pixels.settle import Settled, with_leftovers
from unveil.solve.signs.relation_pixels import RelationSolution, solve_by_relations
from unveil.supports.learn_public import learn_public

NAME = "relations"
LARGEST = 4000
"""Encodings up to which the null space is computed: a dense eigenproblem of about ten seconds."""
FEWEST = 8
"""Relations below which there is nothing to go by."""
FINEST = 4e-6
"""The finest grid that is told from continuous values, relative to the largest one: float32 has
6e-8 of it."""


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
    # that a uniform rounding of their grid leaves, step/√12.
    with clock("relations"):
        once, copies = distinct(task.y, task.offsets)
        found = _find(task, once, 0.0, limit, child(seed, "sketch"), progress)
        step = rounding(encodings.values) if len(found.relations) < FEWEST else 0.0
        if step:
            error = step / np.sqrt(12) / (scheme.private_weight * task.unit)
            found = _find(task, once, error, limit, child(seed, "rounded"), progress)
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
    # 5. What chance would fit as well. Rounded values are never verified: they come with an error.
    with clock("certificate"):
        c = task.offsets
        nats = chance_nats(
            task.y, c, settled.solution.values, scheme.k_private, found.bound, child(seed, "chance")
        )
    if found.noise:
        rounded = _rounded(settled, found, float(nats.sum()))
        return approximate(
            encodings, NAME, rounded, task.unit, P is not None, clock, facts, doubtful
        )
    part = task.public_in_pixels()
    return certified(
        encodings, NAME, settled, task.unit, part, clock, facts, doubtful=doubtful, nats=nats
    )


def _rounded(settled: Settled, found: Found, nats: float) -> NoisySolution:
    """What was solved from rounded encodings: least squares of their signed values, with its
    standard error."""
    n, members = len(settled.solution.values), settled.members
    W = np.zeros((len(members), n))
    W[np.arange(len(members))[:, None], members] = 1
    error = found.noise * np.sqrt(np.diag(np.linalg.pinv(W.T @ W)))
    determined = ~undetermined_by(members, n)
    return NoisySolution(
        settled.solution.values, settled.rows, members, found.noise, error, determined, nats
    )


def rounding(values: NDArray[np.float32]) -> float:
    """The step of the grid that values lie on, 0 where there is none: whole numbers, bytes,
    decimals; of float16 the widest."""
    some = np.abs(values[:, :: max(1, values.shape[1] // 64)])
    top = float(some.max(initial=0.0))
    if not top:
        return 0.0
    if np.array_equal(some.astype(np.float16).astype(np.float32), some):
        # Ten bits follow the leading one, so that large values have the widest step. Not the
        # largest: it may stand alone.
        return float(np.quantile(some, 0.99)) * 2.0**-10
    levels = np.unique(some)
    gaps = np.diff(levels)
    if len(levels) < 3 or gaps.max() < FINEST * top:
        return 0.0
    gaps = gaps[gaps > FINEST * top]  # the same level, rounded in float32 in different ways
    step = float(np.median(gaps[gaps <= 1.5 * gaps.min()]))
    off = np.abs(levels / step - np.rint(levels / step))
    # Multiples up to float32: a tenth of a step, where values on no grid are off by up to half.
    return step if off.max() < 0.1 else 0.0


@dataclass(frozen=True, eq=False)
class Found:
    """Relations among the encodings of a sketch, what counts as zero (d,) at each pixel, and the
    noise of an encoding."""

    sketch: Sketch
    relations: Relations
    bound: NDArray[np.float64]
    noise: float


def _find(
    task: Task,
    once: NDArray[np.int64],
    noise: float,
    limit: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Found:
    y = task.y[once]
    c = None if task.offsets is None else task.offsets[once]
    view = sketch(y, c, noise, rng)
    enough = ENOUGH if len(once) <= LARGEST else ENOUGH_FOR_SIGNS
    found = find_relations(view, noisy=noise > 0, limit=limit, progress=progress, enough=enough)
    bound = np.maximum(
        WIDTH * 2 * noise, WIDTH * ROUNDING * np.maximum(y.max(axis=0), 1e-30)
    ).astype(np.float64)
    return Found(view, found, bound, noise)


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
    y = task.y[once]
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


def joined_by_relations(
    members: NDArray[np.int64], quads: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows, relations among them, by position in rows): the largest set of known rows that
    relations join, without the rows of vectors that it does not determine. Signs of rows that no
    relation joins say nothing about each other."""
    keep = np.asarray((members >= 0).all(axis=1))
    while keep.any():
        inside = quads[keep[quads].all(axis=1)]
        ends = np.repeat(inside[:, 0], 3), inside[:, 1:].ravel()
        graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(len(members),) * 2)
        group = connected_components(graph, directed=False)[1]
        size = np.bincount(group[keep])
        best = keep & (group == int(size.argmax()))
        rows = np.flatnonzero(best)
        if len(rows) <= members.shape[1] + 2:
            break
        used, names = np.unique(members[rows], return_inverse=True)
        named = names.reshape(len(rows), -1).astype(np.int64)
        open_ = undetermined_by(named, len(used))
        if not open_.any():
            place = np.full(len(members), -1, np.int64)
            place[rows] = np.arange(len(rows))
            return rows.astype(np.int64), place[inside[best[inside].all(axis=1)]]
        keep = best
        keep[rows[open_[named].any(axis=1)]] = False
    return np.empty(0, np.int64), np.empty((0, 4), np.int64)


def _groups(members: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Connected components of vectors that meet."""
    k = members.shape[1]
    ends = np.repeat(members[:, :1], k - 1, axis=1).ravel(), members[:, 1:].ravel()
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def too_few(found: Found, m: int) -> str:
    """Why relations lead nowhere, m encodings being different from each other."""
    if m < 4:
        return f"{m} different encodings: a relation takes four"
    if not found.relations.possible:
        return (
            "the pixels take too few values for exact relations: any four encodings fulfil them by "
            "chance"
        )
    told = f"{len(found.relations)} exact relations among {m} different encodings"
    if len(found.relations) < FEWEST:
        return f"{told}: too few to go by; more encodings are needed"
    return f"{told} do not tell who mixes whom: more encodings, or pixels that differ, are needed"


ATTACK = relations
