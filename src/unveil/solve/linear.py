"""From a guess at the subsets to exact ones where signs are kept: y = Σ_{i∈S} x_i, linear, unit
weights.

  1 values   x ← least squares of the trusted rows, all pixels at once, by conjugate gradients on
             WᵀW: a constant number of sparse products, since W of random subsets is well
             conditioned
  2 subsets  every row takes the k largest of its coefficients in x (n ≤ d: those of least squares;
             n > d: of matching pursuit)
  3 trusted  rows that are reproduced, and as long as few are, those that fit best: a wrong row
             misses by whole vectors, a right one only by what the wrong ones spread
  4 grow     what is left of rows with one unknown vector z, outside the span of the known ones, is
             the same for all rows of z: they are grouped by it, and the coefficients of two rows
             differ by 1 where one has a vector and the other has not

Nothing here proves anything; `certify` does. Cost per round O(m·n·d) for coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.records import Progress
from unveil.solve.model import (
    PIXEL,
    SAME_LINEAR,
    Members,
    all_different,
    needed,
    renamed,
    rms,
    uses,
)

ROUNDS = 40
"""More than it takes: the loop ends by itself once nothing gets better."""
FLAT = 1e-30
"""A step along which WᵀW is this small beside the residual would be without end: eigenvalues that
are not zero are at least 1/m³."""
STEPS, RESIDUAL = 400, 1e-26
"""Steps of conjugate gradients at most, and the share of the squared residual at which they end:
that is the rounding of double precision. W of random subsets needs far fewer steps."""
TRIMS = 4
"""Times that rows which miss far more than most are left out of one fit."""
BLOCK = 2048
"""Rows at a time: n times as many numbers."""
FITS = 2.0
"""Rows that miss by less than so many times the median fit, where few are reproduced."""
ENOUGH = 0.25
"""Share of rows reproduced from which only these are trusted."""
SAME_REST = 1e-3
"""What is left of two rows with one and the same unknown vector differs by no more than this share,
and by noise: least squares on the known ones leaves rounding."""
SWEEPS = 3
"""Turns of matching pursuit over the k places of a row."""
WHOLE = 0.3
"""How near to a whole number coefficients must be when rows are compared."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearFit:
    """rows (r,) explained by members (r, k) of values (n, d); exact: whether they are reproduced,
    or only fitted; miss (r,): rms of what is left of each row."""

    rows: NDArray[np.int64]
    members: Members
    values: Floats
    exact: bool
    miss: Floats


def fit_linear(
    y: Floats, members: Members, trusted: NDArray[np.bool_], *, progress: Progress | None = None
) -> LinearFit | None:
    """The subsets that hold, from a guess `members` (m, k), −1 in free places, of the `trusted`
    rows. None: none does."""
    m, k = members.shape
    bound = PIXEL * rms(y)
    trusted = trusted & (members >= 0).all(axis=1)
    best: tuple[int, float] = (-1, -np.inf)
    found: tuple[NDArray[np.int64], Members] | None = None
    for step in range(ROUNDS):
        # 1. Values from the trusted rows.
        fitted = _fit_trusted(y, members, trusted, bound)
        if fitted is None:
            break
        rows, named, x = fitted
        # 2. Subsets: rows that are reproduced keep their members, the others take the best there
        # are.
        exact = np.zeros(m, bool)
        exact[rows] = np.abs(y[rows] - x[named].sum(axis=1)).max(axis=1) <= bound
        members = np.zeros((m, k), np.int64)
        members[rows] = named
        x, names = different(x)
        members = names[members]
        if len(x) <= k:
            break
        members[~exact] = best_members(y[~exact], x, k)
        # 3. Whom to trust in the next round, and whether this one was better than the last.
        rest = y - x[members].sum(axis=1)
        exact = np.abs(rest).max(axis=1) <= bound
        miss = np.sqrt(np.mean(rest**2, axis=1))
        sharp = exact.sum() >= ENOUGH * m
        trusted = exact if sharp else np.asarray(miss <= FITS * np.median(miss))
        quality = int(exact.sum()) if sharp else 0, -float(np.median(miss))
        if progress:
            progress("subsets", step + 1, ROUNDS)
        if quality <= best:
            break
        best = quality
        keep = evidence(members, np.flatnonzero(trusted))
        found = keep, members[keep]
        # 4. Rows that miss one and the same vector get a new one.
        members, more = grow(
            y, x, members, np.flatnonzero(~trusted), float(np.median(miss[trusted]))
        )
        trusted = trusted.copy()
        trusted[more] = True
    if found is None or len(found[0]) <= k + 1:
        return None
    return _solved(y, *found, bound)


