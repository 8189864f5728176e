"""Exact relations under noise, for data of any distribution, pairs of private vectors.

    1  Q ← relations that hold up to noise      among pairs of similar encodings     (`relations.noisy`)
    2  W ← sparse basis of their null space     exact all the same: whole numbers    (`relations.subspace`)
    3  x ← most likely values                   from the signs of clear relations    (`solve.relation_starts`)

The size of the noise is not known: it is looked for from small to large. Nothing is verified; every vector comes with its
standard error. k_private = 2, no public part: more is not searched for here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.attacks.certified import approximate
from unveil.attacks.relations import FEWEST, Found, joined_by_relations, too_few
from unveil.attacks.units import Task, in_units
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.parallel import memory_limit as settle_limit
from unveil.records import FIXED_WEIGHTINGS, Encodings, InputError, Progress, Recovery
from unveil.relations.noisy import find_noisy
from unveil.relations.sketch import WIDTH
from unveil.relations.subspace import subsets_of
from unveil.seeds import Rng, child, root
from unveil.solve.noisy import solve_noisy
from unveil.solve.relation_starts import start_from_relations

NAME = "noisy-relations"
LEVELS = (0.02, 0.05, 0.09)
"""Noise that is tried, relative to the rms of the encodings: a relation is found at a level no smaller than its noise."""
LARGEST = 3000
"""Encodings up to which pairs are compared: some ten seconds."""


def applies(encodings: Encodings) -> bool:
    scheme = encodings.scheme
    return scheme.k_private == 2 and not scheme.k_public and scheme.fixed_weights and encodings.m <= LARGEST


def noisy_relations(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector that relations determine up to noise, with its standard error."""
    scheme, clock, seed = encodings.scheme, Stopwatch(), root(rng)
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    if scheme.k_private != 2 or scheme.k_public:
        raise InputError("attack='noisy-relations' is for k_private=2 without a public part; use attack='full'")
    if not applies(encodings):
        raise InputError(f"m={encodings.m}: attack='noisy-relations' handles up to {LARGEST} encodings; pass a part of them")
    task = in_units(encodings, None, None)
    best = Recovery.empty(encodings, NAME, "no relations up to noise: more encodings or pixels are needed", clock.seconds)
    for level in LEVELS:
        noise = level * float(np.sqrt(np.mean(np.square(task.y, dtype=np.float64))))
        with clock("relations"):
            once = different(task.y, noise)
            view, relations = find_noisy(
                task.y[once], noise, settle_limit(memory_limit), child(seed, f"noise {level}"), progress=progress
            )
        if len(relations) < FEWEST:
            continue
        bound = np.full(encodings.d, WIDTH * 2 * noise)
        found = Found(view, relations, bound, noise)
        recovery = _solve(encodings, task, once, found, seed, clock, progress)
        if recovery.evidence.get("encodings_explained", 0) > best.evidence.get("encodings_explained", 0):
            best = recovery
        if len(best) and best.evidence["encodings_explained"] >= 0.9 * encodings.m:
            break
    return best


def _solve(
    encodings: Encodings,
    task: Task,
    once: NDArray[np.int64],
    found: Found,
    seed: np.random.SeedSequence,
    clock: Stopwatch,
    progress: Progress | None,
) -> Recovery:
    """The recovery from relations that hold up to noise: every vector with its standard error, none verified."""
    k = encodings.scheme.k_private
    with clock("subsets"), one_blas_thread():
        members = subsets_of(found.sketch, found.relations.quads, k, child(seed, "subsets"))
    core, quads = joined_by_relations(members, found.relations.quads)
    if not len(core):
        return Recovery.empty(encodings, NAME, too_few(found, len(once)), clock.seconds)
    used, names = np.unique(members[core], return_inverse=True)
    named = names.reshape(len(core), -1).astype(np.int64)
    y, n = task.y[once][core], len(used)
    with clock("pixels"):
        draw = child(seed, "pixels")
        start = start_from_relations(y, named, n, quads, draw)
        noisy = solve_noisy(task.y, None, once[core], named, n, found.noise, draw, start=start, progress=progress)
    if noisy is None or 2 * len(noisy.rows) < encodings.m:
        return Recovery.empty(encodings, NAME, "the subsets that relations suggest do not hold", clock.seconds)
    facts = {"relations": len(found.relations), "different_encodings": len(once)}
    return approximate(encodings, NAME, noisy, task.unit, False, clock, facts)


def different(y: NDArray[np.float32], noise: float) -> NDArray[np.int64]:
    """One encoding of each kind: copies differ by noise alone, and their relations with each other say nothing."""
    size = np.einsum("ij,ij->i", y, y, dtype=np.float64)
    apart = size[:, None] + size - 2 * (y @ y.T).astype(np.float64)
    # Two copies are √2 noises apart at each pixel; three leave room for chance where pixels are few.
    same = np.triu(apart <= 9 * noise**2 * y.shape[1], 1)
    return np.flatnonzero(~same.any(axis=0)).astype(np.int64)


ATTACK = noisy_relations
