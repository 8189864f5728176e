"""Every pixel from subsets and relations: values, and where the data leave them open.

    0  z ← signs of a few encodings             only where there are very many pixels: as few as
                                                determine all vectors; the others follow
    1  z ← signs that relations force           most pixels, with a few relations per encoding
                                                (`solve.signs.sign_search`)
    2  z ← signs by search                      the others, with all relations; every encoding that
                                                may have either sign is told
    3  x ← least squares of z                   exact, since z fits; checked against all encodings
    4  in doubt ← vectors not determined by the encodings with one sign only, pixel by pixel

A vector is determined at a pixel when it is a combination of encodings whose values are fixed
there. For pairs: when it hangs together with an odd cycle of such encodings. The rest of its pixels
are none the worse for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.cluster import results
from unveil.records import Progress
from unveil.solve.model import incidence
from unveil.solve.signs.sign_search import (
    FEW_PER_ROW,
    Bools,
    Floats,
    Index,
    SignSystem,
    search_signs,
    sign_system,
)

BLOCK = 64
"""Pixels worked on at a time by one thread."""
HARD = 8
"""The same for pixels that need search, whose cost differs widely."""
WIDE, WIDE_BLOCK = 1 << 14, 1024
"""Pixels from which on a few encodings are solved first, and how many of them at a time: finding
these encodings takes as long as some hundred pixels."""
NULL, TOUCHED = 1e-9, 1e-7
"""Eigenvalues of WᵀW below this are zero: the smallest that is not is far above, for the numbers of
rows there are. A vector with an entry above the second in a null vector is not determined. Both
are sharper than in `solve.model`: W holds whole numbers here, in double precision."""


@dataclass(frozen=True, eq=False)
class RelationSolution:
    """values (n, d), NaN nowhere; doubtful (n, d): other values fit as well; misfit (d,): largest
    residual, infinite where no signs were found."""

    values: Floats
    doubtful: Bools
    misfit: Floats


def solve_by_relations(
    y: NDArray[np.float32],
    c: NDArray[np.float32] | None,
    members: Index,
    n: int,
    quads: Index,
    bound: Floats,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> RelationSolution:
    """|Σx + c| = y (rows, d), unit weights, with all rows explained by `members` (rows, k); bound
    (d,): what counts as zero."""
    rows, d = y.shape
    W = incidence(members, n)
    solver = np.asarray(np.linalg.pinv(W), np.float64)
    # Nearly all pixels need a few relations only; search makes use of all of them.
    light, full = (sign_system(quads, members, rng, *most) for most in ((FEW_PER_ROW,), ()))
    values, misfit = np.zeros((n, d)), np.full(d, np.inf)
    doubtful = np.repeat(undetermined(W, members, np.ones(rows, bool))[:, None], d, axis=1)
    all_rows = _Rows(np.arange(rows), light, solver)
    steps = [(all_rows, BLOCK, False), (replace(all_rows, system=full), HARD, True)]
    # Of very many pixels nearly all follow from a few rows.
    few, joining = few_rows(W, full) if d >= WIDE else (np.empty(0, np.int64),) * 2
    if len(few):
        system = sign_system(joining, members[few], rng)
        first = _Rows(few, system, np.asarray(np.linalg.pinv(W[few]), np.float64))
        steps.insert(0, (first, WIDE_BLOCK, False))
    finished = 0
    # What signs forced by few relations leave is searched; what search leaves is in doubt.
    for searched, size, deep in steps:
        pixels = np.flatnonzero(~np.isfinite(misfit))
        shared = _Shared(y, c, members, bound, W, solver, searched, deep)
        blocks = [pixels[s : s + size] for s in range(0, len(pixels), size)]
        for block, (x, miss, hidden) in results(_solved, shared, blocks):
            good = np.isfinite(miss)
            values[:, block[good]], misfit[block[good]] = x[:, good], miss[good]
            if hidden is not None:
                doubtful[:, block[good]] = hidden[:, good]
            finished += len(block)
            if progress:
                progress("pixels", min(finished, d), d)
    doubtful[:, ~np.isfinite(misfit)] = True
    return RelationSolution(values, doubtful, misfit)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows whose signs are searched, by the relations of `system` among them; solver: the
    pseudo-inverse of their subsets."""

    rows: Index
    system: SignSystem
    solver: Floats


@dataclass(frozen=True, eq=False)
class _Shared:
    """What all pixels share; W (rows, n): the subsets, solver: its pseudo-inverse, searched: the
    rows whose signs are searched first, deep: whether signs that are not forced are searched."""

    y: NDArray[np.float32]
    c: NDArray[np.float32] | None
    members: Index
    bound: Floats
    W: Floats
    solver: Floats
    searched: _Rows
    deep: bool


def _solved(shared: _Shared, block: Index) -> tuple[Floats, Floats, Bools | None]:
    """Values of these pixels, misfits, infinite where signs are missing, and which vectors are not
    determined (None: not looked for)."""
    W, bound = shared.W, shared.bound[block]
    part = shared.y[:, block].astype(np.float64)
    offset = 0.0 if shared.c is None else shared.c[:, block].astype(np.float64)
    hi, lo = part - offset, -part - offset
    free, first = shared.c is None, shared.searched
    some = slice(None) if len(first.rows) == len(W) else first.rows
    members = shared.members[some]
    choice, fixed = search_signs(
        first.system, hi[some], lo[some], bound, free, first.solver, members, shared.deep
    )
    # Signs in, values out; a pixel is good when every encoding is reproduced.
    x = first.solver @ np.where(choice < 0, lo[some], hi[some])
    if len(first.rows) < len(W):
        # A few rows determine all vectors, and these the signs of all rows.
        x = shared.solver @ np.where(W @ x + offset < 0, lo, hi)
    miss = np.abs(np.abs(W @ x + offset) - part).max(axis=0)
    good = (choice != 0).all(axis=0) & (miss <= bound)
    hidden = None
    if shared.deep:
        each = [undetermined(W, shared.members, fixed[:, i]) for i in range(len(block))]
        hidden = np.stack(each, axis=1)
    return x, np.where(good, miss, np.inf), hidden


def few_rows(W: Floats, system: SignSystem) -> tuple[Index, Index]:
    """(rows, relations (q, 4) that join them, by position in rows): as few as determine every
    vector; none where no such rows hang together.

    Each relation adds rows to those that it meets, so that at a pixel in general position one sign
    forces all others."""
    known = np.zeros(len(W), bool)
    quads, taken = system.quads, [0]
    known[quads[:1]] = True
    while len(quads):
        if known.sum() >= W.shape[1] and np.linalg.matrix_rank(W[known]) == W.shape[1]:
            place = np.cumsum(known) - 1
            return np.flatnonzero(known).astype(np.int64), place[quads[np.array(taken)]]
        inside = known[quads].sum(axis=1)
        next_to = np.flatnonzero((inside > 0) & (inside < 4))
        if not len(next_to):
            break
        # The relation that brings most new vectors; where all are there, most new rows.
        fresh = (W @ ~W[known].any(axis=0))[quads[next_to]].sum(axis=1)
        score = fresh if fresh.any() else -inside[next_to]
        taken.append(int(next_to[np.argmax(score)]))
        known[quads[taken[-1]]] = True
    return np.empty(0, np.int64), np.empty((0, 4), np.int64)


def undetermined(W: Floats, members: Index, fixed: Bools) -> Bools:
    """(n,) vectors that are no combination of the fixed rows."""
    part = W[fixed]
    values, vectors = eigh(part.T @ part)
    return np.asarray((np.abs(vectors[:, values < NULL]) > TOUCHED).any(axis=1))
