"""The model of this room, and the least squares that all of its parts share.

    y_i = s_i ∘ Σ_j Λ_ij·x_j        i = 1 … m, j = 1 … n

Λ (m, n) has k positive entries in each row. They sum to 1, or all equal one known weight. The
signs s_i are 1 (MixUp), one of a pool of masks (TextHide) or unknown at every pixel (InstaHide).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

Floats = NDArray[np.float64]
Members = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Records and weights that explain encodings.

    Attributes
    ----------
    values : (n, d)
        The records x.
    members, weights : (m, k)
        Which records each encoding mixes, and with which weights.
    fits : (m,)
        Encodings that are explained: to rounding where `exact`, else up to noise.
    noise : float
        The largest residual where `exact`, else the standard deviation of the noise per value.
    exact : bool
        At least half of the encodings are reproduced to rounding.
    """

    values: Floats
    members: Members
    weights: Floats
    fits: Flags
    noise: float
    exact: bool

    @property
    def matrix(self) -> sparse.csr_array:
        """Λ (m, n)."""
        return weight_matrix(self.members, self.weights, len(self.values))

    def error(self) -> Floats:
        """(n,) standard error of a value of every record: noise·√diag (ΛᵀΛ)⁻¹.

        Weights are known much better than values, since all values of a row speak for each.
        """
        W = self.matrix[np.flatnonzero(self.fits)]
        gram = (W.T @ W).toarray()
        sizes, vectors = np.linalg.eigh(gram)
        least = 1e-9 * max(float(np.trace(gram)) / len(gram), 1e-300)
        return np.asarray(self.noise * np.sqrt((vectors**2 / np.maximum(sizes, least)).sum(axis=1)))


def rms(values: NDArray[np.floating]) -> float:
    """Root mean square of all values, never 0."""
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) or 1e-30


def weight_matrix(members: Members, weights: Floats, n: int) -> sparse.csr_array:
    """Λ (m, n) from its k entries in each row."""
    m, k = members.shape
    at = np.repeat(np.arange(m), k), members.ravel()
    return sparse.csr_array((weights.ravel(), at), shape=(m, n))


def mixed(values: Floats, members: Members, weights: Floats) -> Floats:
    """(m, d) the sums Σ_j Λ_ij·x_j."""
    out = weights[:, 0, None] * values[members[:, 0]]
    for j in range(1, members.shape[1]):
        out += weights[:, j, None] * values[members[:, j]]
    return np.asarray(out)


def least_squares(
    W: sparse.csr_array, Y: Floats, trust: Floats | None = None, *, ridge: float = 1e-12
) -> Floats | None:
    """x that minimises Σ_i trust_i·‖(Wx − Y)_i‖²; None where W leaves it open.

    ridge : float    Added to the diagonal of WᵀW, relative to its mean: far below what single
                     precision leaves of the encodings.
    """
    heavy = W if trust is None else sparse.csr_array(W.multiply(trust[:, None]))
    gram = (W.T @ heavy).toarray()
    gram[np.diag_indices_from(gram)] += ridge * max(float(np.trace(gram)) / len(gram), 1e-300)
    try:
        return np.asarray(cho_solve(cho_factor(gram), heavy.T @ Y))
    except LinAlgError:
        return None


def spectrum(Y: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues of YYᵀ, falling, with eigenvectors (m, min(m, d)).

    Computed from the smaller of the two Gram matrices.
    """
    m, d = Y.shape
    if m <= d:
        sizes, vectors = eigh(Y @ Y.T)
        return sizes[::-1], vectors[:, ::-1]
    sizes, right = eigh(Y.T @ Y)
    sizes, right = sizes[::-1], right[:, ::-1]
    return sizes, Y @ right / np.sqrt(np.maximum(sizes, 1e-12 * max(float(sizes[0]), 1e-300)))


def rank(sizes: Floats, *, rounding: float = 1e-13) -> int:
    """How many falling eigenvalues are not rounding; that of single precision, squared, is
    1e-15 of the largest at most."""
    return int((sizes > rounding * sizes[0]).sum()) if len(sizes) and sizes[0] > 0 else 0


def judge(
    Y: Floats,
    members: Members,
    weights: Floats,
    n: int,
    *,
    noise: float | None = None,
    near: float = 1e-4,
    sigmas: float = 5.0,
) -> Mixture | None:
    """Records at all values by least squares, and which encodings they explain.

    noise : float      Standard deviation per value up to which an encoding is explained; None: to
                       rounding, and rows that are not do not count in the least squares.
    near : float       Residual, relative to the rms of the encodings, that is rounding: a wrong
                       member leaves a thousand times as much.
    sigmas : float     Standard deviations of χ² within which a residual is noise.
    """
    m, d = Y.shape
    W = weight_matrix(members, weights, n)
    x = least_squares(W, Y)
    if x is None:
        return None
    rest = Y - W @ x
    bound = near * rms(Y)
    fits = np.abs(rest).max(axis=1) <= bound
    if noise is None:
        # Rows that are wrong pull on the others: once more without them.
        if m <= 2 * fits.sum() < 2 * m:
            rows = np.flatnonzero(fits)
            again = least_squares(sparse.csr_array(W[rows]), Y[rows])
            x = x if again is None else again
            rest = Y - W @ x
            fits = np.abs(rest).max(axis=1) <= bound
        largest = float(np.abs(rest[fits]).max(initial=0.0))
        return Mixture(x, members, weights, fits, largest, bool(2 * fits.sum() >= m))
    # Least squares leaves less than the noise, by the share of unknowns.
    power, free = np.einsum("ij,ij->i", rest, rest), max(1 - n / m, 1 / m)
    fits = power <= noise**2 * free * (d + sigmas * np.sqrt(2 * d))
    left = float(power[fits].sum()) / max(1, int(fits.sum()))
    return Mixture(x, members, weights, fits, float(np.sqrt(left / d / free)), False)
