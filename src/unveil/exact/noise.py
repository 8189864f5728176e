"""Values under noise, with memberships known: folded least squares.

    y = |Wx + c + ε|,   ε ~ N(0, σ²)

No equation holds any more, but all of them together still do in the mean. Given memberships W and a
guess at x, the expected signed value of an encoding is y·tanh(yμ/v), where μ and v are what the
*other* encodings say of it: with h the leverage of a row and s its signed value,

    μ = (Wx + c − h·s)/(1 − h),   v = σ²/(1 − h),

so that no row confirms its own sign. Least squares on these values is expectation–maximisation. It
needs a start with most signs right: relaxed reflections, several of them, and every column keeps
the likeliest. Then each record in turn is moved to the highest peak of its likelihood with all
others held, which frees records of few rows from wrong signs, and in the end to its mean.

σ is what is left, with the freedom that x uses up put back. A row counts as explained when what the
others say of it makes it likelier than no knowledge at all, by more than the number of choices its
members had: on pure noise no row is.

Cost: some sixty products with W for each column and start.
"""

from __future__ import annotations

from math import comb, log
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.engine.blocks import one_blas_thread
from unveil.engine.folded import expected_square, information, log_density, signed
from unveil.exact.problem import Claim, Indices, Problem, Progress, column_scale, holds, late
from unveil.exact.values import Design, distinct, reflect, solve_values

Floats = NDArray[np.float64]
Values = NDArray[np.float32]