def _fit_trusted(
    y: Floats, members: Members, trusted: NDArray[np.bool_], bound: float
) -> tuple[NDArray[np.int64], Members, Floats] | None:
    """Rows, their members with names 0, 1, …, and values; rows that miss far more than most are
    left out."""
    k = members.shape[1]
    rows = np.flatnonzero(trusted)
    for trim in range(TRIMS + 1):
        rows = evidence(members, rows)
        used, named = renamed(members[rows])
        if len(rows) <= k + 1 or len(used) <= k:
            return None
        x = least_squares(y[rows], named, len(used))
        rest = y[rows] - x[named].sum(axis=1)
        miss = np.sqrt(np.mean(rest**2, axis=1))
        wrong = (miss > FITS * np.median(miss)) & (np.abs(rest).max(axis=1) > bound)
        if not wrong.any() or trim == TRIMS:
            break
        rows = rows[~wrong]
    return rows, named, x


def _solved(y: Floats, rows: NDArray[np.int64], members: Members, bound: float) -> LinearFit:
    """Least squares of rows with their members, and whether they are reproduced."""
    used, named = renamed(members)
    x = least_squares(y[rows], named, len(used))
    rest = y[rows] - x[named].sum(axis=1)
    return LinearFit(
        rows, named, x, bool(np.abs(rest).max() <= bound), np.sqrt(np.mean(rest**2, axis=1))
    )


