"""Records of encodings whose values are generic, from similarities: the route for any k.

    S ← similarity of all pairs       what each number of shared records looks like, n, the noise
    W ← heat bath                     first guess at the memberships           (`overlaps`)
    W, x ← by turns                   on a few hundred columns, until rows hold exactly
    x ← values                        every column, from the rows that hold    (`values`)
    W, x ← leftovers                  rows that are left, records that were missed  (`leftovers`)

Where no rows hold exactly there is noise, and x ← the likeliest values (`noise`). A draw that
explains too little is repeated, with twice as many sweeps. Two encodings per record are enough; the
columns must be many and roughly Gaussian. For data of other kinds relations are the way (`parity`,
and for k = 2 `pairs`).

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

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.engine.blocks import memory_limit as bytes_allowed
from unveil.engine.blocks import must_fit, one_blas_thread
from unveil.exact.leftovers import complete
from unveil.exact.noise import explain, fit_noisy
from unveil.exact.overlaps import draw_members, similarity
from unveil.exact.problem import Claim, Indices, Mask, Problem, Progress, column_scale, late
from unveil.exact.values import Design, incidence, reflect

Floats = NDArray[np.float64]
Values = NDArray[np.float32]


def recover_by_similarity(
    problem: Problem,
    *,
    rng: np.random.Generator,
    attempts: int = 3,
    enough: float = 0.9,
    deadline: float = np.inf,
    progress: Progress | None = None,
    memory_limit: int | None = None,
) -> Claim:
    """Records and memberships of encodings of generic values, exact or up to noise.

    Parameters
    ----------
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
    must_fit(
        9 * m * m + 16 * problem.y.nbytes // 4,
        f"similarities of {m:,} encodings",
        bytes_allowed(memory_limit),
        "attack fewer of them",
    )
    best = Claim.nothing(problem, "encodings share nothing, or noise hides it")
    scale = column_scale(problem)
    y = problem.y / scale
    c = None if problem.c is None else problem.c / scale
    for attempt in range(attempts):
        with one_blas_thread():  # what looked like noise may be chance
            similar = similarity(y, k, c, rng=rng, noisy=attempt % 2 == 0)
        if not k < similar.n < m:
            continue
        members, sure = draw_members(
            similar,
            k,
            similar.n,
            rng,
            sweeps=max(100, 60_000 // m) * 2**attempt,
            stop=lambda: late(deadline),
            progress=progress,
        )
        claim = from_guess(problem, members, sure, rng=rng, deadline=deadline, progress=progress)
        if claim.explained > best.explained:
            best = claim
        if best.explained >= enough or late(deadline):
            break
    return best


def from_guess(
    problem: Problem,
    guess: Indices,
    sure: Floats,
    *,
    rng: np.random.Generator,
    columns: int = 300,
    room: int = 3,
    locked: float = 0.1,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Claim:
    """From a first guess at the memberships to a claim: by turns, values, leftovers.

    columns : on which members are found; a wrong row fits a few percent of them, so that more would
        only cost time.
    room : columns of W beyond those of the guess, for records that were missed.
    locked : the share of rows that hold exactly where there is no noise.
    """
    scale = column_scale(problem)
    some = np.sort(rng.permutation(problem.d)[:columns])
    part = problem.columns(some)
    with one_blas_thread():
        members, exact = alternate(
            part.y / scale[some],
            None if part.c is None else part.c / scale[some],
            guess,
            sure,
            int(guess.max()) + 1 + room,
            rng,
            stop=lambda: late(deadline),
            progress=progress,
        )
    if exact.mean() < locked:
        fit, even = fit_noisy(problem, members, rng=rng, deadline=deadline, progress=progress)
        return fit if even else Claim.nothing(problem, fit.how)
    # A row with a record that no other exact row holds fits whatever it is.
    uses = np.bincount(members[exact].ravel(), minlength=int(members.max()) + 1)
    exact &= (uses[members] > 1).all(axis=1)
    members[~exact] = -1
    claim = explain(problem, members, rng=rng, deadline=deadline, progress=progress)
    if claim.error is not None:
        return claim
    return complete(problem, claim, rng=rng, deadline=deadline, progress=progress)


def each_alone(problem: Problem) -> Claim:
    """k = 1 without a public part: an encoding is its record, up to the sign of every value."""
    near = np.maximum(4 * problem.step, 1e-30)
    _, first, name = np.unique(
        np.round(problem.y / near), axis=0, return_index=True, return_inverse=True
    )
    vectors = problem.y[first]
    return Claim(vectors, name.reshape(-1, 1), vectors > near, "encodings of one record each")


def alternate(
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
    progress: Progress | None = None,
) -> tuple[Indices, Mask]:
    """(members (m, k), rows that hold at most columns) after values and members by turns.

    y, c : (m, p) in units in which a record has variance 1 at each column.
    sure : (m,) weights to start from, between 0 and 1.
    n : columns of W, at least as many as there are records.
    steps : reflections of the first round, which starts from random signs, and of later ones.
    near, share : a row is exact when it misses by at most `near`·√k at this share of the columns. A
        wrong row does so at a few percent, and a column that is not solved yet fits nobody.
    patience : rounds without one more exact row after which the rest is left to `leftovers`.
    """
    m, k = members.shape
    plain = np.float32(0) if c is None else c
    v = np.float32(np.sqrt(k)) * rng.standard_normal(y.shape, dtype=np.float32)
    if c is not None:
        v = y * np.tanh(y * c / np.float32(k))
    weight = np.maximum(sure, 0.02)
    best, best_exact, still = members, np.zeros(m, bool), 0
    for turn in range(rounds):
        x, v = reflect(y, c, Design(members, n, weight), v, steps=steps[turn > 0])
        miss = misfit(y, c, x, members)[weight > 0.5 * weight.max()]
        trust = 1 / (np.median(miss, axis=0) ** 2 + np.float32(1e-3))
        trust = np.asarray(trust / trust.mean(), dtype=np.float32)
        old = members
        members, cost = swap(y, c, x, members, trust)
        exact = (misfit(y, c, x, members) < near * np.sqrt(k)).mean(axis=1) > share
        # Rows that descent leaves unexplained start again somewhere else.
        lost = np.flatnonzero(~exact)
        if len(lost) and exact.mean() > 0.5:
            other = np.argsort(rng.random((len(lost), n)), axis=1)[:, :k]
            cl = None if c is None else c[lost]
            other, value = swap(y[lost], cl, x, other, trust)
            better = value < cost[lost]
            members[lost[better]], cost[lost[better]] = other[better], value[better]
            left = misfit(y[lost], cl, x, members[lost])
            exact[lost] = (left < near * np.sqrt(k)).mean(axis=1) > share
        typical = max(float(np.quantile(cost, 0.3)), 1e-5)
        weight = 1 / (1 + (cost / (2.5 * typical)) ** 2)
        weight[exact] = np.maximum(weight[exact], 0.5)
        weight[weight < 0.05] = 0
        moved = np.flatnonzero((np.sort(members, axis=1) != np.sort(old, axis=1)).any(axis=1))
        v[moved] = (incidence(members, n) @ x + plain)[moved]
        still = 0 if exact.sum() > best_exact.sum() else still + 1
        if exact.sum() >= best_exact.sum():
            best, best_exact = members.copy(), exact
        if progress:
            progress("rows explained", int(exact.sum()), m)
        if exact.all() or still >= patience or (stop and stop()):
            break
    return best, best_exact


def misfit(y: Values, c: Values | None, x: Values, members: Indices) -> Values:
    """| |Σx + c| − y | (m, p)."""
    total = incidence(members, len(x)) @ x
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
