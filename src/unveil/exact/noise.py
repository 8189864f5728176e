"""Values and memberships under noise: folded least squares.

    y = |Wx + c + ε|,   ε ~ N(0, σ²)

No equation holds any more, but all of them together still do in the mean. Given memberships W and a
guess at x, the expected signed value of an encoding is y·tanh(yμ/v), where μ and v are what the
*other* encodings say of it: with h the leverage of a row and s its signed value,

    μ = (Wx + c − h·s)/(1 − h),   v = σ²/(1 − h),

so that no row confirms its own sign. Least squares on these values is expectation–maximisation. It
needs a start with most signs right: relaxed reflections, several of them, and every column keeps
the likeliest. Then each record in turn is moved to the highest peak of its likelihood with all
others held, which frees records of few rows from wrong signs, and in the end to its mean.

Given x, in turn, a row takes the k records with the smallest misfit (`swap`). σ is what is left,
with the freedom that x uses up put back. A row counts as explained when what the others say
of it makes it likelier than no knowledge at all, by more than the number of choices its members
had: on pure noise no row is.

Cost: some sixty products with W for each column and start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, log

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.engine.blocks import memory_limit as bytes_allowed
from unveil.engine.blocks import must_fit, one_blas_thread
from unveil.engine.folded import expected_square, information, log_density, signed
from unveil.exact.overlaps import draw_members, similarity
from unveil.exact.problem import Indices, Mask, Problem, late
from unveil.exact.similarities import column_scale, swap
from unveil.exact.values import distinct, fit_matrix, gather, reflect, rows_of

Floats = NDArray[np.float64]
Values = NDArray[np.float32]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class NoisyFit:
    """What is likeliest under noise; nothing of it is exact.

    Attributes
    ----------
    vectors : float32 array of shape (r, d)
        Records in the units of the problem.
    members : int array of shape (m, k)
        The records of every encoding, −1 where it is not explained.
    error : array of shape (r,)
        Standard error of a record's values, on average over the columns.
    noise : float
        Standard deviation of the noise, in the units of the problem, on average over the columns.
    """

    vectors: Values
    members: Indices
    error: Floats
    noise: float

    @property
    def explained(self) -> float:
        """The share of encodings whose members are known."""
        return float((self.members >= 0).all(axis=1).mean()) if len(self.members) else 0.0


def fit_noisy(
    problem: Problem,
    *,
    members: Indices | None = None,
    n: int | None = None,
    rng: np.random.Generator,
    rounds: int = 4,
    columns: int = 400,
    starts: int = 2,
    deadline: float = np.inf,
    progress: Progress | None = None,
    memory_limit: int | None = None,
) -> NoisyFit:
    """Records under noise, with memberships known or found.

    Parameters
    ----------
    members : int array of shape (m, k) or None
        The records of every encoding, where they are known; None: found from similarities.
    n : int or None
        The number of records; None: estimated from the moments of the similarities.
    rounds : int
        Of values and members by turns, at most; they end where no row changes.
    columns : int
        Columns on which that is done.
    starts : int
        Random starts of each column.
    deadline : float
        A time by `time.monotonic`; turns end there, and columns that were not reached stay 0.
    """
    m, d, k = problem.m, problem.d, problem.k
    nothing = np.empty((0, d), np.float32), np.full((m, k), -1), np.empty(0), float("nan")
    scale = column_scale(problem)
    y = problem.y / scale
    c = None if problem.c is None else problem.c / scale
    guess, given = 0.1 * np.sqrt(k), members is not None
    if members is None:
        must_fit(
            9 * m * m,
            f"similarities of {m:,} encodings",
            bytes_allowed(memory_limit),
            "attack fewer of them",
        )
        with one_blas_thread():
            similar = similarity(y, k, c, rng=rng)
        count = similar.n if n is None else n
        if count >= m or count < k + 1:
            return NoisyFit(*nothing)
        sweeps = max(100, 60_000 // m)
        members, _ = draw_members(
            similar,
            k,
            count,
            rng,
            sweeps=sweeps,
            stop=lambda: late(deadline),
            progress=progress,
        )
        guess = max(similar.noise, 0.05) * np.sqrt(k)
    rows = np.flatnonzero((members >= 0).all(axis=1) & distinct(members))
    # 1. Values and members by turns, on some of the columns.
    some = np.sort(rng.permutation(d)[:columns])
    ys = np.ascontiguousarray(y[:, some])
    cs = None if c is None else np.ascontiguousarray(c[:, some])
    even = np.ones(len(some), np.float32)
    sigma = guess
    for turn in range(rounds):
        used, names = np.unique(members[rows], return_inverse=True)
        names = names.reshape(-1, k)
        if len(used) <= k or len(rows) <= len(used):
            return NoisyFit(*nothing)
        design = _Design(names, len(used))
        x, sigma = _solve(ys[rows], _of(cs, rows), design, sigma, rng, 1, deadline=deadline)
        if turn == rounds - 1 or given or late(deadline):
            break
        x, names, same = _without_copies(x, names, design, sigma)
        if len(x) <= k:
            return NoisyFit(*nothing)
        found, _ = swap(ys, cs, x, _filled(names, rows, m, len(x), rng), even)
        explained = _explained(ys, cs, x, found, sigma)
        if progress:
            progress("rows explained", int(explained.sum()), m)
        keep = np.flatnonzero(explained) if 2 * explained.sum() > m else np.arange(m)
        still = (
            same
            and np.array_equal(keep, rows)
            and np.array_equal(found[keep], np.sort(names, axis=1))
        )
        rows, members = keep, found
        if still:
            break
    used, names = np.unique(members[rows], return_inverse=True)
    names = names.reshape(-1, k)
    if len(used) <= k or len(rows) <= len(used):
        return NoisyFit(*nothing)
    # 2. Every column, and which rows are more than chance.
    fit = _Design(names, len(used))
    x = np.zeros((len(used), d), np.float32)
    gain, told, power, blocks = np.zeros(len(rows)), 0.0, 0.0, 0
    order = rng.permutation(d)
    for s in range(0, d, 256):
        if late(deadline) and s:
            break
        here = order[s : s + 256]
        yb = np.ascontiguousarray(y[np.ix_(rows, here)])
        cb = None if c is None else np.ascontiguousarray(c[np.ix_(rows, here)])
        x[:, here], size = _solve(yb, cb, fit, sigma, rng, starts, mean=True, deadline=deadline)
        mu, v = fit.others(x[:, here], yb, cb, size)
        plain = 0.0 if cb is None else cb
        gain += (log_density(yb, mu, v) - log_density(yb, plain, float(k + size**2))).sum(axis=1)
        told, power, blocks = told + information(yb, mu, v), power + size**2, blocks + 1
        if progress:
            progress("values", min(s + 256, d), d)
    sigma = float(np.sqrt(power / max(blocks, 1)))
    good = gain > log(comb(len(used), k))
    out = np.full((m, k), -1)
    out[rows[good]] = names[good]
    if 2 * good.sum() < m:
        return NoisyFit(*nothing)
    unit = float(np.sqrt(np.mean(scale**2)))
    error = sigma * unit * np.sqrt(np.diag(fit.inverse) / max(told / max(blocks, 1), 0.05))
    return NoisyFit(x * scale, out, error.astype(np.float64), sigma * unit)


def _of(c: Values | None, rows: Indices) -> Values | None:
    return None if c is None else c[rows]


class _Design:
    """What all columns share: members (m, k) of n records, (WᵀW)⁻¹ and the leverages."""

    def __init__(self, members: Indices, n: int, *, largest: float = 0.9) -> None:
        self.members, self.n = members, n
        self.inverse = fit_matrix(members, n, np.ones(len(members)), ridge=1e-6)
        leverage = np.zeros(len(members))
        for a in range(members.shape[1]):
            for b in range(members.shape[1]):
                leverage += self.inverse[members[:, a], members[:, b]]
        # A row that alone holds a record has leverage 1: nothing else says anything of it.
        self.leverage = np.clip(leverage, 0, largest).astype(np.float32)[:, None]
        self.indptr, self.rows = rows_of(members, n)

    def fit(self, s: Values) -> Values:
        """Least squares: x for signed private parts s."""
        total = np.zeros((self.n, s.shape[1]), np.float32)
        _add_rows(self.members, s, total)
        return np.asarray(self.inverse @ total)

    def others(
        self, x: Values, y: Values, c: Values | None, sigma: float, s: Values | None = None
    ) -> tuple[Values, Values]:
        """Mean and variance of each encoding by what the other ones say; s : its signed value."""
        total = gather(self.members, x)
        total = total if c is None else total + c
        if s is None:
            s = signed(y, total, np.float32(sigma**2))
        h = self.leverage
        return (total - h * s) / (1 - h), np.float32(sigma**2) / (1 - h)


@njit(cache=True, nogil=True, fastmath=True)
def _add_rows(members, s, total):  # type: ignore[no-untyped-def]
    for i in range(len(members)):
        for q in range(members.shape[1]):
            for t in range(s.shape[1]):
                total[members[i, q], t] += s[i, t]


def _solve(
    y: Values,
    c: Values | None,
    design: _Design,
    sigma: float,
    rng: np.random.Generator,
    starts: int,
    *,
    steps: int = 80,
    climbs: int = 15,
    warm: float = 1.5,
    again: int = 4,
    mean: bool = False,
    smallest: float = 0.1,
    deadline: float = np.inf,
) -> tuple[Values, float]:
    """x (n, p), the likeliest of several starts at each column, and the noise that is left.

    steps : reflections of a start. climbs : steps of expectation–maximisation, of which the first
    have `warm` times the noise, so that signs that are not sure yet stay open a little longer.
    again : further starts of columns that are much less likely than most.
    deadline : when no further start is made.
    mean : whether records end at their mean instead of at their highest value, where the noise is
    more than `smallest`.
    """
    m, k = design.members.shape
    best = np.full(y.shape[1], -np.inf)
    x = np.zeros((design.n, y.shape[1]), np.float32)
    todo = np.arange(y.shape[1])
    for turn in range(starts + again):
        if turn >= starts:
            # A column that is much less likely than most has ended in a wrong place.
            typical = float(np.median(best))
            spread = 1.4826 * float(np.median(np.abs(best - typical)))
            todo = np.flatnonzero(best < typical - 3 * spread)
        if not len(todo) or (turn and late(deadline)):
            break
        yt, ct = np.ascontiguousarray(y[:, todo]), None if c is None else c[:, todo]
        v = np.float32(np.sqrt(k)) * rng.standard_normal(yt.shape, dtype=np.float32)
        if ct is not None and turn == 0:
            v = yt * np.tanh(yt * ct / np.float32(k))
        guess, _ = reflect(
            yt, ct, design.members, design.n, np.ones(m), design.inverse, v, steps=steps
        )
        guess = _climb(yt, ct, design, guess, sigma * np.linspace(warm, 1, climbs))
        if turn >= starts:
            guess = _one_by_one(yt, ct, design, guess, sigma, False)
            guess = _climb(yt, ct, design, guess, np.full(climbs, sigma))
        likely = _likelihood(yt, ct, design, guess, sigma)
        better = likely > best[todo]
        x[:, todo[better]], best[todo[better]] = guess[:, better], likely[better]
        if turn == 0:
            sigma = _left(y, c, design, x, sigma)
        if turn == starts - 1:
            for _ in range(2):
                x = _one_by_one(y, c, design, x, sigma, False)
                x = _climb(y, c, design, x, np.full(climbs, sigma))
            best = _likelihood(y, c, design, x, sigma)
    sigma = _left(y, c, design, x, sigma)
    # Under less noise the grid would be coarser than the peaks, and signs are sure: x is the mean.
    if mean and sigma > smallest:
        x = _one_by_one(y, c, design, x, sigma, True)
    return x, sigma


def _climb(y: Values, c: Values | None, design: _Design, x: Values, sigmas: Floats) -> Values:
    """x after steps of expectation–maximisation, each with its own noise."""
    s = None
    for sigma in sigmas:
        s = signed(y, *design.others(x, y, c, float(sigma), s))
        x = design.fit(s if c is None else s - c)
    return x


def _likelihood(y: Values, c: Values | None, design: _Design, x: Values, sigma: float) -> Floats:
    """(p,): log-likelihood of each column, every row by what the others say."""
    mu, v = design.others(x, y, c, sigma)
    return np.asarray(log_density(y, mu, v).sum(axis=0, dtype=np.float64))


def _left(y: Values, c: Values | None, design: _Design, x: Values, sigma: float) -> float:
    """The noise that is left, with the freedom that x uses up put back."""
    total = gather(design.members, x)
    rest = expected_square(y, total if c is None else total + c, np.float32(sigma**2))
    free = max(1 - design.n / len(y), 0.1)
    return max(float(np.sqrt(np.median(np.mean(rest, axis=0, dtype=np.float64)) / free)), 1e-4)


def _one_by_one(
    y: Values,
    c: Values | None,
    design: _Design,
    x: Values,
    sigma: float,
    mean: bool,
    *,
    reach: float = 4.0,
) -> Values:
    """Every record in turn at the highest value of its likelihood, or at its mean, with all others
    held; on a grid of `reach` deviations of a record to both sides."""
    count = int(np.clip(2 * reach / (0.35 * sigma), 41, 241))
    grid = np.linspace(-reach, reach, count).astype(np.float32)
    columns = np.ascontiguousarray(x.T)
    total = gather(design.members, x)
    total = np.ascontiguousarray((total if c is None else total + c).T)
    values = np.ascontiguousarray(y.T)
    _sweep(values, design.indptr, design.rows, columns, total, grid, np.float32(sigma**2), mean)
    return np.ascontiguousarray(columns.T)


@njit(cache=True, nogil=True, fastmath=True)
def _sweep(y, indptr, rows, x, total, grid, variance, mean):  # type: ignore[no-untyped-def]
    """x and the sums of all rows in place, column by column."""
    half = np.float32(0.5)
    score, at = np.empty(len(grid) + 1, np.float32), np.empty(len(grid) + 1, np.float32)
    for p in range(len(y)):
        for j in range(x.shape[1]):
            s, e = indptr[j], indptr[j + 1]
            if s == e:
                continue
            here = x[p, j]
            for g in range(len(grid) + 1):
                t = here if g == len(grid) else grid[g]
                at[g] = t
                value = -half * t * t
                for f in range(s, e):
                    i = rows[f]
                    size = abs(total[p, i] + t - here)
                    miss = size - y[p, i]
                    value -= half * miss * miss / variance
                    cross = 2 * size * y[p, i] / variance
                    if cross < 8:
                        value += np.log1p(np.exp(-cross))
                score[g] = value
            best = np.argmax(score)
            new = at[best]
            if mean:
                weight = np.float32(0)
                new = np.float32(0)
                for g in range(len(grid)):
                    w = np.exp(score[g] - score[best])
                    weight += w
                    new += w * at[g]
                new = new / weight if weight > np.float32(1e-6) else here
            for f in range(s, e):
                total[p, rows[f]] += new - here
            x[p, j] = new


def _without_copies(
    x: Values, names: Indices, design: _Design, sigma: float, *, fewest: int = 3, rare: float = 0.2
) -> tuple[Values, Indices, bool]:
    """x and names once columns that differ by no more than their errors are one record, and columns
    that few rows use are given up (−1); whether all stayed.

    fewest, rare : rows that a column needs, and the share of the typical number.
    """
    size = np.einsum("ij,ij->i", x, x)
    apart = np.maximum(size[:, None] + size - 2 * x @ x.T, 0.0) / x.shape[1]
    C = design.inverse
    error = np.diag(C)
    same = np.triu(apart < 3 * sigma**2 * (error[:, None] + error - 2 * C), 1)
    name = np.arange(len(x))
    for a, b in np.argwhere(same):
        name[name == name[b]] = name[a]
    count = np.bincount(name[names].ravel(), minlength=len(x))
    good = count >= max(fewest, rare * float(np.median(count[count > 0])))
    place = np.where(good, np.cumsum(good) - 1, -1)
    return np.ascontiguousarray(x[good]), place[name[names]], bool(good.all())


def _filled(names: Indices, rows: Indices, m: int, n: int, rng: np.random.Generator) -> Indices:
    """(m, k) members to start swaps from: random ones where there are none."""
    out = np.argsort(rng.random((m, n)), axis=1)[:, : names.shape[1]]
    whole = (names >= 0).all(axis=1) & distinct(names)
    out[rows[whole]] = names[whole]
    return out


def _explained(y: Values, c: Values | None, x: Values, members: Indices, sigma: float) -> Mask:
    """Rows that all of their members make likelier, each held against an unknown record, by more
    than the number of records to choose from."""
    total = gather(members, x)
    total = total if c is None else total + c
    full = log_density(y, total, float(sigma**2)).sum(axis=1)
    unknown = float(sigma**2 + 1)
    without = [
        log_density(y, total - x[members[:, q]], unknown).sum(axis=1)
        for q in range(members.shape[1])
    ]
    return np.asarray(full > np.max(without, axis=0) + log(len(x)) + 12)
