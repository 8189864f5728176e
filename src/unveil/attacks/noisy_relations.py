"""Exact relations under noise, for data of any distribution, pairs of private vectors.

    1  Q ← relations that hold up to noise     among pairs of similar encodings (`relations.noisy`)
    2  W ← sparse basis of their null space    exact all the same: whole numbers
                                               (`relations.subspace`)
    3  x ← most likely values                  from the signs of clear relations
                                               (`solve.grow.relation_starts`)
    4  W, x ← encodings left over              vectors found twice, and not at all
                                               (`solve.grow.noisy_growth`)

The size of the noise is not known: it is looked for from small to large. Nothing is verified; every
vector comes with its standard error. k_private = 2, no public part: more is not searched for here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.attacks.by_likely_signs import by_likely_signs
from unveil.attacks.finish_noisy import approximate
from unveil.attacks.related import FEWEST, Found, joined_by_relations, too_few
from unveil.attacks.units import Task, in_units
from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.parallel import memory_limit as settle_limit
from unveil.records import Progress, Recovery
from unveil.relations.copies import different, distances, noise_of_copies
from unveil.relations.noisy import find_noisy
from unveil.relations.sketch import WIDTH
from unveil.relations.subspace import subsets_of
from unveil.scheme import FIXED_WEIGHTINGS
from unveil.seeds import Rng, child, root
from unveil.solve.grow.noisy_growth import grow
from unveil.solve.grow.relation_starts import start_from_relations
from unveil.solve.pixels.noisy import solve_noisy

NAME = "noisy-relations"
LEVELS = (0.02, 0.05, 0.09)
"""Noise that is tried, relative to the rms of the encodings: a relation is found at a level no
smaller than its noise."""
PIXELS = 512
"""Pixels on which it is found out who is in which encoding: each says half a nat under noise of
5%."""
ENOUGH = 0.9
"""The share of encodings that must be explained for no other noise to be tried."""
LARGEST = 3000
"""Encodings up to which pairs are compared: some ten seconds."""


def noisy_relations(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector that relations determine up to noise, with its standard error."""
    # 1. Only what the search is made for: pairs, one weight for all, and few enough to compare.
    scheme, clock, seed = encodings.scheme, Stopwatch(), root(rng)
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    if scheme.k_private != 2 or scheme.k_public:
        raise InputError(
            "attack='noisy-relations' is for k_private=2 without a public part; use attack='full'"
        )
    if encodings.m > LARGEST:
        raise InputError(
            f"m={encodings.m}: attack='noisy-relations' handles up to {LARGEST} encodings; "
            "pass a part of them"
        )
    task = in_units(encodings, None, None)
    best = Recovery.empty(
        encodings,
        NAME,
        "no relations up to noise: more encodings or pixels are needed",
        clock.seconds,
    )
    rms = float(np.sqrt(np.mean(np.square(task.y, dtype=np.float64))))
    # 2. Where columns go together, by likely signs: the more noise, the more these are needed.
    with clock("relations"), one_blas_thread():
        apart = distances(task.y)
        copies = noise_of_copies(apart)
    signed = by_likely_signs(task.y, apart, copies, seed, clock, progress)
    if signed is not None:
        best = approximate(encodings, NAME, signed[0], task.unit, False, clock, signed[1])
    # 3. By any signs, one size of noise after the other, until most encodings are explained. Copies
    # show the noise itself, so that theirs comes first.
    for at, noise in enumerate([*copies, *(level * rms for level in LEVELS)]):
        if len(best) and best.explained >= ENOUGH * encodings.m:
            break
        with clock("relations"):
            once = different(apart, noise)
            view, relations = find_noisy(
                task.y[once],
                noise,
                settle_limit(memory_limit),
                child(seed, f"noise {at}"),
                progress=progress,
            )
        if len(relations) < FEWEST:
            continue
        bound = np.full(encodings.d, WIDTH * 2 * noise)
        found = Found(view, relations, bound, noise)
        recovery = _solve(encodings, task, once, found, seed, clock, progress)
        if recovery.explained > best.explained:
            best = recovery
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
    """The recovery from relations that hold up to noise: every vector with its standard error, none
    verified."""
    # 1. Subsets from the relations. Only encodings that relations join have signs that say
    # something of each other.
    k = encodings.scheme.k_private
    with clock("subsets"), one_blas_thread():
        members = subsets_of(found.sketch, found.relations.quads, k, child(seed, "subsets"))
    core, quads = joined_by_relations(members, found.relations.quads)
    if not len(core):
        return Recovery.empty(encodings, NAME, too_few(found, len(once)), clock.seconds)
    used, names = np.unique(members[core], return_inverse=True)
    named = names.reshape(len(core), -1).astype(np.int64)
    # 2. Who is in which encoding, on some of the pixels.
    draw = child(seed, "pixels")
    some = np.sort(draw.permutation(encodings.d)[:PIXELS])
    y = np.ascontiguousarray(task.y[:, some])
    with clock("pixels"):
        start = start_from_relations(y[once[core]], named, len(used), quads, draw)
        noisy = solve_noisy(
            y, None, once[core], named, len(used), found.noise, draw, start=start, progress=progress
        )
    with clock("growth"):
        noisy = grow(y, noisy, draw, progress)
    # 3. Then all pixels, from the relations of all these encodings.
    if noisy is not None and len(some) < encodings.d:
        with clock("pixels"):
            place = np.full(encodings.m, -1, np.int64)
            place[noisy.rows] = np.arange(len(noisy.rows))
            inside = place[once[found.relations.quads]]
            inside = inside[(inside >= 0).all(axis=1)]
            n = len(noisy.values)
            start = start_from_relations(task.y[noisy.rows], noisy.members, n, inside, draw)
            noisy = solve_noisy(
                task.y,
                None,
                noisy.rows,
                noisy.members,
                n,
                noisy.noise,
                draw,
                start=start,
                rounds=1,
                progress=progress,
            )
    # 4. A fit of fewer than half of the encodings may be chance.
    if noisy is None or 2 * len(noisy.rows) < encodings.m:
        return Recovery.empty(
            encodings, NAME, "the subsets that relations suggest do not hold", clock.seconds
        )
    facts = {"relations": len(found.relations), "different_encodings": len(once)}
    return approximate(encodings, NAME, noisy, task.unit, False, clock, facts)


ATTACK = noisy_relations
