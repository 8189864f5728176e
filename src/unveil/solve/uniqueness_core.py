"""A core of vectors that have no other reading, because their columns are the lightest. See `docs/certificate.md`, step 3.

Another reading is W' = D·W·T with T invertible. The entries of |WT| sum to k per row, as those of W do. T has a permutation without
zeros, T_(i, σ(i)) ≠ 0. So if every column t with t_i ≠ 0 is at least as heavy as e_i, |Wt|₁ ≥ deg(i), all are exactly as heavy.
The same holds for any set of vectors with the rows inside it. Two certificates show that columns are heavy, for a core:

  whole     t integer: a vector v with v = 1 on the rows of i, |v| < 1 on the others and Wᵀv = deg(i)·e_i. Then |Wt|₁ ≥ v·Wt =
            deg(i)·t_i. The v of least length is found by conjugate gradients; what they leave over is counted against it
  fraction  t ∈ a/k + integers: |Wt|² ≥ λ·Σ deg(i)·t_i², with λ the least eigenvalue of the rows' Gram matrix over degrees

Vectors without a certificate leave the core with their rows, until all that are left have one. Cost: a few sweeps over the rows
per vector, and one dense eigenvalue problem. Pairs (k = 2) have exact certificates of their own, `uniqueness_pairs`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, eigvalsh
from scipy.sparse.csgraph import connected_components

from unveil.solve.uniqueness_pairs import connected_pairs, disjoint_odd_walks, heavy_pairs, odd_components

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

DENSE = 3000
"""Vectors up to which eigenvalues are computed: 70 MB and some seconds."""

ROUNDING = 1e-9
"""What is taken off each computed eigenvalue and slack. Errors are about n·ε·|N|, below 1e-11 at n = `DENSE`."""

FEWEST_ROWS = 3
"""A vector of two rows ties with its neighbours: e_j − e_i is as heavy as e_j. It can only join later."""

ROUNDS = 30
"""Rounds of leaving. Each drops a vector, and seldom more than five are needed; more would be a core that falls apart."""


def core(members: Index, n: int, among: Flags, *, signed: bool, repeats: bool) -> Flags:
    """Vectors whose rows of T are unit vectors up to one common sign. W has full column rank; `among`: one class of `alike`.

    repeats: another reading may hold a vector twice in a row.
    """
    k = members.shape[1]
    inside = among.copy()
    for _ in range(ROUNDS):
        inside = _thinned(members, n, inside)
        if not inside.any():
            return inside
        rows, names = _local(members, inside)
        count = len(names)
        if k == 2:
            if not odd_components(rows, count)[1].all():
                return np.zeros(n, bool)
            good = heavy_pairs(rows, count, np.ones(count, bool))
            floor = 0.0
        elif count > DENSE:
            return np.zeros(n, bool)
        else:
            floor = least_eigenvalue(rows, count)
            good = whole_columns_heavy(rows, count, floor)
        if good.all():
            break
        inside[names[~good]] = False
    else:
        return np.zeros(n, bool)
    if not _fractions_heavy(rows, count, floor, repeats) or not (signed or connected_rows(rows, count)):
        return np.zeros(n, bool)
    return inside


def _thinned(members: Index, n: int, inside: Flags) -> Flags:
    """Without vectors of too few rows, again and again; then the largest part that hangs together."""
    inside = inside.copy()
    while True:
        rows = members[inside[members].all(axis=1)]
        few = inside & (np.bincount(rows.ravel(), minlength=n) < FEWEST_ROWS)
        if not few.any():
            break
        inside &= ~few
    if not inside.any():
        return inside
    label = linked(rows, n)
    sizes = np.bincount(label[inside], minlength=int(label.max()) + 1)
    return inside & (label == sizes.argmax())


def linked(members: Index, n: int) -> Index:
    """Vectors linked by rows carry one label."""
    first = np.repeat(members[:, 0], members.shape[1] - 1)
    graph = sparse.coo_array((np.ones(len(first), np.int8), (first, members[:, 1:].ravel())), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _local(members: Index, inside: Flags) -> tuple[Index, Index]:
    """The rows inside the set, with names counted from 0, and the names themselves."""
    names = np.flatnonzero(inside)
    number = np.full(len(inside), -1, np.int64)
    number[names] = np.arange(len(names))
    return number[members[inside[members].all(axis=1)]], names


def gram(members: Index, n: int) -> NDArray[np.float64]:
    """WᵀW, dense."""
    m, k = members.shape
    W = sparse.csr_array((np.ones(m * k), (np.repeat(np.arange(m), k), members.ravel())), shape=(m, n))
    return np.asarray((W.T @ W).toarray(), dtype=np.float64)


def least_eigenvalue(members: Index, n: int) -> float:
    """A lower bound of |Wt|² / Σ deg(i)·t_i²; 0 if it cannot be told from 0."""
    M = gram(members, n)
    scale = 1 / np.sqrt(np.diag(M))
    return max(0.0, float(eigvalsh(M * scale[:, None] * scale, subset_by_index=[0, 0])[0]) - ROUNDING)


def whole_columns_heavy(members: Index, n: int, floor: float) -> Flags:
    """Vectors i with |Wt|₁ > deg(i) for every integer t with t_i ≠ 0 that is not 0 outside the rows of i; else |Wt|₁ ≥ deg(i).

    Were |Wt|₁ ≤ deg(i), then |t|² ≤ deg(i) / (floor · least degree). So a remainder of length r in Wᵀv = deg(i)·e_i costs at
    most r times that length, which must stay below the slack 1 − max |v| that one more row pays.
    """
    if floor <= 0:
        return np.zeros(n, bool)
    degree = np.bincount(members.ravel(), minlength=n)
    longest = np.sqrt(degree / (floor * degree.min()))
    return np.asarray(_spread(members, n, degree, longest, ROUNDING))


def _fractions_heavy(members: Index, n: int, floor: float, repeats: bool) -> bool:
    """Whether every t ∈ a/k + integers, 0 < a < k, is heavier than any vector of the core.

    For such t: t² ≥ a(k−a)/k² + (2a−k)/k·t. Sum with the degrees, use |Σ deg(i)·t_i| ≤ |Wt|₁: |Wt|² ≥ λ·(m·a(k−a)/k −
    (k−2)/k·|Wt|₁), and |Wt|² = |Wt|₁ (at most k times that with repeats). There are at least two such columns, since rows of T
    sum to integers: so they are compared with the mean of the two largest degrees.
    """
    m, k = members.shape
    degree = np.sort(np.bincount(members.ravel(), minlength=n))
    heaviest = float(degree[-2:].mean())
    if k == 2:
        enough = int(heaviest) + 1
        return disjoint_odd_walks(members, n, enough) >= enough
    weight = floor * m * (k - 1) / k / ((k if repeats else 1) + floor * (k - 2) / k)
    return weight > heaviest + ROUNDING


def connected_rows(members: Index, n: int) -> bool:
    """Whether only D = ±1 keeps the column space: the projection Π = W(WᵀW)⁻¹Wᵀ links all rows by entries that are not 0."""
    if members.shape[1] == 2:
        return connected_pairs(members, n)
    try:
        factor = cho_factor(gram(members, n))
    except np.linalg.LinAlgError:
        return False
    m = len(members)
    reached, asked = np.zeros(m, bool), np.zeros(m, bool)
    reached[0] = True
    while not reached.all():
        ask = np.flatnonzero(reached & ~asked)[:1]
        if not len(ask):
            return False
        asked[ask] = True
        unit = np.zeros(n)
        unit[members[ask[0]]] = 1
        reached |= np.abs(cho_solve(factor, unit)[members].sum(axis=1)) > np.sqrt(ROUNDING)
    return True


@njit(cache=True, nogil=True)
def _spread(members, n, degree, longest, rounding):  # type: ignore[no-untyped-def]
    """For each i: Σ_off v_r W_r = −Σ_(r∋i) W_r away from i, v = −W_off z, by conjugate gradients, preconditioned by degrees."""
    m, k = members.shape
    out = np.zeros(n, np.bool_)
    off = np.ones(m, np.bool_)
    for i in range(n):
        # 1. The rows of i, what they leave at the others, and the degrees without them.
        b = np.zeros(n)
        left = degree.astype(np.float64)
        for r in range(m):
            off[r] = True
            for j in range(k):
                if members[r, j] == i:
                    off[r] = False
            if not off[r]:
                for j in range(k):
                    if members[r, j] != i:
                        b[members[r, j]] += 1.0
                        left[members[r, j]] -= 1.0
        lost = False
        for c in range(n):
            if c != i and left[c] < 0.5:
                lost = True  # all rows of c hold i: nothing can cancel it
        if lost:
            continue
        left[i] = 1.0
        # 2. Conjugate gradients on W_offᵀ W_off z = b; every few steps: is the slack larger than the remainder costs?
        z = np.zeros(n)
        residual = b.copy()
        p = residual / left
        rho = (residual * p).sum()
        for step in range(1, 201):
            q = np.zeros(n)
            for r in range(m):
                if off[r]:
                    s = 0.0
                    for j in range(k):
                        s += p[members[r, j]]
                    for j in range(k):
                        q[members[r, j]] += s
            energy = (p * q).sum()
            if energy <= 0.0:
                break
            alpha = rho / energy
            z += alpha * p
            residual -= alpha * q
            if step % 4 == 0:
                most = 0.0
                true = b.copy()
                for r in range(m):
                    if off[r]:
                        s = 0.0
                        for j in range(k):
                            s += z[members[r, j]]
                        most = max(most, abs(s))
                        for j in range(k):
                            true[members[r, j]] -= s
                left_over = np.sqrt((true * true).sum()) * longest[i]
                if left_over + rounding < 1.0 - most:
                    out[i] = True
                    break
                if left_over < 1e-6:
                    break
            y = residual / left
            new = (residual * y).sum()
            if new <= 0.0:
                break
            p = y + (new / rho) * p
            rho = new
    return out
