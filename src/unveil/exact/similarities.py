"""Records of encodings whose values are generic, from similarities: the route for any k.

    S ← similarity of all pairs       what each number of shared records looks like, n, the noise
    W ← heat bath                     first guess at the memberships           (`overlaps`)
    W, x ← by turns                   on a few hundred columns, until rows hold exactly  (`turns`)
    x ← values                        every column, from the rows that hold    (`values`)
    W, x ← leftovers                  rows that are left, records that were missed  (`leftovers`)

A draw that explains too little is repeated, with twice as many sweeps. Two encodings per record are
enough; the columns must be many and roughly Gaussian. For data of other kinds relations are the way
(`signs`, and for k = 2 the routes beside this one).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.engine.blocks import memory_limit as bytes_allowed
from unveil.engine.blocks import must_fit, one_blas_thread
from unveil.exact.leftovers import complete, drop_unused, settle
from unveil.exact.overlaps import Similarity, draw_members, similarity
from unveil.exact.problem import Claim, Indices, Problem, late
from unveil.exact.turns import take_turns
from unveil.exact.values import evidence, solve_values

Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]


def recover_by_similarity(
    problem: Problem,
    *,
    n: int | None = None,
    rng: np.random.Generator,
    attempts: int = 3,
    enough: float = 0.9,
    deadline: float = np.inf,
    progress: Progress | None = None,
    memory_limit: int | None = None,
) -> Claim:
    """Records and memberships of encodings of generic values.

    Parameters
    ----------
    n : int or None
        The number of records; None: estimated from the moments of the similarities.
    attempts : int
        Draws of the heat bath at most.
    enough : float
        The share of encodings that a draw must lead to; else there is another one.
    deadline : float
        A time by `time.monotonic`, after which the best claim so far is returned.
    memory_limit : int or None
        Bytes; the similarities of all pairs take about nine for each pair.
    """
    m, k = problem.m, problem.k
    if k == 1 and problem.c is None:
        return each_alone(problem)
    best = Claim.nothing(problem, "encodings share nothing, or noise hides it")
    if m < 4:
        return best
    must_fit(
        9 * m * m + 16 * problem.y.nbytes // 4,
        f"similarities of {m:,} encodings",
        bytes_allowed(memory_limit),
        "attack fewer of them",
    )
    scale = column_scale(problem)
    y = problem.y / scale
    c = None if problem.c is None else problem.c / scale
    with one_blas_thread():
        similar = similarity(y, k, c, rng=rng)
    count = similar.n if n is None else n
    if count >= m or count < k + 1:
        return best
    if k == 1:
        return solve_values(problem, shared_record(similar), rng=rng, deadline=deadline)
    for attempt in range(attempts):
        members, sure = draw_members(
            similar,
            k,
            count,
            rng,
            sweeps=max(100, 60_000 // m) * 2**attempt,
            stop=lambda: late(deadline),
            progress=progress,
        )
        claim = finish(problem, members, sure, rng=rng, deadline=deadline, progress=progress)
        if claim.explained > best.explained:
            best = claim
        if best.explained >= enough or late(deadline):
            break
    return best


def finish(
    problem: Problem,
    members: Indices,
    sure: Floats,
    *,
    rng: np.random.Generator,
    columns: int = 300,
    room: int = 3,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Claim:
    """From a first guess at the memberships to a claim: by turns, values, leftovers.

    columns : on which members are found; a wrong row fits a few percent of them, so that more would
        only cost time.
    room : columns of W beyond those of the guess, for records that were missed.
    """
    scale = column_scale(problem)
    some = np.sort(rng.permutation(problem.d)[:columns])
    part = problem.columns(some)
    with one_blas_thread():
        found = take_turns(
            part.y / scale[some],
            None if part.c is None else part.c / scale[some],
            members,
            sure,
            int(members.max()) + 1 + room,
            rng,
            stop=lambda: late(deadline),
            progress=progress,
        )
    rows = np.flatnonzero(found.exact)
    rows = rows[evidence(found.members[rows])]
    if len(rows) <= problem.k + 2:
        return Claim.nothing(problem, "similarities")
    names = np.full((problem.m, problem.k), -1)
    names[rows] = found.members[rows]
    claim = solve_values(problem, names, rng=rng, deadline=deadline, progress=progress)
    return finish_leftovers(problem, claim, rng=rng, deadline=deadline, progress=progress)


def finish_leftovers(
    problem: Problem,
    claim: Claim,
    *,
    rng: np.random.Generator,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Claim:
    """Leftovers, and values of records that are open somewhere from all of their rows."""
    before, old = len(claim.vectors), claim.members
    claim = complete(problem, claim, rng=rng, deadline=deadline, progress=progress)
    doubtful = claim.open.any(axis=1)
    if doubtful.any() and (len(claim.vectors) != before or not np.array_equal(old, claim.members)):
        claim = settle(problem, claim, np.flatnonzero(doubtful))
    return _solve_again(problem, drop_unused(claim), rng, deadline)


def _solve_again(
    problem: Problem, claim: Claim, rng: np.random.Generator, deadline: float, *, slack: float = 4.0
) -> Claim:
    """Columns at which encodings fail that were explained last: fewer encodings had another
    solution there."""
    rows = np.flatnonzero((claim.members >= 0).all(axis=1))
    failed = np.zeros(problem.d, bool)
    for s in range(0, len(rows), 4096):
        some = rows[s : s + 4096]
        total = claim.vectors[claim.members[some]].sum(axis=1)
        total = total if problem.c is None else total + problem.c[some]
        failed |= (np.abs(np.abs(total) - problem.y[some]) > slack * problem.step).any(axis=0)
    columns = np.flatnonzero(failed)
    if not len(columns) or late(deadline):
        return claim
    again = solve_values(problem.columns(columns), claim.members, rng=rng, deadline=deadline)
    if not np.array_equal(again.members, claim.members):
        return claim
    vectors, open_ = claim.vectors.copy(), claim.open.copy()
    vectors[:, columns], open_[:, columns] = again.vectors, again.open
    return replace(claim, vectors=vectors, open=open_)


def column_scale(problem: Problem) -> NDArray[np.float32]:
    """(d,): the deviation of a record at each column, if records have mean 0."""
    power = np.mean(np.square(problem.y, dtype=np.float64), axis=0)
    if problem.c is not None:
        power = power - np.mean(np.square(problem.c, dtype=np.float64), axis=0)
    size = np.sqrt(np.maximum(power, 0) / problem.k)
    # A column without a private part must not drown the others.
    floor = 1e-3 * float(np.sqrt(np.mean(problem.y**2, dtype=np.float64))) + 1e-30
    return np.asarray(np.maximum(size, floor), dtype=np.float32)


def shared_record(similar: Similarity) -> Indices:
    """k = 1: (m, 1) the record of every encoding: those that are more likely to share theirs than
    not are connected."""
    mean, deviation = similar.mean, np.sqrt(similar.variance)
    between = (mean[0] * deviation[1] + mean[1] * deviation[0]) / deviation.sum()
    graph = sparse.csr_array(between < similar.S)
    return connected_components(graph, directed=False)[1].astype(np.int64)[:, None]


def each_alone(problem: Problem) -> Claim:
    """k = 1 without a public part: an encoding is its record, up to the sign of every value."""
    near = np.maximum(4 * problem.step, 1e-30)
    _, first, name = np.unique(
        np.round(problem.y / near), axis=0, return_index=True, return_inverse=True
    )
    vectors = problem.y[first]
    return Claim(vectors, name.reshape(-1, 1), vectors > near, "encodings of one record each")
