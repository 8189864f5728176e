"""Exact relations under noise, for data of any distribution, pairs of private vectors.

    1  Q ← relations that hold up to noise      among pairs of similar encodings     (`relations.noisy`)
    2  W ← sparse basis of their null space     exact all the same: whole numbers    (`relations.subspace`)
    3  x ← most likely values                   from the signs of clear relations    (`solve.grow.relation_starts`)
    4  W, x ← encodings left over               vectors found twice, and not at all  (`solve.grow.noisy_growth`)

The size of the noise is not known: it is looked for from small to large. Nothing is verified; every
vector comes with its standard error. k_private = 2, no public part: more is not searched for here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.attacks.finish import approximate
from unveil.attacks.relations import FEWEST, Found, joined_by_relations, too_few
from unveil.attacks.units import Task, in_units
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.parallel import memory_limit as settle_limit
from unveil.records import FIXED_WEIGHTINGS, Encodings, InputError, Progress, Recovery
from unveil.relations.noisy import find_noisy
from unveil.relations.sketch import WIDTH
from unveil.relations.subspace import subsets_of
from unveil.seeds import Rng, child, root
from unveil.solve.grow.noisy_growth import merged, new_vectors
from unveil.solve.grow.relation_starts import start_from_relations
from unveil.solve.pixels.noisy import NoisySolution, explained, solve_noisy

NAME = "noisy-relations"
LEVELS = (0.02, 0.05, 0.09)
"""Noise that is tried, relative to the rms of the encodings: a relation is found at a level no
smaller than its noise."""
WEAK = 2
"""Encodings of a column that make it doubtful: any two of them can be explained by a vector made
for the purpose."""
COPIES, ALIKE, ROOM = 4, 1.3, 1.1
"""So many pairs of encodings nearest to each other are copies if their distances are alike up to a
factor; and the noise that is then tried, relative to the largest of them."""
PIXELS = 512
"""Pixels on which it is found out who is in which encoding: each says half a nat under noise of
5%."""
GROWTH = 4
"""Rounds of merging and new vectors: each new vector explains encodings that reveal others."""
LARGEST = 3000
"""Encodings up to which pairs are compared: some ten seconds."""


def applies(encodings: Encodings) -> bool:
    scheme = encodings.scheme
    return (
        scheme.k_private == 2
        and not scheme.k_public
        and scheme.fixed_weights
        and encodings.m <= LARGEST
    )


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
        raise InputError(
            "attack='noisy-relations' is for k_private=2 without a public part; use attack='full'"
        )
    if not applies(encodings):
        raise InputError(
            f"m={encodings.m}: attack='noisy-relations' handles up to {LARGEST} encodings; pass a part of them"
        )
    task = in_units(encodings, None, None)
    best = Recovery.empty(
        encodings,
        NAME,
        "no relations up to noise: more encodings or pixels are needed",
        clock.seconds,
    )
    rms = float(np.sqrt(np.mean(np.square(task.y, dtype=np.float64))))
    with clock("relations"), one_blas_thread():
        apart = _apart(task.y)
        levels = [*noise_of_copies(apart), *(level * rms for level in LEVELS)]
    for at, noise in enumerate(levels):
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
        if recovery.evidence.get("encodings_explained", 0) > best.evidence.get(
            "encodings_explained", 0
        ):
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
    """The recovery from relations that hold up to noise: every vector with its standard error, none
    verified."""
    k = encodings.scheme.k_private
    with clock("subsets"), one_blas_thread():
        members = subsets_of(found.sketch, found.relations.quads, k, child(seed, "subsets"))
    core, quads = joined_by_relations(members, found.relations.quads)
    if not len(core):
        return Recovery.empty(encodings, NAME, too_few(found, len(once)), clock.seconds)
    used, names = np.unique(members[core], return_inverse=True)
    named = names.reshape(len(core), -1).astype(np.int64)
    # 1. Who is in which encoding, on some of the pixels.
    draw = child(seed, "pixels")
    some = np.sort(draw.permutation(encodings.d)[:PIXELS])
    y = np.ascontiguousarray(task.y[:, some])
    with clock("pixels"):
        start = start_from_relations(y[once[core]], named, len(used), quads, draw)
        noisy = solve_noisy(
            y, None, once[core], named, len(used), found.noise, draw, start=start, progress=progress
        )
    with clock("growth"):
        for _ in range(GROWTH):
            grown = None if noisy is None else _grown(y, noisy, draw, progress)
            if grown is None:
                break
            noisy = grown
    # 2. Then all pixels, from the relations of all these encodings.
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
    if noisy is None or 2 * len(noisy.rows) < encodings.m:
        return Recovery.empty(
            encodings, NAME, "the subsets that relations suggest do not hold", clock.seconds
        )
    facts = {"relations": len(found.relations), "different_encodings": len(once)}
    return approximate(encodings, NAME, noisy, task.unit, False, clock, facts)


def _grown(
    y: NDArray[np.float32],
    noisy: NoisySolution,
    rng: np.random.Generator,
    progress: Progress | None,
) -> NoisySolution | None:
    """The solution with columns of one vector merged, and with vectors that rows left over reveal;
    None: nothing changed."""
    # 1. One column per vector. Columns that hardly a row uses are looked for again, now that more
    # is known.
    used, names = np.unique(merged(noisy), return_inverse=True)
    uses = np.bincount(names[noisy.members].ravel(), minlength=len(used))
    weak = uses <= WEAK
    x = noisy.values[used[~weak]]
    if not weak.any() and len(used) == len(names) and len(noisy.rows) == len(y):
        return None
    rows, members = explained(y, None, x, noisy.noise, 2, rng)
    # 2. New vectors in what is left.
    values, theirs, more = new_vectors(
        y, x, np.setdiff1d(np.arange(len(y)), rows), noisy.noise, rng
    )
    if len(x) + len(values) == len(names) and len(rows) + len(theirs) <= len(noisy.rows):
        return None
    x, rows, members = (
        np.vstack([x, values]),
        np.concatenate([rows, theirs]),
        np.concatenate([members, more]),
    )
    return solve_noisy(y, None, rows, members, len(x), noisy.noise, rng, start=x, progress=progress)


def _apart(y: NDArray[np.float32]) -> NDArray[np.float64]:
    """(m, m) mean square difference of any two encodings."""
    size = np.einsum("ij,ij->i", y, y, dtype=np.float64)
    return np.asarray(
        np.maximum(size[:, None] + size - 2 * (y @ y.T).astype(np.float64), 0.0) / y.shape[1]
    )


def noise_of_copies(apart: NDArray[np.float64]) -> list[float]:
    """The noise, where some subsets were drawn twice: their encodings differ by noise alone, all by
    the same. At most one."""
    m = len(apart)
    near = np.sqrt(np.sort(apart[np.triu_indices(m, 1)])[:COPIES] / 2)
    far = float(np.sqrt(np.median(apart) / 2))
    return (
        [ROOM * float(near[-1])]
        if m > COPIES and 0 < near[-1] < ALIKE * near[0] and near[-1] < 0.25 * far
        else []
    )


def different(apart: NDArray[np.float64], noise: float) -> NDArray[np.int64]:
    """One encoding of each kind: copies differ by noise alone, and their relations with each other
    say nothing."""
    # Two copies are √2 noises apart at each pixel; three leave room for chance where pixels are
    # few.
    same = np.triu(apart <= 9 * noise**2, 1)
    return np.flatnonzero(~same.any(axis=0)).astype(np.int64)


ATTACK = noisy_relations
