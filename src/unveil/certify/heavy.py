"""Are all columns with t_i ≠ 0 as heavy as e_i? Two certificates from the rows and their weights.
See `docs/certificate.md`, Theorem 3.

Rows have weights ω > 0, |u| = Σ ω_r·|u_r|, deg(i) = |W e_i|. Any positive weights are right.

  whole     t integer: a vector v with v = ω on the rows of i, |v| < ω on the others and Wᵀv =
            deg(i)·e_i. Then |Wt| ≥ v·Wt = deg(i)·t_i. The v of least length is found by conjugate
            gradients; what they leave over is counted against it
  fraction  t ∈ a/k + integers: Σ ω·(Wt)² ≥ λ·Σ deg(i)·t_i², with λ the least eigenvalue of WᵀωW
            over degrees

Cost: some sweeps over the rows per vector, and one dense eigenvalue problem. Where they fail and
vectors are few, `flattest` and `fractions` look longer.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from unveil.certify.rows import gram

Index = NDArray[np.int64]
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]

ROUNDING = 1e-9
"""What is taken off each computed eigenvalue and slack. Errors are about n·ε·|N|, below 1e-11 at n
= `DENSE`."""

SLACK = 0.02
"""How far |v| stays below ω. Remainders of all vectors together cost less than one row pays: half
of this."""

UNEVEN = 5.0
"""Weights of rows lie between 1/5 and 5: a light row pays little, so that remainders would have to
be smaller."""

PRESSED = 0.9
"""A row that is asked for more than this part of its weight gets more of it: below 1 − `SLACK`, so
that it ends there."""


def even_weights(members: Index, n: int) -> Values:
    """Weights of rows that bring degrees closer together: rows of rare vectors weigh more. Any
    positive weights are right."""
    degree = np.bincount(members.ravel(), minlength=n)
    weight = (degree.mean() / degree)[members].mean(axis=1)
    return np.asarray(np.clip(weight / weight.mean(), 1 / UNEVEN, UNEVEN))


def reweighed(members: Index, n: int, weight: Values, asked: Values, *, even: bool) -> Values:
    """More weight for rows of which some certificate asked too much.

    asked (m,): the largest part of its weight that a certificate asked of each row
    even: degrees are brought closer together as well, which makes fractions heavier
    """
    weight = weight * np.maximum(asked / PRESSED, 1.0)
    if even:
        degree = np.bincount(members.ravel(), np.repeat(weight, members.shape[1]), minlength=n)
        weight = weight * np.sqrt((degree.mean() / degree)[members].mean(axis=1))
    return np.asarray(np.clip(weight / weight.mean(), 1 / UNEVEN, UNEVEN))


def least_eigenvalue(members: Index, n: int, weight: Values) -> float:
    """A lower bound of Σ ω·(Wt)² / Σ deg(i)·t_i²; 0 if it cannot be told from 0."""
    M = gram(members, n, weight)
    scale = 1 / np.sqrt(np.diag(M))
    return max(
        0.0, float(eigvalsh(M * scale[:, None] * scale, subset_by_index=[0, 0])[0]) - ROUNDING
    )


def whole_columns_heavy(
    members: Index, n: int, weight: Values, floor: float, repeats: bool
) -> tuple[Flags, Values]:
    """Vectors i with |Wt| ≥ deg(i) for every integer t with t_i ≠ 0, and more if W t ≠ 0 in a row
    without i; and what was asked of each row at most (see `reweighed`).

    Were |Wt| ≤ deg(i), then Σ deg·t² ≤ deg(i) / floor (k times that with repeats). So a remainder r
    in Wᵀv = deg(i)·e_i costs at most |r|·|t|. For all vectors together that stays below half of
    what one row without i pays.
    """
    if floor <= 0:
        return np.zeros(n, bool), np.zeros(len(members))
    degree = np.bincount(members.ravel(), np.repeat(weight, members.shape[1]), minlength=n)
    allowed = allowed_remainders(members, n, weight, floor, repeats)
    good, asked = _spread(members, n, weight, degree, allowed, 1 - SLACK)
    if repeats and good.all():
        good = np.array([_rank_without(members, n, i) for i in range(n)])
    return good, asked


def allowed_remainders(
    members: Index, n: int, weight: Values, floor: float, repeats: bool
) -> Values:
    """How long the remainder Wᵀv − deg(i)·e_i may be, for each i; see `whole_columns_heavy`."""
    k = members.shape[1]
    degree = np.bincount(members.ravel(), np.repeat(weight, k), minlength=n)
    longest = np.sqrt((k if repeats else 1) * degree / (floor * degree.min()))
    return np.asarray(0.5 * SLACK * weight.min() / n / longest)


def _rank_without(members: Index, n: int, i: int) -> bool:
    """With repeats a column that is 0 in all rows without i must be a multiple of e_i: those rows
    determine all others."""
    M = gram(members[(members != i).all(axis=1)], n)
    M[i, i] = 1.0
    return bool(eigvalsh(M, subset_by_index=[0, 0])[0] > np.sqrt(ROUNDING))


def fractions_heavy(members: Index, n: int, weight: Values, floor: float, repeats: bool) -> bool:
    """Whether every t ∈ a/k + integers, 0 < a < k, is heavier than any vector of the core.

    For such t: t² ≥ a(k−a)/k² + (2a−k)/k·t. Sum with the degrees, use |Σ deg(i)·t_i| ≤ |Wt|: Σ
    ω·(Wt)² ≥ λ·(Σω·a(k−a)/k − (k−2)/k·|Wt|), and Σ ω·(Wt)² = |Wt| (at most k times that with
    repeats). There are at least two such columns, since rows of T sum to integers: so they are
    compared with the mean of the two largest degrees.
    """
    k = members.shape[1]
    degree = np.sort(np.bincount(members.ravel(), np.repeat(weight, k), minlength=n))
    lightest = floor * weight.sum() * (k - 1) / k / ((k if repeats else 1) + floor * (k - 2) / k)
    return bool(lightest > degree[-2:].mean() + SLACK)


@njit(cache=True, nogil=True)
def _spread(members, n, weight, degree, allowed, bound):  # type: ignore[no-untyped-def]
    """For each i: Wᵀv = −Σ_(r∋i) ω_r W_r away from i, with v = −ω·Wz on the rows without i, by
    conjugate gradients.

    Good: |Wz| ≤ bound there, and the remainder is no longer than allowed. Second, the largest |Wz|
    of each row.
    """
    m, k = members.shape
    out = np.zeros(n, np.bool_)
    asked = np.zeros(m)
    off = np.ones(m)
    for i in range(n):
        # 1. The rows of i, what they leave at the others, and the degrees without them, which
        # precondition.
        b = np.zeros(n)
        left = degree.copy()
        for r in range(m):
            off[r] = weight[r]
            for j in range(k):
                if members[r, j] == i:
                    off[r] = 0.0
            if off[r] == 0.0:
                for j in range(k):
                    if members[r, j] != i:
                        b[members[r, j]] += weight[r]
                        left[members[r, j]] -= weight[r]
        left[i] = 1.0
        # All rows of some vector hold i: nothing can cancel it. Weights are about 1.
        if left.min() < 1e-9:
            continue
        # 2. Conjugate gradients on W_offᵀ ω W_off z = b.
        z = np.zeros(n)
        residual = b.copy()
        p = residual / left
        rho = (residual * p).sum()
        q = np.zeros(n)
        for _ in range(300):
            _rows_product(members, off, p, q)
            energy = (p * q).sum()
            if energy <= 0.0:
                break
            z += (rho / energy) * p
            residual -= (rho / energy) * q
            if (residual * residual).sum() < 0.25 * allowed[i] ** 2:
                break
            y = residual / left
            new = (residual * y).sum()
            p = y + (new / rho) * p
            rho = new
        # 3. The remainder as it is, not as the recursion has it.
        most = _rows_product(members, off, z, q)
        out[i] = most <= bound and np.sqrt(((b - q) ** 2).sum()) <= allowed[i]
        for r in range(m):
            if off[r] > 0.0:
                part = 0.0
                for j in range(k):
                    part += z[members[r, j]]
                asked[r] = max(asked[r], abs(part))
    return out, asked


@njit(cache=True, nogil=True)
def _rows_product(members, off, p, q):  # type: ignore[no-untyped-def]
    """q = Wᵀ·off·W p, and the largest |W p| of rows that are not off."""
    m, k = members.shape
    q[:] = 0.0
    most = 0.0
    for r in range(m):
        if off[r] > 0.0:
            s = 0.0
            for j in range(k):
                s += p[members[r, j]]
            most = max(most, abs(s))
            s *= off[r]
            for j in range(k):
                q[members[r, j]] += s
    return most
