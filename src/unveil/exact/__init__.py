"""Private records from encodings of fixed weights whose signs are hidden: any data, any k.

    y = |Σ_{i∈S} x_i + c|,  |S| = k     (`problem`: units in which each private weight is 1)

    recover_exact(encodings, public=None, …) → Recovery

Two ideas, and both are needed. *Exact equations* between encodings (`relations`) hold for data of
any kind, in as few as ten columns, but want about n^(k/2) encodings. *Similarities* (`overlaps`)
are content with two encodings per record and survive noise, but want many columns of generic
values. Each leads to a claim: records, and who is mixed with whom. `ROUTES` lists them with the
reason for each; they are tried in order until one explains nearly all encodings, and the best
claim goes to the certificate.

    problem      y, c, k, and what a claim is
    relations    pairs of encodings with one difference, by hashing
    pairs        k = 2: records grown from relations by votes
    columns      k = 2: every value by deduction, and which values are open
    cliques      k = 2, many encodings and columns: overlaps that can be read one by one
    parity       k ≥ 3: relations give memberships, modulo 2
    overlaps, values, leftovers, similarities      any k: generic values
    noise        folded least squares
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.certificate import certify
from unveil.checks import DataLike, Rng, child, root
from unveil.encodings import Encodings, as_public
from unveil.exact.cliques import read_members
from unveil.exact.columns import solve_columns
from unveil.exact.pairs import Pairs, grow_from, grow_pairs
from unveil.exact.parity import recover_by_parity
from unveil.exact.problem import (
    Claim,
    Indices,
    Problem,
    as_problem,
    grid_step,
    holds,
    late,
    merge_copies,
)
from unveil.exact.relations import Rows, as_rows, noisy_rows
from unveil.exact.similarities import from_guess, recover_by_similarity
from unveil.records import AMBIGUOUS, UNRESOLVED, Progress, Recovery, Supports

__all__ = ["Claim", "Problem", "as_problem", "recover_exact"]


@dataclass(frozen=True)
class Means:
    """What a route may use."""

    rng: np.random.Generator
    deadline: float
    memory_limit: int | None
    progress: Progress | None


@dataclass(frozen=True)
class Route:
    """A way to a claim: when it applies, and why it is taken then."""

    name: str
    applies: Callable[[Problem], bool]
    run: Callable[[Problem, Means], Claim]
    reason: str


def recover_exact(
    encodings: Encodings,
    public: DataLike | None = None,
    *,
    supports: Supports | Indices | None = None,
    time_limit: float | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    enough: float = 0.9,
) -> Recovery:
    """Private records from encodings with one fixed weight and hidden signs.

    Parameters
    ----------
    encodings : Encodings
        Of a scheme with fixed weights.
    public : array of shape (n_public, d), optional
        The public vectors, where the scheme has a public part.
    supports : Supports or int array of shape (m, k_public), optional
        Which of them each encoding uses; learned where it is not given. Rows with −1 are left out.
    time_limit : float or None
        Seconds after which the best claim so far is certified and returned.
    rng : int, Generator or None
        Source of randomness.
    memory_limit : int or None
        Bytes; None: half of what is free.
    progress : callable, optional
        progress(stage, done, total).
    enough : float
        The share of encodings that a claim must explain for the search to end.

    Returns
    -------
    Recovery
        Records with the certificate's status for each. Values that the encodings leave open are
        marked in `doubtful`, and returned as the candidate that is a level of their column.
    """
    started = time.perf_counter()
    generator = child(root(rng), "exact")
    vectors = as_public(public, encodings)
    chosen = _supports(encodings, vectors, supports, progress)
    usable = np.arange(encodings.m)
    if chosen is not None:
        usable = np.flatnonzero((chosen >= 0).all(axis=1))
    whole = replace_rows(encodings, usable)
    problem = as_problem(whole, vectors, None if chosen is None else chosen[usable])
    # Encodings that occur twice say nothing new.
    first, copy = _distinct_rows(problem)
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    means = Means(generator, deadline, memory_limit, progress)
    claim, route = best_claim(problem.rows(first), means, enough)
    members = np.full((encodings.m, problem.k), -1)
    members[usable] = claim.members[copy]
    seconds = {"claim": time.perf_counter() - started}
    if not len(claim.vectors):
        return Recovery.empty(encodings, "exact", claim.how, seconds).about(encodings)
    # What looks like noise may be the rounding of a grid, up to which a claim can be proved.
    exact = replace(claim, error=None) if grid_step(encodings.magnitudes()) else claim
    recovery = judged(encodings, exact, members, vectors, chosen, progress)
    if claim.error is not None and not recovery.verified.any():
        recovery = judged(encodings, claim, members, vectors, chosen, progress)
    few = 2 * recovery.explained < encodings.m and not recovery.verified.any()
    if few and claim.explained >= enough:
        # All equations hold within the rounding of what was released, and no better.
        noise = float(np.sqrt(np.mean(problem.step**2) / 3))
        uses = np.bincount(members[members >= 0], minlength=len(claim.vectors))
        claim = replace(claim, error=noise / np.sqrt(np.maximum(uses, 1)), noise=noise)
        recovery = judged(encodings, claim, members, vectors, chosen, progress)
    seconds["certificate"] = time.perf_counter() - started - seconds["claim"]
    related = route in ("pairs", "rounded pairs", "parity")
    evidence = {**recovery.evidence, "route": route, "how": claim.how, "relations": related}
    return replace(recovery, attack="exact", seconds=seconds, evidence=evidence).about(encodings)


def judged(
    encodings: Encodings,
    claim: Claim,
    members: Indices,
    public: NDArray[np.float32] | None,
    supports: Indices | None,
    progress: Progress | None,
) -> Recovery:
    """A claim after the certificate; members (m, k): those of all encodings.

    What is likeliest under noise is not exact, so it does not go there. A record whose standard
    error exceeds half of its size is not determined then."""
    if claim.error is None:
        return certify(
            encodings, claim.vectors, members, public, supports, claim.open, progress=progress
        )
    m, error = encodings.m, claim.error
    noise = claim.noise * encodings.scheme.private_weight
    size = float(np.sqrt(np.mean(claim.vectors.astype(np.float64) ** 2)))
    sure = error <= 0.5 * size
    reasons = tuple(
        f"known to about ±{off:.2g} per value: the encodings carry noise of about {noise:.2g}"
        if good
        else "the encodings that use it do not determine it"
        for off, good in zip(error, sure, strict=True)
    )
    rows = np.flatnonzero((members >= 0).all(axis=1))
    text = (
        f"{int(sure.sum())} private vectors recovered to about ±{np.median(error):.2g} per value; "
    )
    text += f"{len(rows)} of {m} encodings explained up to noise of about {noise:.2g}, so that "
    text += "nothing is exact"
    columns = members[rows].ravel()
    at = np.repeat(rows, members.shape[1]), columns
    return Recovery(
        vectors=claim.vectors.astype(np.float32),
        status=np.where(sure, UNRESOLVED, AMBIGUOUS).astype("<U10"),
        signed=public is not None,
        members=sparse.csr_array((np.ones(len(columns), bool), at), shape=(m, len(error))),
        residual=np.full(len(error), noise / max(encodings_rms(encodings), 1e-30)),
        reasons=reasons,
        attack="exact",
        explanation=text,
        evidence={
            "noise": noise,
            "standard_error": error.tolist(),
            "encodings_explained": len(rows),
        },
        explained=len(rows),
        doubtful=claim.open if claim.open.any() else None,
    )


def encodings_rms(encodings: Encodings) -> float:
    return float(np.sqrt(np.mean(np.square(encodings.values, dtype=np.float64))))


def best_claim(problem: Problem, means: Means, enough: float) -> tuple[Claim, str]:
    """The claim that explains most encodings, and the name of its route; the first route that
    explains enough ends the search."""
    best, name = Claim.nothing(problem, NOTHING), ""
    # Three encodings have more readings than equations, whatever they mix.
    if problem.m < 4 and (problem.k > 1 or problem.c is not None):
        return replace(
            best, how=f"{problem.m} different encodings are too few to determine any record"
        ), name
    for route in ROUTES:
        if late(means.deadline):
            break
        if route.applies(problem):
            claim = route.run(problem, means)
            unsolved = ~np.isfinite(claim.vectors)
            vectors = np.where(unsolved, np.float32(0), claim.vectors)
            claim = replace(claim, vectors=vectors, open=claim.open | unsolved)
            if claim.error is None and not holds(problem, claim):
                continue  # noise passes for equations that nearly hold
            if claim.explained > best.explained:
                best, name = claim, route.name
            if best.explained >= enough:
                break
    return best, name


def by_pairs(problem: Problem, means: Means) -> Claim:
    """k = 2: who is mixed with whom from relations, then all values."""

    def grow(rows: Rows) -> Pairs:
        return grow_pairs(rows, means.rng, deadline=means.deadline, progress=means.progress)

    return _grown(problem, means, grow, "relations, grown by votes")


def by_overlaps(problem: Problem, means: Means) -> Claim:
    """k = 2, many columns and encodings: who is mixed with whom from single overlaps."""
    rng, deadline, progress = means.rng, means.deadline, means.progress
    members = read_members(problem, rng=rng, deadline=deadline, progress=progress)

    def grow(rows: Rows) -> Pairs:
        return grow_from(rows, members, rng, deadline=deadline, progress=progress)

    return _grown(problem, means, grow, "overlaps read one by one")


def _grown(
    problem: Problem,
    means: Means,
    grow: Callable[[Rows], Pairs],
    how: str,
    *,
    sample: int = 512,
    columns: int = 64,
) -> Claim:
    """Pairs on the most telling columns, then the values of all.

    sample : columns that are looked at. columns : on which records are grown; the others follow."""
    some = np.sort(means.rng.permutation(problem.d)[:sample])
    rows = as_rows(problem.columns(some), means.rng)
    best = rows.columns[:columns]
    pairs = grow(rows.at(best))
    if not len(pairs.x):
        return Claim.nothing(problem, "no relations between encodings")
    values, opened = solve_columns(
        problem,
        pairs.members,
        len(pairs.x),
        known=(some[best], pairs.x),
        deadline=means.deadline,
        progress=means.progress,
    )
    claim = Claim(values.astype(np.float32), pairs.members, opened, how)
    return merge_copies(claim, 16 * problem.step, share=1.0)


def by_rounded_pairs(problem: Problem, means: Means) -> Claim:
    """The same where all encodings lie on a grid: relations hold within half a step of it."""
    step = np.maximum(problem.step, grid_step(problem.y) / 2)
    claim = by_pairs(replace(problem, step=step), means)
    return replace(claim, how=f"{claim.how}, within the rounding of a grid")


def by_noisy_pairs(
    problem: Problem,
    means: Means,
    *,
    columns: int = 64,
    attempts: int = 3,
    enough: float = 0.9,
) -> Claim:
    """The same within the noise that relations show, then the likeliest values.

    columns : on which records are grown. attempts : growths at most. enough : the share of the
    encodings that must be explained for another one not to be tried."""
    rng, deadline, progress = means.rng, means.deadline, means.progress
    some = np.sort(rng.permutation(problem.d)[:columns])
    rows = noisy_rows(problem.columns(some), rng, deadline=deadline)
    best = Claim.nothing(problem, "no relations between encodings, up to noise either")
    if rows is None:
        return best
    for _ in range(attempts):
        pairs = grow_pairs(
            rows, rng, starts=((0.1, 0, 12),), more=0, deadline=deadline, progress=progress
        )
        if not len(pairs.x):
            break
        known = np.asarray((pairs.members >= 0).all(axis=1))
        guess = np.argsort(rng.random((problem.m, len(pairs.x))), axis=1)[:, :2]
        guess[known] = pairs.members[known]
        sure = known.astype(np.float64)
        claim = from_guess(
            problem, guess, sure, locked=np.inf, rng=rng, deadline=deadline, progress=progress
        )
        if claim.explained > best.explained:
            best = claim
        if best.explained >= enough or late(deadline):
            break
    return best


def by_parity(problem: Problem, means: Means) -> Claim:
    return recover_by_parity(
        problem, rng=means.rng, deadline=means.deadline, progress=means.progress
    )


def by_similarity(problem: Problem, means: Means, *, attempts: int = 1) -> Claim:
    return recover_by_similarity(
        problem,
        attempts=attempts,
        rng=means.rng,
        deadline=means.deadline,
        progress=means.progress,
        memory_limit=means.memory_limit,
    )


def is_generic(problem: Problem, *, sample: int = 2000) -> bool:
    """Whether most columns look like magnitudes of normal numbers, and there are enough of them for
    similarities: about 30·k².

    Their fourth moment is three times the square of the second; of whole numbers, few levels,
    photographs or skewed columns it hardly ever is."""
    if problem.d < 30 * problem.k**2:
        return False
    y = problem.y[:sample, :sample].astype(np.float64)
    c = 0.0 if problem.c is None else problem.c[:sample, :sample].astype(np.float64)
    square = y**2 - c**2  # the cross term has mean zero
    ratio = np.mean(y**4, axis=0) / np.maximum(np.mean(y**2, axis=0) ** 2, 1e-300)
    spread = np.sqrt(96 / len(y))  # of the ratio, for normal numbers
    return bool(np.median(np.abs(ratio - 3)) < 2 * spread and np.mean(square) > 0)


NOTHING = "no relation between the encodings holds, and no records explain them up to noise"

ROUTES: tuple[Route, ...] = (
    Route(
        "overlaps",
        lambda p: p.k == 2 and p.m >= 2000 and p.d >= 200,
        by_overlaps,
        "Many columns, many encodings: who shares a record can be read, in one matrix product.",
    ),
    Route(
        "similarities",
        lambda p: p.k != 2 and is_generic(p),
        by_similarity,
        "Many columns of generic values: similarities of all pairs, in one matrix product.",
    ),
    Route(
        "pairs",
        lambda p: p.k == 2,
        by_pairs,
        "Two records each: equations lead from record to record, in any data.",
    ),
    Route(
        "rounded pairs",
        lambda p: p.k == 2 and float(grid_step(p.y)) > 0,
        by_rounded_pairs,
        "Encodings on a grid were perhaps rounded to it.",
    ),
    Route(
        "noisy pairs",
        lambda p: p.k == 2 and p.c is None and p.d < 30 * p.k**2,
        by_noisy_pairs,
        "Few columns and noise: equations that nearly hold, more of them than by accident.",
    ),
    Route(
        "parity",
        lambda p: p.k > 2,
        by_parity,
        "Three and more records each, many encodings: equations give memberships, in any data.",
    ),
    Route(
        "similarities, last",
        lambda p: True,
        partial(by_similarity, attempts=3),
        "Too few equations: what similarities there are, exact or up to noise.",
    ),
)
"""Tried in this order until one explains enough."""


def _supports(
    encodings: Encodings,
    public: NDArray[np.float32] | None,
    supports: Supports | Indices | None,
    progress: Progress | None,
) -> Indices | None:
    """(m, k_public) indices of public vectors, −1 where unknown; None without a public part."""
    if public is None or not encodings.scheme.k_public:
        return None
    if supports is None:
        from unveil.paper import learn_public

        supports = learn_public(encodings, public, progress=progress)
    chosen = supports.indices if isinstance(supports, Supports) else np.asarray(supports)
    return np.asarray(chosen, np.int64)


def replace_rows(encodings: Encodings, rows: Indices) -> Encodings:
    """Some of the encodings."""
    if len(rows) == encodings.m:
        return encodings
    return replace(encodings, values=encodings.values[rows], labels=None)


def _distinct_rows(problem: Problem) -> tuple[Indices, Indices]:
    """The first of each group of equal encodings, and for every encoding its place among them."""
    both = problem.y if problem.c is None else np.hstack([problem.y, problem.c])
    hashed = np.ascontiguousarray(both).view(
        np.dtype((np.void, both.dtype.itemsize * both.shape[1]))
    )
    _, first, inverse = np.unique(hashed.ravel(), return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return first[order], place[inverse.ravel()]
