"""Values of all records, once it is known which of them each encoding mixes; any k.

At every column on its own |Wx + c| = y: phase retrieval with one sparse W for all columns. Pairs
(k = 2) are solved by deduction (`columns`), all others by relaxed reflections between
A = {v : |v| = y} and B = {Wx + c},

    v ← v + β·(P_A(2·P_B(v) − v) − P_B(v)),   P_A(v) = y·sign(v),

from random signs: tens of steps for m ≥ 4n, hundreds near m = 2n. A column leaves as soon as it is
solved, and the fewer are left, the more starts each of them has at once. Then least squares with
the signs found, in double precision. A value is *open* where another one explains all encodings of
its record, where W does not determine it, or where no solution of its column was found.

Cost: m·k per column and step, and a matrix n×n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from unveil.engine.blocks import one_blas_thread
from unveil.exact.columns import solve_columns
from unveil.exact.problem import Claim, Indices, Mask, Problem, late

Floats = NDArray[np.float64]
Values = NDArray[np.float32]
Progress = Callable[[str, int, int], None]


def incidence(members: Indices, n: int) -> sparse.csr_array:
    """W (m, n): which of n records each row of members (m, k) holds."""
    m, k = members.shape
    ones = np.ones(m * k, np.float32)
    return sparse.csr_array((ones, members.ravel(), np.arange(0, m * k + 1, k)), shape=(m, n))


class Design:
    """What all columns share: W, and least squares on it with rows weighted by D.

    Attributes
    ----------
    inverse : array of shape (n, n)
        (WᵀDW + ridge)⁻¹; the ridge keeps records that no row uses at zero, and single precision
        from making reflections grow where W leaves something undetermined.
    leverage : array of shape (m, 1)
        How much of the fit of a row is the row itself: 1 where it alone holds a record, since
        nothing else says anything of that; kept below 1.
    """

    def __init__(
        self, members: Indices, n: int, weight: Floats | None = None, *, ridge: float = 1e-5
    ) -> None:
        self.members, self.n = members, n
        self.weight = np.ones(len(members)) if weight is None else weight
        self.W = incidence(members, n)
        gram = (self.W.T @ (self.W * self.weight[:, None])).toarray() + ridge * np.eye(n)
        self.inverse = np.linalg.inv(gram)
        own = self.inverse[members[:, :, None], members[:, None]].sum(axis=(1, 2)) * self.weight
        self.leverage = np.clip(own, 0, 0.95)[:, None]

    def fit(self, s: NDArray[Any]) -> NDArray[Any]:
        """argmin ‖Wx − s‖, every column on its own, in the precision of s."""
        total = self.W.T @ (s * self.weight[:, None].astype(s.dtype))
        return np.asarray(self.inverse.astype(s.dtype) @ total)

    def refined(self, target: Floats, x: Floats, *, rounds: int = 3) -> Floats:
        """argmin ‖Wx − target‖ without the ridge's error; what W does not determine stays as it
        is in x."""
        for _ in range(rounds):
            x = x + self.fit(target - self.W @ x)
        return x


def solve_values(
    problem: Problem,
    members: Indices,
    *,
    rng: np.random.Generator,
    slack: float = 4.0,
    block: int = 256,
    wrong: float = 0.5,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Claim:
    """The values of all records that `members` (m, k) names; rows with a −1 take no part.

    Records keep their order, those that no row uses are dropped. A row that fails at most columns
    at which nearly all others hold is wrong: its members become −1.

    slack : how far a row may miss, in units of `problem.step`: with the right signs least squares
        leaves rounding, a wrong sign of a value near zero leaves a little more.
    block : columns that are solved together.
    wrong : the share of these columns from which on a row that fails is left out.
    deadline : a time by `time.monotonic`; columns that were not reached by then are open.
    """
    m, d, k = problem.m, problem.d, problem.k
    rows = np.flatnonzero((members >= 0).all(axis=1) & distinct(members))
    order = rng.permutation(d)
    near = slack * problem.step

    def solve(columns: Indices, design: Design) -> tuple[Floats, Mask, Floats]:
        with one_blas_thread():
            part = problem.columns(columns).rows(rows)
            return _solve_block(part, design, near[columns], rng, deadline)

    # Wrong rows spoil every column: they are looked for on the first ones, and left out.
    for turn in range(3):
        if not len(rows):
            return Claim.nothing(problem, "no members")
        used, names = np.unique(members[rows], return_inverse=True)
        design = Design(names.reshape(-1, k), len(used))
        first = solve(order[:block], design)
        failed = first[2] > wrong
        if turn == 2 or not failed.any() or failed.mean() >= 0.5:
            break
        rows = rows[~failed]
    x, open_ = np.zeros((design.n, d)), np.ones((design.n, d), bool)
    x[:, order[:block]], open_[:, order[:block]], _ = first
    for start in range(block, d, block):
        if late(deadline):
            break
        here = order[start : start + block]
        x[:, here], open_[:, here], _ = solve(here, design)
        if progress:
            progress("values", min(start + block, d), d)
    # A random vector has a part in the null space of W, which least squares from 0 cannot reach.
    r = rng.standard_normal((design.n, 1))
    open_[np.abs(r - design.refined(design.W @ r, 0 * r))[:, 0] > 1e-5] = True
    out = np.full((m, k), -1)
    out[rows] = design.members
    return Claim(x.astype(np.float32), out, open_)


def distinct(members: Indices) -> Mask:
    """Rows that hold no record twice."""
    return np.asarray((np.diff(np.sort(members, axis=1), axis=1) > 0).all(axis=1))


def _solve_block(
    part: Problem,
    design: Design,
    near: Floats,
    rng: np.random.Generator,
    deadline: float,
    *,
    tries: int = 12,
    steps: int = 100,
    most: int = 32,
    rough: float = 0.03,
) -> tuple[Floats, Mask, Floats]:
    """x (n, p) of some columns, which values are open, and the share of columns that each row
    missed by more than `rough` of their size, among those that nearly all rows fit.

    tries, steps : random starts of reflections, each with half of these steps more than the last.
    most : copies of a column in one try, where few are left: one of them keeps every record from
        being certain.
    """
    (m, p), n = part.y.shape, design.n
    c = np.zeros((1, p)) if part.c is None else part.c.astype(np.float64)
    y = part.y.astype(np.float64)
    x, best = np.zeros((n, p)), np.full(p, -1)
    open_, roughly = np.zeros((n, p), bool), np.zeros((m, p), bool)

    def keep(columns: Indices, guess: Floats) -> None:
        """Take what is better than what was there; a column may be named several times."""
        miss = np.abs(np.abs(design.W @ guess + c[:, columns]) - y[:, columns])
        count = (miss <= near[columns]).sum(axis=0)
        for i in np.argsort(count, kind="stable"):
            at = columns[i]
            if count[i] > best[at]:
                x[:, at], best[at] = guess[:, i], count[i]
                size = rough * np.sqrt(np.mean(y[:, at] ** 2))
                roughly[:, at] = miss[:, i] <= np.maximum(size, near[at])

    # 1. Pairs: by deduction, which also says what is open.
    if part.k == 2:
        guess, shown = solve_columns(part, design.members, n, deadline=deadline)
        keep(np.arange(p), np.nan_to_num(guess))
        open_[:, best == m] = shown[:, best == m]
    deduced = best == m
    # 2. The others by reflections.
    for turn in range(tries):
        left = np.flatnonzero(best < m)
        if not len(left) or late(deadline):
            break
        if turn:
            left = np.repeat(left, int(np.clip(p // (2 * len(left)), 1, most)))
        scale = np.sqrt(np.mean(part.y[:, left] ** 2, axis=0)) + np.float32(1e-30)
        ys = part.y[:, left] / scale
        cs = None if part.c is None else part.c[:, left] / scale
        v = rng.standard_normal(ys.shape, dtype=np.float32)
        if cs is not None and turn == 0:
            v = ys * np.tanh(ys * cs)
        many = steps * (2 + turn) // 2
        rough_x, _ = reflect(ys, cs, design, v, steps=many, deadline=deadline)
        # Where W leaves much undetermined, reflections may run away.
        guess = np.nan_to_num(rough_x * scale, posinf=0, neginf=0).astype(np.float64)
        keep(left, _with_signs(y[:, left], c[:, left], design, guess))
        # With wrong rows no column is ever solved: one start is enough to find them.
        if turn == 0 and not (best == m).any() and (roughly.mean(axis=0) > 0.8).mean() > 0.5:
            break
    solved = best == m
    open_[:, ~solved] = True
    if (solved & ~deduced).any():
        open_ |= open_values(part, design, x, near) & (solved & ~deduced)
    # A wrong row moves the others a little, so that nothing holds exactly beside it.
    nearly = roughly.mean(axis=0) > 0.8
    missed = 1 - roughly[:, nearly].mean(axis=1) if nearly.any() else np.zeros(m)
    return x, open_, missed


def _with_signs(y: Floats, c: Floats, design: Design, x: Floats, *, rounds: int = 4) -> Floats:
    """Least squares with the signs of x, which are taken anew after each.

    Where there are hardly more rows than unknowns, a wrong sign of a small value confirms itself:
    signs follow what the other rows say."""
    h = design.leverage
    for _ in range(rounds):
        total = design.W @ x + c
        x = design.refined(np.copysign(y, total - h * np.copysign(y, total)) - c, x)
    return x


def reflect(
    y: Values,
    c: Values | None,
    design: Design,
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
    use = design.weight > 0
    rows = np.ascontiguousarray(design.members[use])
    w, inverse = design.weight[use].astype(np.float32), design.inverse.astype(np.float32)
    x, out = np.zeros((design.n, y.shape[1]), np.float32), v.copy()
    for s in range(0, y.shape[1], 256):
        here = np.arange(s, min(s + 256, y.shape[1]))
        yl, vl = (np.ascontiguousarray(a[use][:, here]) for a in (y, v))
        cl = np.zeros((1, len(here)), np.float32) if c is None else c[use][:, here]
        cl = np.ascontiguousarray(cl)
        total = np.asarray(incidence(rows, design.n).T @ (w[:, None] * (vl - cl)))
        miss = np.empty(len(here), np.float32)
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


def open_values(part: Problem, design: Design, x: Floats, near: Floats) -> Mask:
    """(n, p): values for which another one explains all encodings of the record as well, if no
    other record changes: −x − 2·rest, where all its rows have the same rest."""
    rest = design.W @ x + (0 if part.c is None else part.c)
    out = np.zeros(x.shape, bool)
    by_record = design.W.tocsc()
    for j in range(design.n):
        mine = rest[by_record.indices[by_record.indptr[j] : by_record.indptr[j + 1]]]
        if len(mine):
            # Where the two values are one, nothing is open.
            out[j] = (np.ptp(mine, axis=0) <= near) & (np.abs(2 * mine[0]) > 4 * near)
    return out
