"""The flattest certificates, and weights of rows that make them flat enough. See
`docs/certificate.md`, "How the program shows condition 1".

A certificate of vector i is v with v = ω on the rows of i, |v| ≤ (1 − `SLACK`)·ω on the others,
Wᵀv = deg(i)·e_i. `heavy` takes the shortest v. Where that one is too large somewhere, another may
not be:

  1. flattest  the least max |v|/ω, by reweighted least squares (Lawson 1961): rows that were asked
               for much count more, and the shortest v is taken again. Each step has a column z with
               it. If Σ_(r∋i) ω·W_r z + (1 − `SLACK`)·Σ_(other r) ω·|W_r z| < 0 no v is flat enough:
               e_i + ε·z is lighter than e_i
  2. weights   that condition is linear in ω. The ω nearest to the even ones that respects all z
               found so far, with degrees below what fractions weigh, is a linear program. With it
               all is asked again
  3. blame     where no ω does, the vectors that the z in question speak of cannot be together

Everything is judged with the weights at hand, and any positive weights are right: neither z nor the
program is part of the proof. Cost: a step is a solve of n×n, a millisecond at n = 100, and five
steps decide most; a few rounds of one linear program of m variables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import linprog

from unveil.certify.fractions import lightest_fraction
from unveil.certify.heavy import (
    SLACK,
    UNEVEN,
    allowed_remainders,
    even_weights,
    least_eigenvalue,
    whole_columns_heavy,
)
from unveil.solve.model import incidence

Index = NDArray[np.int64]
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]

STEPS = 40
"""Steps for one vector. At n = 100, k = 4 and 6, all were decided after 30, most after five."""

IGNORED = 0.01
"""A row that is asked for nothing counts a hundredth of one that is asked most, in the next step:
with 0 it would never come back."""

CLOSE = 1.01
"""The flattest v is known to a hundredth: its column z is what the weights are asked to heed. The
first z that shows that no v is flat enough is a poor one, and many rounds are needed."""

LEAST = 1e-4
"""Pressure that every row keeps, as a part of the mean: solves lose some four digits."""

RIDGE = 1e-10
"""Added to the diagonal, as a part of it: where rows without i leave something free, that is z."""

ROUNDS = 6
"""Rounds of weights. Designs that can be cured were after three."""

APART = 0.5
"""How far a weight may be from the even one, as a part of it. Beyond that light rows cannot pay:
0.85 proved nothing more and took twice as long where nothing can be proved."""

MARGIN = 0.005
"""By how much a column z must miss being light, for |Wz| of sum 1, so that the next one differs."""

BELOW = 0.93
"""Part of what fractions weigh that degrees may reach. Weights that lower the degrees make
fractions lighter, too, by about a third as much."""

DEGREES, DEAR = 1.0, 1000.0
"""Prices of a degree that is too large and of a column that is light, against the distance from
even weights: the second is paid only where there is no other way, since a vector must leave
then."""

LIGHT = 1e-9
"""Conditions missed by less are met: the program's own rounding."""


@dataclass
class Work:
    """Multiplications that may still be done."""

    left: float


@dataclass(frozen=True, eq=False)
class Weighed:
    """proved: all vectors have certificates and fractions are heavy; else blamed: a vector that had
    better leave, −1 if none is known."""

    proved: bool
    blamed: int


def weighed(members: Index, n: int, work: Work) -> Weighed:
    """Looks for weights of rows with which every vector has a certificate. Repeats are not
    allowed for: entries of Wt are 0 and ±1."""
    m, k = members.shape
    W = incidence(members, n)
    even = even_weights(members, n)
    weight, g, most = even, even, float(m)
    cuts: list[Values] = []
    speaks: list[tuple[int, int]] = []
    for _ in range(ROUNDS):
        # 1. Certificates with these weights, and a light column where there is none.
        failed = light_columns(members, n, W, weight, work)
        if failed is None or len(failed) > n / 2:  # where most have none, weights are not the cause
            return Weighed(False, -1)
        # 2. Fractions.
        two = float(np.sort(W.T @ weight)[-2:].mean()) + SLACK
        fraction, g = lightest_fraction(W, weight, k, g, two / BELOW)
        if not failed and fraction > two:
            return Weighed(True, -1)
        # 3. Weights with which none of these columns is light.
        for i, z in failed:
            cuts.append(_condition(W, i, z))
            speaks.append((i, int(np.abs(z).argmax())))
        if fraction <= two:
            most = BELOW * fraction
        weight, missed = _weights(W, even, np.array(cuts).reshape(-1, m), most)
        if missed.any():
            break
    # 4. Of the vectors that the light columns speak of the one named most, of these the one of
    # fewest rows.
    named = speaks if not missed.any() else [speaks[c] for c in np.flatnonzero(missed)]
    if not failed and not missed.any():
        return Weighed(False, -1)
    often = np.bincount(np.array(named).ravel(), minlength=n)
    return Weighed(False, int(np.lexsort((W.sum(axis=0), -often))[0]))


