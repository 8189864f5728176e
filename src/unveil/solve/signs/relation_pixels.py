"""Every pixel from subsets and relations: values, and where the data leave them open.

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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.cluster import results
from unveil.records import Progress
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
    W = np.zeros((rows, n))
    W[np.arange(rows)[:, None], members] = 1
    solver = np.asarray(np.linalg.pinv(W), np.float64)
    # Nearly all pixels need a few relations only; search makes use of all of them.
    light, full = (sign_system(quads, members, rng, *most) for most in ((FEW_PER_ROW,), ()))
    values, misfit = np.zeros((n, d)), np.full(d, np.inf)
    doubtful = np.repeat(undetermined(W, members, np.ones(rows, bool))[:, None], d, axis=1)
    finished = 0
    # What signs forced by few relations leave is searched; what search leaves is in doubt.
    for system, size, deep in ((light, BLOCK, False), (full, HARD, True)):
        pixels = np.flatnonzero(~np.isfinite(misfit))
        shared = _Shared(y, c, members, bound, W, solver, system, deep)
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
class _Shared:
    """What all pixels share; W (rows, n): the subsets, solver: its pseudo-inverse, deep: whether
    signs that are not forced are searched."""

    y: NDArray[np.float32]
    c: NDArray[np.float32] | None
    members: Index
    bound: Floats
    W: Floats
    solver: Floats
    system: SignSystem
    deep: bool


def _solved(shared: _Shared, block: Index) -> tuple[Floats, Floats, Bools | None]:
    """Values of these pixels, misfits, infinite where signs are missing, and which vectors are not
    determined (None: not looked for)."""
    W, bound = shared.W, shared.bound[block]
    part = shared.y[:, block].astype(np.float64)
    offset = 0.0 if shared.c is None else shared.c[:, block].astype(np.float64)
    hi, lo = part - offset, -part - offset
    free = shared.c is None
    choice, fixed = search_signs(
        shared.system, hi, lo, bound, free, shared.solver, shared.members, shared.deep
    )
    # Signs in, values out; a pixel is good when every encoding is reproduced.
    x = shared.solver @ np.where(choice < 0, lo, hi)
    miss = np.abs(np.abs(W @ x + offset) - part).max(axis=0)
    good = (choice != 0).all(axis=0) & (miss <= bound)
    hidden = None
    if shared.deep:
        each = [undetermined(W, shared.members, fixed[:, i]) for i in range(len(block))]
        hidden = np.stack(each, axis=1)
    return x, np.where(good, miss, np.inf), hidden


def undetermined(W: Floats, members: Index, fixed: Bools) -> Bools:
    """(n,) vectors that are no combination of the fixed rows."""
    part = W[fixed]
    values, vectors = eigh(part.T @ part)
    return np.asarray((np.abs(vectors[:, values < NULL]) > TOUCHED).any(axis=1))