def explain(
    problem: Problem,
    members: Indices,
    *,
    rng: np.random.Generator,
    enough: float = 0.5,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Claim:
    """Records of encodings whose members are known, most of them rightly: exact values where
    equations hold, the likeliest ones where there is noise.

    enough : the share of the encodings given, and of the values, that must hold exactly; else there
        is noise.
    """
    given = (members >= 0).all(axis=1).mean()

    def exact(members: Indices) -> Claim:
        claim = solve_values(problem, members, rng=rng, deadline=deadline, progress=progress)
        if not len(claim.vectors) or claim.explained < enough * given:
            return Claim.nothing(problem)
        good = claim.open.mean() <= enough and holds(problem, claim)
        return claim if good else Claim.nothing(problem)

    claim = exact(members)
    if len(claim.vectors):
        return claim
    fit, even = fit_noisy(problem, members, rng=rng, deadline=deadline, progress=progress)
    # It leaves wrong rows out; without them the others may hold exactly.
    claim = exact(fit.members)
    return fit if even and not len(claim.vectors) else claim


def fit_noisy(
    problem: Problem,
    members: Indices,
    *,
    rng: np.random.Generator,
    starts: int = 3,
    fewest: int = 3,
    enough: float = 0.5,
    uneven: float = 2.0,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> tuple[Claim, bool]:
    """The likeliest records under noise, with their standard errors, and whether noise is what is
    left: it is the same in all rows, and what wrong members leave is not.

    Parameters
    ----------
    members : int array of shape (m, k)
        The records of every encoding, −1 where they are not known; some may be wrong.
    starts : int
        Random starts of each column.
    fewest : int
        Rows that a record must have.
    enough : float
        The share of the rows given that must be explained.
    uneven : float
        How much more the misfits of rows may differ than those of equal noise do.
    deadline : float
        A time by `time.monotonic`; columns that were not reached by then stay 0.
    """
    m, d, k = problem.m, problem.d, problem.k
    scale = column_scale(problem)
    y = problem.y / scale
    c = None if problem.c is None else problem.c / scale
    nothing = Claim.nothing(problem, "no records explain the encodings up to noise")
    rows = np.flatnonzero((members >= 0).all(axis=1) & distinct(members))
    # A record of one or two rows fits their noise.
    uses = np.bincount(members[rows].ravel(), minlength=int(members.max()) + 2)
    rows = rows[(uses[members[rows]] >= fewest).all(axis=1)]
    used, names = np.unique(members[rows], return_inverse=True)
    if len(used) <= k or len(rows) <= len(used):
        return nothing, False
    design = Design(names.reshape(-1, k), len(used))
    x = np.zeros((len(used), d), np.float32)
    gain, miss = np.zeros((2, len(rows)))
    told = power = 0.0
    order = rng.permutation(d)
    for s in range(0, d, 256):
        if late(deadline) and s:
            break
        here = order[s : s + 256]
        yb = np.ascontiguousarray(y[np.ix_(rows, here)])
        cb = None if c is None else np.ascontiguousarray(c[np.ix_(rows, here)])
        with one_blas_thread():
            x[:, here], sigma = _solve(yb, cb, design, rng, starts, deadline=deadline)
        mu, v = _others(design, x[:, here], yb, cb, sigma)
        plain: Any = np.float32(0) if cb is None else cb
        rest = np.abs(design.W @ x[:, here] + plain) - yb
        miss += (rest**2 / np.mean(rest**2, axis=0)).sum(axis=1) / (1 - design.leverage[:, 0])
        gain += (log_density(yb, mu, v) - log_density(yb, plain, float(k + sigma**2))).sum(axis=1)
        told, power = told + len(here) * information(yb, mu, v), power + len(here) * sigma**2
        low, middle, high = np.quantile(miss, [0.16, 0.5, 0.84])
        done = min(s + 256, d)
        even = bool((high - low) / 2 <= uneven * middle * np.sqrt(2 / done))
        if not even or np.median(gain) <= 0:
            break
        if progress:
            progress("values", done, d)
    sigma = float(np.sqrt(power / done))
    good = gain > log(comb(len(used), k))
    if good.mean() < enough:
        return nothing, False
    out = np.full((m, k), -1)
    out[rows[good]] = design.members[good]
    noise = sigma * float(np.sqrt(np.mean(scale**2)))
    error = noise * np.sqrt(np.diag(design.inverse) / max(told / done, 0.05))
    how = f"noise of {noise:.3g}"
    return Claim(x * scale, out, np.zeros(x.shape, bool), how, error, noise), even


def _others(
    design: Design,
    x: Values,
    y: Values,
    c: Values | None,
    sigma: float,
    s: Values | None = None,
) -> tuple[Values, Values]:
    """Mean and variance of each encoding by what the other ones say; s : its signed value."""
    total = design.W @ x
    total = total if c is None else total + c
    if s is None:
        s = signed(y, total, np.float32(sigma**2))
    h = design.leverage.astype(np.float32)
    return (total - h * s) / (1 - h), np.float32(sigma**2) / (1 - h)


def _solve(
    y: Values,
    c: Values | None,
    design: Design,
    rng: np.random.Generator,
    starts: int,
    *,
    steps: int = 160,
    climbs: int = 15,
    warm: float = 1.5,
    again: int = 4,
    smallest: float = 0.1,
    deadline: float = np.inf,
) -> tuple[Values, float]:
    """x (n, p), the likeliest of several starts at each column, and the noise that is left.

    steps : reflections of a start. climbs : steps of expectation–maximisation, of which the first
    have `warm` times the noise, so that signs that are not sure yet stay open a little longer.
    again : further starts of columns that are much less likely than most.
    smallest : noise from which on records end at their mean instead of at their highest value.
    deadline : when no further start is made.
    """
    k = design.members.shape[1]
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
        guess, _ = reflect(yt, ct, design, v, steps=steps)
        if turn == 0:
            sigma = _left(y, c, design, guess, 1e-4)
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
    if sigma > smallest:
        x = _one_by_one(y, c, design, x, sigma, True)
    return x, sigma


def _climb(y: Values, c: Values | None, design: Design, x: Values, sigmas: Floats) -> Values:
    """x after steps of expectation–maximisation, each with its own noise."""
    s = None
    for sigma in sigmas:
        s = signed(y, *_others(design, x, y, c, float(sigma), s))
        x = design.fit(s if c is None else s - c)
    return x


def _likelihood(y: Values, c: Values | None, design: Design, x: Values, sigma: float) -> Floats:
    """(p,): log-likelihood of each column, every row by what the others say."""
    mu, v = _others(design, x, y, c, sigma)
    return np.asarray(log_density(y, mu, v).sum(axis=0, dtype=np.float64))


def _left(y: Values, c: Values | None, design: Design, x: Values, sigma: float) -> float:
    """The noise that is left, with the freedom that x uses up put back."""
    total = design.W @ x
    rest = expected_square(y, total if c is None else total + c, np.float32(sigma**2))
    free = max(1 - design.n / len(y), 0.1)
    return max(float(np.sqrt(np.median(np.mean(rest, axis=0, dtype=np.float64)) / free)), 1e-4)


def _one_by_one(
    y: Values,
    c: Values | None,
    design: Design,
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
    total = design.W @ x
    total = np.ascontiguousarray((total if c is None else total + c).T)
    W = design.W.tocsc()
    values = np.ascontiguousarray(y.T)
    _sweep(values, W.indptr, W.indices, columns, total, grid, np.float32(sigma**2), mean)
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