def different(x: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Each vector once, since a guess may have one under two names; and the new name of each."""
    size = np.einsum("ij,ij->i", x, x)
    name = np.arange(len(x))
    for start in range(0, len(x), BLOCK):
        part = slice(start, start + BLOCK)
        apart = size[part, None] + size - 2 * (x[part] @ x.T)
        for i, j in np.argwhere(np.triu(apart < SAME_LINEAR**2 * size, start + 1)):
            name[j] = min(name[j], name[start + i])
    kept, names = np.unique(name, return_inverse=True)
    return x[kept], names.astype(np.int64)


def spread(members: Members, n: int, rng: np.random.Generator, probes: int = 64) -> Floats:
    """(n,) standard error of each vector's pixels for noise of size 1: √diag (WᵀW)⁻¹, by what least
    squares makes of noise."""
    x = least_squares(rng.standard_normal((len(members), probes)), members, n)
    return np.asarray(np.sqrt(np.mean(x**2, axis=1)))


def evidence(members: Members, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of `rows` that say something: no vector twice, none that no other row uses."""
    rows = rows[all_different(members[rows])]
    return rows[needed(members[rows])]


def least_squares(y: Floats, members: Members, n: int) -> Floats:
    """x (n, d) of y = Wx, conjugate gradients with one step size per pixel; the shortest solution
    where there are several."""
    m, k = members.shape
    W = sparse.csr_array(
        (np.ones(m * k), (np.repeat(np.arange(m), k), members.ravel())), shape=(m, n)
    )
    scale = 1 / np.sqrt(np.maximum(uses(members, n), 1))
    A = sparse.csr_array(W.multiply(scale[None, :]))
    At = sparse.csr_array(A.T)
    r = At @ y
    x, p = np.zeros_like(r), r.copy()
    rho = np.einsum("ij,ij->j", r, r)
    target = RESIDUAL * np.maximum(rho, 1e-300)
    for _ in range(STEPS):
        Ap = At @ (A @ p)
        bend = np.einsum("ij,ij->j", p, Ap)
        # A direction in which nothing changes is rounding left at a pixel that is solved.
        alpha = np.divide(rho, bend, out=np.zeros_like(rho), where=bend > FLAT * rho)
        x += alpha * p
        r -= alpha * Ap
        new = np.einsum("ij,ij->j", r, r)
        if (new <= target).all():
            break
        p *= new / np.maximum(rho, 1e-300)
        p += r
        rho = new
    return np.asarray(scale[:, None] * x)


def coefficients(y: Floats, x: Floats) -> Floats:
    """Least squares of the rows of y on the vectors x (n, d), n ≤ d."""
    gram = x @ x.T
    gram[np.diag_indices_from(gram)] += 1e-12 * max(float(np.trace(gram)) / len(gram), 1e-300)
    return np.asarray(np.linalg.solve(gram, x @ y.T).T)


def best_members(y: Floats, x: Floats, k: int) -> Members:
    """(m, k) sorted: the subset by which each row is most probably explained."""
    parts = [_best_members(y[start : start + BLOCK], x, k) for start in range(0, len(y), BLOCK)]
    return np.concatenate([np.empty((0, k), np.int64), *parts])


def _best_members(y: Floats, x: Floats, k: int) -> Members:
    """The same for one block of rows."""
    n, d = x.shape
    if n <= d:
        c = coefficients(y, x)
        return np.sort(np.argpartition(-c, k - 1, axis=1)[:, :k], axis=1).astype(np.int64)
    # More vectors than pixels: matching pursuit, every place of a row again in turn.
    rest, rows = y.copy(), np.arange(len(y))
    half = np.einsum("ij,ij->i", x, x) / 2
    chosen = np.full((len(y), k), -1, np.int64)
    for turn in range(SWEEPS * k):
        slot = turn % k
        if turn >= k:
            rest += x[chosen[:, slot]]
        gain = rest @ x.T - half
        for column in np.delete(chosen, slot, axis=1).T:
            gain[rows[column >= 0], column[column >= 0]] = -np.inf
        chosen[:, slot] = gain.argmax(axis=1)
        rest -= x[chosen[:, slot]]
    return np.sort(chosen, axis=1)


def grow(
    y: Floats, x: Floats, members: Members, left: NDArray[np.int64], noise: float
) -> tuple[Members, NDArray[np.int64]]:
    """Members of all rows, those of rows `left` that share one unknown vector found, with new names
    from len(x) on; and which rows these are. `noise`: rms of what is left of a row that is
    known."""
    n, d = x.shape
    k = members.shape[1]
    out = members.copy()
    if n >= d or len(left) < 2:
        return out, left[:0]
    c = coefficients(y[left], x)
    rest = y[left] - c @ x
    size = np.linalg.norm(rest, axis=1)
    # Two rows of one vector differ by noise only, those of two vectors by as much as they have
    # outside the span.
    near = 2 * noise * np.sqrt(d) + SAME_REST * size
    free = size > 2 * near
    found, new = [np.empty(0, np.int64)], n
    for i in range(len(left)):
        if not free[i]:
            continue
        same = np.flatnonzero(free & (np.linalg.norm(rest - rest[i], axis=1) < near[i]))
        free[same] = False
        # 1 where the row has a vector that another one has not.
        own = c[same] - c[same].min(axis=0)
        has = np.rint(own)
        right = (
            (np.abs(own - has).max(axis=1) < WHOLE)
            & (has.max(axis=1) == 1)
            & (has.sum(axis=1) == k - 1)
        )
        if right.sum() < 2:
            continue
        rows = left[same[right]]
        out[rows, : k - 1] = np.nonzero(has[right])[1].reshape(len(rows), k - 1)
        out[rows, k - 1] = new
        found.append(rows)
        new += 1
    return out, np.concatenate(found)
