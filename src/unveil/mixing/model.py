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
        Encodings are reproduced to rounding: half of all, or more than chance leaves.
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
    W: sparse.csr_array,
    Y: Floats,
    trust: Floats | None = None,
    known: Floats | None = None,
    *,
    ridge: float = 1e-12,
) -> Floats | None:
    """x that minimises Σ_i trust_i·‖(Wx − Y)_i‖², its first rows as known; None where W leaves it
    open.

    ridge : float    Added to the diagonal of WᵀW, relative to its mean: far below what single
                     precision leaves of the encodings.
    """
    if known is not None and len(known):
        q = len(known)
        x = least_squares(W[:, q:].tocsr(), Y - W[:, :q] @ known, trust, ridge=ridge)
        return None if x is None else np.concatenate([known, x])
    heavy = W if trust is None else sparse.csr_array(W.multiply(trust[:, None]))
    gram = (W.T @ heavy).toarray()
    gram[np.diag_indices_from(gram)] += ridge * max(float(np.trace(gram)) / len(gram), 1e-300)
    try:
        return np.asarray(cho_solve(cho_factor(gram), heavy.T @ Y))
    except LinAlgError:
        return None


def simplex_weights(Z: Floats, x: Floats, members: Members, *, ridge: float = 1e-11) -> Floats:
    """Weights of given members by least squares, not negative, sum 1.

    They sum to 1 by themselves when rows are measured from their last member.

    ridge : float    Added to the normal equations, relative to their trace: members may be equal.
    """
    m, k = members.shape
    if k == 1:
        return np.ones((m, 1))
    last = x[members[:, -1]]
    edges = [x[members[:, j]] - last for j in range(k - 1)]
    gram = np.empty((m, k - 1, k - 1))
    right = np.empty((m, k - 1, 1))
    for a, edge in enumerate(edges):
        right[:, a, 0] = np.einsum("ij,ij->i", edge, Z - last)
        for b in range(a + 1):
            gram[:, a, b] = gram[:, b, a] = np.einsum("ij,ij->i", edge, edges[b])
    gram += (ridge * np.einsum("ijj->i", gram)[:, None, None] + 1e-300) * np.eye(k - 1)
    free = np.linalg.solve(gram, right)[:, :, 0]
    weights = np.maximum(np.column_stack([free, 1 - free.sum(axis=1)]), 0.0)
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))


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
    known: Floats | None = None,
    trusted: Flags | None = None,
    refit: bool = False,
    rounds: int = 2,
    near: float = 1e-4,
) -> Mixture | None:
    """Records at all values by least squares, and which encodings they explain to rounding. Rows
    that are wrong pull on the others: if they are fewer than half, once more without them.

    known : (q, d)     The first records, where they are known.
    trusted : (m,)     Rows that count to begin with; None: all.
    refit : bool       Weights are found anew in each round, by the members; they sum to 1. Fewer
                       rows than half may be explained then, as long as chance leaves fewer.
    rounds : int       At most, as long as more rows are explained, or better.
    near : float       Residual, relative to the rms of the encodings, that is rounding: a wrong
                       member leaves a thousand times as much.
    """
    m, bound = len(Y), near * rms(Y)
    trusted = np.ones(m, bool) if trusted is None else trusted
    best: Mixture | None = None
    for _ in range(rounds):
        W = weight_matrix(members[trusted], weights[trusted], n)
        x = least_squares(W, Y[trusted], known=known) if refit or 2 * trusted.sum() >= m else None
        if x is None:
            break
        weights = simplex_weights(Y, x, members) if refit else weights
        off = np.abs(Y - mixed(x, members, weights)).max(axis=1)
        fits = off <= bound
        largest = float(off[fits].max(initial=0.0))
        if best is not None and fits.sum() <= best.fits.sum() and largest >= best.noise:
            break
        exact = bool(2 * fits.sum() >= m) or (refit and _beyond_chance(members[fits], Y.shape[1]))
        best = Mixture(x, members, weights, fits, largest, exact)
        if not refit and (fits.all() or not best.exact):
            break
        trusted = fits if best.exact else trusted
    return best


def _beyond_chance(members: Members, d: int, *, margin: float = 1.5) -> bool:
    """Whether rows that are reproduced have `margin` times as many equations as unknowns: d values
    of each record, k − 1 weights of each row."""
    rows, k = members.shape
    return bool(rows * (d - k + 1) > margin * d * len(np.unique(members)))


def judge_noise(
    Y: Floats, members: Members, weights: Floats, n: int, noise: float, *, sigmas: float = 5.0
) -> Mixture | None:
    """The same under noise of a standard deviation per value: rows are explained whose residual is
    noise, within `sigmas` standard deviations of χ²."""
    m, d = Y.shape
    W = weight_matrix(members, weights, n)
    x = least_squares(W, Y)
    if x is None:
        return None
    # Least squares leaves less than the noise, by the share of unknowns.
    power, free = np.square(Y - W @ x).sum(axis=1), max(1 - n / m, 1 / m)
    fits = power <= noise**2 * free * (d + sigmas * np.sqrt(2 * d))
    left = float(power[fits].sum()) / max(1, int(fits.sum()))
    return Mixture(x, members, weights, fits, float(np.sqrt(left / d / free)), False)
