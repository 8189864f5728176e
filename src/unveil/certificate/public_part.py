"""What the list of public vectors leaves open, and encodings of public vectors alone.

y = |Wx + w·QP|, P listed, Q the supports. Memberships are proved for known Q (`design`). Besides:

  another choice   Q' with W·b = Q_h − Q'_h for each public vector h. If Σ_(rows with h) W_r =
                   Σ_(rows without) z_r·W_r with |z| < 1, then b is 0 for all h (`fixed_choice`)
  moved list       p + t is listed for a p of every row of x: then x − w·t fits as well (`moved`)
  wrong list       h is listed as p and was mixed as p + e: x' = x + τe with Wτ = Q_h takes e in. In
                   doubt where other encodings with h are not reproduced (`misled`)
  listed records   a private vector that is a combination of listed ones trades places with them
                   (`made_of_public`)

Nothing private: y = |Pᵀa|. Let Z = Σ λ_p·p·pᵀ over columns p with Za = 0, positive definite on all
that is orthogonal to a. Another a' with the same magnitudes has a'ᵀZa' = Σ λ_p·y_p² = 0, so that
a' = ±a (`only_mixture`).
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular
from scipy.optimize import linprog
from scipy.sparse.linalg import lsqr
from scipy.spatial import cKDTree

from unveil.certificate.claim import Claim
from unveil.certificate.design import Design, forms, incidence, least_eigenvalue
from unveil.encodings import Encodings

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def fixed_choice(claim: Claim, known: Flags, *, slack: float = 0.02, linear: int = 200) -> Flags:
    """Those of the known records that keep their values whatever public vectors change places; none
    where that is not shown. Records that meet a public vector in half of their rows leave first.

    linear: records up to which a linear program is asked where least squares finds no form"""
    known, n, k = known.copy(), claim.n, claim.k
    while True:
        inside = known[claim.rows].all(axis=1)
        rows, names = claim.rows[inside], claim.names[inside]
        uses = np.bincount(rows.ravel(), minlength=n)
        width = int(claim.names.max(initial=0)) + 1
        pairs = np.repeat(rows, names.shape[1], axis=1) * width + np.tile(names, k)
        pair, count = np.unique(pairs, return_counts=True)
        often = pair[2 * count >= uses[pair // width]] // width
        known &= uses > 0
        if not known.any() or not len(often):
            break
        known[often] = False
    if not len(rows):
        return np.zeros(n, bool)
    design = Design.of((np.cumsum(known) - 1)[rows], int(known.sum()), claim.kept)
    weight = np.ones(len(rows))
    mu = least_eigenvalue(design, weight)
    if mu <= 0:
        return np.zeros(n, bool)
    order = np.argsort(names.ravel(), kind="stable")
    used, starts = np.unique(names.ravel()[order], return_index=True)
    places = (order // names.shape[1]).astype(np.int64)
    bound = np.full(len(used), 0.5 * slack * np.sqrt(mu / 2))
    ends = np.append(starts, len(places)).astype(np.int64)
    most, _ = forms(design, weight, ends, places, np.full(len(used), -1), bound)
    for h in used[most > 1 - slack]:
        own = (names == h).any(axis=1)
        W = design.W[~own].T
        between = -(1 - slack), 1 - slack
        total = -np.asarray(design.W[own].sum(axis=0)).ravel()
        if design.n > linear or linprog(np.zeros(W.shape[1]), None, None, W, total, between).status:
            return np.zeros(n, bool)
    return known


def moved(claim: Claim, *, most_work: float = 2e8) -> Flags:
    """(n,) records for which the list holds public vectors again, moved; all of them, if it does
    for every row, or, signs hidden, mirrored. most_work: records × listed × k_public² beyond which
    records are not looked at one by one."""
    out, names = np.zeros(claim.n, bool), claim.names
    if not names.shape[1] or not len(names):
        return out
    listed = _Listed(claim.P)
    if listed.moves(names) or (not claim.kept and listed.mirrors(names)):
        return ~out
    if claim.n * len(claim.P) * names.shape[1] ** 2 <= most_work:
        where = incidence(claim.rows, claim.n).tocsc()
        for i in range(claim.n):
            own = names[where.indices[where.indptr[i] : where.indptr[i + 1]]]
            out[i] = listed.moves(own)
            if claim.k == 1 and not claim.kept:
                out[i] |= listed.mirrors(own)
    return out


class _Listed:
    """Listed vectors by three random projections: which of them, if any, is at a point?"""

    def __init__(self, vectors: NDArray[np.float32], *, same: float = 1e-5, cells: int = 1 << 20):
        self.vectors = vectors
        size = float(np.sqrt(np.mean(np.square(vectors, dtype=np.float64)))) or 1.0
        directions = np.random.default_rng(0).standard_normal((vectors.shape[1], 3))
        self.directions = directions / np.linalg.norm(directions, axis=0)
        self.at = vectors @ self.directions
        self.near, self.near_all = same * size, same * size * np.sqrt(vectors.shape[1])
        self.tree = cKDTree(self.at)
        # Cells of the first two projections that hold a vector or touch one that does: a look-up
        # tells nearly all points that are none.
        self.low = self.at.min(axis=0)
        self.width = np.maximum(2 * self.near, np.ptp(self.at, axis=0) / (cells - 6))
        self.taken = np.zeros((2, cells), bool)
        for axis in (0, 1):
            cell = ((self.at[:, axis] - self.low[axis]) / self.width[axis]).astype(np.int64) + 3
            for beside in (-1, 0, 1):
                self.taken[axis, cell + beside] = True

    def find(self, points: Floats) -> Index:
        """Which listed vector has these projections (…, 3); −1: none."""
        flat = points.reshape(-1, 3)
        out, may = np.full(len(flat), -1), np.ones(len(flat), bool)
        for axis in (0, 1):
            cell = (flat[:, axis] - self.low[axis]) / self.width[axis] + 3
            may &= self.taken[axis][np.clip(cell, 0, self.taken.shape[1] - 1).astype(np.int64)]
        if may.any():
            _, place = self.tree.query(flat[may], distance_upper_bound=2 * self.near)
            out[may] = np.where(place < len(self.at), place, -1)
        return out.reshape(points.shape[:-1])

    def moves(self, names: Index) -> bool:
        """Whether one t ≠ 0 leads from a public vector of every row into the list. One that stands
        in all rows always has such t; growth judges that."""
        rows = np.unique(np.sort(names, axis=1), axis=0)
        if len(rows) < 2 or any((rows == h).any(axis=1).all() for h in rows[0]):
            return False
        # 1. Every t = q − p of the first row that the second one allows.
        pairs = []
        for p in rows[0]:
            t = self.at - self.at[p]
            leads = np.zeros(len(t), bool)
            for h in rows[1]:
                leads |= self.find(self.at[h] + t) >= 0
            end = np.flatnonzero(leads & (np.linalg.norm(t, axis=1) > 2 * self.near))
            pairs.append(np.column_stack([np.full(len(end), p), end]))
        start, end = np.concatenate(pairs).T
        # 2. Those that every further row allows, then at all columns.
        for row in rows[2:]:
            t = self.at[end] - self.at[start]
            stay = (self.find(self.at[row][None] + t[:, None]) >= 0).any(axis=1)
            start, end = start[stay], end[stay]
            if not len(end):
                return False
        shifts = [self.vectors[b] - self.vectors[a] for a, b in zip(start, end, strict=True)]
        return any(self._holds(rows, t, 1) for t in shifts)

    def mirrors(self, names: Index) -> bool:
        """Whether 2c − p is listed for all p that stand in rows, with one c."""
        used = np.unique(names)
        if len(used) < 3:
            return False
        end = np.arange(len(self.vectors))
        for h in used[1:]:
            end = end[self.find(self.at[used[0]] + self.at[end] - self.at[h]) >= 0]
            if not len(end):
                return False
        centres = [self.vectors[used[0]] + self.vectors[b] for b in end]
        return any(self._holds(used[:, None], t, -1) for t in centres)

    def _holds(self, rows: Index, t: NDArray[np.float32], sign: int) -> bool:
        """Whether ±p + t is listed, at all columns, for one p of every row."""
        shift = self.vectors[rows] * np.float32(sign) + t
        found = self.find(sign * self.at[rows] + t @ self.directions)
        off = np.abs(self.vectors[found] - shift).max(axis=-1)
        return bool(((found >= 0) & (off <= self.near_all)).any(axis=1).all())


def turned(claim: Claim, encodings: Encodings, supports: Index, proved: Flags) -> int:
    """How many encodings without a claim that holds are sums of k proved vectors with the public
    part negated. One suffices: the list then has vectors of both signs, and which are the right
    ones nobody knows, since with all vectors negated the other encodings hold."""
    V, k = claim.X[proved], claim.k
    held = np.zeros(encodings.m, bool)
    W = sparse.csr_array(claim.members.astype(np.int64))
    held[claim.exact & (W @ proved.astype(np.int64) == k)] = True
    left = np.flatnonzero(~held & (supports >= 0).all(axis=1))
    if not len(left) or claim.kept or len(V) < k:
        return 0
    choices = comb(len(V), k - 1)
    rows = np.random.default_rng(0).permutation(left)[: 2**22 // choices]
    y = encodings.magnitudes(rows) / encodings.scheme.private_weight
    c = claim.public_weight * claim.P[supports[rows]].sum(axis=1, dtype=np.float64)
    # k − 1 vectors leave two values for the last one, at the column with the largest values.
    p = int(np.abs(V).max(axis=0).argmax())
    some = np.array(list(combinations(range(len(V)), k - 1)), np.int64).reshape(choices, k - 1)
    order, near = np.argsort(V[:, p]), claim.tolerance
    count = 0
    for target, offset in zip(y, c, strict=True):
        rest = V[some, p].sum(axis=1) - offset[p]
        found = False
        for sign in (1.0, -1.0):
            wanted = sign * target[p] - rest
            first = np.searchsorted(V[order, p], wanted - near[p])
            last = np.searchsorted(V[order, p], wanted + near[p], side="right")
            for s in np.flatnonzero(last > first):
                for i in order[first[s] : last[s]]:
                    z = V[some[s]].sum(axis=0) + V[i] - offset
                    found = found or bool((np.abs(np.abs(z) - target) <= near)[claim.whole].all())
        count += found
    return count


def misled(claim: Claim, left: Index, *, most: int = 300) -> Flags:
    """(n,) records that could have taken in a public vector which is listed wrongly. left (others,
    k_public): public vectors of encodings that are not reproduced. most: public vectors looked at,
    those first whose encodings are reproduced most rarely."""
    out = np.zeros(claim.n, bool)
    if not len(left) or not len(claim.names) or not claim.names.shape[1]:
        return out
    width = int(max(claim.names.max(), left.max())) + 1
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
    P = claim.P.astype(np.float64)
    U = claim.X / np.maximum(np.linalg.norm(claim.X, axis=1), 1e-30)[:, None]
    P = P / np.maximum(np.linalg.norm(P, axis=1), 1e-30)[:, None]
    if len(U) + len(P) > min(claim.d, most):
        out = np.zeros(claim.n, bool)
        for start in range(0, len(P), 4096):
            out |= (1 - np.abs(U @ P[start : start + 4096].T) < 1e-6).any(axis=1)
        return out
    # An orthonormal basis from the products of P, which costs a fifth of its singular values.
    squares, turned = eigh(P @ P.T)
    sound = squares > 1e-11 * squares.max(initial=1.0)
    axes = (turned[:, sound] / np.sqrt(squares[sound])).T @ P
    rest = U - (U @ axes.T) @ axes
    values, vectors = eigh(rest @ rest.T)
    return np.asarray(np.linalg.norm(vectors[:, values < 1e-7], axis=1) > 1e-2)


def only_mixture(V: Floats, A: Floats, miss: Floats, *, most_work: float = 2e11) -> Flags:
    """(m, n): the weights of A (m, n) that no other mixture of V (n, d) with the same magnitudes
    lacks. miss (m,): largest residual of each encoding; another mixture counts as the same within
    three times as much. Encodings whose vectors are all proved by others are not looked at.

    λ is looked for by turns: the nearest Z that columns can make with Za = 0, the nearest matrix
    that is positive definite. Cost: d³/3 once, d²·n per encoding, n²·d per turn."""
    n, d = V.shape
    out = np.zeros(A.shape, bool)
    V = V[:, :: max(1, d // max(2000, 8 * n))]  # more columns prove nothing new
    d = V.shape[1]
    L = np.linalg.cholesky(V @ V.T / d)
    B = solve_triangular(L, V, lower=True)
    kernel = (B.T @ B) ** 2
    try:
        factor = cho_factor(kernel + 1e-10 * np.diag(np.diag(kernel)))
    except LinAlgError:  # columns that repeat each other, or at which all vectors are zero
        factor = cho_factor(kernel + 1e-6 * np.trace(kernel) / d * np.eye(d))
    # |a_v| ≤ reach·|Lᵀa|
    reach = np.linalg.norm(solve_triangular(L, np.eye(n), lower=True), axis=0)
    proved = np.zeros(n, bool)
    for i in np.argsort(-(A != 0).sum(axis=1), kind="stable"):
        used = A[i] != 0
        if not used.any() or proved[used].all():
            continue
        most_work -= d * d * n + 80 * d * n * n
        if most_work < 0:
            break
        apart = _distance(B, factor, L.T @ A[i], 3 * miss[i])
        out[i] = used & (reach * apart < np.abs(A[i]) / 2)
        proved |= out[i]
    return out


def _distance(
    B: Floats, factor: tuple[Floats, bool], u: Floats, error: float, *, turns: int = 40
) -> float:
    """How far another u' with |Bᵀu'| = |Bᵀu| up to `error` can be from ±u; infinite if no
    certificate is found."""
    n, size = len(u), float(np.linalg.norm(u))
    along, t = u / size, B.T @ u
    C = B * (B.T @ along)
    KC = cho_solve(factor, C.T)
    inner = np.linalg.pinv(C @ KC, hermitian=True)
    target = flat = np.eye(n) - np.outer(along, along)
    for _ in range(turns):
        weight = cho_solve(factor, np.einsum("ip,ip->p", B, target @ B))
        weight -= KC @ (inner @ (C @ weight))
        Z = (B * weight) @ B.T
        off = float(np.linalg.norm(Z @ along))
        lifted = 2 * np.abs(Z).sum() * np.outer(along, along)
        values, vectors = np.linalg.eigh(flat @ (Z + Z.T) @ flat / 2 + lifted)
        least, largest = float(values[0]), float(np.abs(values[:-1]).max(initial=0.0))
        # Clearly more than rounding could have made.
        if least > 10 * off and least > 1e-3 * largest:
            slack = float(np.abs(weight) @ (2 * np.abs(t) * error + error**2)) + 4 * off * size**2
            return float(2 * np.sqrt(slack / least) + error)
        target = (vectors[:, :-1] * np.maximum(values[:-1], 0.5)) @ vectors[:, :-1].T
    return float("inf")
