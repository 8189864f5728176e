"""Values of all records, once it is known which of them each encoding mixes; any k.

At every column on its own |Wx + c| = y: phase retrieval with one sparse W for all columns. Three
ways to a solution, from the fastest to the last resort:

    peeling       a row all of whose other members are known leaves its last one two values,
                  ±y − c − rest; where several rows say the same, it is settled. For k = 2 a
                  triangle of encodings is a start: its 2³ signs give x_a = (u_ab + u_ac − u_bc)/2,
                  and wrong ones find no second row that agrees. Costs m·k per column.
    reflections   relaxed reflections between A = {v : |v| = y} and B = {Wx + c},
                      v ← v + β·(P_A(2·P_B(v) − v) − P_B(v)),  P_A(v) = y·sign(v),
                  from random signs: tens of steps for m ≥ 4n, hundreds near m = 2n. A column leaves
                  as soon as it is solved. Needs a matrix n×n.
    search        columns that reflections leave: the records whose rows all hold stay, the others
                  are peeled again, and where that stalls both values of one are tried in turn.

Then least squares with the signs found, in double precision. A value is *open* where another one
explains all encodings of its record, where W does not determine it, or where no way led to a
solution of its column.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.engine.blocks import memory_limit as bytes_allowed
from unveil.engine.blocks import one_blas_thread
from unveil.exact.problem import Claim, Indices, Mask, Problem

Floats = NDArray[np.float64]
Values = NDArray[np.float32]
Progress = Callable[[str, int, int], None]


def solve_values(
    problem: Problem,
    members: Indices,
    *,
    rng: np.random.Generator,
    tries: int = 6,
    steps: int = 150,
    slack: float = 16.0,
    block: int = 256,
    deadline: float | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Claim:
    """The values of all records that `members` (m, k) names; rows with a −1 take no part.

    Records keep their order, those that no row uses are dropped. A row that fails at most columns
    at which nearly all others hold is wrong: its members become −1.

    tries, steps : random starts of reflections at a column, each with half as many steps again as
        the last.
    slack : how far a row may miss, in units of `problem.step`: errors of several rows add up.
    block : columns that are solved together.
    deadline : a time by `time.monotonic`; columns that were not reached by then are open.
    """
    m, d, k = problem.m, problem.d, problem.k
    used, names = np.unique(members, return_inverse=True)
    names = names.reshape(members.shape) - int(used[0] < 0)
    whole = np.flatnonzero((names >= 0).all(axis=1) & distinct(names))
    rows = whole[evidence(names[whole])]
    n = len(used) - int(used[0] < 0)
    near = slack * problem.step
    x, open_ = np.zeros((n, d)), np.ones((n, d), bool)
    dense = 12 * n * n < bytes_allowed(memory_limit) // 2
    order = rng.permutation(d)
    seconds_thoughts = 2
    start = 0
    while start < d and len(rows) and not late(deadline):
        columns = order[start : start + block]
        part = problem.columns(columns).rows(rows)
        with one_blas_thread():
            values, solved, missed = _solve_block(
                part, names[rows], n, near[columns], rng, tries, steps, dense
            )
        # Wrong rows spoil every column: they are looked for on the first ones, and left out.
        wrong = missed > 0.5
        if start == 0 and wrong.any() and seconds_thoughts and wrong.mean() < 0.5:
            whole = np.setdiff1d(whole, rows[wrong])
            rows = whole[evidence(names[whole])]
            seconds_thoughts -= 1
            continue
        x[:, columns] = values
        open_[:, columns] = open_values(part, names[rows], values, near[columns]) | ~solved
        start += block
        if progress:
            progress("values", min(start, d), d)
    # Values that no second encoding confirms, and those that W does not determine.
    settled = np.flatnonzero(~open_.all(axis=0))
    lonely = np.bincount(names[rows].ravel(), minlength=n) == 0
    open_[_undetermined(names[rows], n, rng) | lonely] = True
    if lonely.any():
        x[:, settled] = _pendant(problem.columns(settled).rows(whole), names[whole], x[:, settled])
    kept = np.flatnonzero(np.bincount(names[whole].ravel(), minlength=n) > 0)
    name = np.full(n + 1, -1)
    name[kept] = np.arange(len(kept))
    out = np.full((m, k), -1)
    out[whole] = name[names[whole]]
    return Claim(x[kept].astype(np.float32), out, open_[kept])


def evidence(members: Indices) -> Mask:
    """Rows that are evidence. One with a record that no other row uses fits whatever it holds, so
    it is dropped; then its other members may be left with one row."""
    keep = np.ones(len(members), bool)
    while len(members):
        count = np.bincount(members[keep].ravel(), minlength=int(members.max()) + 1)
        lonely = keep & (count[members] < 2).any(axis=1)
        if not lonely.any():
            break
        keep &= ~lonely
    return keep


def _pendant(part: Problem, members: Indices, x: Floats) -> Floats:
    """x with one of the two possible values at records that one row alone speaks of."""
    c = 0.0 if part.c is None else part.c.astype(np.float64)
    total = gather(members, x) + c
    return least_squares(members, np.copysign(part.y.astype(np.float64), total) - c, x)


def late(deadline: float | None) -> bool:
    """Whether this time, by `time.monotonic`, has passed."""
    return deadline is not None and time.monotonic() >= deadline


def distinct(members: Indices) -> Mask:
    """Rows that hold no record twice."""
    return np.asarray((np.diff(np.sort(members, axis=1), axis=1) > 0).all(axis=1))


def _solve_block(
    part: Problem,
    members: Indices,
    n: int,
    near: Floats,
    rng: np.random.Generator,
    tries: int,
    steps: int,
    dense: bool,
    *,
    rough: float = 0.03,
) -> tuple[Floats, Mask, Floats]:
    """x (n, p) of some columns, which of them are solved, and the share of columns that each row
    missed by more than `rough` of their size, among those that nearly all rows fit so far."""
    m, p = part.y.shape
    c = np.zeros((1, p)) if part.c is None else part.c.astype(np.float64)
    y = part.y.astype(np.float64)
    x, best = np.zeros((n, p)), np.full(p, -1)
    fits, roughly = np.zeros((m, p), bool), np.zeros((m, p), bool)
    inverse = None
    for turn in range(-1, tries):
        left = np.flatnonzero(best < m)
        if not len(left):
            break
        guess: Floats | Values
        if turn < 0:
            if part.k != 2:
                continue
            guess = peel_pairs(part.columns(left), members, n, near[left], rng)
        elif not dense:
            break
        else:
            if inverse is None:
                inverse = fit_matrix(members, n, np.ones(m))
            scale = np.sqrt(np.mean(part.y[:, left] ** 2, axis=0)) + np.float32(1e-30)
            ys = part.y[:, left] / scale
            cs = None if part.c is None else part.c[:, left] / scale
            v = rng.standard_normal(ys.shape, dtype=np.float32)
            if cs is not None and turn == 0:
                v = ys * np.tanh(ys * cs)
            many = int(steps * 1.5**turn)
            guess = reflect(ys, cs, members, n, np.ones(m), inverse, v, steps=many)[0] * scale
        some = np.ascontiguousarray(guess, dtype=np.float64)
        cl = c if len(c) == 1 else np.ascontiguousarray(c[:, left])
        cl = np.ascontiguousarray(cl[:, left]) if len(c) == 1 else cl
        yl = np.ascontiguousarray(y[:, left])
        for _ in range(1 if turn < 0 else 2):  # values near zero may change their sign
            target = np.copysign(yl, gather(members, some) + cl) - cl
            some = least_squares(members, target, some, most=20 if turn < 0 else 200)
        miss = np.abs(np.abs(gather(members, some) + cl) - yl)
        hold = miss <= near[left]
        count = hold.sum(axis=0)
        better = count > best[left]
        x[:, left[better]], best[left[better]] = some[:, better], count[better]
        fits[:, left[better]] = hold[:, better]
        roughly[:, left[better]] = (miss <= rough * np.sqrt(np.mean(yl**2, axis=0)))[:, better]
        # With wrong rows no column is ever solved: one start is enough to find them.
        nearly = roughly.mean(axis=0) > 0.8
        if turn <= 0 and not (best == m).any() and nearly.mean() > 0.5:
            break
    left = np.flatnonzero((best < m) & (best > 0.8 * m))
    if len(left) and (best == m).any():
        some = search(part.columns(left), members, x[:, left], fits[:, left], near[left])
        hold = np.abs(np.abs(gather(members, some) + _of(c, left)) - y[:, left]) <= near[left]
        good = hold.all(axis=0)
        x[:, left[good]], fits[:, left[good]], best[left[good]] = some[:, good], True, m
    # A wrong row moves the others a little, so that nothing holds exactly beside it.
    roughly |= fits
    nearly = roughly.mean(axis=0) > 0.8
    missed = 1 - roughly[:, nearly].mean(axis=1) if nearly.any() else np.zeros(m)
    return x, best == m, missed


def _of(c: Floats, columns: Indices) -> Floats:
    return np.ascontiguousarray(c[:, columns])


# --- Reflections ----------------------------------------------------------------------------------


def fit_matrix(members: Indices, n: int, weight: Floats, *, ridge: float = 1e-4) -> Values:
    """(WᵀDW + ridge)⁻¹ for rows weighted by D; the ridge keeps records that no row uses at zero."""
    gram = np.zeros((n, n))
    for a in range(members.shape[1]):
        for b in range(members.shape[1]):
            np.add.at(gram, (members[:, a], members[:, b]), weight)
    gram[np.diag_indices(n)] += ridge
    return np.asarray(np.linalg.inv(gram), dtype=np.float32)


def reflect(
    y: Values,
    c: Values | None,
    members: Indices,
    n: int,
    weight: Floats,
    inverse: Values,
    v: Values,
    *,
    steps: int,
    beta: float = 0.5,
    solved: float = 1e-3,
) -> tuple[Values, Values]:
    """x (n, p) and the signed encodings v (m, p) after relaxed reflections from v.

    y, c : in units in which y has a size of about 1 at every column. Rows of weight 0 take no part.
    beta : relaxation; 1 circles where rows contradict each other, small values are slow.
    solved : a column at which no row misses by more has arrived.
    """
    use = weight > 0
    rows = np.ascontiguousarray(members[use])
    w = weight[use].astype(np.float32)
    x, out = np.zeros((n, y.shape[1]), np.float32), v.copy()
    for s in range(0, y.shape[1], 256):
        here = np.arange(s, min(s + 256, y.shape[1]))
        yl = np.ascontiguousarray(y[use][:, here])
        cl = np.zeros((1, len(here)), np.float32) if c is None else c[use][:, here]
        cl = np.ascontiguousarray(cl)
        vl = np.ascontiguousarray(v[use][:, here])
        total, miss = np.zeros((n, len(here)), np.float32), np.empty(len(here), np.float32)
        _scatter(rows, w, vl, cl, total)
        for step in range(steps + 1):
            z = inverse @ total
            _reflect(yl, cl, rows, w, z, vl, np.float32(beta), total, miss)
            done = miss < solved
            if step < steps and not done.all() and (step % 8 or done.mean() < 0.2):
                continue
            if step == steps:
                done[:] = True
            x[:, here[done]] = z[:, done]
            out[np.ix_(use, here[done])] = vl[:, done]
            if done.all():
                break
            here, yl, vl = here[~done], yl[:, ~done].copy(), vl[:, ~done].copy()
            cl, total, miss = cl[:, ~done].copy(), total[:, ~done].copy(), miss[~done].copy()
    return x, out


@njit(cache=True, nogil=True, fastmath=True)
def _scatter(members, weight, v, c, total):  # type: ignore[no-untyped-def]
    """total ← WᵀD(v − c)."""
    total[:] = 0
    for i in range(len(members)):
        o = i if len(c) > 1 else 0
        for q in range(members.shape[1]):
            r = members[i, q]
            for p in range(v.shape[1]):
                total[r, p] += weight[i] * (v[i, p] - c[o, p])


@njit(cache=True, nogil=True, fastmath=True)
def _reflect(y, c, members, weight, z, v, beta, total, miss):  # type: ignore[no-untyped-def]
    """One step from z = P_B(v), in place: v, WᵀD(v − c), and the largest residual of z."""
    m, p = y.shape
    onto = np.empty(p, np.float32)
    total[:] = 0
    miss[:] = 0
    for i in range(m):
        o = i if len(c) > 1 else 0
        for t in range(p):
            onto[t] = c[o, t]
        for q in range(members.shape[1]):
            r = members[i, q]
            for t in range(p):
                onto[t] += z[r, t]
        w = weight[i]
        for t in range(p):
            miss[t] = max(miss[t], abs(abs(onto[t]) - y[i, t]))
            there = y[i, t] if 2 * onto[t] - v[i, t] >= 0 else -y[i, t]
            v[i, t] += beta * (there - onto[t])
            onto[t] = w * (v[i, t] - c[o, t])
        for q in range(members.shape[1]):
            r = members[i, q]
            for t in range(p):
                total[r, t] += onto[t]


# --- Least squares --------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def gather(members, x):  # type: ignore[no-untyped-def]
    """Wx (m, p): the sum of the records of every row."""
    out = np.zeros((len(members), x.shape[1]), x.dtype)
    for i in range(len(members)):
        for q in range(members.shape[1]):
            for t in range(x.shape[1]):
                out[i, t] += x[members[i, q], t]
    return out


def least_squares(
    members: Indices, target: Floats, x: Floats, *, most: int = 200, tight: float = 1e-13
) -> Floats:
    """argmin ‖Wx − target‖ by conjugate gradients from x, every column on its own.

    What W does not determine stays as it is in x. Each step costs 2·m·k per column."""
    one, none = np.ones(len(members)), np.zeros((1, x.shape[1]))
    x = x.copy()
    r = np.empty_like(x)
    _scatter(members, one, target - gather(members, x), none, r)
    p, rr = r.copy(), np.einsum("ij,ij->j", r, r)
    floor = tight * np.maximum(np.einsum("ij,ij->j", target, target), 1e-300)
    Ap = np.empty_like(x)
    for _ in range(most):
        if (rr <= floor).all():
            break
        _scatter(members, one, gather(members, p), none, Ap)
        alpha = np.where(rr > floor, rr / np.maximum(np.einsum("ij,ij->j", p, Ap), 1e-300), 0.0)
        x += alpha * p
        r -= alpha * Ap
        new = np.einsum("ij,ij->j", r, r)
        p = r + (new / np.maximum(rr, 1e-300)) * p
        rr = new
    return x


def _undetermined(members: Indices, n: int, rng: np.random.Generator) -> Mask:
    """(n,): records that some null vector of W touches. A random vector has a part in the null
    space, which least squares from 0 cannot reach."""
    r = rng.standard_normal((n, 1))
    if not len(members):
        return np.ones(n, bool)
    reached = least_squares(members, gather(members, r), np.zeros((n, 1)), most=1000, tight=1e-20)
    return np.asarray(np.abs(r - reached)[:, 0] > 1e-5)


# --- Peeling --------------------------------------------------------------------------------------


def rows_of(members: Indices, n: int) -> tuple[Indices, Indices]:
    """(indptr (n + 1,), rows): in which rows each record is."""
    order = np.argsort(members.ravel(), kind="stable")
    count = np.bincount(members.ravel(), minlength=n)
    return np.append(0, np.cumsum(count)), order // members.shape[1]


def peel_pairs(
    part: Problem,
    members: Indices,
    n: int,
    near: Floats,
    rng: np.random.Generator,
    *,
    starts: int = 8,
    enough: float = 0.9,
) -> Floats:
    """k = 2: x (n, p), 0 where it is not reached; rows may be wrong here and there.

    starts : triangles that are tried, one after the other, for columns that are not done.
    enough : share of the rows that must hold for a column to be done.
    """
    m, p = part.y.shape
    c = np.zeros((1, p)) if part.c is None else part.c.astype(np.float64)
    y = part.y.astype(np.float64)
    indptr, rows = rows_of(members, n)
    found = _triangles(indptr, rows, members, 4000)
    x, best = np.zeros((n, p)), np.zeros(p, np.int64)
    reached = 0
    for t in rng.permutation(len(found))[: 8 * starts]:
        left = np.flatnonzero(best < enough * m)
        if not len(left) or not starts:
            break
        order, ear = _peeling_order(indptr, rows, members, found[t, :3])
        if len(order) < max(reached, 4):
            continue
        reached = int(0.9 * len(order))
        starts -= 1
        some, count = _peel_triangle(
            np.ascontiguousarray(y[:, left]),
            np.ascontiguousarray(c[:, left]),
            indptr,
            rows,
            members,
            order,
            ear,
            found[t],
            near[left],
        )
        better = count > best[left]
        x[:, left[better]], best[left[better]] = some[:, better], count[better]
    return x


@njit(cache=True, nogil=True)
def _triangles(indptr, rows, members, most):  # type: ignore[no-untyped-def]
    """(t, 6): three records a, b, e of pairs, then the rows ab, ae, be."""
    out = np.empty((most, 6), np.int64)
    count = 0
    n = len(indptr) - 1
    edge = np.full(n, -1, np.int64)
    for a in range(n):
        for t in range(indptr[a], indptr[a + 1]):
            i = rows[t]
            edge[members[i, 0] + members[i, 1] - a] = i
        for t in range(indptr[a], indptr[a + 1]):
            i = rows[t]
            b = members[i, 0] + members[i, 1] - a
            if b < a:
                continue
            for s in range(indptr[b], indptr[b + 1]):
                j = rows[s]
                e = members[j, 0] + members[j, 1] - b
                if e > b and edge[e] >= 0 and count < most:
                    out[count] = (a, b, e, i, edge[e], j)
                    count += 1
        for t in range(indptr[a], indptr[a + 1]):
            i = rows[t]
            edge[members[i, 0] + members[i, 1] - a] = -1
    return out[:count]


@njit(cache=True, nogil=True)
def _peeling_order(indptr, rows, members, known):  # type: ignore[no-untyped-def]
    """(records in the order they are reached, the row that closes an ear there or −1).

    First those that two rows or more have as their last unknown member. On a stall an *ear*: a row
    with two unknown members, each of which is the last one of another row; it stands beside the
    first of them, and the second follows with −2."""
    n = len(indptr) - 1
    m, k = members.shape
    unknown = np.full(m, k, np.int64)
    done = np.zeros(n, np.bool_)
    ready = np.zeros(n, np.int64)
    order, ear = np.empty(n, np.int64), np.full(n, -1, np.int64)
    second = -1
    for step in range(n):
        if step < len(known):
            j = known[step]
        elif second >= 0:
            j, second = second, -1
            ear[step] = -2
        else:
            j = np.argmax(ready)
            if ready[j] < 2:
                j = -1
                for i in range(m):
                    if unknown[i] == 2:
                        first, other = -1, -1
                        for q in range(k):
                            r = members[i, q]
                            if not done[r] and ready[r] > 0:
                                first, other = r, first
                        if other >= 0:
                            j, second = first, other
                            ear[step] = i
                            break
                if j < 0:
                    return order[:step], ear[:step]
        order[step] = j
        done[j] = True
        ready[j] = -1
        for t in range(indptr[j], indptr[j + 1]):
            i = rows[t]
            unknown[i] -= 1
            if unknown[i] == 1:
                for q in range(k):
                    if not done[members[i, q]]:
                        ready[members[i, q]] += 1
    return order, ear


@njit(cache=True, nogil=True)
def _close_ear(y, c, indptr, rows, members, i, v, w, x, known, near):  # type: ignore[no-untyped-def]
    """At one column: the values of v and w that row i and one more row of each leave, where only
    one choice of signs fits; in place."""
    base = c[i if len(c) > 1 else 0]
    for q in range(members.shape[1]):
        r = members[i, q]
        if r != v and r != w:
            if not known[r]:
                return
            base += x[r]
    guess = np.empty((2, 2))
    for side in range(2):
        j = v if side == 0 else w
        ready = False
        for t in range(indptr[j], indptr[j + 1]):
            f = rows[t]
            s = c[f if len(c) > 1 else 0]
            ready = f != i
            for q in range(members.shape[1]):
                r = members[f, q]
                if r != j:
                    ready &= known[r]
                    s += x[r]
            if ready:
                guess[side, 0], guess[side, 1] = y[f] - s, -y[f] - s
                break
        if not ready:
            return
    count = 0
    for a in range(2):
        for b in range(2):
            if abs(abs(guess[0, a] + guess[1, b] + base) - y[i]) <= near:
                count += 1
                x[v], x[w] = guess[0, a], guess[1, b]
    if count == 1:
        known[v] = known[w] = True


@njit(cache=True, nogil=True)
def _peel(y, c, indptr, rows, members, order, ear, x, known, near, rest, size):  # type: ignore[no-untyped-def]
    """At one column: values of the unknown records of `order` that two rows or more agree on, and
    no two others; x and known in place. How many were settled."""
    settled = 0
    for step in range(len(order)):
        j = order[step]
        if known[j]:
            continue
        if ear[step] >= 0 and step + 1 < len(order):
            v, w = j, order[step + 1]
            if not known[w]:
                _close_ear(y, c, indptr, rows, members, ear[step], v, w, x, known, near)
            if known[j]:
                settled += 2
                continue
        count = 0
        for t in range(indptr[j], indptr[j + 1]):
            i = rows[t]
            s = c[i if len(c) > 1 else 0]
            ready = True
            for q in range(members.shape[1]):
                r = members[i, q]
                if r != j:
                    ready &= known[r]
                    s += x[r]
            if ready:
                rest[count], size[count] = s, y[i]
                count += 1
        most = second = 0
        value = 0.0
        for a in range(count):
            for sign in (-1, 1):
                guess = sign * size[a] - rest[a]
                hits = 0
                for e in range(count):
                    hits += abs(abs(guess + rest[e]) - size[e]) <= near
                if most and abs(guess - value) <= 4 * near:
                    most = max(most, hits)
                elif hits > most:
                    second = most
                    most, value = hits, guess
                elif hits > second:
                    second = hits
            if most == count:
                break
        if most >= 2 and most > second:
            x[j], known[j] = value, True
            settled += 1
    return settled


@njit(cache=True, nogil=True)
def _peel_triangle(y, c, indptr, rows, members, order, ear, triangle, near):  # type: ignore[no-untyped-def]
    """x (n, p) and how many rows hold at each column: the best choice of the triangle's signs."""
    n = len(indptr) - 1
    m, p = y.shape
    x, count = np.zeros((n, p)), np.zeros(p, np.int64)
    here, known = np.zeros(n), np.zeros(n, np.bool_)
    rest, size = np.empty(m), np.empty(m)
    zero = np.zeros(1)
    for t in range(p):
        yt = y[:, t].copy()
        ct = c[:, t].copy() if len(c) > 1 else zero
        # Without a public part the sign of the whole column is free.
        for signs in range(8 if len(c) > 1 else 4):
            here[:] = 0
            known[:] = False
            u = np.empty(3)
            for e in range(3):
                i = triangle[3 + e]
                u[e] = yt[i] if (signs >> e) & 1 == 0 else -yt[i]
                u[e] -= ct[i if len(c) > 1 else 0]
            a, b, e = triangle[0], triangle[1], triangle[2]
            here[a] = (u[0] + u[1] - u[2]) / 2
            here[b], here[e] = u[0] - here[a], u[1] - here[a]
            known[a] = known[b] = known[e] = True
            # Wrong signs are soon found out: nothing agrees with them.
            first, few = order[:40], ear[:40]
            reached = _peel(
                yt, ct, indptr, rows, members, first, few, here, known, near[t], rest, size
            )
            if 4 * reached < len(first) - 3:
                continue
            while _peel(
                yt, ct, indptr, rows, members, order, ear, here, known, near[t], rest, size
            ):
                pass
            hold = 0
            for i in range(m):
                s = ct[i if len(c) > 1 else 0]
                ready = True
                for q in range(members.shape[1]):
                    ready &= known[members[i, q]]
                    s += here[members[i, q]]
                hold += ready and abs(abs(s) - yt[i]) <= near[t]
            if hold > count[t]:
                count[t] = hold
                x[:, t] = here
            if hold == m:
                break
    return x, count


