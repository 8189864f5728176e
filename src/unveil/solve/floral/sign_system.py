"""The sign system of one floral (`lem:generic`, step "solve system" of `alg:private_attack2`), all
pixels at once.

    |a·Σ_{i∈F(j)} x_i + c_j| = y_j      for the t = (k+2)(k+1)/2 rows j of the floral

a is the private weight and c_j the public part of encoding j, which the printed system leaves out.
Of the t equations k+2 independent ones are enough to write down every candidate, one per choice of
their signs; the others decide. That is 2^(k+1) candidates without a public part (x and −x are the
same answer) and 2^(k+2) with one, instead of the 2^t sign patterns of the paper: 128 instead of
2^28 for k = 6. Each candidate is a matrix product over a block of pixels.

The chosen signs then give x by least squares over all t equations. A pixel is *settled* when the
best candidate fits and no candidate with other values fits as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from unveil.solve.model import ROW, SAME_CANDIDATE

BLOCK = 1024
"""Pixels per block: candidates of one block stay in cache."""
FITS, ROUNDING = 30.0, 1e-6
"""A pixel fits when its misfit is at most so many times the typical one; where that is nothing, so
much of the rms of y, which is what single precision leaves."""


@dataclass(frozen=True, eq=False)
class SignSolution:
    """values (k+2, d); misfit (d,): rms over the equations; rival (d,): the misfit of the best
    candidate with other values.

    `settled` (d,): fits within the noise, and the rival does not. `noise`: the typical misfit,
    relative to the rms of y.
    """

    values: NDArray[np.float64]
    misfit: NDArray[np.float64]
    rival: NDArray[np.float64]
    fits: NDArray[np.bool_]
    settled: NDArray[np.bool_]
    noise: float


def solve_sign_system(
    magnitudes: NDArray[np.float32],
    incidence: NDArray[np.int64],
    weight: float,
    offsets: NDArray[np.float64] | None = None,
    *,
    tolerance: float = ROW,
) -> SignSolution:
    """Solve |weight·incidence·x + offsets| = magnitudes (t, d) for x (k+2, d), pixel by pixel.

    tolerance: the largest typical misfit, relative to the rms of y, at which equations still count
    as holding.
    """
    # 1. k+2 independent equations, and all choices of their signs.
    Y = magnitudes.astype(np.float64)
    t, d = Y.shape
    A = weight * incidence.astype(np.float64)
    unknowns = A.shape[1]
    basis = np.sort(qr(A.T, mode="r", pivoting=True)[1][:unknowns])
    rest = np.setdiff1d(np.arange(t), basis)
    inverse = np.linalg.inv(A[basis])
    pinv = np.linalg.pinv(A)
    patterns = np.array(list(product((1.0, -1.0), repeat=unknowns)))
    if offsets is None:
        patterns = patterns[: len(patterns) // 2]

    rms = float(np.sqrt(np.mean(Y * Y))) or 1.0
    values = np.empty((unknowns, d))
    misfit, rival = np.empty(d), np.empty(d)
    for start in range(0, d, BLOCK):
        pixels = slice(start, min(start + BLOCK, d))
        # 2. The candidate that fits the other equations best, then least squares over all of them.
        y = Y[:, pixels]
        c = np.zeros_like(y) if offsets is None else offsets[:, pixels]
        candidates = inverse @ (patterns[:, :, None] * y[basis] - c[basis])
        error = np.abs(A[rest] @ candidates + c[rest]) - y[rest]
        cost = np.sqrt(np.einsum("pij,pij->pj", error, error) / t)
        best = cost.argmin(axis=0)
        chosen = candidates[best, :, np.arange(y.shape[1])].T
        x = pinv @ (np.sign(A @ chosen + c) * y - c)
        values[:, pixels] = x
        misfit[pixels] = np.sqrt(np.mean((np.abs(A @ x + c) - y) ** 2, axis=0))
        # 3. The best rival. Candidates that differ only where y vanishes have the same values, and
        # are none.
        distance = np.abs(candidates - x).max(axis=1)
        if offsets is None:
            distance = np.minimum(distance, np.abs(candidates + x).max(axis=1))
        same = distance <= SAME_CANDIDATE * rms / weight
        rival[pixels] = np.where(same, np.inf, cost).min(axis=0)
    noise = float(np.median(misfit)) / rms
    bound = max(FITS * noise, ROUNDING) * rms
    fits = (misfit <= bound) & (noise <= tolerance)
    return SignSolution(values, misfit, rival, fits, fits & (rival > bound), noise)
