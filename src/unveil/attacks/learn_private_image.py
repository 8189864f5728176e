"""LearnPrivateImage (`alg:private_attack2`, `thm:main`): k+2 private vectors from encodings, as in
the paper.

Also solves multi-task phase retrieval with missing data (`defn:multitask`): the rows of
`encodings.values` are the tasks, its columns the samples, `public` the observed coordinates.

    1  S_i ← LearnPublic                        the public vectors of every encoding
    2  M ← GramExtract, public part subtracted  overlaps of private subsets
    3  𝓘, F ← FindFloralSubmatrix(M)            encodings that are all k-subsets of k+2 vectors, and
                                                their names
    4  solve |a·Σ_{i∈F(j)} x_i + c_j| = y_j     at every pixel
    5  return x_1, …, x_{k+2}

Where we depart from the print: weights and the public part enter step 4; florals that stand for
another family of sets are passed over (`factor.floral.reading`); and nothing is returned as
verified that other encodings do not confirm (`solve.floral.solve_floral`). When a floral fails, the
next one is tried.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.certificate import certify
from unveil.checks import DataLike, InputError
from unveil.encodings import Encodings, as_public
from unveil.factor import (
    encodings_needed,
    estimate_n_private,
    expected_florals,
    iter_florals,
    read_floral,
    swap_reading,
)
from unveil.gram import gram_extract
from unveil.parallel import Stopwatch
from unveil.records import Overlaps, Progress, Recovery
from unveil.scheme import FIXED_WEIGHTINGS
from unveil.seeds import Rng
from unveil.solve import FloralSolution, solve_floral
from unveil.solve.floral.solve_floral import CONVINCING
from unveil.supports import learn_public

NAME = "paper"
MAX_READ, MAX_SOLVED = 20_000, 16
"""Florals read and solved at most: where sixteen fail so does the rest, and each costs seconds."""
NO_ESTIMATE = 1e6
"""More private vectors than this are none that overlaps can tell: their estimate says nothing."""


def learn_private_image(
    encodings: Encodings,
    public: DataLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """The paper's attack, exactly: k_private+2 private vectors, with the evidence for them.

    Parameters
    ----------
    encodings : Encodings
        With k_private of 2 or more, and weights that all of them share.
    public : array of shape (n_public, d) or None
        The public vectors, where the scheme mixes any.
    overlaps : Overlaps or None
        How many private vectors each two encodings share, where that is known from elsewhere.
    rng : int, Generator or None
        There for the signature that all attacks share: nothing is drawn.
    memory_limit : int
        Bytes that may be used; None: half of what is free.
    progress : callable or None
        progress(stage, done, total), called as work is done.

    Returns
    -------
    Recovery
        The k_private+2 vectors of the first floral submatrix that is verified, else of the best
        one that was solved; empty, with the reason, where there is none.

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
    k = encodings.scheme.k_private
    if k < 2:
        raise InputError(f"k_private={k}: the floral attack needs k_private of 2 or more")
    encodings.scheme.require_weighting(*FIXED_WEIGHTINGS)
    # 1–2. Public part and overlaps.
    P = as_public(public, encodings)
    clock = Stopwatch()
    with clock("learn public"):
        S = learn_public(encodings, P, memory_limit=memory_limit, progress=progress)
    with clock("overlaps"):
        if overlaps is None:
            M = gram_extract(encodings, P, supports=S, memory_limit=memory_limit, progress=progress)
        else:
            M = overlaps.of(encodings)
    # 3–4. One floral after the other, until one is convincing.
    best: FloralSolution | None = None
    read = solved = 0
    florals = iter_florals(M, progress=progress)
    while read < MAX_READ and solved < MAX_SOLVED and (best is None or best.status != CONVINCING):
        with clock("floral search"):
            floral = next(florals, None)
            if floral is None:
                break
            reading = read_floral(M, floral)
            # For k = 2 the two families differ by names only.
            if k == 2 and reading.sunflower > reading.subsets:
                floral = swap_reading(floral)
                reading = read_floral(M, floral)
        read += 1
        # Another family of sets has the same overlaps, and other sums: not to be solved.
        if reading.sunflower > reading.subsets:
            continue
        with clock("solve"):
            solution = solve_floral(encodings, P, S, M, floral, reading)
        solved += 1
        if best is None or solution.rank > best.rank:
            best = solution
    if best is None:
        return Recovery.empty(encodings, NAME, _why_nothing(M, read), clock.seconds)
    counts = {"florals_read": read, "florals_solved": solved}
    return _recovery(encodings, P, S.indices, M, best, clock, counts)


def _recovery(
    encodings: Encodings,
    public: NDArray[np.float32] | None,
    supports: NDArray[np.int64] | None,
    M: Overlaps,
    solution: FloralSolution,
    clock: Stopwatch,
    counts: dict[str, int],
) -> Recovery:
    """What a floral's solution says, with all the evidence for it."""
    t, r = solution.floral.incidence.shape
    d = encodings.d
    misfit = np.sqrt(np.mean(solution.signs.misfit**2)) / encodings.scheme.private_weight
    evidence = {
        "rows": solution.floral.rows.tolist(),
        "labels": solution.floral.labels.tolist(),
        "equations": t * d,
        "unknowns": r * d,
        "settled_pixels": int(solution.signs.settled.sum()),
        "relative_noise": solution.signs.noise,
        "votes": {"for": solution.votes[0], "against": solution.votes[1]},
        "nats_from_other_encodings": solution.nats,
        "encodings_reproduced": solution.reproduced,
        "expected_wrong_overlaps": M.expected_errors,
        "estimated_n_private": estimate_n_private(M),
        **counts,
    }
    with clock("certificate"):
        values, members = solution.signs.values.astype(np.float32), solution.members
        judged = certify(encodings, values, members, public, supports)
    verified = int(judged.verified.sum())
    return replace(
        judged,
        attack=NAME,
        explanation=f"{verified} of {r} private vectors verified, {solution.status}: "
        f"{solution.reason}",
        seconds=clock.seconds,
        evidence=evidence,
        residual=np.full(r, misfit),
        explained=solution.reproduced if solution.signs.fits.all() else 0,
        exact=bool(solution.signs.fits.all()),
    )


def _why_nothing(M: Overlaps, read: int) -> str:
    """In words: why there was nothing to solve."""
    k, n = M.k_private, estimate_n_private(M)
    if read:
        return (
            f"{read} floral submatrices, all of them {k - 2} common vectors and pairs of others: "
            "these cannot be solved"
        )
    if not k + 1.5 <= n < NO_ESTIMATE:
        return (
            f"no floral submatrix: the overlaps of {M.m} encodings do not look like "
            f"k_private={k} (check k_private and d)"
        )
    # What would have been enough.
    n = max(k + 2, round(n))
    return (
        f"no floral submatrix among {M.m} encodings of about {n} private vectors: "
        f"{expected_florals(n, k, M.m):.2g} were to be expected, one is from about "
        f"{encodings_needed(n, k):,} encodings on"
    )


ATTACK = learn_private_image