# --- Search ---------------------------------------------------------------------------------------


def search(
    part: Problem, members: Indices, x: Floats, fits: Mask, near: Floats, *, nodes: int = 2000
) -> Floats:
    """x at columns where some rows do not hold, after a search among the records of these rows.

    fits : (m, p) the rows that hold.
    nodes : values tried at most at a column.
    """
    n = len(x)
    c = np.zeros((1, part.d)) if part.c is None else part.c.astype(np.float64)
    y = part.y.astype(np.float64)
    indptr, rows = rows_of(members, n)
    out = x.copy()
    for t in range(part.d):
        known = np.ones(n, bool)
        known[members[~fits[:, t]].ravel()] = False
        values = out[:, t].copy()
        column = np.ascontiguousarray(y[:, t]), np.ascontiguousarray(c[:, t])
        if _search(*column, indptr, rows, members, values, known, near[t], nodes):
            out[:, t] = values
    return out


@njit(cache=True, nogil=True)
def _holds(y, c, members, x, known, near):  # type: ignore[no-untyped-def]
    """Whether every row whose members are all known is reproduced."""
    for i in range(len(members)):
        s = c[i if len(c) > 1 else 0]
        ready = True
        for q in range(members.shape[1]):
            ready &= known[members[i, q]]
            s += x[members[i, q]]
        if ready and abs(abs(s) - y[i]) > near:
            return False
    return True


