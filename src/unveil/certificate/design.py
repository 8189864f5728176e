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
      |Wt| ≥ v·Wt. Least squares by conjugate gradients; what they leave over is bounded (Lemma 3).
      Where there is no such v, an integer program
  (F) the least eigenvalue of WᵀωW (Lemma 4); an integer program where that does not suffice

Weights are adapted, records that stand in the way leave one by one, and growth (Theorem 2) adds
what follows from the others. Few records are proved by all columns t (`few_records`).
Cost: n systems of conjugate gradients, some five steps of m·k operations each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from unveil.certificate.claim import Claim

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Design:
    """Rows inside a set of records, renamed 0 … n−1: W as rows (m, k) and as a matrix."""

    rows: Index
    n: int
    W: sparse.csr_array
    at: sparse.csc_array

    @classmethod
    def of(cls, rows: Index, n: int) -> Design:
        W = incidence(rows, n)
        return cls(rows, n, W, sparse.csc_array(W))

    @classmethod
    def within(cls, rows: Index, inside: Flags) -> Design:
        """Of the rows that lie in a set."""
        kept = rows[inside[rows].all(axis=1)]
        return cls.of((np.cumsum(inside) - 1)[kept], int(inside.sum()))

    def rows_of(self, i: int) -> Index:
        return self.at.indices[self.at.indptr[i] : self.at.indptr[i + 1]].astype(np.int64)

    def gram(self, weight: Floats) -> sparse.csr_array:
        return sparse.csr_array(self.W.T @ (self.W * weight[:, None]))


def incidence(rows: Index, n: int) -> sparse.csr_array:
    m, k = rows.shape
    at = np.repeat(np.arange(m), k), rows.ravel()
    return sparse.csr_array((np.ones(m * k), at), shape=(m, n))


def trimmed(rows: Index, inside: Flags, least: int) -> Flags:
    """The largest subset whose records have at least so many rows inside it."""
    while True:
        uses = np.bincount(rows[inside[rows].all(axis=1)].ravel(), minlength=len(inside))
        if not (inside & (uses < least)).any():
            return inside
        inside = inside & (uses >= least)


def core(rows: Index, n: int) -> Flags:
    """A set with (R), (H) and (F), as large as it comes: who stands in the way leaves."""
    inside = np.ones(n, bool)
    while (inside := trimmed(rows, inside, 3)).any():
        design = Design.within(rows, inside)
        label = connected_components(design.W.T @ design.W, directed=False)[1].astype(np.int64)
        if not label.any():
            found = classes(design)
            if found is None:
                break
            label = found
        leaving = np.flatnonzero(label != np.bincount(label).argmax())
        if not len(leaving):
            leaving = standing_in_the_way(design)
            if not len(leaving):
                return inside
        inside[np.flatnonzero(inside)[leaving]] = False
    return np.zeros(n, bool)


