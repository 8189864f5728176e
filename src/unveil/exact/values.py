"""Values of all records, once it is known which of them each encoding mixes; any k.

At every column on its own |Wx + c| = y: phase retrieval with one sparse W for all columns. Pairs
(k = 2) are solved by deduction (`columns`), all others by relaxed reflections between
A = {v : |v| = y} and B = {Wx + c},

    v ← v + β·(P_A(2·P_B(v) − v) − P_B(v)),   P_A(v) = y·sign(v),

from random signs: tens of steps for m ≥ 4n, hundreds near m = 2n. A column leaves as soon as it is
solved, and the few that are left start from many signs at once. Then least squares with the signs
found, in double precision. A value is *open* where another one explains all encodings of its
record, where W does not determine it, or where no solution of its column was found.

Cost: m·k per column and step, and a matrix n×n.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.engine.blocks import memory_limit as bytes_allowed
from unveil.engine.blocks import one_blas_thread
from unveil.exact.columns import solve_columns
from unveil.exact.problem import Claim, Indices, Mask, Problem, late

Floats = NDArray[np.float64]
Values = NDArray[np.float32]
Progress = Callable[[str, int, int], None]


def solve_values(
    problem: Problem,
    members: Indices,
    *,
    rng: np.random.Generator,
    tries: int = 8,
    steps: int = 100,
    slack: float = 4.0,
    block: int = 256,
    deadline: float = np.inf,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Claim:
    """The values of all records that `members` (m, k) names; rows with a −1 take no part.

    Records keep their order, those that no row uses are dropped. A row that fails at most columns
    at which nearly all others hold is wrong: its members become −1.

    tries, steps : random starts of reflections at a column, each with half of these steps more than
        the last.
    slack : how far a row may miss, in units of `problem.step`: with the right signs least squares
        leaves rounding, a wrong sign of a value near zero leaves a little more.
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
            values, doubt, _, missed = _solve_block(
                part, names[rows], n, near[columns], rng, tries, steps, dense, deadline
            )
        # Wrong rows spoil every column: they are looked for on the first ones, and left out.
        wrong = missed > 0.5
        if start == 0 and wrong.any() and seconds_thoughts and wrong.mean() < 0.5:
            whole = np.setdiff1d(whole, rows[wrong])
            rows = whole[evidence(names[whole])]
            seconds_thoughts -= 1
            continue
        x[:, columns] = values
        open_[:, columns] = doubt
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
    deadline: float,
    *,
    rough: float = 0.03,
    crowd: tuple[int, int, int] = (4, 32, 3),
) -> tuple[Floats, Mask, Mask, Floats]:
    """x (n, p) of some columns, which values are open, which columns are solved, and the share of
    columns that each row missed by more than `rough` of their size, among those that nearly all
    rows fit so far.

    crowd : rounds, starts and steps (times `steps`) for columns that are still not solved, if they
        are few: one of them keeps every record from being certain.
    """
    m, p = part.y.shape
    c = np.zeros((1, p)) if part.c is None else part.c.astype(np.float64)
    y = part.y.astype(np.float64)
    x, best = np.zeros((n, p)), np.full(p, -1)
    open_, roughly = np.zeros((n, p), bool), np.zeros((m, p), bool)

    def keep(columns: Indices, guess: Floats) -> None:
        """Take what is better than what was there; a column may be named several times."""
        total = gather(members, guess) + c[:, columns]
        miss = np.abs(np.abs(total) - y[:, columns])
        count = (miss <= near[columns]).sum(axis=0)
        for i in np.flatnonzero(count > best[columns]):
            at = columns[i]
            if count[i] > best[at]:
                x[:, at], best[at] = guess[:, i], count[i]
                size = rough * np.sqrt(np.mean(y[:, at] ** 2))
                roughly[:, at] = miss[:, i] <= np.maximum(size, near[at])

    # 1. Pairs: by deduction, which also says what is open.
    if part.k == 2:
        guess, shown = solve_columns(part, members, n, deadline=deadline)
        keep(np.arange(p), np.nan_to_num(guess))
        open_[:, best == m] = shown[:, best == m]
    deduced = best == m
    # 2. All columns from some starts, then the few that are left from many at once.
    plan = [(1, steps * (2 + turn) // 2) for turn in range(tries)]
    plan += [(crowd[1], crowd[2] * steps)] * crowd[0]
    design: tuple[Values, Floats] | None = None
    for turn, (copies, many) in enumerate(plan):
        left = np.flatnonzero(best < m)
        if not len(left) or not dense or late(deadline) or (copies > 1 and 10 * len(left) > p + 10):
            break
        if design is None:
            inverse = fit_matrix(members, n, np.ones(m))
            own = inverse[members[:, :, None], members[:, None]].sum(axis=(1, 2), dtype=np.float64)
            design = inverse, np.clip(own, 0, 0.99)[:, None]
        left = np.repeat(left, copies)
        scale = np.sqrt(np.mean(part.y[:, left] ** 2, axis=0)) + np.float32(1e-30)
        ys = part.y[:, left] / scale
        cs = None if part.c is None else part.c[:, left] / scale
        v = rng.standard_normal(ys.shape, dtype=np.float32)
        if cs is not None and turn == 0:
            v = ys * np.tanh(ys * cs)
        rough_x, _ = reflect(
            ys, cs, members, n, np.ones(m), design[0], v, steps=many, deadline=deadline
        )
        # Where W leaves much undetermined, reflections may run away.
        guess = np.nan_to_num(rough_x * scale, posinf=0, neginf=0).astype(np.float64)
        cl = c[:, left]
        yl = y[:, left]
        for leverage in (np.zeros((m, 1)), design[1]):
            guess = _with_signs(yl, cl, members, guess, leverage)
            keep(left, guess)
        # With wrong rows no column is ever solved: one start is enough to find them.
        if turn == 0 and not (best == m).any() and (roughly.mean(axis=0) > 0.8).mean() > 0.5:
            break
    solved = best == m
    open_[:, ~solved] = True
    if (solved & ~deduced).any():
        open_ |= open_values(part, members, x, near) & (solved & ~deduced)
    # A wrong row moves the others a little, so that nothing holds exactly beside it.
    nearly = roughly.mean(axis=0) > 0.8
    missed = 1 - roughly[:, nearly].mean(axis=1) if nearly.any() else np.zeros(m)
    return x, open_, solved, missed


def _with_signs(
    y: Floats, c: Floats, members: Indices, x: Floats, own: Floats, *, rounds: int = 3
) -> Floats:
    """Least squares with the signs of x, which are taken anew after each.

    own : (m, 1) how much of the fit of a row is the row itself. Where there are hardly more rows
        than unknowns, a wrong sign of a small value confirms itself; signs follow what the other
        rows say."""
    for _ in range(rounds):
        total = gather(members, x) + c
        others = (total - own * np.copysign(y, total)) / (1 - own)
        x = least_squares(members, np.copysign(y, others) - c, x)
    return x


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
    deadline: float = np.inf,
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
            if step == steps or late(deadline):
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


def rows_of(members: Indices, n: int) -> tuple[Indices, Indices]:
    """(indptr (n + 1,), rows): in which rows each record is."""
    order = np.argsort(members.ravel(), kind="stable")
    count = np.bincount(members.ravel(), minlength=n)
    return np.append(0, np.cumsum(count)), order // members.shape[1]


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
