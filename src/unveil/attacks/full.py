"""The full attack: every private vector, from about n·log n encodings, with far fewer pixels than rounding overlaps needs.

    1  S ← folded similarity of all pairs of encodings, not rounded
    2  W ← FactorOverlaps(S)                     first guess at every encoding's k vectors (`factor.all_vectors`)
    3  W, x ← Feedback on a few hundred pixels   until encodings are explained exactly (`solve.feedback`)
    4  x ← every pixel, twice                    from the explained encodings (`solve.pixels`)
    5  status ← Certificate                      vector by vector (`solve.certificate`)

Weights that are new and unknown in every encoding take another way (`attacks.unequal`).
The number of private vectors is estimated from the mean similarity and corrected by the feedback, which frees columns nobody
needs and adds those that are missing. Dense in m: up to some thousand encodings. No public part yet: use the paper's attack
for that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.attacks.unequal import full_unequal
from unveil.factor.all_vectors import factor_overlaps
from unveil.gram.similarity import estimate_vectors, similarity
from unveil.parallel import Stopwatch
from unveil.records import VERIFIED, Encodings, InputError, Progress, Recovery
from unveil.seeds import Rng, child, root
from unveil.solve.certificate import certify
from unveil.solve.completion import complete
from unveil.solve.feedback import feedback, uses
from unveil.solve.pixels import PixelSolution, solve_pixels

NAME = "full"
LARGEST = 6000
PIXELS = 300


def applies(encodings: Encodings) -> bool:
    """Whether `full` can take these encodings on."""
    return encodings.scheme.k_private >= 2 and not encodings.scheme.k_public and encodings.m <= LARGEST


def full(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector the encodings determine, each with its status and the reason for it."""
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    k = scheme.k_private
    if k < 2:
        raise InputError(f"k_private={k}: the full attack needs k_private of 2 or more")
    if scheme.k_public:
        raise InputError("the full attack does not handle a public part yet: use attack='paper'")
    if m > LARGEST:
        raise InputError(
            f"m={m}: the full attack handles up to {LARGEST} encodings; pass a part of them, or use attack='paper'"
        )
    if not scheme.fixed_weights:
        return full_unequal(encodings, NAME, rng=rng, progress=progress)
    seed = root(rng)
    clock = Stopwatch()
    Y = encodings.magnitudes()
    with clock("similarity"):
        S = similarity(Y, k)
        n = estimate_vectors(S, k)
    if not k + 2 <= n or m < n:
        return Recovery.empty(
            encodings, NAME, f"{m} encodings of about {n} private vectors: too few, or nothing shared", clock.seconds
        )
    with clock("factor"):
        first = factor_overlaps(S, k, n)
    if first.W.shape[1] <= k:
        return Recovery.empty(
            encodings, NAME, "no clusters among the overlaps: check k_private, or use more pixels", clock.seconds
        )
    with clock("feedback"):
        columns = n + max(3, n // 10)
        some = np.ascontiguousarray(Y[:, :PIXELS])
        assignment = feedback(some, k, scheme.private_weight, first, columns, child(seed, "feedback"), progress=progress)
    rows = np.flatnonzero(assignment.exact)
    if len(rows) <= k + 2:
        return Recovery.empty(encodings, NAME, _nothing(m), clock.seconds)
    with clock("pixels"):
        rows, members, solution = _solve_and_complete(
            Y, rows, assignment.members[rows], assignment.x, scheme.private_weight, child(seed, "pixels"), progress
        )
    if solution is None:
        return Recovery.empty(encodings, NAME, _nothing(m), clock.seconds)
    with clock("certificate"):
        status, reasons = certify(encodings, members, len(rows), solution)
    used = sparse.csr_array(
        (np.ones(members.size, bool), (np.repeat(rows, k), members.ravel())), shape=(m, len(solution.values))
    )
    verified = int((status == VERIFIED).sum())
    left = m - len(rows)
    explanation = f"{verified} of {len(status)} private vectors verified; {len(rows)} of {m} encodings explained exactly"
    if left:
        explanation += f"; {left} encodings use vectors that too few others share"
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
            "estimated_n_private": n,
            "encodings_explained": len(rows),
            "feedback_rounds": assignment.rounds,
            "equations": len(rows) * d,
            "unknowns": len(status) * d,
        },
    )


def _nothing(m: int) -> str:
    return f"no consistent explanation of the {m} encodings: more pixels or more encodings are needed, or another k_private"


def _solve_and_complete(
    Y: NDArray[np.float32],
    rows: NDArray[np.int64],
    members: NDArray[np.int64],
    x: NDArray[np.float32],
    a: float,
    rng: np.random.Generator,
    progress: Progress | None,
    rounds: int = 8,
) -> tuple[NDArray[np.int64], NDArray[np.int64], PixelSolution | None]:
    """Every pixel; then drop encodings that were explained by mistake, merge copies, add vectors only a few encodings use,
    and solve again, until nothing changes."""
    k = members.shape[1]
    rms = float(np.sqrt(np.mean(np.square(Y, dtype=np.float64))))
    values: NDArray[np.float64] = x.astype(np.float64)
    completed = False
    solution = None
    for _ in range(rounds):
        members = _merge(values, members)
        keep = _needed(members)
        rows, members = rows[keep], members[keep]
        if len(rows) <= k + 2:
            break
        used, names = np.unique(members, return_inverse=True)
        members = names.reshape(members.shape).astype(np.int64)
        solution = solve_pixels(Y[rows], None, members, len(used), a, rng, progress=progress)
        values = solution.values
        missed = np.abs(a * np.abs(values[members].sum(axis=1)) - Y[rows]) > 1e-3 * rms
        share = missed.mean(axis=1)
        wrong = share > max(0.05, 0.5 * float(share.max()))
        if wrong.any():
            rows, members = rows[~wrong], members[~wrong]
        elif not np.array_equal(_merge(values, members), members):
            pass
        elif not completed and solution.solved.all() and len(values) > k and len(rows) < len(Y):
            completed = True
            left = np.setdiff1d(np.arange(len(Y)), rows)
            more, theirs, new = complete(Y / np.float32(a), values, k, left, 1e-3 * rms / a, rng)
            if not len(more):
                break
            rows, members = np.append(rows, more), np.vstack([members, theirs])
            values = np.vstack([values, np.full((new, values.shape[1]), np.nan)])
        else:
            break
    if solution is None or len(solution.group) <= k:
        return rows[:0], members[:0], None
    return rows, members, solution


def _merge(x: NDArray[np.float64], members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns that are one vector get one name (columns not solved yet are NaN and stay apart)."""
    scale = np.linalg.norm(x, axis=1) + 1e-9
    alike = np.triu((x @ x.T) / np.outer(scale, scale), 1) > 0.98
    name = np.arange(len(x))
    for i, j in np.argwhere(alike):
        name[name == name[j]] = name[i]
    return np.asarray(name[members])


def _needed(members: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Rows that say something: a column that only one row uses explains that row whatever it is."""
    keep = np.ones(len(members), bool)
    while True:
        lonely = keep & (uses(members[keep], int(members.max(initial=0)) + 1)[members] < 2).any(axis=1)
        if not lonely.any():
            return keep
        keep &= ~lonely