@njit(cache=True, nogil=True)
def _search(y, c, indptr, rows, members, x, known, near, nodes):  # type: ignore[no-untyped-def]
    """Depth first: peel, then try both values of a record in a row that lacks no other. x and known
    in place; whether all rows hold."""
    n, m = len(known), len(y)
    order, ear = np.arange(n), np.full(n, -1)
    rest, size = np.empty(m), np.empty(m)
    depth = 0
    xs, ks = np.zeros((n + 1, n)), np.zeros((n + 1, n), np.bool_)
    pick, turn = np.full(n + 1, -1), np.zeros(n + 1, np.int64)
    value = np.zeros((n + 1, 2))
    for _ in range(nodes):
        # 1. What follows from what is known; a contradiction sends the search back.
        while _peel(y, c, indptr, rows, members, order, ear, x, known, near, rest, size):
            pass
        sound = _holds(y, c, members, x, known, near)
        if sound and known.all():
            return True
        # 2. A record that one row determines up to a sign.
        if sound:
            xs[depth], ks[depth] = x, known
            pick[depth] = -1
            for i in range(m):
                missing, at = 0, -1
                s = c[i if len(c) > 1 else 0]
                for q in range(members.shape[1]):
                    r = members[i, q]
                    if known[r]:
                        s += x[r]
                    else:
                        missing, at = missing + 1, r
                if missing == 1:
                    pick[depth], turn[depth] = at, 0
                    value[depth, 0], value[depth, 1] = y[i] - s, -y[i] - s
                    break
            if pick[depth] < 0:
                return False
            depth += 1
        # 3. Its next value, or back.
        while depth > 0 and turn[depth - 1] == 2:
            depth -= 1
        if depth == 0:
            return False
        x[:], known[:] = xs[depth - 1], ks[depth - 1]
        x[pick[depth - 1]] = value[depth - 1, turn[depth - 1]]
        known[pick[depth - 1]] = True
        turn[depth - 1] += 1
        if depth > n:
            return False
    return False


