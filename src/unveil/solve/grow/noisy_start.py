"""From a first guess at the members of every encoding, and its likely signs, to values and members
that fit up to noise. Pairs of vectors, columns that go together.

    1  x ← mean of each column's encodings       with the signs that agree best
    2  x ← least squares of signed encodings     members as guessed, rows that fit count for more
    3  members ← best pair of every encoding     signs by x itself, to the end
       x ← most likely values

Of a guess with half of its rows right four of five come out right; the others show vectors that are
missing (`solve.grow.noisy_growth`). Reflections from random signs (`solve.subsets.feedback`) lose
the guess instead: a few dozen columns are too few for them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.folded import signed
from unveil.gram.folded_normal import Floats, Patterns
from unveil.solve.model import Members, incidence
from unveil.solve.subsets.descent import reassign

SIGNED_ROUNDS = 10
"""Of step 2: the weights of rows settle in a few."""
ROUNDS = 40
"""Of step 3: rows that fit stop to become more after some twenty."""
BETTER = 0.3
"""The share of rows whose residual sets the scale: fewer than that are right to begin with."""
WIDE = 2.5
"""Times that residual at which a row counts by half."""
LIGHT = 0.05
"""Rows that would count for less do not count."""
RIDGE = (0.3, 0.05)
"""Of least squares in steps 2 and 3, in rows: a column with few of them stays near zero."""


def noisy_start(
    y: NDArray[np.float32], patterns: Patterns, W: Floats, noise: float
) -> tuple[Floats, Members, NDArray[np.float64]]:
    """(x (n, d), members (m, 2), mean squared residuals (m,)) of y (m, d) = |Σx|, unit weights,
    from W (m, n) with two ones in every row."""
    n = W.shape[1]
    members = np.argsort(-W, axis=1, kind="stable")[:, :2].astype(np.int64)
    white = patterns.z @ np.linalg.inv(patterns.C)
    # 1–2. With signs as they are likely, up to one for each row.
    x = _means(patterns.z, white, W, members)
    for _ in range(SIGNED_ROUNDS):
        total = x[members].sum(axis=1)
        z = np.where(np.einsum("ij,ij->i", white, total) < 0, -1.0, 1.0)[:, None] * patterns.z
        miss = np.mean((z - total) ** 2, axis=1)
        x = _least_squares(members, n, 1 / (1 + (miss / np.median(miss)) ** 2), z, RIDGE[0])
    # 3. With signs as x has them.
    return alternate(y, x, noise)


def alternate(
    y: NDArray[np.float32], x: Floats, noise: float
) -> tuple[Floats, Members, NDArray[np.float64]]:
    """(x, members, mean squared residuals) from x: best pair of every row, most likely values,
    again and again until members stay."""
    even, usable = np.ones(y.shape[1], np.float32), np.ones(len(x), bool)
    members = np.zeros((len(y), 2), np.int64)
    for _ in range(ROUNDS):
        before = members
        members, miss = reassign(y, x.astype(np.float32), members, usable, even)
        if np.array_equal(members, before):
            break
        weight, typical = row_weights(miss, noise)
        z = signed(y, x[members].sum(axis=1), typical)
        x = _least_squares(members, len(x), weight, z, RIDGE[1])
    return x, members, miss


def row_weights(miss: Floats, noise: float) -> tuple[Floats, float]:
    """(weights (m,), the typical mean square): rows that fit like the better ones count."""
    typical = max(float(np.quantile(miss, BETTER)), noise**2)
    weight = 1 / (1 + (miss / (WIDE * typical)) ** 2)
    return np.where(weight < LIGHT, 0.0, weight), typical


def agreeing(z: Floats, white: Floats) -> Floats:
    """Rows of z with the signs under which they agree best."""
    lead = np.linalg.eigh(white @ z.T)[1][:, -1]
    return np.asarray(np.where(lead < 0, -1.0, 1.0)[:, None] * z)


def _means(z: Floats, white: Floats, W: Floats, members: Members) -> Floats:
    """(n, d) the mean of each column's rows, signs so that they agree: first within columns, then
    between the two columns of a row."""
    n = W.shape[1]
    x = np.zeros((n, z.shape[1]))
    for column in range(n):
        rows = np.flatnonzero(W[:, column])
        if len(rows):
            x[column] = agreeing(z[rows], white[rows]).mean(axis=0)
    own = np.sign(np.einsum("ij,icj->ic", white, x[members]))
    A = np.zeros((n, n))
    np.add.at(A, (members[:, 0], members[:, 1]), own[:, 0] * own[:, 1])
    turn = np.where(np.linalg.eigh(A + A.T)[1][:, -1] < 0, -1.0, 1.0)
    return np.asarray(turn[:, None] * x)


def _least_squares(members: Members, n: int, weight: Floats, z: Floats, ridge: float) -> Floats:
    W = incidence(members, n)
    return np.asarray(
        np.linalg.solve(
            W.T @ (weight[:, None] * W) + ridge * np.eye(n), W.T @ (weight[:, None] * z)
        )
    )
