"""Records of encodings whose values are generic, from similarities: the route for any k.

    S ← similarity of all pairs       what each number of shared records looks like, n, the noise
    W ← heat bath                     first guess at the memberships           (`overlaps`)
    W, x ← by turns                   on a few hundred columns, until rows hold exactly  (`turns`)
    x ← values                        every column, from the rows that hold    (`values`)
    W, x ← leftovers                  rows that are left, records that were missed  (`leftovers`)

Of many encodings of two records single overlaps are read first (`cliques`): it costs a few products
of the encodings with themselves, and nothing is m×m.
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
from unveil.exact.cliques import recover_sparse
from unveil.exact.leftovers import complete, drop_unused, settle
from unveil.exact.overlaps import Similarity, draw_members, similarity
from unveil.exact.problem import Claim, Indices, Problem
from unveil.exact.turns import take_turns
from unveil.exact.values import evidence, late, solve_values
from unveil.records import Overlaps

Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]


def recover_by_similarity(
    problem: Problem,
    *,
    n: int | None = None,
    rng: np.random.Generator,
    attempts: int = 3,
    enough: float = 0.9,
    many: int = 2000,
    overlaps: Overlaps | None = None,
    deadline: float | None = None,
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
    many : int
        Encodings of two records from which on single overlaps are read first.
    overlaps : Overlaps or None
        For that, where they are known; beside a public part they must be.
    deadline : float or None
        A time by `time.monotonic`, after which the best claim so far is returned.
    memory_limit : int or None
        Bytes; the similarities of all pairs take about nine for each pair.
    """
    m, k = problem.m, problem.k
    if k == 1 and problem.c is None:
        return each_alone(problem)
    best = Claim.nothing(problem, "similarities")
    if k == 2 and m >= many and (problem.c is None or overlaps is not None):
        best = recover_sparse(
            problem,
            overlaps=overlaps,
            rng=rng,
            deadline=deadline,
            progress=progress,
            memory_limit=memory_limit,
        )
        if len(best.vectors):
            best = finish_leftovers(problem, best, rng=rng, deadline=deadline, progress=progress)
        fits = 9 * m * m < bytes_allowed(memory_limit)
        if best.explained >= enough or late(deadline) or not fits:
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
        return replace(best, how="encodings share nothing, or noise hides it")
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
    deadline: float | None = None,
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
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Claim:
    """Leftovers, and values of records that are open somewhere from all of their rows."""
    before, old = len(claim.vectors), claim.members
    claim = complete(problem, claim, rng=rng, deadline=deadline, progress=progress)
    doubtful = claim.open.any(axis=1)
    if doubtful.any() and (len(claim.vectors) != before or not np.array_equal(old, claim.members)):
        claim = settle(problem, claim, np.flatnonzero(doubtful))
    return drop_unused(claim)


def column_scale(problem: Problem) -> NDArray[np.float32]:
    """(d,): the deviation of a record at each column, if records have mean 0."""
    power = np.mean(np.square(problem.y, dtype=np.float64), axis=0)
    if problem.c is not None:
        power = power - np.mean(np.square(problem.c, dtype=np.float64), axis=0)
    size = np.sqrt(np.maximum(power, 0) / problem.k)
    floor = 1e-3 * float(np.median(size)) + 1e-30
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