# --- Open values ----------------------------------------------------------------------------------


def open_values(part: Problem, members: Indices, x: Floats, near: Floats) -> Mask:
    """(n, p): values for which another one explains all encodings of the record as well, if no
    other record changes: −x − 2·rest, where all its rows have the same rest."""
    c = np.zeros((1, part.d), np.float32) if part.c is None else part.c
    return np.asarray(_open(c, *rows_of(members, len(x)), members, x, near))


@njit(cache=True, nogil=True)
def _open(c, indptr, rows, members, x, near):  # type: ignore[no-untyped-def]
    n, p = x.shape
    out = np.zeros((n, p), np.bool_)
    first, rest = np.empty(p), np.empty(p)
    for j in range(n):
        same = 0
        for s in range(indptr[j], indptr[j + 1]):
            i = rows[s]
            for t in range(p):
                rest[t] = c[i if len(c) > 1 else 0, t]
            for q in range(members.shape[1]):
                if members[i, q] != j:
                    for t in range(p):
                        rest[t] += x[members[i, q], t]
            if s == indptr[j]:
                for t in range(p):
                    first[t] = rest[t]
                    # Where the two values are one, nothing is open.
                    out[j, t] = abs(2 * x[j, t] + 2 * rest[t]) > 4 * near[t]
                continue
            same = 0
            for t in range(p):
                out[j, t] &= abs(rest[t] - first[t]) <= near[t]
                same += out[j, t]
            if same == 0:
                break
    return out
