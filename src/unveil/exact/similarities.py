"""Records of encodings whose values are generic, from similarities: the route for any k.

    S ← similarity of all pairs       what each number of shared records looks like, n, the noise
    W ← heat bath                     first guess at the memberships           (`overlaps`)
    W, x ← by turns                   on a few hundred columns, until rows hold exactly
    x ← values                        every column, from the rows that hold    (`values`)
    W, x ← leftovers                  rows that are left, records that were missed  (`leftovers`)

A draw that explains too little is repeated, with twice as many sweeps. Two encodings per record are
enough; the columns must be many and roughly Gaussian. For data of other kinds relations are the way
(`parity`, and for k = 2 `pairs`).

By turns. A first guess at the memberships may have a third of its rows wrong. Yet the values x that
solve it in the sense of least squares are good enough to give every row the k records with the
smallest misfit

    Σ_p t_p·(|Σ_{a∈S} x_a + c| − y)²,      t_p: columns that are solved well count for more,

by swaps of single members. Values solved from mostly right rows correct the others, and where there
is no noise a right row then fits *exactly*, which a wrong one does at few columns: the loop locks
in. Rows that do not fit lose their weight in the next solve.

Cost of a round: m·k·n·p for the swaps, and some sixty reflections (`values`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.engine.blocks import memory_limit as bytes_allowed
from unveil.engine.blocks import must_fit, one_blas_thread
from unveil.exact.leftovers import complete, drop_unused, settle
from unveil.exact.overlaps import Similarity, draw_members, similarity
from unveil.exact.problem import Claim, Indices, Mask, Problem, late
from unveil.exact.values import evidence, fit_matrix, gather, reflect, solve_values

Floats = NDArray[np.float64]
Values = NDArray[np.float32]
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
        if attempt == 1:  # what looked like noise may be chance
            with one_blas_thread():
                similar = similarity(y, k, c, rng=rng, noisy=False)
            count = min(similar.n, m - 1) if n is None else n
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


# --- By turns -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Assignment:
    """members (m, k); x (n, p); exact (m,): rows that hold at most columns; miss: the typical
    residual of the better rows, in units of a record's deviation."""

    members: Indices
    x: Values
    exact: Mask
    miss: float


def take_turns(
    y: Values,
    c: Values | None,
    members: Indices,
    sure: Floats,
    n: int,
    rng: np.random.Generator,
    *,
    rounds: int = 30,
    steps: tuple[int, int] = (200, 60),
    near: float = 0.02,
    share: float = 0.35,
    patience: int = 6,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Assignment:
    """Values and members by turns.

    y, c : (m, p) in units in which a record has variance 1 at each column.
    sure : (m,) weights to start from, between 0 and 1.
    n : columns of W, at least as many as there are records.
    steps : reflections of the first round, which starts from random signs, and of later ones.
    near, share : a row is exact when it misses by at most `near`·√k at this share of the columns. A
        wrong row does so at a few percent, and a column that is not solved yet fits nobody.
    patience : rounds without one more exact row after which the rest is left to `leftovers`.
    """
    m, k = members.shape
    v = np.float32(np.sqrt(k)) * rng.standard_normal(y.shape, dtype=np.float32)
    if c is not None:
        v = y * np.tanh(y * c / np.float32(k))
    weight = np.maximum(sure, 0.02)
    best: Assignment | None = None
    still = 0
    for turn in range(rounds):
        inverse = fit_matrix(members, n, weight)
        x, v = reflect(y, c, members, n, weight, inverse, v, steps=steps[turn > 0])
        miss = misfit(y, c, x, members)[weight > 0.5 * weight.max()]
        trust = 1 / (np.median(miss, axis=0) ** 2 + np.float32(1e-3))
        trust = np.asarray(trust / trust.mean(), dtype=np.float32)
        old = members
        members, cost = swap(y, c, x, members, trust)
        left = misfit(y, c, x, members)
        exact = (left < near * np.sqrt(k)).mean(axis=1) > share
        # Rows that descent leaves unexplained start again somewhere else.
        lost = np.flatnonzero(~exact)
        if len(lost) and exact.mean() > 0.5:
            other = np.argsort(rng.random((len(lost), n)), axis=1)[:, :k]
            cl = None if c is None else c[lost]
            other, value = swap(y[lost], cl, x, other, trust)
            better = value < cost[lost]
            members[lost[better]], cost[lost[better]] = other[better], value[better]
            left[lost] = misfit(y[lost], cl, x, members[lost])
            exact[lost] = (left[lost] < near * np.sqrt(k)).mean(axis=1) > share
        typical = max(float(np.quantile(cost, 0.3)), 1e-5)
        weight = 1 / (1 + (cost / (2.5 * typical)) ** 2)
        weight[exact] = np.maximum(weight[exact], 0.5)
        weight[weight < 0.05] = 0
        moved = np.flatnonzero((np.sort(members, axis=1) != np.sort(old, axis=1)).any(axis=1))
        v[moved] = gather(members[moved], x) + (0 if c is None else c[moved])
        still += 1
        if best is None or exact.sum() > best.exact.sum():
            still = 0
            size = float(np.quantile(np.median(left, axis=1), 0.3)) / 0.6745
            best = Assignment(members.copy(), x, exact, size)
        if progress:
            progress("rows explained", int(exact.sum()), m)
        if exact.all() or still >= patience or (stop and stop()):
            break
    assert best is not None
    return best


def misfit(y: Values, c: Values | None, x: Values, members: Indices) -> Values:
    """| |Σx + c| − y | (m, p)."""
    total = gather(members, x)
    return np.asarray(np.abs(np.abs(total if c is None else total + c) - y))


def swap(
    y: Values, c: Values | None, x: Values, members: Indices, trust: Values, *, passes: int = 4
) -> tuple[Indices, Floats]:
    """members after the best swaps of single members, sorted, and each row's mean square misfit.

    trust : (p,) weights of the columns, 1 on average.
    """
    out = members.copy()
    none = np.zeros((1, y.shape[1]), np.float32)
    cost = _swap(y, none if c is None else c, np.ascontiguousarray(x), out, trust, passes)
    return np.sort(out, axis=1), cost


@njit(cache=True, nogil=True, fastmath=True)
def _swap(y, c, x, members, trust, passes):  # type: ignore[no-untyped-def]
    m, k = members.shape
    n, p = x.shape
    cost = np.empty(m)
    rest = np.empty(p, np.float32)
    for i in range(m):
        best = np.float32(np.inf)
        for _ in range(passes):
            changed = False
            for q in range(k):
                for t in range(p):
                    rest[t] = c[i if len(c) > 1 else 0, t]
                for r in range(k):
                    if r != q:
                        for t in range(p):
                            rest[t] += x[members[i, r], t]
                take = members[i, q]
                for b in range(n):
                    other = False
                    for r in range(k):
                        other |= r != q and members[i, r] == b
                    if other:
                        continue
                    total = np.float32(0)
                    for t in range(p):
                        miss = abs(rest[t] + x[b, t]) - y[i, t]
                        total += trust[t] * miss * miss
                    if total < best - np.float32(1e-5):
                        best, take = total, b
                if take != members[i, q]:
                    members[i, q] = take
                    changed = True
            if not changed:
                break
        cost[i] = best / p
    return cost
