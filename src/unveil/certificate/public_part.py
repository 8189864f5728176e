"""What the list of public vectors leaves open, and encodings of public vectors alone.

y = |Wx + w·QP|, P listed, Q the supports. Memberships are proved for known Q (`design`). Besides:

  another choice   Q' with W·b = Q_h − Q'_h for each public vector h. If Σ_(rows with h) W_r =
                   Σ_(rows without) z_r·W_r with |z| < 1, then b is 0 for all h (`fixed_choice`)
  moved list       p + t is listed for a p of every row of x: then x − w·t fits as well (`moved`)
  wrong list       h is listed as p and was mixed as p + e: x' = x + τe with Wτ = Q_h takes e in. In
                   doubt where other encodings with h are not reproduced (`misled`)
  listed records   a private vector that is a combination of listed ones trades places with them
                   (`made_of_public`)
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import linprog
from scipy.sparse.linalg import lsqr
from scipy.spatial import cKDTree

from unveil.certificate.claim import Claim, Judgement, first_doubts, worst_of_rows
from unveil.certificate.design import Design, forms, incidence, least_eigenvalue
from unveil.encodings import Encodings
from unveil.records import AMBIGUOUS, UNRESOLVED

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def fixed_choice(claim: Claim, known: Flags, *, slack: float = 0.02, cells: int = 20_000) -> Flags:
    """Those of the known records that keep their values whatever public vectors change places; none
    where that is not shown. Where it fails, records that meet a public vector in half of their rows
    leave.

    cells: unknowns up to which a linear program is asked where least squares finds no form"""
    known = known.copy()
    while True:
        inside = known[claim.rows].all(axis=1)
        rows, Q = claim.rows[inside], incidence(claim.names[inside], len(claim.P)).tocsc()
        uses = np.bincount(rows.ravel(), minlength=claim.n)
        known &= uses > 0
        if not known.any():
            return known
        design, weight = Design.within(rows, known), np.ones(len(rows))
        mu = least_eigenvalue(design, weight)
        bound = np.full(len(claim.P), 0.5 * slack * np.sqrt(max(mu, 0.0) / 2))
        own = Q.indptr.astype(np.int64), Q.indices.astype(np.int64)
        most, _ = forms(design, weight, *own, np.full(len(claim.P), -1), bound)
        others = np.flatnonzero((most > 1 - slack) & (np.diff(Q.indptr) > 0))
        if not len(others) or _fixed_by_program(claim, design, Q[:, others], slack, cells):
            return known
        meets = sparse.coo_array(incidence(rows, claim.n).T @ Q)
        often = meets.row[2 * meets.data >= uses[meets.row]]
        if not len(often):
            return np.zeros(claim.n, bool)
        known[often] = False


def _fixed_by_program(
    claim: Claim, design: Design, Q: sparse.csc_array, slack: float, cells: int
) -> bool:
    """The same for public vectors together for which no linear form of their own was found: over
    all W·B = Q ∓ Q' with no more of them in a row than k_public, by linear programs, none leaves
    more rows than it enters (D = 1), or enters no more rows than it was in (D = −1)."""
    (m, n), (_, h) = design.W.shape, Q.shape
    if (n + m) * h > cells:
        return False
    eye, old = sparse.eye_array, Q.toarray().ravel()
    each_row: Any = sparse.hstack(
        [sparse.csr_array((m, n * h)), sparse.kron(eye(m), np.ones((1, h)))]
    )
    most: Any = np.full(m, claim.names.shape[1])
    bounds: Any = [(None, None)] * (n * h) + [(0, 1)] * (m * h)
    for sign in (1,) if claim.kept else (1, -1):
        lines: Any = sparse.hstack([sparse.kron(design.W, eye(h)), sign * eye(m * h)])
        price = np.where(old, 1 + slack, 1.0) if sign > 0 else np.ones(m * h)
        cost = np.append(np.zeros(n * h), price)
        found: Any = linprog(cost, each_row, most, lines, old, bounds)
        least = (1 + slack) * old.sum() - 1e-6
        if found.status != 2 and not (found.status == 0 and found.fun >= least):
            return False
    return True


def moved(claim: Claim, *, most_work: float = 2e8) -> Flags:
    """(n,) records for which the list holds public vectors again, moved by one t: p + t is listed
    for a p of each of their rows. All of them, if it does for every row, or, signs hidden, if t − p
    is listed for all p. most_work: records × listed × k_public² beyond which records are not looked
    at one by one."""
    out, names, P = np.zeros(claim.n, bool), claim.names, claim.P
    if not names.size:
        return out
    listed = _Listed(P)
    every = np.unique(names)[:, None]
    if listed.again(names, 1) or (not claim.kept and listed.again(every, -1)):
        return ~out
    if claim.n * len(P) * names.shape[1] ** 2 <= most_work:
        where = Design.of(claim.rows, claim.n)
        for i in range(claim.n):
            own = names[where.rows_of(i)]
            turned = claim.k == 1 and not claim.kept
            out[i] = listed.again(own, 1) or (turned and listed.again(np.unique(own)[:, None], -1))
    return out


class _Listed:
    """Listed vectors by three random projections: which of them, if any, is at a point?"""

    def __init__(self, vectors: NDArray[np.float32], *, same: float = 1e-5):
        size = float(np.sqrt(np.mean(np.square(vectors, dtype=np.float64)))) or 1.0
        directions = np.random.default_rng(0).standard_normal((vectors.shape[1], 3))
        self.vectors, self.directions = vectors, directions / np.linalg.norm(directions, axis=0)
        self.at = vectors @ self.directions
        self.near, self.near_all = same * size, same * size * np.sqrt(vectors.shape[1])
        self.tree, self.first = cKDTree(self.at), np.sort(self.at[:, 0])

    def find(self, points: Floats) -> Index:
        """Which listed vector has these projections (…, 3); −1: none."""
        low, high = (points[..., 0] + side * 2 * self.near for side in (-1, 1))
        may = np.searchsorted(self.first, high) > np.searchsorted(self.first, low)
        out = np.full(may.shape, -1)
        found = self.tree.query(points[may], distance_upper_bound=2 * self.near)[1]
        out[may] = np.where(found < len(self.at), found, -1)
        return out

    def again(self, rows: Index, sign: int) -> bool:
        """Whether one t leads from sign·p into the list, for one p of every row; t ≠ 0. One p that
        stands in all rows always has such t; growth judges that. Single rows prove nothing."""
        rows = np.unique(np.sort(rows, axis=1), axis=0)
        if len(rows) < 2 + (sign < 0) or any((rows == h).any(axis=1).all() for h in rows[0]):
            return False
        # Every t of the first row; those that further rows allow; then at all columns.
        start = np.repeat(rows[0], len(self.at))
        end = np.tile(np.arange(len(self.at)), rows.shape[1])
        t = self.at[end] - sign * self.at[start]
        stay = (np.linalg.norm(t, axis=1) > 2 * self.near) | (sign < 0)
        for row in rows[1:]:
            start, end, t = start[stay], end[stay], t[stay]
            if not len(end):
                return False
            stay = (self.find(sign * self.at[row][:, None] + t) >= 0).any(axis=0)
        for a, b in zip(start[stay], end[stay], strict=True):
            shift = self.vectors[b] - sign * self.vectors[a]
            found = self.find(sign * self.at[rows] + shift @ self.directions)
            off = np.abs(self.vectors[found] - sign * self.vectors[rows] - shift).max(axis=-1)
            if ((found >= 0) & (off <= self.near_all)).any(axis=1).all():
                return True
        return False


def turned(
    claim: Claim, encodings: Encodings, supports: Index, verified: Flags, certain: Flags
) -> int:
    """How many encodings that are not of verified vectors alone are sums of k vectors whose
    memberships are certain, with the public part negated. One suffices: the list then has vectors
    of both signs, and which are the right ones nobody knows, since with all vectors negated the
    other encodings hold."""
    V, k = claim.X[certain], claim.k
    held = claim.exact & (claim.members @ verified.astype(np.int64) == k)
    left = np.flatnonzero(~held & (supports >= 0).all(axis=1))
    if not len(left) or claim.kept or len(V) < k:
        return 0
    choices = comb(len(V), k - 1)
    rows = np.random.default_rng(0).permutation(left)[: 2**22 // choices]
    y = encodings.magnitudes(rows) / encodings.scheme.private_weight
    c = claim.public_weight * claim.P[supports[rows]].sum(axis=1, dtype=np.float64)
    # k − 1 vectors leave two values for the last one, at the column with the largest values.
    p, near, count = int(np.abs(V).max(axis=0).argmax()), claim.tolerance, 0
    V = V[np.argsort(V[:, p])]
    some = np.array(list(combinations(range(len(V)), k - 1)), np.int64).reshape(choices, k - 1)
    for target, offset in zip(y, c, strict=True):
        rest = V[some, p].sum(axis=1) - offset[p]
        found = False
        for sign in (1, -1):
            last = sign * target[p] - rest
            low, high = (np.searchsorted(V[:, p], last + side * near[p]) for side in (-1, 1))
            for s in np.flatnonzero(high > low):
                z = V[some[s]].sum(axis=0) + V[low[s] : high[s]] - offset
                fits = np.abs(np.abs(z) - target) <= near
                found = found or bool(fits[:, claim.whole].all(axis=1).any())
        count += found
    return count


def misled(claim: Claim, supports: Index, *, most: int = 300) -> Flags:
    """(n,) records that could have taken in a public vector which is listed wrongly: one whose
    other encodings are not reproduced. most: public vectors looked at, those first whose encodings
    are reproduced most rarely."""
    out, left = np.zeros(claim.n, bool), supports[~claim.exact]
    left, width = left[(left >= 0).all(axis=1)], len(claim.P)
    good, bad = (np.bincount(x.ravel(), minlength=width) for x in (claim.names, left))
    suspects = np.flatnonzero((good > 0) & (bad > 0) & (good + bad < len(claim.names) + len(left)))
    suspects = suspects[np.argsort(good[suspects] / bad[suspects], kind="stable")][:most]
    W = incidence(claim.rows, claim.n)
    for h in suspects:
        q = (claim.names == h).any(axis=1).astype(np.float64)
        tau = lsqr(W, q, atol=1e-14, btol=1e-14, iter_lim=1000)[0]
        if np.abs(W @ tau - q).max() <= 1e-6:  # W has whole numbers: what fits, fits to rounding
            out |= np.abs(tau) > 1e-6
    return out


def made_of_public(claim: Claim, *, most: int = 3000) -> Flags:
    """(n,) records that are combinations of public vectors and each other; with fewer columns than
    vectors, or more than `most` of them, multiples of a public one."""
    if not len(claim.P):
        return np.zeros(claim.n, bool)
    U, P = (
        V / np.maximum(np.linalg.norm(V, axis=1), 1e-30)[:, None].astype(np.float64)
        for V in (claim.X, claim.P)
    )
    if len(U) + len(P) > min(claim.d, most):
        out = np.zeros(claim.n, bool)
        for start in range(0, len(P), 4096):
            out |= (np.abs(U @ P[start : start + 4096].T) > 1 - 1e-6).any(axis=1)
        return out
    # An orthonormal basis from the products of P, which costs a fifth of its singular values.
    squares, turns = eigh(P @ P.T)
    sound = squares > 1e-11 * squares.max(initial=1.0)
    axes = (turns[:, sound] / np.sqrt(squares[sound])).T @ P
    rest = U - (U @ axes.T) @ axes
    values, vectors = eigh(rest @ rest.T)
    return np.asarray(np.linalg.norm(vectors[:, values < 1e-7], axis=1) > 1e-2)


def judge_public_alone(encodings: Encodings, X: NDArray[Any], A: sparse.csr_array) -> Judgement:
    """Nothing private: X holds public vectors, mixed with the weights A. They are encoded again;
    none is verified, since another mixture of the list may have the same magnitudes."""
    miss = np.abs(np.abs(A @ X.astype(np.float64)) - encodings.magnitudes()).max(axis=1)
    size = np.sqrt(np.mean(np.square(encodings.values, dtype=np.float64), axis=1))
    exact = (miss <= 1e-4 * size) & (np.diff(A.indptr) > 0)
    facts = {"seen": A.astype(bool).astype(np.int64).T @ exact}
    what = "mixed into {seen} encodings that are reproduced; another mixture of public vectors may "
    what += "have the same magnitudes"
    doubts = (
        (UNRESOLVED, "no encoding it is said to be in is reproduced", facts["seen"] == 0),
        (AMBIGUOUS, what, True),
    )
    status, reasons = first_doubts(doubts, what, facts, len(X))
    residual = worst_of_rows(miss / np.maximum(size, 1e-30), A)
    return Judgement(status, reasons, exact, residual, np.zeros(X.shape, bool), signed=True)
