"""The full attack for many encodings: overlaps are rounded, kept sparse, and every stage costs what they hold.

    1  M ← GramExtract                      overlaps of all pairs, some of them wrong (`gram.gram_extract`)
    2  W ← cliques of M                     first guess at every encoding's subset (`factor.cliques`)
    3  W ← settled on a few hundred pixels  wrong subsets dropped or corrected, rare vectors added
                                            (k = 2: `solve.growth`, k ≥ 3: `solve.settling`)
    4  x ← every pixel, twice               (k = 2: `solve.peeling`, k ≥ 3: `solve.pixels`)
    5  status ← Certificate                 vector by vector (`solve.certificate`)

Where `full` pools noisy similarities over all encodings, this route needs most single overlaps to be readable: for the same n
and m several times the pixels. In return nothing is m×m, and for k = 2 nothing is n×n: tens of thousands of encodings are a
matter of a minute or two. For k ≥ 3 an n×n inverse bounds the number of vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.factor.cliques import find_cliques
from unveil.gram.gram_extract import gram_extract
from unveil.parallel import Stopwatch, rows_per_block, worker_count
from unveil.parallel import memory_limit as settle_limit
from unveil.records import VERIFIED, Encodings, Overlaps, Progress, Recovery
from unveil.seeds import Rng, child, root
from unveil.solve.certificate import certify
from unveil.solve.growth import settle_pairs
from unveil.solve.peeling import peel, reachable
from unveil.solve.pixels import PixelSolution, solve_pixels
from unveil.solve.settling import settle_subsets

NAME = "full"
PIXELS = 256
MOST_VECTORS = 3000
"""For k ≥ 3: a dense n×n matrix is inverted, and every pixel is multiplied by it some fifty times."""


def large(
    encodings: Encodings, *, rng: Rng = None, memory_limit: int | None = None, progress: Progress | None = None
) -> Recovery:
    """Every private vector the encodings determine, each with its status and the reason for it."""
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    k, a = scheme.k_private, scheme.private_weight
    seed, clock, limit = root(rng), Stopwatch(), settle_limit(memory_limit)
    with clock("overlaps"):
        overlaps = gram_extract(encodings, memory_limit=memory_limit, progress=progress)
    with clock("factor"):
        first = find_cliques(overlaps)
    if first.columns <= k:
        return Recovery.empty(encodings, NAME, _nothing(encodings, overlaps), clock.seconds)
    if k > 2 and first.columns > MOST_VECTORS:
        return Recovery.empty(
            encodings,
            NAME,
            f"about {first.columns} private vectors: for k_private of 3 or more the full attack handles up to {MOST_VECTORS}; "
            "pass a part of the encodings, or use attack='paper'",
            clock.seconds,
        )
    with clock("settling"):
        some = np.abs(encodings.values[:, : rows_per_block(64 * m, limit, most=min(d, PIXELS))])
        settle = settle_pairs if k == 2 else settle_subsets
        settled = settle(some, a, first.members, first.columns, child(seed, "settling"), progress=progress)
    rows = np.flatnonzero(settled.right)
    with clock("pixels"):
        rows, members, solution = _solve(encodings, rows, settled.members[rows], child(seed, "pixels"), limit, progress)
    if solution is None:
        return Recovery.empty(encodings, NAME, _nothing(encodings, overlaps), clock.seconds)
    with clock("certificate"):
        status, reasons = certify(encodings, members, len(rows), solution)
    used = sparse.csr_array(
        (np.ones(members.size, bool), (np.repeat(rows, k), members.ravel())), shape=(m, len(solution.values))
    )
    verified = int((status == VERIFIED).sum())
    explanation = f"{verified} of {len(status)} private vectors verified; {len(rows)} of {m} encodings explained exactly"
    if 2 * len(rows) < m:
        explanation += f"; {_nothing(encodings, overlaps)}"
    elif len(rows) < m:
        explanation += f"; {m - len(rows)} encodings use vectors that too few others share"
    return Recovery(
        vectors=solution.values.astype(np.float32),
        status=status,
        signed=False,
        members=used,
        residual=np.full(len(status), float(np.max(solution.misfit, initial=0.0))),
        reasons=tuple(reasons),
        attack=NAME,
        explanation=explanation,
        seconds=clock.seconds,
        evidence={
            "overlaps": int(overlaps.matrix.nnz - m) // 2,
            "wrong_overlaps_expected": overlaps.expected_errors,
            "encodings_explained": len(rows),
            "settling_rounds": settled.rounds,
            "equations": len(rows) * d,
            "unknowns": len(status) * d,
        },
    )


def _solve(
    encodings: Encodings,
    rows: NDArray[np.int64],
    members: NDArray[np.int64],
    rng: np.random.Generator,
    limit: int,
    progress: Progress | None,
    rounds: int = 4,
) -> tuple[NDArray[np.int64], NDArray[np.int64], PixelSolution | None]:
    """Every pixel of the vectors that can be reached; encodings that are not reproduced at all pixels are dropped."""
    k, a = encodings.scheme.k_private, encodings.scheme.private_weight
    solution = None
    for _ in range(rounds):
        if k == 2:
            used, members = _renamed(members)
            keep = reachable(members, len(used), rng)[members].all(axis=1)
            rows, members = rows[keep], members[keep]
        if len(rows) <= k + 2:
            return rows, members, None
        used, members = _renamed(members)
        values = np.abs(encodings.values if len(rows) == encodings.m else encodings.values[rows])
        if k == 2:
            block = rows_per_block(64 * len(rows) * worker_count(None), limit, most=64)
            solution = peel(values, None, members, len(used), a, rng, block=block, progress=progress)
        else:
            block = rows_per_block(64 * len(rows), limit, most=512)
            solution = solve_pixels(values, None, members, len(used), a, rng, block=block, progress=progress)
        wrong = _missed(values, members, solution.values, a) > 0.05
        if solution.solved.all() or not wrong.any() or wrong.all():
            break
        rows, members = rows[~wrong], members[~wrong]
    return rows, members, solution


def _renamed(members: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    used, names = np.unique(members, return_inverse=True)
    return used, names.reshape(members.shape).astype(np.int64)


def _missed(values: NDArray[np.float32], members: NDArray[np.int64], x: NDArray[np.float64], a: float) -> NDArray[np.float64]:
    """The share of pixels at which each encoding is not reproduced."""
    bound = 1e-3 * float(np.sqrt(np.mean(np.square(values[:1024], dtype=np.float64))))
    out = np.empty(len(values))
    for s in range(0, len(values), 1024):
        part = slice(s, s + 1024)
        out[part] = (np.abs(a * np.abs(x[members[part]].sum(axis=1)) - values[part]) > bound).mean(axis=1)
    return out


def _nothing(encodings: Encodings, overlaps: Overlaps) -> str:
    return (
        f"no consistent explanation of the {encodings.m} encodings: of {(overlaps.matrix.nnz - encodings.m) // 2} overlaps "
        f"{overlaps.expected_errors:.2g} are expected to be wrong at {encodings.d} pixels; use more pixels or another k_private"
    )