def light_columns(
    members: Index, n: int, W: Values, weight: Values, work: Work
) -> list[tuple[int, Values]] | None:
    """Vectors without a certificate, each with a column z that shows why, or the last that was
    tried; None if W has no rank to speak of, or the work is done."""
    floor = least_eigenvalue(members, n, weight)
    if floor <= 0:
        return None
    allowed = allowed_remainders(members, n, weight, floor, False)
    out = []
    for i in np.flatnonzero(~whole_columns_heavy(members, n, weight, floor, False)[0]):
        if work.left <= 0:
            return None
        v, z = flattest(W, weight, int(i), work)
        if not is_certificate(W, weight, int(i), v, float(allowed[i])):
            out.append((int(i), z))
    return out


def is_certificate(W: Values, weight: Values, i: int, v: Values, allowed: float) -> bool:
    """Whether v shows that whole columns with t_i ≠ 0 are heavy; allowed: length of the
    remainder."""
    mine = W[:, i] > 0
    remainder = W.T @ v
    remainder[i] -= weight[mine].sum()
    flat = (np.abs(v[~mine]) <= (1 - SLACK) * weight[~mine]).all()
    return bool((v[mine] == weight[mine]).all() and flat and np.linalg.norm(remainder) <= allowed)


def flattest(W: Values, weight: Values, i: int, work: Work) -> tuple[Values, Values]:
    """(v, z): v is ω on the rows of i and the flattest found elsewhere; z, 0 at i, the column that
    asks most: max |v|/ω is at least Σ b·z / Σ ω·|Wz|, whatever v. Ends when v is flat enough, or
    when the two are close."""
    n = W.shape[1]
    mine, others = W[:, i] > 0, np.arange(n) != i
    A, own = W[~mine][:, others], weight[~mine]
    b = -(weight[mine] @ W[mine])[others]
    press = np.ones(len(A))
    flat, best = np.inf, np.zeros(len(A))
    least, light = 0.0, b
    plain = _factor(A, own)
    for _ in range(STEPS if len(A) else 0):
        # 1. The shortest v, each row by its pressure: v = ω/press·Az, Aᵀv = b. Pressures lie far
        # apart, so that rounding is made good with the plain rows.
        try:
            z = cho_solve(_factor(A, own / press), b)
        except LinAlgError:
            break
        Az = A @ z
        v = own * Az / press
        v += own * (A @ cho_solve(plain, b - A.T @ v))
        work.left -= A.size * n
        asked = np.abs(v / own)
        # 2. The best so far, from above and from below.
        if asked.max() < flat:
            flat, best = float(asked.max()), v
        share = float(b @ z / max(own @ np.abs(Az), 1e-300))
        if share > least:
            least, light = share, z
        if flat <= 1 - SLACK or (least > 1 - SLACK and flat < CLOSE * least):
            break
        # 3. Rows that were asked for much count more.
        press = press * (asked / asked.max() + IGNORED)
        press = np.maximum(press / press.mean(), LEAST)
    out = weight.copy()
    out[~mine] = best
    return out, np.insert(light, i, 0.0)


def _factor(A: Values, weight: Values) -> tuple[Values, bool]:
    """Of AᵀωA, for `cho_solve`."""
    M = A.T @ (A * weight[:, None])
    M[np.diag_indices(len(M))] += RIDGE * (np.diag(M) + 1)
    return cho_factor(M)


def _condition(W: Values, i: int, z: Values) -> Values:
    """c with c·ω < 0 where e_i + ε·z is lighter than e_i, `SLACK` counted; z as long as Wz has
    entries of sum 1."""
    Wz = W @ z
    Wz /= np.abs(Wz).sum()
    return np.where(W[:, i] > 0, Wz, (1 - SLACK) * np.abs(Wz))


def _weights(W: Values, even: Values, cuts: Values, most: float) -> tuple[Values, Flags]:
    """Weights near the even ones with cuts·ω ≥ `MARGIN` and degrees of at most `most`, as far as
    there are such; which cuts are missed.

    Unknowns: ω, the largest distance |ω/even − 1|, what degrees have too much, what each cut lacks.
    """
    (m, n), q = W.shape, len(cuts)
    eye, far = np.eye(m), -even[:, None]
    lines = [
        [eye, far, np.zeros((m, 1 + q))],
        [-eye, far, np.zeros((m, 1 + q))],
        [W.T, np.zeros((n, 1)), -np.ones((n, 1)), np.zeros((n, q))],
        [-cuts, np.zeros((q, 2)), -np.eye(q)],
    ]
    found = linprog(
        np.r_[np.zeros(m), 1.0, DEGREES, np.full(q, DEAR)],
        A_ub=np.concatenate([np.concatenate(line, axis=1) for line in lines]),
        b_ub=np.r_[even, -even, np.full(n, most), np.full(q, -MARGIN)],
        A_eq=np.r_[np.ones(m), np.zeros(2 + q)][None],
        b_eq=np.array([float(m)]),
        bounds=[(1 / UNEVEN, UNEVEN)] * m + [(0, APART)] + [(0, None)] * (1 + q),
    )
    if found.x is None:
        return even, np.ones(q, bool)
    return np.asarray(found.x[:m]), np.asarray(found.x[m + 2 :] > LIGHT)
