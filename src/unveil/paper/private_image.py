"""LearnPrivateImage (`alg:private_attack2`, Algorithm 4; `thm:main`): k+2 private vectors.

    lines 1–6   M ← GramExtract, S_i ← LearnPublic, the public part taken off
    line 7      𝓘, F ← FindFloralSubmatrix(M)
    line 8      at every pixel solve |a·Σ_{i∈F(j)} x_i + c_j| = y_j for the rows j of 𝓘
    lines 9–10  return x_1, …, x_{k+2}

a is the private weight and c_j the public part of encoding j, which the printed system leaves out
(erratum 5). With c_j ≠ 0 the signs of private pixels are determined; without a public part one sign
per pixel is lost, the same one for all vectors (`remark:ambiguity`, `lem:generic`). It also solves
multi-task phase retrieval with missing data (`defn:multitask`): rows of `encodings.values` are the
tasks, columns the samples, `public` the observed coordinates.

method="printed" runs every step as printed: the semidefinite program, Ψ⁻¹ rounded to multiples of
1/k, Algorithm 3 line by line, all 2^t sign patterns, t = (k+2)(k+1)/2, on the first floral.
method="fast" departs from it:

  * k+2 independent equations give every candidate, one per choice of *their* signs, and the others
    decide: 2^(k+1) candidates (2^(k+2) with a public part) instead of 2^t (erratum 9);
  * florals that stand for another family of sets are passed over (erratum 11, `read_floral`), and
    where a floral fails the next one is tried.

Neither says of its own vectors that they are right: statuses come from `unveil.certificate`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from unveil.certificate import certify
from unveil.checks import DataLike, InputError
from unveil.encodings import Encodings, as_public
from unveil.engine.blocks import Stopwatch
from unveil.paper.floral import (
    encodings_needed,
    estimate_n_private,
    expected_florals,
    find_floral_submatrix,
    iter_florals,
    read_floral,
    swap_reading,
)
from unveil.paper.gram_extract import gram_extract
from unveil.records import Floral, Overlaps, Progress, Recovery, Supports
from unveil.scheme import FIXED_WEIGHTINGS
from unveil.seeds import Rng

if TYPE_CHECKING:
    from unveil.paper.judge_floral import FloralSolution

Values = NDArray[np.float64]
NAME = "paper"


# --- Algorithm 4, line 8: the sign system --------------------------------------------------------


def printed_signs(
    magnitudes: NDArray[np.floating], A: Values, offsets: Values | None = None
) -> Values:
    """x (k+2, d) with |A·x + c| = y, A (t, k+2), as printed: least squares under each of the 2^t
    sign patterns, pixel by pixel; the pattern that fits best."""
    t, d = magnitudes.shape
    patterns = np.array(list(product((1.0, -1.0), repeat=t)))
    pinv, out = np.linalg.pinv(A), np.empty((A.shape[1], d))
    for pixel in range(d):
        c = np.zeros(t) if offsets is None else offsets[:, pixel]
        signed = patterns * magnitudes[:, pixel]
        x = (signed - c) @ pinv.T
        miss = ((x @ A.T + c - signed) ** 2).sum(axis=1)
        out[:, pixel] = x[miss.argmin()]
    return out


@dataclass(frozen=True, eq=False)
class SignSolution:
    """values (k+2, d); misfit (d,): rms over the equations; rival (d,): the misfit of the best
    candidate with other values.

    `settled` (d,): fits within the noise, and the rival does not. `noise`: the typical misfit,
    relative to the rms of y.
    """

    values: Values
    misfit: Values
    rival: Values
    fits: NDArray[np.bool_]
    settled: NDArray[np.bool_]
    noise: float


def solve_sign_system(
    magnitudes: NDArray[np.float32],
    incidence: NDArray[np.int64],
    weight: float,
    offsets: Values | None = None,
    *,
    method: Literal["fast", "printed"] = "fast",
    tolerance: float = 1e-3,
    same: float = 1e-3,
    block: int = 1024,
) -> SignSolution:
    """Solve |weight·incidence·x + offsets| = magnitudes (t, d) for x (k+2, d), pixel by pixel.

    tolerance: the largest typical misfit, relative to the rms of y, at which equations still count
    as holding; same: candidates closer than this, relative to it, are one; block: pixels at a time
    """
    # 1. k+2 independent equations, and all choices of their signs.
    Y = magnitudes.astype(np.float64)
    t, d = Y.shape
    A = weight * incidence.astype(np.float64)
    unknowns = A.shape[1]
    basis = np.sort(qr(A.T, mode="r", pivoting=True)[1][:unknowns])
    rest = np.setdiff1d(np.arange(t), basis)
    inverse, pinv = np.linalg.inv(A[basis]), np.linalg.pinv(A)
    patterns = np.array(list(product((1.0, -1.0), repeat=unknowns)))
    if offsets is None:  # x and −x are the same answer
        patterns = patterns[: len(patterns) // 2]
    printed = printed_signs(Y, A, offsets) if method == "printed" else None
    rms = float(np.sqrt(np.mean(Y * Y))) or 1.0
    values, misfit, rival = np.empty((unknowns, d)), np.empty(d), np.empty(d)
    for start in range(0, d, block):
        pixels = slice(start, min(start + block, d))
        # 2. The candidate that fits the other equations best, then least squares over all of them.
        y = Y[:, pixels]
        c = np.zeros_like(y) if offsets is None else offsets[:, pixels]
        candidates = inverse @ (patterns[:, :, None] * y[basis] - c[basis])
        error = np.abs(A[rest] @ candidates + c[rest]) - y[rest]
        cost = np.sqrt(np.einsum("pij,pij->pj", error, error) / t)
        best = cost.argmin(axis=0)
        chosen = candidates[best, :, np.arange(y.shape[1])].T
        x = pinv @ (np.sign(A @ chosen + c) * y - c) if printed is None else printed[:, pixels]
        values[:, pixels] = x
        misfit[pixels] = np.sqrt(np.mean((np.abs(A @ x + c) - y) ** 2, axis=0))
        # 3. The best rival. Candidates that differ only where y vanishes have the same values, and
        #    are none.
        distance = np.abs(candidates - x).max(axis=1)
        if offsets is None:
            distance = np.minimum(distance, np.abs(candidates + x).max(axis=1))
        rival[pixels] = np.where(distance <= same * rms / weight, np.inf, cost).min(axis=0)
    noise = float(np.median(misfit)) / rms
    # Thirty times the typical misfit; where that is nothing, what single precision leaves.
    bound = max(30 * noise, 1e-6) * rms
    fits = (misfit <= bound) & (noise <= tolerance)
    return SignSolution(values, misfit, rival, fits, fits & (rival > bound), noise)


# --- Algorithm 4 ---------------------------------------------------------------------------------


def learn_private_image(
    encodings: Encodings,
    public: DataLike | None = None,
    *,
    method: Literal["fast", "printed"] = "fast",
    overlaps: Overlaps | None = None,
    most_read: int = 20_000,
    most_solved: int = 16,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """The paper's attack: k_private+2 private vectors, with the evidence for them.

    Parameters
    ----------
    encodings : Encodings
        With k_private of 2 or more, and weights that all of them share.
    public : array of shape (n_public, d) or None
        The public vectors, where the scheme mixes any.
    method : str
        "fast", or "printed": the semidefinite program, the printed rounding of Ψ⁻¹, Algorithm 3
        line by line, all 2^t sign patterns. It needs about ten times the pixels, and takes some
        hundred encodings and public vectors.
    overlaps : Overlaps or None
        How many private vectors each two encodings share, where that is known from elsewhere.
    most_read, most_solved : int
        Florals that are looked at and solved at most: where sixteen fail so does the rest.
    rng : int, Generator or None
        There for the signature that all attacks share: nothing is drawn.
    memory_limit : int
        Bytes that may be used; None: half of what is free.
    progress : callable or None
        progress(stage, done, total), called as work is done.

    Returns
    -------
    Recovery
        The k_private+2 vectors of the first floral submatrix that all encodings support, else of
        the best one that was solved; empty, with the reason, where there is none.

    Raises
    ------
    InputError
        Where the scheme is none that the paper's attack takes.

    References
    ----------
    `alg:private_attack2` and `thm:main` of the paper, with the departures of docs/paper_map.md.

    Examples
    --------
    >>> import unveil
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=6, n_public=0, m=40, d=400, rng=0)
    >>> recovery = unveil.learn_private_image(sim.encodings)
    >>> len(recovery), unveil.score(recovery, sim.private).wrong
    (4, 0)
    """
    scheme, k = encodings.scheme, encodings.scheme.k_private
    if method not in ("fast", "printed"):
        raise InputError(f"method={method!r}: choose one of fast, printed")
    if k < 2:
        raise InputError(f"k_private={k}: the floral attack needs k_private of 2 or more")
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    P, clock = as_public(public, encodings), Stopwatch()
    how = {"memory_limit": memory_limit, "progress": progress}
    # Lines 1 to 6. The supports come first: overlaps are rounded with the public part known.
    with clock("learn public"):
        S = Supports(np.empty((encodings.m, 0), np.int64), np.ones(encodings.m), "none")
        if scheme.k_public:
            from unveil.paper.learn_public import learn_public

            S = learn_public(encodings, P, method=_LEARN[method], **how)  # type: ignore[arg-type]
    with clock("overlaps"):
        if overlaps is None:
            M = gram_extract(encodings, P, supports=S, method=method, **how)  # type: ignore[arg-type]
        else:
            M = overlaps.of(encodings)
    # Line 7.
    if method == "printed":
        first = find_floral_submatrix(M, method="printed")
        florals = iter(() if first is None else (first,))
    else:
        florals = iter_florals(M, progress=progress)
    best: FloralSolution | None = None
    read = solved = 0
    while read < most_read and solved < most_solved and (best is None or not best.convincing):
        with clock("floral search"):
            floral = next(florals, None)
            if floral is None:
                break
            reading = read_floral(M, floral)
            # For k = 2 the two families differ by names only (erratum 8).
            if method == "fast" and k == 2 and reading.sunflower > reading.subsets:
                floral = swap_reading(floral)
                reading = read_floral(M, floral)
        read += 1
        # Another family of sets has the same overlaps, and other sums: not to be solved.
        if method == "fast" and reading.sunflower > reading.subsets:
            continue
        # Line 8.
        with clock("solve"):
            c = _public_part(encodings, P, S, floral)
            y = encodings.magnitudes(floral.rows)
            signs = solve_sign_system(y, floral.incidence, scheme.private_weight, c, method=method)
            from unveil.paper.judge_floral import judge_floral

            solution = judge_floral(encodings, P, S, M, floral, reading, signs)
        solved += 1
        if best is None or solution.rank > best.rank:
            best = solution
    # Lines 9 and 10.
    if best is None:
        return Recovery.empty(encodings, NAME, _why_nothing(M, read), clock.seconds)
    facts: dict[str, object] = {"method": method, "florals_read": read, "florals_solved": solved}
    return _recovery(encodings, P, S.indices, M, best, clock, facts)


_LEARN = {"fast": "folded-em", "printed": "sdp"}


def _public_part(
    encodings: Encodings, P: NDArray[np.float32] | None, S: Supports, floral: Floral
) -> Values | None:
    """c_j of the rows of a floral; None without a public part."""
    if P is None or not encodings.scheme.k_public:
        return None
    total = P[S.indices[floral.rows]].sum(axis=1, dtype=np.float64)
    return np.asarray(encodings.scheme.public_weight * total)


def _recovery(
    encodings: Encodings,
    public: NDArray[np.float32] | None,
    supports: NDArray[np.int64] | None,
    M: Overlaps,
    solution: FloralSolution,
    clock: Stopwatch,
    facts: dict[str, object],
) -> Recovery:
    """What a floral's solution says, with all the evidence for it."""
    t, r = solution.floral.incidence.shape
    signs, d = solution.signs, encodings.d
    misfit = np.sqrt(np.mean(signs.misfit**2)) / encodings.scheme.private_weight
    whole = bool(signs.fits.all())
    evidence = {
        "rows": solution.floral.rows.tolist(),
        "labels": solution.floral.labels.tolist(),
        "equations": t * d,
        "unknowns": r * d,
        "settled_pixels": int(signs.settled.sum()),
        "relative_noise": signs.noise,
        "votes": {"for": solution.votes[0], "against": solution.votes[1]},
        "nats_from_other_encodings": solution.nats,
        "encodings_reproduced": solution.reproduced,
        "expected_wrong_overlaps": M.expected_errors,
        "estimated_n_private": estimate_n_private(M),
        **facts,
    }
    with clock("certificate"):
        judged = certify(
            encodings, signs.values.astype(np.float32), solution.members, public, supports
        )
    return replace(
        judged,
        attack=NAME,
        explanation=f"{int(judged.verified.sum())} of {r} private vectors verified, "
        f"{solution.status}: {solution.reason}",
        seconds=clock.seconds,
        evidence=evidence,
        residual=np.full(r, misfit),
        explained=solution.reproduced if whole else 0,
        exact=whole,
    )


def _why_nothing(M: Overlaps, read: int) -> str:
    """In words: why there was nothing to solve."""
    k, n = M.k_private, estimate_n_private(M)
    if read:
        return (
            f"{read} floral submatrices, all of them {k - 2} common vectors and pairs of others: "
            "these cannot be solved"
        )
    # More than a million private vectors are none that overlaps can tell.
    if not k + 1.5 <= n < 1e6:
        return (
            f"no floral submatrix: the overlaps of {M.m} encodings do not look like "
            f"k_private={k} (check k_private and d)"
        )
    n = max(k + 2, round(n))
    return (
        f"no floral submatrix among {M.m} encodings of about {n} private vectors: "
        f"{expected_florals(n, k, M.m):.2g} were to be expected, one is from about "
        f"{encodings_needed(n, k):,} encodings on"
    )


ATTACK = learn_private_image