def classes(design: Design, *, generators: int = 150) -> Index | None:
    """(R): a label per record, the same for i and j if e_i − e_j is an integer combination of
    rows. None if W lacks full column rank, or where more `generators` would be needed.

    In Z^n / rows a row with one member unknown gives it as minus the others. Where there is none, a
    record becomes a generator. The other rows are relations among these, in Hermite form. Rows sum
    to k, so that Z/k is an image of the group: if it has order k, all e_i are the same in it.
    """
    n, k = design.n, design.rows.shape[1]
    R, count = design.rows.tolist(), 0
    missing, unknown, ready = [k] * len(R), set(range(n)), list[int]()
    image = [Counter[int]() for _ in range(n)]

    def total(row: list[int]) -> Counter[int]:
        out = Counter[int]()
        for i in row:
            out.update(image[i])
        return out

    def gain(i: int) -> tuple[float, int]:
        """Rows that i would leave with one unknown member; with two; all."""
        left = [missing[r] for r in design.rows_of(i).tolist()]
        return left.count(2) + left.count(3) / 100, len(left)

    while unknown:
        if ready:
            row = R[ready.pop()]
            new = unknown.intersection(row)
            value = Counter({a: -b for a, b in total(row).items()})
        elif count < generators:
            new, value = {max(unknown, key=gain)}, Counter({count: 1})
            count += 1
        else:
            return None
        for i in new:
            image[i] = value
            unknown.discard(i)
            for r in design.rows_of(i).tolist():
                missing[r] -= 1
                if missing[r] == 1:
                    ready.append(r)
    # Hermite form of the relations.
    basis: list[list[int]] = [[]] * count
    for relation in sorted({tuple(total(row)[a] for a in range(count)) for row in R}):
        v = list(relation)
        for j in range(count):
            while v[j] and basis[j]:
                q = basis[j][j] // v[j]
                basis[j], v = v, [x - q * y for x, y in zip(basis[j], v, strict=True)]
            if v[j]:
                basis[j] = v
                break
        if all(basis) and abs(prod(b[j] for j, b in enumerate(basis))) == k:
            return np.zeros(n, np.int64)
    if not all(basis):
        return None
    labels = np.array([[value[a] for a in range(count)] for value in image], object)
    for j, b in enumerate(basis):
        labels -= (labels[:, [j]] // b[j]) * np.array(b, object)
    seen: dict[tuple[int, ...], int] = {}
    return np.array([seen.setdefault(tuple(v), len(seen)) for v in labels.tolist()])


def standing_in_the_way(
    design: Design,
    *,
    slack: float = 0.02,
    uneven: float = 5.0,
    rounds: int = 12,
    patience: int = 6,
) -> Index:
    """Nobody if (H) and (F) hold with some weights of rows; else who had better leave the set.

    Rows of which a linear form asks too much get more weight. No setting can make a proof wrong.

    slack: by how much |v| stays below ω, and what a row without i pays for it
    uneven: weights of rows lie between 1/uneven and uneven
    rounds: of weights; patience: as many that bring nothing end it
    """
    W, left = design.W, patience
    weight = np.asarray(W @ (1 / W.sum(axis=0)))
    best: tuple[Floats, float, Index, Floats] | None = None
    for _ in range(rounds):
        weight = np.clip(weight / weight.mean(), 1 / uneven, uneven)
        mu = least_eigenvalue(design, weight)
        most, asked = heavy(design, weight, mu, slack)
        light = np.flatnonzero(most > 1 - slack)
        if best is None or len(light) < len(best[2]):
            best, left = (weight, mu, light, asked), patience
        left -= 1
        if not left or not len(light):
            break
        weight = weight * np.maximum(asked / 0.9, 1.0)
    assert best is not None
    weight, mu, light, asked = best
    degree = np.asarray(W.T @ weight)
    need = float(np.sort(degree)[-2:].mean()) + slack
    lighter = degree + slack * weight.min()
    if not all(_none_so_light(design, weight, mu, lighter[i], record=i) for i in light.tolist()):
        burden = np.asarray(W.T @ np.maximum(asked - 0.9, 0)) / degree
        return np.array([burden.argmax()])
    if no_fractions(design, weight, mu, need):
        return np.array([], np.int64)
    return np.array([degree.argmax()])


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
    """(H): for each i the largest |v|/ω on rows without i (infinite where what is left over is too
    much), and the most that is asked of each row. Nothing is asked for i if every j shares less
    than μ/2 of its rows with it: |Wt| ≥ deg(i) + Σ_j |t_j|·(μ·deg(j) − 2·(WᵀωW)_ij) (Lemma 3)."""
    degree, together = np.asarray(design.W.T @ weight), design.gram(weight).tocoo()
    close = 2 * together.data >= 0.99 * mu * degree[together.col]
    hard = np.unique(together.row[close & (together.row != together.col)]).astype(np.int64)
    # What linear forms leave over must cost less than the slack of the lightest row.
    bound = 0.5 * slack * weight.min() * np.sqrt(max(mu, 0.0) / degree[hard])
    places = [design.rows_of(i) for i in hard.tolist()]
    starts = np.cumsum([0, *map(len, places)])
    most = np.zeros(design.n)
    own = np.concatenate([*places, np.zeros(0, np.int64)])
    most[hard], asked = forms(design, weight, starts, own, hard, bound)
    return most, asked


def forms(
    design: Design, weight: Floats, starts: Index, places: Index, free: Index, bound: Floats
) -> tuple[Floats, Floats]:
    """For each set j of rows places[starts[j]:starts[j+1]]: v of least length with v = ω on these
    rows and Wᵀv = 0, but for coordinate free[j] (−1: none). The largest |v|/ω on other rows, where
    |Wᵀv| in the norm of D^−1 stays below bound[j], else infinity; and the most asked of each row.
    """
    found: Any = _forms(design.rows, design.n, weight, starts, places, free, bound)
    return found  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _forms(rows, n, weight, starts, places, free, bound, most_steps=200, turns=12, aim=0.9):  # type: ignore[no-untyped-def]
    """Conjugate gradients on the other rows, scaled by degrees. Rows of which a form asks more than
    `aim` are given less room in it, and it is looked for again, up to `turns` times (Lawson)."""
    m, k = rows.shape
    degree, image, u = np.zeros(n), np.zeros(n), np.zeros(m)
    for r in range(m):
        for i in rows[r]:
            degree[i] += weight[r]
    largest, asked, room = np.full(len(free), np.inf), np.zeros(m), weight.copy()
    for j in range(len(free)):
        own = places[starts[j] : starts[j + 1]]
        for _turn in range(turns):
            left, z, scale = np.zeros(n), np.zeros(n), np.zeros(n)
            for r in own:
                room[r] = 0.0
                for i in rows[r]:
                    left[i] -= weight[r]
            for r in range(m):
                for i in rows[r]:
                    scale[i] += room[r]
            if free[j] >= 0:
                left[free[j]], scale[free[j]] = 0.0, 1.0
            # A record of these rows only has nothing to be balanced with.
            steps = 0 if scale.min() > 1e-12 else most_steps
            direction = left / np.maximum(scale, 1e-12)
            size = (left * direction).sum()
            while (left * left / degree).sum() > bound[j] ** 2 and steps < most_steps:
                steps += 1
                image[:] = 0.0
                for r in range(m):
                    s = 0.0
                    for a in range(k):
                        s += direction[rows[r, a]]
                    s *= room[r]
                    for a in range(k):
                        image[rows[r, a]] += s
                length = (direction * image).sum()
                if length <= 1e-14 * size:
                    break
                z += size / length * direction
                left -= size / length * image
                new = (left * left / scale).sum()
                direction = left / scale + new / size * direction
                size = new
            if (left * left / degree).sum() > bound[j] ** 2:
                break
            for r in range(m):
                s = 0.0
                for i in rows[r]:
                    s += z[i]
                u[r] = abs(s) * room[r] / weight[r]
            if u.max() < largest[j]:
                largest[j] = u.max()
                fewest = u.copy()
            if largest[j] <= aim:
                break
            room = room / np.maximum(u / aim, 1.0)
        if largest[j] < np.inf:
            asked = np.maximum(asked, fewest)
        room[:] = weight
    return largest, asked


def no_fractions(design: Design, weight: Floats, mu: float, need: float) -> bool:
    """(F): do all t in a/k + integers, 0 < a < k, with Wt in {0, ±1} weigh more than `need`?

    By one eigenvalue (Lemma 4), else by integer programs; −t stands for k − a."""
    k = design.rows.shape[1]
    if mu > 0 and (k - 1) / k * float(weight.sum()) / ((k - 2) / k + 1 / mu) > need:
        return True
    return all(_none_so_light(design, weight, mu, need, a=a) for a in range(1, k // 2 + 1))


def _none_so_light(
    design: Design,
    weight: Floats,
    mu: float,
    most: float,
    *,
    record: int | None = None,
    a: int = 0,
    few: int = 200,
    nodes: int = 1000,
) -> bool:
    """Is there no t in a/k + integers with Wt in {0, ±1} that weighs `most` or less; and, if a
    record is given, t_record ≥ 1 and Wt = 0 in a row of it or not 0 in another?

    By an integer program, t = a/k + z and Wt = u − v, 0 ≤ u, v ≤ 1. Since |Wt| ≥ Σ ω·(Wt)², no
    t_i² exceeds most/(μ·deg(i)).

    few: records up to which it is asked
    nodes: of the program; where they do not suffice nothing is shown"""
    W, k, (m, n) = design.W, design.rows.shape[1], design.W.shape
    if mu <= 0 or n > few:
        return False
    reach = np.sqrt(most / (mu * np.asarray(W.T @ weight)))
    low = np.append(np.ceil(-reach - a / k), np.zeros(2 * m))
    high = np.append(np.floor(reach - a / k), np.ones(2 * m))
    own = np.zeros(m)
    if record is not None:
        low[record] = 1
        own[design.rows_of(record)] = 1
    # Wz = u − v − a; the weight; how many rows differ from those of the record.
    sums = sparse.hstack([W, -sparse.eye_array(m), sparse.eye_array(m)])
    total = np.concatenate([np.zeros(n), weight, weight])
    apart = np.concatenate([np.zeros(n), 1 - 2 * own, 1 - 2 * own])
    lines: Any = sparse.vstack([sums, sparse.csr_array(np.stack([total, apart]))])
    differ = -np.inf if record is None else 1 - own.sum()
    found = milp(
        np.zeros(n + 2 * m),
        constraints=LinearConstraint(
            lines, np.append(np.full(m, -a), [0, differ]), np.append(np.full(m, -a), [most, np.inf])
        ),
        integrality=np.append(np.ones(n), np.zeros(2 * m)),
        bounds=Bounds(low, high),
        options={"node_limit": nodes},
    )
    return bool(found.status == 2)  # proved to have no solution


def common(names: Index) -> Index:
    """The names that stand in all of these rows."""
    return np.array([j for j in names[0] if (names == j).any(axis=1).all()], np.int64)


def grown(rows: Index, known: Flags, only: Callable[[int, Index, Index], bool]) -> Flags:
    """Theorem 2: records that join `known`, one by one, until none does. `only` says whether i has
    one reading in its rows whose other members are known (i, these rows, their other members)."""
    known, joined, design = known.copy(), True, Design.of(rows, len(known))
    while joined:
        joined = False
        for i in np.flatnonzero(~known).tolist():
            own = design.rows_of(i)
            others = rows[own][rows[own] != i].reshape(len(own), rows.shape[1] - 1)
            speaking = known[others].all(axis=1)
            if speaking.any() and only(i, own[speaking], others[speaking]):
                known[i] = joined = True
    return known


@dataclass(frozen=True, eq=False)
class Readings:
    """Have rows of a record whose other members are known one reading only?

    Yes if no other member, private or public, is in all of them and, signs hidden, they have 2k − 1
    private or 2·k_public + 1 public members together. Where that fails, the other readings of these
    rows are known; none may have a size that a private vector can have.

    rms: of a private value, where values are independent and Gaussian; None: not known
    """

    claim: Claim
    rms: float | None

    def only(self, i: int, own: Index, others: Index) -> bool:
        claim, z, readings = self.claim, self.claim.X[i], list[Floats]()
        kinds: list[tuple[Index, NDArray[Any], float]] = [
            (others, claim.X, 1.0),
            (claim.names[own], claim.P, claim.public_weight),
        ]
        kinds = [kind for kind in kinds if kind[0].shape[1]]
        lacking = [2 * names.shape[1] - len(np.unique(names)) for names, _, _ in kinds]
        mirrored = not claim.kept and min(lacking, default=0) >= 0
        shared = [common(names) for names, _, _ in kinds]
        tied = sum(map(len, shared))
        if not kinds or not (tied or mirrored):
            return bool(kinds)
        # Another reading exists. Does its size exclude it?
        if self.rms is None or len(own) < 2 or tied > 1 or (mirrored and sum(lacking) > 1):
            return False
        total = z + sum(w * V[np.unique(names)].sum(axis=0, dtype=float) for names, V, w in kinds)
        for (names, V, w), together, missing in zip(kinds, shared, lacking, strict=True):
            absent = np.setdiff1d(np.arange(len(V)), np.append(names, i if V is claim.X else -1))
            readings += [z + w * (V[j].astype(np.float64) - V[absent]) for j in together]
            if mirrored and missing:
                total = total + w * V[np.append(absent, together)]
        readings += [np.atleast_2d(total)] if mirrored else []
        # x and x', always together, read as x + x' − v_j and v_j, have three times the variance.
        most = 3 * self.rms**2 * (claim.d - 2 * np.sqrt(12 * claim.d))
        if claim.k > 1 and len(shared[0]) and not z @ z < most:
            return False
        sizes = np.concatenate([np.square(other).sum(axis=1) for other in readings])
        may = possible(np.append(z @ z, sizes), claim.d, self.rms)
        return bool(may[0] and not may[1:].any())


def possible(size: Floats, d: Any, rms: float, *, sure: float = 12.0) -> Flags:
    """Whether ‖z‖² can be that of d values N(0, rms²), all but once in e^sure times (Laurent and
    Massart, 2000)."""
    excess, spread = size / rms**2 - d, 2 * np.sqrt(d * sure)
    return np.asarray((excess >= -spread) & (excess <= spread + 2 * sure))
