"""A claim, held against the encodings value by value.

    claim         row r mixes the k records members[r] (and the public vectors supports[r]);
                  record i has the values vectors[i]
    re-encoding   z = w·Σ x + w_public·Σ p of every claimed row, at every value
    reproduced    |y| = |z| (signs hidden) or y = z (signs kept), up to the rounding of numbers in
                  single precision, at every value that the claim does not itself leave open
    rounded       encodings that lie on a grid (8 bits, whole numbers) or are half-precision
                  numbers: reproduced up to one step of that grid, at the largest value of the
                  column. The truth is within half a step; a mean over encodings, which is what
                  attacks find, is off by a little more. The grid is read off the values, and only
                  asked for if rows are not reproduced without it

What a reproduced value says against chance is measured, not assumed: two random encodings agree
at column p, up to its tolerance, with probability 2^−bits[p].

Cost: one pass over the encodings, m·d·(k + 2) operations; evidence comes from a sample of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky

from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.records import VERIFIED

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judgement:
    """status, reasons (r,); exact (m,): encodings that are reproduced; residual (r,): largest miss
    in the rows of a record; open_values (r, d); note: a sentence more about all."""

    status: NDArray[np.str_]
    reasons: list[str]
    exact: Flags
    residual: Floats
    open_values: Flags
    signed: bool
    note: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


def first_doubts(
    doubts: Iterable[tuple[str, str, Any]], proof: str, facts: dict[str, Any], n: int
) -> tuple[NDArray[np.str_], list[str]]:
    """Status and reason of n vectors: those of the first doubt (status, reason, whom it touches),
    VERIFIED and `proof` of whom none touches. Reasons quote facts, of all or of each vector."""
    status, reasons = np.full(n, VERIFIED, "<U10"), [proof] * n
    for name, reason, touches in doubts:
        for i in np.flatnonzero((status == VERIFIED) & touches):
            status[i], reasons[i] = name, reason
        if not (status == VERIFIED).any():
            break
    of_each = {key: np.broadcast_to(value, n).tolist() for key, value in facts.items()}
    return status, [
        text.format(**{key: values[i] for key, values in of_each.items()})
        for i, text in enumerate(reasons)
    ]


def worst_of_rows(miss: Floats, members: sparse.csr_array) -> Floats:
    """(n,) the largest miss among the rows of each record."""
    spread = sparse.csr_array(members.astype(bool).multiply(miss[:, None]))
    return np.asarray(spread.max(axis=0).todense()).ravel()


@dataclass(frozen=True, eq=False)
class Claim:
    """What is left of a claim after re-encoding; values are in units in which y = |Σ x + offset|.

    k, kept: records per row; whether signs were kept
    X (n, d): claimed values; unsure (n, d): those the claim leaves open
    members: boolean csr (m, n), as claimed; exact (m,): rows that are reproduced
    rows (q, k): reproduced rows of k different records, each once, sorted
    names (q, k_public): their public vectors; P, public_weight: the list and what one counts
    whole (d,): columns at which all of these rows are reproduced, open values included
    tolerance (d,): how far a sum may be off; step: of the grid of rounded encodings, else 0
    residual (n,): largest miss in the rows of a record, by the largest value of the column
    """

    k: int
    kept: bool
    X: Floats
    unsure: Flags
    members: sparse.csr_array
    exact: Flags
    rows: Index
    names: Index
    P: NDArray[np.float32]
    public_weight: float
    whole: Flags
    tolerance: Floats
    step: float
    residual: Floats

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def d(self) -> int:
        return int(self.X.shape[1])

    def offset(self, rows: Index | slice = slice(None)) -> Floats:
        """(rows, d): what public vectors add to each sum."""
        names = self.names[rows]
        if not names.shape[1]:
            return np.zeros((len(names), self.d))
        return np.asarray(self.public_weight * self.P[names].sum(axis=1, dtype=np.float64))


def as_members(members: Any, m: int, n: int, k: int) -> sparse.csr_array:
    """(m, n) whole numbers: how often each row holds each record. Taken from (m, k) names with −1
    where unknown, or from a boolean matrix. Rows of pairs that name one record hold it twice."""
    if sparse.issparse(members) or getattr(members, "dtype", None) is np.dtype(bool):
        W = sparse.csr_array(members, copy=True).astype(np.int64)
        if W.shape != (m, n):
            raise InputError(f"members of shape {W.shape}: {m} encodings and {n} vectors are given")
        W.sum_duplicates()
        W.eliminate_zeros()
        W.data[:] = 1
        alone = np.repeat(np.diff(W.indptr) == 1, np.diff(W.indptr))
        W.data[alone & (k == 2)] = 2
        return W
    names = np.atleast_2d(np.asarray(members))
    if names.ndim != 2 or len(names) != m or names.dtype.kind not in "iu":
        raise InputError(
            f"members of shape {names.shape}: give (m, k) names with −1 where unknown, or a "
            f"boolean matrix ({m}, {n})"
        )
    if names.max(initial=-1) >= n:
        raise InputError(f"members name vector {names.max()}, but there are only {n}")
    row, place = np.nonzero(names >= 0)
    at = row.astype(np.int64), names[row, place].astype(np.int64)
    W = sparse.csr_array((np.ones(len(row), np.int64), at), shape=(m, n))
    W.sum_duplicates()
    return W


def held_against(
    encodings: Encodings,
    vectors: NDArray[Any],
    members: sparse.csr_array,
    public: NDArray[np.float32] | None,
    supports: Index | None,
    doubtful: Flags,
) -> Claim:
    """Re-encode the claim; see the head of this file. Half of the values of a row at most may be
    open for it to count."""
    # 1. Everything in the units of the encodings.
    scheme, Y = encodings.scheme, encodings.values
    (n, d), k = vectors.shape, scheme.k_private
    w, kept = scheme.private_weight, scheme.signs == "kept"
    X = np.where(np.isfinite(vectors), vectors, 0).astype(np.float64)
    unsure = ~np.isfinite(vectors) | doubtful
    sizes = np.asarray(members.sum(axis=1)).ravel()
    claimed = sizes == k
    names = np.zeros((encodings.m, 0), np.int64) if supports is None else supports
    claimed &= (names >= 0).all(axis=1)
    P = np.zeros((0, d), np.float32) if public is None else public
    index = members.indptr.astype(np.int64), members.indices.astype(np.int64)
    reencode: Any = _reencode
    parts: Any = Y, X, *index, w * members.data.astype(np.float64), P, np.ascontiguousarray(names)
    parts = *parts, float(scheme.public_weight), kept, claimed, unsure[: n * unsure.any()]
    # 2. Reproduced as they are; if not even half of them, up to the grid the encodings lie on.
    largest = np.maximum(Y.max(axis=0), -Y.min(axis=0)).astype(np.float64)
    single = 2.0**-20 * np.maximum(largest, 1e-30)  # numbers in single precision err by 2^−24
    found, step, tolerance = reencode(*parts, single), 0.0, single
    if claimed.any() and 2 * found[0].sum() < claimed.sum():
        grid, relative = grid_of(Y)
        if grid.any() or relative:
            half = single + grid / 2 + relative * largest
            again = reencode(*parts, 2 * half)
            if again[0].sum() > found[0].sum():
                # The truth is within half a step, the claim within a whole one.
                found, tolerance = again, 3 * half
                step = float(max(grid.max(), 2 * relative * largest.max()))
    exact, whole, miss = found
    # 3. Each row of different records once.
    single_use = np.asarray(members.max(axis=1).todense()).ravel() == 1
    chosen = np.flatnonzero(exact & single_use)
    held = np.sort(members[chosen].indices.reshape(-1, max(k, 1)), axis=1).astype(np.int64)
    both = np.concatenate([held, np.sort(names[chosen], axis=1)], axis=1)
    both = np.unique(both, axis=0)
    return Claim(
        k,
        kept,
        X,
        unsure,
        members.astype(bool),
        exact,
        both[:, :k],
        both[:, k:],
        P,
        scheme.public_weight / w,
        whole,
        tolerance / w,
        step,
        worst_of_rows(np.where(claimed, miss, 0.0), members),
    )


@njit(cache=True, nogil=True)
def _reencode(  # type: ignore[no-untyped-def]
    Y, X, indptr, indices, data, P, names, public_weight, kept, claimed, unsure, near
):
    """(rows that are reproduced, columns at which all of these are, open values included, largest
    miss of each row by the largest value of its column)."""
    m, d = Y.shape
    exact, whole, worst = np.zeros(m, np.bool_), np.ones(d, np.bool_), np.zeros(m)
    z, off, vague = np.zeros(d), np.zeros(d, np.bool_), np.zeros(d, np.bool_)
    for r in range(m):
        if not claimed[r]:
            continue
        z[:] = 0.0
        vague[:] = False
        for a in range(indptr[r], indptr[r + 1]):
            z += data[a] * X[indices[a]]
            if len(unsure):
                vague |= unsure[indices[a]]
        for h in names[r]:
            z += public_weight * P[h]
        wrong, open_values, most = 0, 0, 0.0
        for p in range(d):
            y = Y[r, p]
            miss = abs(z[p] - y) if kept else abs(abs(z[p]) - abs(y))
            # Written so that a miss that is no number counts.
            off[p] = not miss <= near[p]
            if vague[p]:
                open_values += 1
            elif off[p]:
                wrong += 1
            if not vague[p]:
                most = max(most, miss / near[p])
        worst[r] = most * 2.0**-20
        exact[r] = wrong == 0 and 2 * open_values < d
        if exact[r] and open_values:
            for p in range(d):
                if off[p]:
                    whole[p] = False
    return exact, whole, worst


def grid_of(Y: NDArray[np.float32]) -> tuple[Floats, float]:
    """(step of the grid on which each column lies, 0: none; relative half step of half-precision
    numbers, 0: they are not).

    Half precision keeps 11 bits of a number. A grid has one step for all columns, or one for each:
    all differences are whole multiples of the smallest, and most values occur more than once."""
    d = Y.shape[1]
    with np.errstate(over="ignore"):
        if (Y.astype(np.float16).astype(np.float32) == Y).all():
            return np.full(d, 2.0**-24), 2.0**-11
    # A few thousand values tell; all of them must then agree.
    step = _step(np.abs(Y).ravel()[:: max(1, Y.size // 200_000)])
    if step and _multiples(np.abs(Y), step):
        return np.full(d, step), 0.0
    return np.array([_step(np.abs(Y[:, p])) for p in range(d)]), 0.0


def _step(values: NDArray[np.float32]) -> float:
    levels = np.unique(values).astype(np.float64)
    # Steps smaller than rounding are none; and a column of few levels that all occur once says
    # nothing.
    gaps = np.diff(levels)
    gaps = gaps[gaps > 1e-5 * levels[-1]] if len(levels) > 1 else gaps
    if len(gaps) < 2 or 2 * len(levels) > len(values):
        return 0.0
    step = float(gaps.min())
    # The mean of all levels gives the step to more digits than the smallest difference.
    counts = np.rint((levels - levels[0]) / step)
    step = float((levels[-1] - levels[0]) / counts[-1])
    return step if _multiples(levels - levels[0], step) else 0.0


def _multiples(values: NDArray[Any], step: float) -> bool:
    shares = values / step - values.flat[0] / step
    return bool((np.abs(shares - np.rint(shares)) < 0.05).all())


def resolution(
    claim: Claim, rng: np.random.Generator, *, fine_bits: float = 12.0, samples: int = 512
) -> tuple[Flags, Floats]:
    """(columns so fine that values which are not tied count as in general position; bits that one
    reproduced value says against chance, no more than `fine_bits`).

    fine_bits: sums of four values agree less often than 2^−fine_bits
    samples: rows, and half as many sums of four, that are compared with each other
    """
    n, d = claim.n, claim.d
    fine, bits = np.zeros(d, bool), np.zeros(d)
    if not len(claim.rows):
        return fine, bits
    chosen = rng.permutation(len(claim.rows))[:samples]
    order = np.argsort(rng.random((samples // 2, n)), axis=1)[:, :4]
    order = rng.permutation(np.unique(np.sort(order, axis=1), axis=0))
    signs = np.where(rng.random(order.shape) < 0.5, -1.0, 1.0)
    for start in range(0, d, 512):
        some = slice(start, start + 512)
        X, P, tolerance = claim.X[:, some], claim.P[:, some], claim.tolerance[some]
        total = X[claim.rows[chosen]].sum(axis=1)
        total += claim.public_weight * P[claim.names[chosen]].sum(axis=1, dtype=np.float64)
        bits[some] = _bits(np.abs(total).T.copy(), tolerance)
        if n > 4:
            sums = np.einsum("sk,skd->ds", signs, X[order])
            fine[some] = _bits(np.ascontiguousarray(sums), 4 * tolerance) >= fine_bits
    return fine, np.where(fine, fine_bits, np.minimum(bits, fine_bits))


@njit(cache=True, nogil=True)
def _bits(values, near, pairs=1 << 14):  # type: ignore[no-untyped-def]
    """(columns,) −log₂ of how often two of the values (columns, rows) agree, by so many pairs."""
    d, m = values.shape
    out, lags = np.zeros(d), min(m - 1, 1 + pairs // m)
    for p in range(d):
        same, count = 1, 1
        for lag in range(1, lags + 1):
            count += m - lag
            for a in range(m - lag):
                same += abs(values[p, a + lag] - values[p, a]) <= near[p]
        out[p] = np.log2(count / same)
    return out


def dependent(claim: Claim, among: Flags, degree: Index, rng: np.random.Generator) -> Flags:
    """(n,) those `among` all that are 0, or combinations of others of more rows: of any number if
    d ≥ n, else of up to three with whole coefficients. The others are independent, and are proved
    without the rows of these."""
    chosen = np.flatnonzero(among)
    chosen = chosen[np.argsort(-degree[chosen], kind="stable")]
    X, out = claim.X[np.ix_(chosen, np.flatnonzero(claim.whole))], among.copy()
    n, d = X.shape
    if not d or not n:
        return out
    U = X / np.maximum(np.sqrt(np.mean(X**2, axis=0)), 1e-30)
    length = np.linalg.norm(U, axis=1)
    flagged = length < 1e-5 * np.sqrt(d)
    U = U / np.maximum(length, 1e-30)[:, None]
    if n > d:
        flagged |= n <= 3000 and short_relations(U, rng)
        out[chosen] = flagged
        return out
    # What rounding leaves of an eigenvalue that is 0; and of the distance from those before.
    nothing = max(1e-11, float((claim.step / np.maximum(np.abs(claim.X).max(), 1e-30)) ** 2))
    near, apart = np.sqrt(2 * nothing), None
    while not flagged.all():
        gram = U[~flagged] @ U[~flagged].T
        gram[np.diag_indices_from(gram)] -= 2 * nothing
        try:
            cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
            break
        except np.linalg.LinAlgError:
            apart = np.abs(np.diag(np.linalg.qr(U.T, mode="r"))) if apart is None else apart
            flagged |= apart < near
            near *= 2
    out[chosen] = flagged
    return out


def copies(claim: Claim, among: Flags, shut: Flags, degree: Index) -> Flags:
    """(n,) those `among` all that have, at every column at which both are `shut` (n, d), the values
    of another one of more rows, signs aside if they were hidden. Pairs part at the first column
    that differs, so that the cost is a few operations per pair."""
    chosen = np.flatnonzero(among)
    chosen = chosen[np.argsort(-degree[chosen], kind="stable")]
    X, out = claim.X[chosen], np.zeros(claim.n, bool)
    out[chosen] = same_values(X if claim.kept else np.abs(X), ~shut[chosen], 4 * claim.tolerance)
    return out


@njit(cache=True, nogil=True)
def same_values(X, open_there, near):  # type: ignore[no-untyped-def]
    """(n,) rows that are within `near` of an earlier one, where neither is open."""
    n, d = X.shape
    out = np.zeros(n, np.bool_)
    for i in range(n):
        for j in range(i):
            same = True
            for p in range(d):
                both = not (open_there[i, p] or open_there[j, p])
                if both and abs(X[i, p] - X[j, p]) > near[p]:
                    same = False
                    break
            if same:
                out[i] = True
                break
    return out


def short_relations(U: Floats, rng: np.random.Generator, *, near: float = 1e-5) -> Flags:
    """(n,) the last record of each Σ c_i·x_i = 0 of one to four, c_i in ±1 and, up to 200 records,
    ±2: sums of two that agree up to sign, told by two random projections. O(n²) sums."""
    n, out = len(U), np.zeros(len(U), bool)
    (a, b), one = np.triu_indices(n, 1), np.arange(n)
    kinds = [(one[:1], one[:1], 0, 0), (one, one, 1, 0), (one, one, 2, 0)]
    kinds += [(a, b, 1, 1), (a, b, 1, -1)]
    if n <= 200:
        kinds += [(a, b, 2, 1), (a, b, 2, -1), (b, a, 2, 1), (b, a, 2, -1)]
    i, j = (np.concatenate([kind[q] for kind in kinds]) for q in (0, 1))
    ci, cj = (np.concatenate([np.full(len(kind[0]), kind[q]) for kind in kinds]) for q in (2, 3))
    shadow = U @ rng.standard_normal((U.shape[1], 2))
    sums = ci[:, None] * shadow[i] + cj[:, None] * shadow[j]
    turn = np.where(sums[:, 0] < 0, -1, 1)
    sums, ci, cj = sums * turn[:, None], ci * turn, cj * turn
    order, apart = np.argsort(sums[:, 0]), 1
    while apart < len(order) and (sums[order[apart:], 0] - sums[order[:-apart], 0] < near).any():
        ends = np.stack([order[apart:], order[:-apart]])
        for p, q in ends[:, (np.abs(sums[ends[0]] - sums[ends[1]]) < near).all(axis=1)].T:
            c = np.zeros(n)
            np.add.at(c, [i[p], j[p], i[q], j[q]], [ci[p], cj[p], -ci[q], -cj[q]])
            if c.any() and np.abs(c @ U).max() < near:
                out[np.flatnonzero(c)[-1]] = True
        apart += 1
    return out
