"""LearnPrivateImage (`alg:private_attack2`, Algorithm 4; `thm:main`): k+2 private vectors.

    lines 1, 4–6  M ← GramExtract, less the public part    `gram_extract`: `_printed_overlaps`
    lines 2, 3    S_i ← LearnPublic                        `learn_public`: `printed_support`
    line 7        𝓘, F ← FindFloralSubmatrix(M)            `floral`: `printed_floral`
    line 8        at every pixel solve |a·Σ_{i∈F(j)} x_i + c_j| = y_j for the rows j of 𝓘
                                                           `printed_signs`
    lines 9, 10   return x_1, …, x_{k+2}

Here and below k is k_private. a is the private weight and c_j the public part of encoding j, which
the printed system leaves out (erratum 5 of docs/paper_map.md). With c_j ≠ 0 the signs of private
pixels are determined; without a public part one sign per pixel is lost, the same one for all
vectors (`remark:ambiguity`, `lem:generic`). It also solves multi-task phase retrieval with missing
data (`defn:multitask`): rows of `encodings.values` are the tasks, columns the samples, `public` the
observed coordinates.

method="printed" runs every step as printed: the semidefinite program, Ψ⁻¹ rounded to multiples of
1/(k_public + k_private), Algorithm 3 line by line, all 2^t sign patterns, t = (k+2)(k+1)/2, on the
first floral.
method="fast" departs from it:

  * k+2 independent equations give every candidate, one per choice of *their* signs, and the others
    decide: 2^(k+1) candidates (2^(k+2) with a public part) instead of 2^t (erratum 9);
  * florals that stand for another family of sets are passed over (erratum 11, `read_floral`), and
    where a floral fails the next one is tried.

A floral alone proves nothing: its equations hold for the other family of sets too, and for a wrong
k. So under both methods the solution is held against all encodings (`grow`). Those of k known
vectors must be reproduced, and each group of those that share one unknown vector gives that vector,
until nothing is added. The certificate is handed everything that was grown, and it alone says what
is verified. The k+2 vectors of the theorem are returned; for all of them there is `unveil.recover`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr
from scipy.sparse.csgraph import connected_components

from unveil.certificate import certify
from unveil.checks import DataLike, InputError, Rng
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
from unveil.records import VERIFIED, Floral, Overlaps, Progress, Recovery, Supports
from unveil.scheme import FIXED_WEIGHTINGS

Values = NDArray[np.float64]
Rows = NDArray[np.int64]
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


# --- The evidence of all other encodings ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Growth:
    """vectors (r, d), those of the floral first; members (m, r): the vectors that overlaps say each
    encoding mixes; explained (m,): encodings of k known vectors, reproduced at every pixel."""

    vectors: Values
    members: NDArray[np.bool_]
    explained: NDArray[np.bool_]


def grow(
    encodings: Encodings,
    overlaps: Overlaps,
    floral: Floral,
    values: Values,
    public_part: Callable[[Rows], Values | None],
    *,
    noise: float = 0.0,
    most_vectors: int = 2000,
    most_rows: int = 6,
    block: int = 256,
) -> Growth:
    """From the vectors `values` of a floral to all that its encodings' neighbours mix.

    If A are the members of the explained encodings, and M their overlaps with another one, that one
    mixes the known vectors M·A·(AᵀA)⁻¹. With k of them known it must be reproduced; with k−1 it has
    one unknown vector z, and overlaps tell which encodings have the same one. Two of these with
    different known vectors have one z in common at almost every pixel, out of two candidates each:
    a wrong group fails. Least squares over all explained encodings keep errors from adding up.

    Cost: k·d for every encoding reproduced, and r³ + r²·d for r vectors in every round; three or
    four rounds are usual. Memory: m·r bytes and 8·r·d, and blocks of rows.

    noise: typical misfit relative to the rms of y; most_vectors: how many are grown; most_rows: how
    many encodings of a group tell the signs of z; block: encodings at a time
    """
    k, a, m, d = (
        encodings.scheme.k_private,
        encodings.scheme.private_weight,
        encodings.m,
        encodings.d,
    )
    M, X = overlaps.matrix.astype(np.float64), values
    members = np.zeros((m, len(X)), bool)
    members[floral.rows] = floral.incidence.astype(bool)
    explained, refused = np.zeros(m, bool), np.zeros(m, bool)
    explained[floral.rows] = True
    rms = float(np.sqrt(np.mean(encodings.magnitudes(floral.rows).astype(np.float64) ** 2)))
    bound = max(100 * noise, 1e-5) * rms

    def blocks(rows: Rows) -> Iterator[Rows]:
        return (rows[start : start + block] for start in range(0, len(rows), block))

    def known_part(rows: Rows) -> Values:
        total = a * (members[rows].astype(np.float64) @ X)
        c = public_part(rows)
        return total if c is None else total + c

    while True:
        # 1. The known vectors of every encoding; whole numbers, or overlaps are wrong.
        R = np.flatnonzero(explained)
        A = members[R].astype(np.float64)
        read = np.linalg.solve(A.T @ A, A.T)
        whole = np.ones(m, bool)
        for rows in blocks(np.flatnonzero(~explained)):
            tau = M[rows][:, R] @ read.T
            whole[rows] = np.abs(tau - np.rint(tau)).max(axis=1) < 0.25
            members[rows] = (np.rint(tau) == 1) & whole[rows, None]
        size = members.sum(axis=1)
        # 2. Encodings of k of them: reproduced, or left out for good.
        for rows in blocks(np.flatnonzero((size == k) & ~explained & ~refused)):
            off = np.abs(np.abs(known_part(rows)) - encodings.magnitudes(rows)).max(axis=1)
            explained[rows[off <= bound]], refused[rows[off > bound]] = True, True
        # 3. Encodings of k−1 of them, in groups that share the unknown vector.
        rows = np.flatnonzero((size == k - 1) & whole & ~explained)
        B = sparse.csr_array(members[rows].astype(np.float64))
        common = M[rows][:, rows] - B @ B.T
        common.data = (common.data == 1).astype(np.float64)
        common.eliminate_zeros()
        group = connected_components(common, directed=False)[1]
        added: list[tuple[Values, Rows]] = []
        for g in np.flatnonzero(np.bincount(group, minlength=1) > 1):
            if len(X) + len(added) >= most_vectors:
                break
            near = rows[group == g]
            near = near[np.sort(np.unique(members[near], axis=0, return_index=True)[1])[:most_rows]]
            y, known = encodings.magnitudes(near).astype(np.float64), known_part(near)
            z = _common_unknown(y, known, a, bound)
            if z is not None:
                added.append((z[0], near[z[1]]))
        if not added:
            return Growth(X, members & ~refused[:, None], explained)
        # 4. All vectors by least squares over all explained encodings.
        X = np.vstack([X, *(z for z, _ in added)])
        new = np.zeros((m, len(added)), bool)
        for column, (_, mixed) in enumerate(added):
            new[mixed, column] = explained[mixed] = True
        members = np.hstack([members, new])
        square, right = np.zeros((len(X), len(X))), np.zeros((len(X), d))
        for rows in blocks(np.flatnonzero(explained)):
            A, c = members[rows].astype(np.float64), public_part(rows)
            signed = np.copysign(encodings.magnitudes(rows), known_part(rows))
            square += A.T @ A
            right += A.T @ (signed - (0 if c is None else c))
        X = np.asarray(np.linalg.solve(square, right) / a, np.float64)


def _common_unknown(
    y: Values, known: Values, weight: float, bound: float
) -> tuple[Values, Rows] | None:
    """z (d,) with |known + weight·z| = y at every pixel of two rows or more, and these rows; None
    where no two have one."""
    for first in range(min(3, len(y) - 1)):
        # The two candidates of the first row; errors are cut off, since a row may not belong here.
        both = (np.array([[1.0], [-1.0]]) * y[first] - known[first]) / weight
        error = np.abs(np.abs(known + weight * both[:, None]) - y)
        best = np.minimum(error, 100 * bound).sum(axis=1).argmin(axis=0)
        error = np.take_along_axis(error, best[None, None], axis=0)[0]
        fits = np.flatnonzero(error.max(axis=1) <= bound)
        if len(fits) > 1:
            signs = np.where(known[fits] + weight * np.choose(best, both) < 0, -1.0, 1.0)
            return ((signs * y[fits] - known[fits]) / weight).mean(axis=0), fits
    return None


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
        The k_private+2 vectors of the first floral submatrix that most encodings support, else of
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
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=12, n_public=0, m=100, d=400, rng=0)
    >>> recovery = unveil.learn_private_image(sim.encodings)
    >>> recovery.status.tolist()
    ['verified', 'verified', 'verified', 'verified']
    """
    scheme, k = encodings.scheme, encodings.scheme.k_private
    if method not in ("fast", "printed"):
        raise InputError(f"method={method!r}: choose one of fast, printed")
    if k < 2:
        raise InputError(f"k_private={k}: the floral attack needs k_private of 2 or more")
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    P, clock = as_public(public, encodings), Stopwatch()
    how = {"memory_limit": memory_limit, "progress": progress}
    # Lines 1 to 6. The supports come first: "fast" rounds overlaps with the public part known.
    with clock("learn public"):
        S = Supports(np.empty((encodings.m, 0), np.int64), np.ones(encodings.m), "none")
        if scheme.k_public:
            from unveil.paper.learn_public import learn_public

            S = learn_public(encodings, P, method=_LEARN[method], **how)  # type: ignore[arg-type]

    def public_part(rows: Rows) -> Values | None:
        if P is None or not scheme.k_public:
            return None
        named = P[S.indices[rows]].sum(axis=1, dtype=np.float64)
        return np.asarray(scheme.public_weight * named)

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
    best: tuple[int, int, Floral, SignSolution, Growth | None] | None = None
    read = solved = 0
    while read < most_read and solved < most_solved and (best is None or 2 * best[0] < encodings.m):
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
        # Line 8; and what other encodings say.
        with clock("solve"):
            c, y = public_part(floral.rows), encodings.magnitudes(floral.rows)
            signs = solve_sign_system(y, floral.incidence, scheme.private_weight, c, method=method)
        solved += 1
        growth: Growth | None = None
        if signs.fits.all():
            with clock("growth"):
                growth = grow(encodings, M, floral, signs.values, public_part, noise=signs.noise)
        explained = 0 if growth is None else int(growth.explained.sum())
        if best is None or (explained, int(signs.settled.sum())) > best[:2]:
            best = explained, int(signs.settled.sum()), floral, signs, growth
    # Lines 9 and 10.
    if best is None:
        return Recovery.empty(encodings, NAME, _why_nothing(M, read), clock.seconds)
    facts: dict[str, object] = {"method": method, "florals_read": read, "florals_solved": solved}
    return _recovery(encodings, P, S.indices, M, best[2:], clock, facts)


