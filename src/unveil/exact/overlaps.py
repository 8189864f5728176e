"""Which records does every encoding mix? From similarities of generic (roughly Gaussian) values.

Let y_i = |Σ_{a∈S_i} x_a + c_i| with k records in each S_i. Two encodings that share q records have
signed private parts of correlation ρ = q/(k·v), v = 1 + noise power. The signs are hidden, but even
functions f of the values keep part of it: with f standardised within rows,

    S_ij = mean_p f(y_ip)·f(y_jp)      has a mean and a variance that depend on q alone.

f is |y| for k ≤ 3, where correlations are large, and y² cut off beyond. Beside a public part c the
posterior mean of the private one, y·tanh(yc/v) − c, takes its place, and S is linear in q.

Memberships W then have the energy of their likelihood, in nats,

    E(W) = Σ_{i<j} U_ij((WWᵀ)_ij),   U_ij(q) = (S_ij − mean_q)²/(2·var_q) + ½·log var_q,

and a heat bath draws every member of every row anew, given all others, with probability
∝ exp(−E/T), while T falls from where rows move freely to 1. Single entries of S may be far too
noisy to round: what counts is that a record has mk/n encodings, whose entries add up. This is the
only start; one that leads nowhere is cured by another draw.

Cost: m²·d for S; sweeps · m² · k for the heat bath. Memory: 5 bytes for each pair of encodings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from numba import njit
from numpy.typing import NDArray

Values = NDArray[np.float32]
Floats = NDArray[np.float64]
Members = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Similarity:
    """S (m, m), zero on the diagonal; mean, variance (k + 1,) of its entries by the number of
    records shared; n: how many records its moments suggest; noise: its standard deviation relative
    to that of a private part."""

    S: Values
    mean: Floats
    variance: Floats
    n: int
    noise: float

    @property
    def nats(self) -> float:
        """What one pair says of one shared record."""
        return float((self.mean[1] - self.mean[0]) ** 2 / (2 * self.variance[0]))


def similarity(
    y: Values,
    k: int,
    c: Values | None = None,
    *,
    rng: np.random.Generator,
    cut: float = 5.0,
    draws: int = 100_000,
    noisy: bool = True,
) -> Similarity:
    """Similarities of all pairs, with what they are for each number of shared records.

    y : (m, d) magnitudes, in units in which a record has variance 1 at each column.
    c : (m, d) or None  public part in the same units.
    cut : squares are cut here, in units of their mean: one large value would lift many pairs.
    draws : pairs of values that are simulated for mean and variance.
    noisy : whether noise is estimated, which a public part does not allow; else it is taken as 0.
    """
    d = y.shape[1]
    root = np.float32(np.sqrt(k))
    F = _feature(y / root, None if c is None else c / root, k, cut)
    F /= np.sqrt(np.mean(F**2, axis=1, keepdims=True)) + np.float32(1e-30)
    S = np.asarray(F @ F.T / np.float32(d), dtype=np.float32)
    np.fill_diagonal(S, 0.0)
    levels = _levels(k, None if c is None else c / root, cut, draws, rng)
    # Columns that go together say less: the lowest entries, which are those of pairs that share
    # nothing, scatter more than they should. A normal law has 0.651 deviations between these two.
    low, mid = np.quantile(S[np.triu_indices(len(S), 1)], [0.05, 0.16])
    spread = max(1.0, ((mid - low) / 0.651) ** 2 * d / levels(1.0)[1][0])
    best = None
    square, cube = _moments(S)
    for noise in np.arange(0.0, 0.95, 0.05) if noisy and c is None else [0.0]:
        mean, variance = levels(1 + noise**2)
        variance = variance * spread / d
        # Without noise equal subsets give equal encodings, of which the caller keeps one.
        distinct = noise == 0 and c is None
        n, miss = _count(mean, variance, k, len(S), square, cube, distinct)
        if best is None or miss < best[0]:
            best = miss, Similarity(S, mean, variance, n, float(noise))
    assert best is not None
    return best[1]


def _feature(y: Values, c: Values | None, k: int, cut: float) -> Values:
    """f of rows y, each with mean 0; y in units in which a private part has variance 1."""
    if c is not None:
        return np.asarray(y * np.tanh(y * c) - c)
    f = y if k <= 3 else np.minimum(y**2, np.float32(cut))
    return np.asarray(f - f.mean(axis=-1, keepdims=True))


def _levels(
    k: int, c: Values | None, cut: float, draws: int, rng: np.random.Generator
) -> Callable[[float], tuple[Floats, Floats]]:
    """power → (mean, variance · d) of S for 0, …, k shared records; `power` of an encoding's
    private part with its noise, to that without."""
    one, two = rng.standard_normal((2, draws)).astype(np.float32)
    offset = None if c is None else rng.choice(c.ravel(), (2, draws))

    def at(rho: float) -> tuple[float, float]:
        pair = np.stack([one, np.float32(rho) * one + np.float32(np.sqrt(1 - rho**2)) * two])
        f = _feature(np.abs(pair if offset is None else pair + offset), offset, k, cut)
        product = f[0] * f[1] / np.sqrt(np.mean(f[0] ** 2) * np.mean(f[1] ** 2))
        return float(product.mean()), float(product.var())

    grid = np.append(np.linspace(0, 1, 4 * k, endpoint=False), 1 - 1e-6)
    mean, variance = np.array([at(rho) for rho in grid]).T

    def levels(power: float) -> tuple[Floats, Floats]:
        rho = np.arange(k + 1) / k / power
        return np.interp(rho, grid, mean - mean[0]), np.interp(rho, grid, variance)

    return levels


def _moments(S: Values) -> tuple[float, float]:
    """Mean square and mean cube of S off the diagonal, about its mean."""
    m = len(S)
    pairs = m * (m - 1)
    centre = float(S.sum(dtype=np.float64)) / pairs
    square = cube = 0.0
    for row in S:
        e = row.astype(np.float64) - centre
        square += float(e @ e)
        cube += float((e * e) @ e)
    return (square - m * centre**2) / pairs, (cube + m * centre**3) / pairs


def _count(
    mean: Floats,
    variance: Floats,
    k: int,
    m: int,
    square: float,
    cube: float,
    distinct: bool,
) -> tuple[int, float]:
    """n from the mean square of S, and how far the mean cube is then from what it should be.

    Subsets drawn at random share q records with hypergeometric chance; `distinct`: no two subsets
    are equal. The mean of S tells nothing once columns are standardised."""

    def moments(n: int) -> tuple[float, float]:
        share = np.array([comb(k, q) * comb(n - k, k - q) / comb(n, k) for q in range(k + 1)])
        share[k] *= not distinct
        share /= share.sum()
        e = mean - share @ mean
        return float(share @ (e**2 + variance)), float(share @ (e**3 + 3 * e * variance))

    low, high = k + 1, max(m, k + 2)
    while high - low > 1:  # the mean square falls with n
        n = (low + high) // 2
        low, high = (n, high) if moments(n)[0] > square else (low, n)
    return high, abs(moments(high)[1] - cube)


def draw_members(
    similar: Similarity,
    k: int,
    n: int,
    rng: np.random.Generator,
    *,
    sweeps: int = 100,
    hot: float = 0.35,
    warm: float = 0.28,
    tail: int = 20,
    spare: float = 0.1,
    tiny: float = 0.35,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Members, Floats]:
    """members (m, k): the records that each row had most often in the last sweeps, and how sure
    each row is of them (m,), from 0 to 1.

    sweeps : temperatures of the first cooling; the second has a third of them.
    hot, warm : first temperatures, relative to what the mk/n encodings of a record say of one of
        them: at the first rows move freely, at the second they keep most of what they found.
    tail : sweeps at temperature 1 over which is averaged.
    spare, tiny : some more columns than n leave room to move; those that end with less than `tiny`
        of the expected rows, and too few to tell, hold nothing but chance, and the rest starts
        again, warm.
    stop : asked between sweeps; what was drawn so far is returned.
    """
    m = len(similar.S)
    a = 1 / (2 * similar.variance)
    # U(q + 1) − U(q) is a polynomial of S: a row of three coefficients for each q.
    U = np.column_stack([a, -2 * a * similar.mean, a * similar.mean**2 - np.log(a) / 2])
    steps = np.ascontiguousarray(np.diff(U, axis=0), dtype=np.float32)
    least = min(tiny * m * k / n, np.log(n) / similar.nats)
    lead = rng.random((m, int(n * (1 + spare)) + 2))
    for start, length in ((hot, sweeps), (warm, sweeps // 3)):
        members = np.argsort(-lead, axis=1)[:, :k].astype(np.int64)
        first = max(1.0, start * similar.nats * m * k / n)
        cooling = np.append(np.geomspace(first, 1.0, length), np.ones(tail))
        often = np.zeros(lead.shape)
        # Short enough to be stopped within a second.
        chunk = int(np.clip(1e8 / (m * m * k), 1, len(cooling) // 10 + 1))
        for s in range(0, len(cooling), chunk):
            count = max(0, min(len(cooling), s + chunk) - max(s, length))
            part = cooling[s : s + chunk]
            draws = rng.random((len(part), m, k), dtype=np.float32)
            _heat_bath(similar.S, steps, members, part, draws, often, count)
            if progress:
                progress("memberships", min(s + chunk, len(cooling)), len(cooling))
            if stop and stop():
                break
        if not often.any():
            np.put_along_axis(often, members, 1.0, axis=1)
        often /= often.sum(axis=1, keepdims=True) / k
        kept = often.sum(axis=0) > least
        if kept.sum() <= k or (stop and stop()):
            break
        lead = often[:, kept] + 0.5 * rng.random((m, int(kept.sum())))
    members = np.argsort(-often, axis=1)[:, :k]
    return members, np.take_along_axis(often, members, axis=1).min(axis=1)


@njit(cache=True, nogil=True, fastmath=True)
def _heat_bath(S, steps, members, cooling, draws, often, counted):  # type: ignore[no-untyped-def]
    """Sweeps at the temperatures `cooling`, members in place; `often` (m, columns) counts the
    members of the last `counted` sweeps. draws (sweeps, m, k): uniform numbers."""
    m, k = members.shape
    n = often.shape[1]
    shared = np.zeros((m, m), np.int8)
    holds = np.zeros((n, m), np.bool_)
    for i in range(m):
        for q in range(k):
            holds[members[i, q], i] = True
    for b in range(n):
        rows = np.flatnonzero(holds[b])
        for s in range(len(rows)):
            for t in range(len(rows)):
                shared[rows[s], rows[t]] += 1
    cost, chance = np.empty(n, np.float32), np.empty(n, np.float32)
    more = np.empty(m, np.float32)
    for sweep in range(len(cooling)):
        T = np.float32(cooling[sweep])
        for i in range(m):
            # The energy of one more record, for each record.
            for j in range(m):
                q, e = min(shared[i, j], k - 1), S[i, j]
                more[j] = (steps[q, 0] * e + steps[q, 1]) * e + steps[q, 2]
            more[i] = 0
            cost[:] = 0
            for j in range(m):
                for p in range(k):
                    cost[members[j, p]] += more[j]
            for q in range(k):
                for turn in range(2):  # give up this member, take another
                    b = members[i, q]
                    by = -1 if turn == 0 else 1
                    if turn == 1:
                        low = np.float32(np.inf)
                        for a in range(n):
                            if not holds[a, i] and cost[a] < low:
                                low = cost[a]
                        total = np.float32(0)
                        for a in range(n):
                            over = (cost[a] - low) / T
                            if holds[a, i] or over > 20:
                                chance[a] = 0
                            else:
                                chance[a] = np.exp(-over)
                                total += chance[a]
                        left = total * draws[sweep, i, q]
                        for a in range(n):
                            if chance[a] > 0:
                                b = a
                                left -= chance[a]
                                if left < 0:
                                    break
                        members[i, q] = b
                    for j in range(m):
                        if holds[b, j] and j != i:
                            old = min(shared[i, j], k - 1)
                            new = min(shared[i, j] + by, k - 1)
                            shared[i, j] += by
                            shared[j, i] = shared[i, j]
                            e = S[i, j]
                            change = (
                                (steps[new, 0] - steps[old, 0]) * e + steps[new, 1] - steps[old, 1]
                            ) * e + (steps[new, 2] - steps[old, 2])
                            for p in range(k):
                                cost[members[j, p]] += change
                    holds[b, i] = turn == 1
        if sweep >= len(cooling) - counted:
            for i in range(m):
                for q in range(k):
                    often[i, members[i, q]] += 1
