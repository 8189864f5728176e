"""Which images each signed encoding mixes, and with what weights: least squares in the whitened
components of the prior.

Once signs are known an encoding is linear: z − mean = Σ λ_j (x_j − mean) + public part. In the
components of the prior, each divided by its standard deviation, the public part is white noise,
fine detail counts as much as coarse, and a weight of 0.05 stands out. Every encoding is scored
against all images, its own share in each taken out; all k-subsets of its best candidates are
fitted, and expected weights are averages over them by likelihood. Signs half-way between certain
and soft (y·sign and E) serve best: soft ones alone shrink the weights, certain ones alone add
noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.prior import ImagePrior

Floats = NDArray[np.float32]
FLOOR = 0.1
"""Detail finer than the prior's components knows, as a variance: what whitening divides by at
least."""
LEAST = 0.01
LABEL = 50.0
"""Weight of a label against one whitened component: labels are exact."""


@dataclass(frozen=True, eq=False)
class Weighing:
    """Expected weights and squared weights (m, n); the best subset of each encoding (m, k) with its
    weights; misfit (m,): the mean square of what is left, in the unit of the public part's
    energy."""

    weights: sparse.csr_array
    squares: sparse.csr_array
    members: NDArray[np.int64]
    best: Floats
    misfit: Floats


def whiten(prior: ImagePrior) -> Floats:
    return np.asarray(prior.basis / np.sqrt(prior.variances + FLOOR), np.float32)


def half_signed(Y: Floats, E: Floats) -> Floats:
    """Half-way between soft signs and certain ones."""
    return np.asarray(0.5 * (E + Y * np.sign(E)))


def reweigh(
    Y: Floats,
    E: Floats,
    images: Floats,
    shares: Floats,
    noise: Floats,
    prior: ImagePrior,
    k: int,
    *,
    largest: float,
    public: bool = True,
    candidates: int = 8,
    temperature: float = 2.0,
    labels: tuple[Floats, Floats] | None = None,
    offsets: Floats | None = None,
) -> Weighing:
    """shares (n, m): what each encoding adds to each image (`_Fit.shares`); `public` False: weights
    sum to one;
    labels: those of the encodings (m, classes) and of the images (n, classes), which tie the
    weights; offsets (m, d): the public part, where it is known"""
    W = whiten(prior)
    m, n = len(E), len(images)
    e = np.empty((m, W.shape[1]), np.float32)
    for start in range(0, m, 1024):
        rows = slice(start, start + 1024)
        half = half_signed(Y[rows], E[rows])
        half -= prior.mean if offsets is None else offsets[rows]
        e[rows] = half @ W
    x = (images - (prior.mean if offsets is None else 0)) @ W
    energy = np.einsum("ij,ij->i", e, e)
    products = e @ x.T
    products -= shares.T * energy[:, None]
    gram = (x @ x.T).astype(np.float64)
    scores = products / np.sqrt(np.maximum(np.diag(gram), 1e-9))
    if labels is not None:
        # The label of an encoding is the same mixture of its images' labels: more coordinates, and
        # precise ones.
        ours, theirs = labels
        scores = np.where(ours @ theirs.T > 0, scores, scores - 1e6)
        products += LABEL**2 * (ours @ theirs.T)
        gram += LABEL**2 * (theirs @ theirs.T)
    chosen = np.argpartition(-scores, min(candidates, n) - 1, axis=1)[:, :candidates]
    b = np.take_along_axis(products, chosen, axis=1).astype(np.float64)
    G = gram[chosen[:, :, None], chosen[:, None, :]]
    k = min(k, n)  # fewer images may have been found than an encoding mixes
    subsets = list(combinations(range(chosen.shape[1]), k))
    cost = np.empty((m, len(subsets)))
    fitted = np.empty((m, len(subsets), k), np.float32)
    for s, subset in enumerate(subsets):
        part = list(subset)
        g, h = G[:, part][:, :, part], b[:, part]
        fit = _fit(g, h, largest, public)
        fitted[:, s] = fit
        cost[:, s] = np.einsum("ij,ijl,il->i", fit, g, fit) - 2 * np.einsum("ij,ij->i", fit, h)
    cost /= noise[:, None]
    cost -= cost.min(axis=1, keepdims=True)
    odds = np.exp(-0.5 * cost / temperature)
    odds /= odds.sum(axis=1, keepdims=True)
    first, second = (
        np.zeros((m, chosen.shape[1]), np.float32),
        np.zeros((m, chosen.shape[1]), np.float32),
    )
    for s, subset in enumerate(subsets):
        for place, c in enumerate(subset):
            first[:, c] += odds[:, s] * fitted[:, s, place]
            second[:, c] += odds[:, s] * fitted[:, s, place] ** 2
    at = np.arange(m)
    best = cost.argmin(axis=1)
    members = np.take_along_axis(chosen, np.array(subsets)[best], axis=1)
    of = np.repeat(at, chosen.shape[1])

    def matrix(values: Floats) -> sparse.csr_array:
        out = sparse.csr_array((values.ravel(), (of, chosen.ravel())), shape=(m, n))
        out.data[out.data < 1e-3] = 0
        out.eliminate_zeros()
        return out

    weights = matrix(first)
    left = e - weights @ x
    misfit = np.einsum("ij,ij->i", left, left) / W.shape[1] / noise
    return Weighing(weights, matrix(second), members, fitted[at, best], misfit.astype(np.float32))


def _fit(
    g: NDArray[np.float64], h: NDArray[np.float64], largest: float, public: bool
) -> NDArray[np.float64]:
    """Least squares with weights between `LEAST` and `largest`; summing to one where there is no
    public part."""
    k = h.shape[1]
    g = g + 1e-6 * np.eye(k)
    free = np.linalg.solve(g, h[:, :, None])[:, :, 0]
    if not public:
        towards = np.linalg.solve(g, np.ones_like(h)[:, :, None])[:, :, 0]
        free = free - towards * ((free.sum(axis=1) - 1) / towards.sum(axis=1))[:, None]
        return np.asarray(np.clip(free, LEAST, largest))
    weights: NDArray[np.float64] = np.clip(free, LEAST, largest)
    for _ in range(2):  # where a bound holds, the others move
        for c in range(k):
            others = np.einsum("ij,ij->i", g[:, c], weights) - g[:, c, c] * weights[:, c]
            weights[:, c] = np.clip((h[:, c] - others) / g[:, c, c], LEAST, largest)
    return weights