_LEARN = {"fast": "folded-em", "printed": "sdp"}


def _recovery(
    encodings: Encodings,
    public: NDArray[np.float32] | None,
    supports: Rows,
    M: Overlaps,
    best: tuple[Floral, SignSolution, Growth | None],
    clock: Stopwatch,
    facts: dict[str, object],
) -> Recovery:
    """The k+2 vectors of a floral, judged by the certificate together with all that was grown."""
    floral, signs, growth = best
    (t, r), k, d = floral.incidence.shape, encodings.scheme.k_private, encodings.d
    if growth is None:  # the floral's own equations do not hold
        members, explained = np.zeros((encodings.m, r), bool), np.zeros(encodings.m, bool)
        members[floral.rows] = floral.incidence.astype(bool)
        growth = Growth(signs.values, members, explained)
    use = growth.explained.copy()
    use[floral.rows] = True
    claim = sparse.csr_array(growth.members & use[:, None])
    # Magnitudes are all that was looked at: where signs were kept, ours are not theirs.
    scheme = encodings.scheme
    if scheme.signs not in ("absolute", "random"):
        encodings = replace(encodings, scheme=replace(scheme, signs="random"))
    with clock("certificate"):
        judged = certify(encodings, growth.vectors, claim, public, supports)
    status, reasons = judged.status[:r], judged.reasons[:r]
    if abs(estimate_n_private(M) - 2 * k) < 0.1 and not judged.verified[:r].any():
        why = (
            "there seem to be n_private = 2·k_private vectors: then x and Σx/k − x, with all "
            "subsets replaced by their complements, give the same encodings, and nothing can "
            "tell them apart"
        )
        reasons = (why,) * r
    text = f"{int(judged.verified[:r].sum())} of {r} private vectors verified; "
    if not signs.fits.all():
        text += f"re-encoding misses the floral's encodings at {int((~signs.fits).sum())} of {d} "
        text += "pixels"
    else:
        text += f"{judged.explained} of {encodings.m} encodings reproduced by these and "
        text += f"{len(growth.vectors) - r} more vectors, grown from them"
    if not judged.verified[:r].all():
        text += f"; {next(w for w, s in zip(reasons, status, strict=True) if s != VERIFIED)}"
    inside = growth.explained & (growth.members[:, :r].sum(axis=1) == k)
    evidence = {
        "rows": floral.rows.tolist(),
        "labels": floral.labels.tolist(),
        "equations": t * d,
        "unknowns": r * d,
        "settled_pixels": int(signs.settled.sum()),
        "relative_noise": signs.noise,
        "vectors_grown": len(growth.vectors) - r,
        "encodings_reproduced": judged.explained,
        "expected_wrong_overlaps": M.expected_errors,
        "estimated_n_private": estimate_n_private(M),
        **facts,
    }
    misfit = np.sqrt(np.mean(signs.misfit**2)) / encodings.scheme.private_weight
    return replace(
        judged,
        vectors=judged.vectors[:r],
        status=status,
        members=sparse.csr_array(growth.members[:, :r]),
        residual=np.full(r, misfit),
        reasons=reasons,
        doubtful=None if judged.doubtful is None else judged.doubtful[:r],
        attack=NAME,
        explanation=text,
        seconds=clock.seconds,
        evidence=evidence,
        explained=int(inside.sum()),
        exact=bool(signs.fits.all()),
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
