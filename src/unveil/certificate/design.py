"""Which memberships can no other reading have? A theorem about the claimed rows W alone.

Truth: some W* with k different records in each row and some X*, |W* X*| = |W X| at every column.
For a set S of records, its rows R (those inside S), and any weights ω > 0 of rows, |u| = Σ ω·|u_r|
and deg(i) = |W e_i|, let

  (R) W have full column rank on S, S hang together by its rows, and every e_i − e_j be an integer
      combination of rows
  (H) an integer t with Wt ∈ {0, ±1} and t_i ≠ 0 weigh at least deg(i), and more if Wt ≠ 0 in a row
      without i
  (F) a t ∈ a/k + integers, 0 < a < k, with Wt ∈ {0, ±1} weigh more than the mean of the two
      largest degrees.

Then W* = W on R, up to names, and X* = ±X on S at each column in general position. Proof:
docs/certificate.md, Theorem 1. How each condition is shown:

  (R) exact integers (`classes`)
  (H) v with v = ω on the rows of i, |v| ≤ (1 − slack)·ω elsewhere and Wᵀv = deg(i)·e_i + rest gives
      |Wt| ≥ v·Wt. Least squares by conjugate gradients; what they leave over is bounded (Lemma 3)
  (F) one eigenvalue μ of the normalised WᵀωW: |Wt| ≥ (k−1)/k·Σω / ((k−2)/k + 1/μ) (Lemma 4)
  few records: all columns t that a reading can have; up to 200, linear programs for (H)

Signs kept: Wt ∈ {0, 1}, so that programs ask for less. Growth (Theorem 2) then adds records one by
one. Cost: n systems of conjugate gradients, some five steps of m·k operations each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from unveil.certificate.claim import Claim

NEAR = 2.0**-20
"""Sums of whole numbers and fractions of small ones: errors are about 1e-12."""

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Effort:
    """How far a proof is looked for. No setting can make a proof wrong.

    slack: by how much |v| stays below ω, and what a row without i pays for it
    uneven: weights of rows lie between 1/uneven and uneven
    rounds: of records leaving a set
    reweighted: times that rows of which much is asked get more weight
    linear, whole: records up to which linear programs are asked, and columns are enumerated
    columns: that are enumerated
    generators: records that exact elimination may leave
    """

    slack: float = 0.02
    uneven: float = 5.0
    rounds: int = 10
    reweighted: int = 12
    linear: int = 200
    whole: int = 40
    columns: int = 20_000
    generators: int = 150


@dataclass(frozen=True, eq=False)
class Design:
    """Rows inside a set of records, renamed 0 … n−1: W as rows (m, k) and its transpose."""

    rows: Index
    n: int
    kept: bool
    W: sparse.csr_array
    starts: Index
    places: Index

    @classmethod
    def of(cls, rows: Index, n: int, kept: bool) -> Design:
        W = incidence(rows, n)
        T = sparse.csc_array(W)
        return cls(rows, n, kept, W, T.indptr.astype(np.int64), T.indices.astype(np.int64))

    @property
    def k(self) -> int:
        return int(self.rows.shape[1])

    def rows_of(self, i: int) -> Index:
        return self.places[self.starts[i] : self.starts[i + 1]]

    def gram(self, weight: Floats) -> sparse.csr_array:
        return sparse.csr_array(self.W.T @ (self.W * weight[:, None]))


def incidence(rows: Index, n: int) -> sparse.csr_array:
    m, k = rows.shape
    at = np.repeat(np.arange(m), k), rows.ravel()
    return sparse.csr_array((np.ones(m * k), at), shape=(m, n))


def core(rows: Index, n: int, kept: bool, effort: Effort) -> Flags:
    """A set with (R), (H) and (F), as large as it comes: who stands in the way leaves."""
    inside, turns = np.ones(n, bool), 0
    while turns <= effort.rounds and inside.any():
        # 1. Records of three rows and more that hang together and are alike.
        use = rows[inside[rows].all(axis=1)]
        few = inside & (np.bincount(use.ravel(), minlength=n) < 3)
        inside &= ~few
        if few.any():
            continue
        design = Design.of((np.cumsum(inside) - 1)[use], int(inside.sum()), kept)
        label = connected_components(design.W.T @ design.W, directed=False)[1].astype(np.int64)
        if not label.any():
            found = classes(design, effort.generators)
            if found is None:
                break
            label = found
        leaving = np.flatnonzero(label != np.bincount(label).argmax())
        # 2. Heavy columns.
        if not len(leaving):
            leaving, turns = standing_in_the_way(design, effort), turns + 1
            if not len(leaving):
                return inside
        inside[np.flatnonzero(inside)[leaving]] = False
    return np.zeros(n, bool)


def classes(design: Design, generators: int) -> Index | None:
    """(R): a label per record, the same for i and j if e_i − e_j is an integer combination of
    rows. None if W lacks full column rank, or where that takes too long. Whole numbers only.

    In Z^n / rows a row with one member unknown gives it as minus the others. Where there is none, a
    record becomes a generator. The other rows are relations among these, in Hermite form. Rows sum
    to k, so that Z/k is an image of the group: if it has order k, all e_i are the same in it.
    """
    rows, n, k = design.rows, design.n, design.k
    if k == 2:
        # Connected pairs: all are alike if there is an odd cycle, that is, if the double cover
        # hangs together.
        a, b = rows.T
        ends = np.concatenate([a, b]), np.concatenate([b + n, a + n])
        cover = sparse.coo_array((np.ones(2 * len(a)), ends), shape=(2 * n, 2 * n))
        single = connected_components(cover, directed=False)[0] == 1
        return np.zeros(n, np.int64) if single else None
    R = rows.tolist()
    missing, unknown, ready = [k] * len(R), set(range(n)), list[int]()
    image: list[dict[int, int]] = [{} for _ in range(n)]
    count = 0

    def settle(i: int, value: dict[int, int]) -> None:
        image[i] = value
        unknown.discard(i)
        for r in design.rows_of(i).tolist():
            missing[r] -= 1
            if missing[r] == 1:
                ready.append(r)

    def total(row: list[int]) -> dict[int, int]:
        out: dict[int, int] = {}
        for i in row:
            for a, b in image[i].items():
                out[a] = out.get(a, 0) + b
        return {a: b for a, b in out.items() if b}

    worth = [0.0, 0.0, 1.0, 0.01] + [0.0] * k
    while unknown:
        if ready:
            row = R[ready.pop()]
            for i in unknown.intersection(row):
                settle(i, {a: -b for a, b in total(row).items()})
            continue
        if count == generators:
            return None

        def gain(i: int) -> tuple[float, int]:
            own = design.rows_of(i).tolist()
            return sum(worth[missing[r]] for r in own), len(own)

        settle(max(unknown, key=gain), {count: 1})
        count += 1
    # Hermite form of the relations.
    basis: list[list[int] | None] = [None] * count
    for relation in sorted({tuple(sorted(total(row).items())) for row in R}):
        v = [dict(relation).get(a, 0) for a in range(count)]
        for j in range(count):
            pivot = basis[j]
            if v[j] and pivot is None:
                basis[j] = v
                break
            while v[j] and pivot is not None:
                q = pivot[j] // v[j]
                pivot, v = v, [x - q * y for x, y in zip(pivot, v, strict=True)]
                basis[j] = pivot
        full = [b for b in basis if b is not None]
        if len(full) == count and abs(prod(b[j] for j, b in enumerate(full))) == k:
            return np.zeros(n, np.int64)
    full = [b for b in basis if b is not None]
    if len(full) < count:
        return None
    seen: dict[tuple[int, ...], int] = {}
    labels = []
    for value in image:
        v = [value.get(a, 0) for a in range(count)]
        for j, b in enumerate(full):
            q = v[j] // abs(b[j]) * (1 if b[j] > 0 else -1)
            v = [x - q * y for x, y in zip(v, b, strict=True)]
        labels.append(seen.setdefault(tuple(v), len(seen)))
    return np.array(labels)


def standing_in_the_way(design: Design, effort: Effort) -> Index:
    """Nobody if (H) and (F) hold with some weights of rows; else who had better leave the set."""
    W, n, k = design.W, design.n, design.k
    m, uneven = len(design.rows), effort.uneven
    weight = np.asarray(W @ (1 / (W.T @ np.ones(m))))
    weight = best = np.clip(weight / weight.mean(), 1 / uneven, uneven)
    fewest, patience, blamed = n + 1, 4, np.array([], np.int64)
    # 1. Rows of which a linear form asks too much get more weight.
    for _ in range(effort.reweighted):
        degree = np.asarray(W.T @ weight)
        mu = least_eigenvalue(design, weight)
        heaviest = np.sort(degree)[-2:].mean() + effort.slack
        most, asked = heavy(design, weight, mu, effort.slack)
        light = np.flatnonzero(most > 1 - effort.slack)
        enough = fractions(design, weight, mu, effort) > heaviest
        if not len(light) and enough:
            return light
        if len(light) < fewest:
            fewest, best, blamed, patience = len(light), weight, light, 4
        patience -= 1
        if not patience:
            break
        weight = weight * np.maximum(asked / 0.9, 1.0)
        if not enough:
            weight = weight * np.sqrt(W @ (degree.mean() / degree) / k)
        weight = np.clip(weight / weight.mean(), 1 / uneven, uneven)
    if n > effort.linear:
        return blamed if len(blamed) else np.array([degree.argmax()])
    return by_columns(design, best, effort)


def by_columns(design: Design, even: Floats, effort: Effort) -> Index:
    """The same column by column. Few records: all columns that a reading can have, one by one; else
    those that linear programs find. That a column is not too light is a linear condition on the
    weights of rows; those nearest to `even` that meet all conditions so far are tried in turn."""
    W, n, slack = design.W, design.n, effort.slack
    m, weight, blamed = len(design.rows), even, list[int]()
    cuts, zero, eye = np.empty((0, m)), sparse.csr_array, sparse.eye_array
    every = possible_columns(design, effort.columns) if n <= effort.whole else None
    degree = np.asarray(W.T @ weight)
    for _ in range(6):
        degree = np.asarray(W.T @ weight)
        mu = least_eigenvalue(design, weight)
        fraction = fractions(design, weight, mu, effort)
        light: list[tuple[int, Floats]] = []
        if every is not None:
            light, fraction = light_columns(design, weight, every, slack)
        else:
            for i in np.flatnonzero(heavy(design, weight, mu, slack)[0] > 1 - slack).tolist():
                for sign in (1, -1) if design.kept else (1,):
                    value, t = lightest(design, weight, i, sign, slack)
                    if value < degree[i] - 1e-6:
                        light.append((i, t))
        if not light and fraction > np.sort(degree)[-2:].mean() + slack:
            return np.array([], np.int64)
        for i, t in light:
            own, u = (design.rows == i).any(axis=1), np.abs(W @ t)
            asked = np.where(own, 1.0, 1 - slack) * u - own
            cuts = np.vstack([cuts, asked / max(u.sum(), 1e-9)])
            blamed.append(int(np.where(np.arange(n) == i, 0, np.abs(t) / degree).argmax()))
        c = len(cuts)
        blocks = [
            [eye(m), -eye(m), zero((m, c)), zero((m, n))],
            [-eye(m), -eye(m), zero((m, c)), zero((m, n))],
            [zero(-cuts), zero((c, m)), -eye(c), zero((c, n))],
            [W.T, zero((n, m)), zero((n, c)), -eye(n)],
        ]
        most = 0.93 * min(fraction, float(weight.sum()))
        bound = np.concatenate([even, -even, np.full(c, -0.005), np.full(n, most)])
        price = np.concatenate([np.zeros(m), np.ones(m), np.full(c, 1e3), np.ones(n)])
        low = np.append(even / 2, np.zeros(m + c + n))
        high = np.append(even * 1.5, np.full(m + c + n, np.inf))
        lines: Any = sparse.csr_array(sparse.vstack([sparse.hstack(b) for b in blocks]))
        between: Any = np.column_stack([low, high])
        found: Any = linprog(price, A_ub=lines, b_ub=bound, bounds=between)
        if found.status:
            break
        weight, missed = found.x[:m], found.x[2 * m : 2 * m + c] > 0.005 + 1e-9
        if missed.any():
            blamed = [b for b, miss in zip(blamed, missed, strict=True) if miss]
            break
    return np.array([np.bincount(blamed).argmax() if blamed else degree.argmax()])


def possible_columns(design: Design, most: int) -> Floats | None:
    """All t that a reading can have as a column, up to sign: C = {t: Wt in {0, 1}} if signs are
    kept, else differences of two of C (docs/certificate.md, Lemma 5). None: more than `most`."""
    W = design.W.toarray()
    basis = independent_rows(W)
    if len(basis) < design.n:
        return None
    C = zero_one_columns(W, basis, 2 * most)
    if C is None or (not design.kept and len(C) ** 2 > 2 * most):
        return None
    if not design.kept:
        one, two = np.triu_indices(len(C), 1)
        C = np.vstack([C, C[one] - C[two]])
    C = C[(np.abs(C) > NEAR).any(axis=1)]
    return np.asarray(C[(np.abs(C @ W.T) < 1 + NEAR).all(axis=1)])


def light_columns(
    design: Design, weight: Floats, every: Floats, slack: float
) -> tuple[list[tuple[int, Floats]], float]:
    """((i, t) for the lightest t that contradicts (H), for each i that has one; the weight of the
    lightest fraction)."""
    W = design.W.toarray()
    U = np.rint(np.abs(every @ W.T)).astype(np.float32)
    cost, degree = U @ weight, weight @ W
    whole = np.asarray((np.abs(every - np.rint(every)) < NEAR).all(axis=1))
    fraction = float(cost[~whole].min(initial=np.inf))
    # (columns, n): is Wt ≠ 0 in a row without i? Then it must weigh more than e_i.
    beside = U.sum(axis=1)[:, None] - U @ W.astype(np.float32) > 0.5
    enough = cost[:, None] >= degree + np.where(beside, slack * weight.min(), -1e-6)
    bad = whole[:, None] & (np.abs(every) > NEAR) & ~enough
    out = []
    for i in np.flatnonzero(bad.any(axis=0)).tolist():
        t = every[np.where(bad[:, i], cost, np.inf).argmin()]
        out.append((i, t * np.sign(t[i])))
    return out, fraction


def least_eigenvalue(design: Design, weight: Floats, *, dense: int = 600) -> float:
    """A lower bound μ of D^−½·WᵀωW·D^−½, D the degrees. Beyond `dense` records by Lanczos from a
    random start, less a tenth: the chance that it is too large falls exponentially with steps."""
    gram = design.gram(weight)
    scale = sparse.diags_array(1 / np.sqrt(np.maximum(gram.diagonal(), 1e-300)))
    A = scale @ gram @ scale
    if design.n <= dense:
        return float(eigh(A.toarray(), eigvals_only=True, subset_by_index=[0, 0])[0]) - 1e-9
    start = np.random.default_rng(0).standard_normal(design.n)
    least = eigsh(A, k=1, which="SA", v0=start, tol=1e-3, return_eigenvectors=False)
    return 0.9 * float(least[0])


def heavy(design: Design, weight: Floats, mu: float, slack: float) -> tuple[Floats, Floats]:
    """(H) by linear forms: for each i the largest |v|/ω on rows without i (infinite where what is
    left over is too much), and the most that is asked of each row."""
    n = design.n
    if mu <= 0:
        return np.full(n, np.inf), np.zeros(len(weight))
    degree = np.asarray(design.W.T @ weight)
    # Lemma 3: what is left over must cost less than the slack of the lightest row.
    bound = 0.5 * slack * weight.min() * np.sqrt(mu / degree)
    return forms(design, weight, design.starts, design.places, np.arange(n), bound)


def forms(
    design: Design, weight: Floats, starts: Index, places: Index, free: Index, bound: Floats
) -> tuple[Floats, Floats]:
    """For each set j of rows places[starts[j]:starts[j+1]]: v of least length with v = ω on these
    rows and Wᵀv = 0, but for coordinate free[j] (−1: none). The largest |v|/ω on other rows, where
    |Wᵀv| in the norm of D^−1 stays below bound[j], else infinity; and the most asked of each row.
    """
    own = design.rows, design.starts, design.places
    return _forms(*own, weight, starts, places, free, bound)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _forms(  # type: ignore[no-untyped-def]
    rows, row_starts, row_places, weight, starts, places, free, bound, most_steps=200
):
    (m, k), n = rows.shape, len(row_starts) - 1
    degree = np.zeros(n)
    for r in range(m):
        for a in range(k):
            degree[rows[r, a]] += weight[r]
    largest, asked = np.full(len(free), np.inf), np.zeros(m)
    own = np.zeros(m, np.bool_)
    u = np.zeros(m)
    for j in range(len(free)):
        # 1. Right-hand side: minus what the own rows give, off the free coordinate.
        left, scale = np.zeros(n), degree.copy()
        for b in range(starts[j], starts[j + 1]):
            own[places[b]] = True
            for a in range(k):
                left[rows[places[b], a]] -= weight[places[b]]
                scale[rows[places[b], a]] -= weight[places[b]]
        if free[j] >= 0:
            left[free[j]] = 0.0
        determined = True
        for i in range(n):
            if i != free[j] and scale[i] <= 1e-12:
                scale[i] = 1.0
                determined = determined and left[i] == 0.0
            elif i == free[j]:
                scale[i] = 1.0
        # 2. Conjugate gradients on the other rows, scaled by degrees.
        z = np.zeros(n)
        direction = left / scale
        size = (left * direction).sum()
        image = np.zeros(n)
        steps = 0
        while determined and steps < most_steps:
            rest = 0.0
            for i in range(n):
                rest += left[i] * left[i] / degree[i]
            if rest <= bound[j] * bound[j]:
                break
            steps += 1
            image[:] = 0.0
            for r in range(m):
                if own[r]:
                    continue
                s = 0.0
                for a in range(k):
                    s += direction[rows[r, a]]
                if s != 0.0:
                    s *= weight[r]
                    for a in range(k):
                        image[rows[r, a]] += s
            length = (direction * image).sum()
            if length <= 1e-14 * size:
                determined = False
                break
            factor = size / length
            z += factor * direction
            left -= factor * image
            new = (left * left / scale).sum()
            direction = left / scale + (new / size) * direction
            size = new
        # 3. What is asked of the other rows.
        if determined and steps < most_steps:
            top = 0.0
            for r in range(m):
                u[r] = 0.0
                if not own[r]:
                    for a in range(k):
                        u[r] += z[rows[r, a]]
                    top = max(top, abs(u[r]))
            largest[j] = top
            for r in range(m):
                asked[r] = max(asked[r], abs(u[r]))
        for b in range(starts[j], starts[j + 1]):
            own[places[b]] = False
    return largest, asked


def lightest(
    design: Design, weight: Floats, i: int, sign: int, slack: float
) -> tuple[float, Floats]:
    """(H) by a linear program: a lower bound of |Wt| for sign·t_i ≥ 1 and Wt between −1 and 1
    (signs kept: 0 and 1), rows without i counted a little less, and the t in question."""
    W, n, m = design.W, design.n, len(design.rows)
    price = np.where((design.rows == i).any(axis=1), 1.0, 1 - slack) * weight
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    low[i], high[i] = (1.0, np.inf) if sign > 0 else (-np.inf, -1.0)
    if design.kept:  # |Wt| = Wt
        lines = LinearConstraint(W.tocsc(), 0, 1)
        cost, box = np.asarray(W.T @ price), Bounds(low, high)
    else:
        eye = sparse.eye_array(m)
        both = sparse.csc_array(sparse.vstack([sparse.hstack([W, eye]), sparse.hstack([-W, eye])]))
        lines = LinearConstraint(both, 0, np.inf)
        cost = np.append(np.zeros(n), price)
        box = Bounds(np.append(low, np.zeros(m)), np.append(high, np.ones(m)))
    found = milp(cost, constraints=lines, bounds=box)
    t = np.eye(n)[i] if found.x is None else found.x[:n]
    if found.status == 2:  # no such column
        return np.inf, t
    return (float(found.fun) if found.status == 0 else -1.0), t


def fractions(design: Design, weight: Floats, mu: float, effort: Effort) -> float:
    """(F): a lower bound of |Wt| for t in a/k + integers, 0 < a < k, with Wt in {0, ±1}.

    Let g ≥ 0 on the rows, c = (k−2)/k and WᵀωW ≥ c·WᵀgW + diag(Wᵀg): then |Wt| ≥ (k−1)/k·Σg. A
    multiple of ω needs μ only; up to `linear` records rows at which the lowest eigenvectors are
    large get less."""
    W, n, k = design.W, design.n, design.k
    c = (k - 2) / k
    degree = np.asarray(W.T @ weight)
    heaviest = np.sort(degree)[-2:].mean() + effort.slack
    best = (k - 1) / k * float(weight.sum()) / (c + 1 / mu) if mu > 0 else 0.0
    if mu > 0 and best <= heaviest and n <= effort.linear:
        A, g = design.gram(weight).toarray(), weight / weight.sum()
        for _ in range(25):
            B = c * design.gram(g).toarray() + np.diag(W.T @ g)
            values, y = eigh(B, A, subset_by_index=[max(0, n - 3), n - 1])
            best = max(best, (k - 1) / k / float(values[-1]) * (1 - 1e-6))
            p = np.exp(30 * (values / values[-1] - 1))
            share = (c * (W @ y) ** 2 + W @ y**2) @ (p / p.sum()) / values[-1]
            g = g * np.exp(0.7 - 0.7 * share)
            g /= g.sum()
    return best


def independent_rows(W: Floats) -> Index:
    """The first rows that span all, in an order in which few records meet many rows."""
    order, rest = [], set(range(len(W)))
    held = np.zeros(W.shape[1], bool)
    while rest:
        # The row that brings the fewest new records.
        r = min(rest, key=lambda r: (int((W[r] > held).sum()), r))
        rest.discard(r)
        order.append(r)
        held |= W[r] > 0
    out, left = [], W.astype(np.float64)
    for r in order:
        size = float(np.abs(left[r]).max())
        if size > NEAR:
            pivot = int(np.abs(left[r]).argmax())
            left = left - np.outer(left[:, pivot] / left[r, pivot], left[r])
            out.append(r)
        if len(out) == W.shape[1]:
            break
    return np.array(out, np.int64)


def zero_one_columns(W: Floats, basis: Index, most: int) -> Floats | None:
    """C (columns, n): all t with Wt in {0, 1}; None if more than `most` are left at some time."""
    n = W.shape[1]
    combination = np.linalg.solve(W[basis].T, W.T).T
    level = np.where(np.abs(combination) > NEAR, np.arange(n), -1).max(axis=1)
    found = np.zeros((1, 0))
    for b in range(n):
        found = np.vstack([np.column_stack([found, np.full(len(found), v)]) for v in (0.0, 1.0)])
        checks = np.setdiff1d(np.flatnonzero(level == b), basis)
        sums = found @ combination[checks][:, : b + 1].T
        fits = (np.abs(sums) < NEAR) | (np.abs(sums - 1) < NEAR)
        found = found[fits.all(axis=1)]
        if len(found) > most:
            return None
    return np.asarray(np.linalg.solve(W[basis], found.T).T)


def grown(claim: Claim, known: Flags, rms: float | None) -> Flags:
    """Theorem 2: records that join `known`, one by one, until none does.

    Look at the rows of i whose other members are known. i joins if no other member, private or
    public, is in all of them and, signs hidden, they have 2k − 1 private or 2·k_public + 1 public
    members together. Where that fails, the other readings of these rows are known; i joins if none
    of them has a size that a private vector can have.

    rms: of a private value, where values are independent and Gaussian; None: not known
    """
    known, joined = known.copy(), bool(known.any() or claim.k == 1)
    where = sparse.csc_array(incidence(claim.rows, claim.n))
    if rms is not None and not possible(np.square(claim.X[known]).sum(axis=1), claim.d, rms).all():
        rms = None
    while joined:
        joined = False
        for i in np.flatnonzero(~known).tolist():
            own = where.indices[where.indptr[i] : where.indptr[i + 1]].astype(np.int64)
            others = claim.rows[own][claim.rows[own] != i].reshape(len(own), claim.k - 1)
            speaking = known[others].all(axis=1)
            if speaking.any() and _only_reading(claim, i, others, own, speaking, rms):
                known[i] = joined = True
    return known


def _only_reading(
    claim: Claim, i: int, others: Index, own: Index, speaking: Flags, rms: float | None
) -> bool:
    """Whether these rows of record i have no other reading, or none of a possible size."""
    kinds: list[tuple[Index, NDArray[Any], float]] = [
        (others[speaking], claim.X, 1.0),
        (claim.names[own][speaking], claim.P, claim.public_weight),
    ]
    kinds = [kind for kind in kinds if kind[0].shape[1]]
    common = [[j for j in names[0] if (names == j).any(axis=1).all()] for names, _, _ in kinds]
    lacking = [2 * names.shape[1] - len(np.unique(names)) for names, _, _ in kinds]
    mirrored = not claim.kept and min(lacking, default=0) >= 0
    if not kinds or not (any(common) or mirrored):
        return bool(kinds)
    # Another reading exists. Does its size exclude it?
    z, d = claim.X[i], claim.d
    if rms is None or speaking.sum() < 2 or sum(map(len, common)) > 1:
        return False
    if not possible(np.array([z @ z]), d, rms)[0]:
        return False
    if claim.k > 1 and common[0] and not z @ z < 3 * rms**2 * (d - 2 * np.sqrt(12 * d)):
        # x and x', always together, read as x + x' − v_j and v_j, have three times the variance.
        return False
    for (names, V, weight), shared in zip(kinds, common, strict=True):
        absent = np.setdiff1d(np.arange(len(V)), np.append(names, i if V is claim.X else -1))
        for j in shared:
            apart = z + weight * (V[j].astype(np.float64) - V[absent])
            if possible(np.square(apart).sum(axis=1), d, rms).any():
                return False
    if not mirrored:
        return True
    if sum(lacking) > 1:
        return False
    total = z + sum(w * V[np.unique(names)].sum(axis=0, dtype=np.float64) for names, V, w in kinds)
    sums = [total[None, :]]
    for (names, V, weight), missing, shared in zip(kinds, lacking, common, strict=True):
        if missing:
            may = np.setdiff1d(np.arange(len(V)), np.append(names, i if V is claim.X else -1))
            sums = [total + weight * V[np.append(may, shared).astype(np.int64)]]
    return not possible(np.square(sums[0]).sum(axis=1), d, rms).any()


def possible(size: Floats, d: Any, rms: float, *, sure: float = 12.0) -> Flags:
    """Whether ‖z‖² can be that of d values N(0, rms²), all but once in e^sure times (Laurent and
    Massart, 2000)."""
    excess, spread = size / rms**2 - d, 2 * np.sqrt(d * sure)
    return np.asarray((excess >= -spread) & (excess <= spread + 2 * sure))
