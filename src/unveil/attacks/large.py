"""The full attack for many encodings, k_private = 2: overlaps are rounded, kept sparse, and every stage costs what they hold.

    1  M ← GramExtract                     overlaps of all pairs, a few of them wrong (`gram.gram_extract`)
    2  W ← cliques of M                    first guess at every encoding's pair (`factor.cliques`)
    3  W ← growth on a few hundred pixels  wrong pairs dropped or corrected, rare vectors added (`solve.growth`)
    4  x ← every pixel by peeling, twice   (`solve.peeling`)
    5  status ← Certificate                vector by vector (`solve.certificate`)

Where `full` pools noisy similarities over all encodings, this route needs single overlaps to be readable, most of them: some
hundred pixels more for k = 2. In return nothing is m×m: tens of thousands of encodings are a matter of a minute or two.
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
from unveil.solve.pixels import PixelSolution

NAME = "full"
PIXELS = 256


def large(
    encodings: Encodings, *, rng: Rng = None, memory_limit: int | None = None, progress: Progress | None = None
) -> Recovery:
    """Every private vector the encodings determine, each with its status and the reason for it."""
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    a = scheme.private_weight
    seed, clock, limit = root(rng), Stopwatch(), settle_limit(memory_limit)
    with clock("overlaps"):
        overlaps = gram_extract(encodings, memory_limit=memory_limit, progress=progress)
    with clock("factor"):
        first = find_cliques(overlaps)
    with clock("settling"):
        some = rows_per_block(64 * m, limit, most=min(d, PIXELS))
        pairs = settle_pairs(
            np.abs(encodings.values[:, :some]), a, first.members, first.columns, child(seed, "settling"), progress=progress
        )
    rows = np.flatnonzero(pairs.right)
    with clock("pixels"):
        block = rows_per_block(64 * m * worker_count(None), limit, most=64)
        rows, members, solution = _solve(encodings, rows, pairs.members[rows], child(seed, "pixels"), block, progress)
    if solution is None:
        return Recovery.empty(encodings, NAME, _nothing(encodings, overlaps), clock.seconds)
    with clock("certificate"):
        status, reasons = certify(encodings, members, len(rows), solution)
    used = sparse.csr_array(
        (np.ones(members.size, bool), (np.repeat(rows, 2), members.ravel())), shape=(m, len(solution.values))
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
            "settling_rounds": pairs.rounds,
            "equations": len(rows) * d,
            "unknowns": len(status) * d,
        },
    )


def _solve(
    encodings: Encodings,
    rows: NDArray[np.int64],
    members: NDArray[np.int64],
    rng: np.random.Generator,
    block: int,
    progress: Progress | None,
    rounds: int = 4,
) -> tuple[NDArray[np.int64], NDArray[np.int64], PixelSolution | None]:
    """Every pixel of the vectors that can be reached; encodings that are not reproduced at all pixels are dropped."""
    a = encodings.scheme.private_weight
    solution = None
    for _ in range(rounds):
        used, members = _renamed(members)
        keep = reachable(members, len(used), rng)[members].all(axis=1)
        rows, (used, members) = rows[keep], _renamed(members[keep])
        if len(rows) <= 4:
            return rows, members, None
        values = encodings.values if len(rows) == encodings.m else encodings.values[rows]
        solution = peel(np.abs(values), None, members, len(used), a, rng, block=block, progress=progress)
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
        out[part] = (np.abs(a * np.abs(x[members[part]].sum(axis=1)) - np.abs(values[part])) > bound).mean(axis=1)
    return out


def _nothing(encodings: Encodings, overlaps: Overlaps) -> str:
    return (
        f"no consistent explanation of the {encodings.m} encodings: of {(overlaps.matrix.nnz - encodings.m) // 2} overlaps "
        f"{overlaps.expected_errors:.2g} are expected to be wrong at {encodings.d} pixels; use more pixels or another k_private"
    )
