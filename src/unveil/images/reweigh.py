"""Which images each signed encoding mixes, and with what weights: least squares in the whitened
components of the prior.

Once signs are known an encoding is linear: z − mean = Σ λ_j (x_j − mean) + public part. In the
components of the prior, each divided by its standard deviation, the public part is white noise,
fine detail counts as much as coarse, and a weight of 0.05 stands out. Every encoding is scored
against all images together, its own share in each taken out, so that what they have in common (the
mean of faces) speaks for none of them; all k-subsets of its best candidates are
fitted, and expected weights are averages over them by likelihood. Signs half-way between certain
and soft (y·sign and E) serve best: soft ones alone shrink the weights, certain ones alone add
noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.epochs import Epochs, match_members
from unveil.images.prior import ImagePrior
from unveil.parallel import run_blocks, where, worker_count

Floats = NDArray[np.float32]
FLOOR = 0.1
"""Variance of detail that the prior's components do not know: whitening divides by at least its
root."""
LEAST = 0.01
"""Least weight of a member: below it a member is not told apart from noise."""
LABEL = 50.0
"""Weight of a label against one whitened component: labels are exact."""
NO_LABEL = 1e6
"""Taken off the score of an image whose class the encoding's label does not have: it never becomes
a candidate."""
CANDIDATES = 8
"""Images of each encoding whose k-subsets are all fitted, the best by score. The true ones need not
come first, and eight have only 28 pairs."""
TEMPERATURE = 2.0
"""Likelihoods of subsets are taken to the power 1/2: whitened components are not quite
independent, so that as they are they claim too much."""
DUST = 1e-3
"""Expected weights below are dropped, to keep the matrix sparse."""
ROWS = 512
"""Encodings whitened at a time, to bound memory."""
SWEEPS = 2
"""Passes of coordinate descent where a bound holds: with two or three members they converge."""


@dataclass(frozen=True)
class WeightBounds:
    """What the scheme says of weights: k members; none larger than `largest`; they sum to one
    unless there is a `public` part."""

    k: int
    largest: float
    public: bool = True


@dataclass(frozen=True, eq=False)
class Weighing:
    """Expected weights and squared weights (m, n); the best subset of each encoding (m, k) with its
    weights; misfit (m,): the mean square of what is left, in the unit of the public part's energy.
    spread (n,), where rows come epoch by epoch: how unevenly an image's members lie over epochs,
    before they are matched (`images.epochs.dispersion`)."""

    weights: sparse.csr_array
    squares: sparse.csr_array
    members: NDArray[np.int64]
    best: Floats
    misfit: Floats
    spread: Floats | None = None


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
    bounds: WeightBounds,
    *,
    labels: tuple[Floats, Floats] | None = None,
    offsets: Floats | None = None,
    epochs: Epochs | None = None,
) -> Weighing:
    """Members and weights of signed encodings E (m, d) of magnitudes Y (m, d).

    shares (n, m): what each encoding adds to each image (`FitToSigned.shares`), so that it does not
    vouch for itself; noise (m,): energy of all else in each encoding; labels: those of the
    encodings (m, classes) and of the images (n, classes); offsets (m, d): the public part, where it
    is known
    """
    m, n = len(E), len(images)
    # 1. Encodings and images in whitened components.
    W = whiten(prior)
    e = np.empty((m, W.shape[1]), np.float32)

    def task(start: int) -> None:
        rows = slice(start, start + ROWS)
        half = half_signed(Y[rows], E[rows])
        half -= prior.mean if offsets is None else offsets[rows]
        np.matmul(half, W, out=e[rows])

    run_blocks(task, range(0, m, ROWS), worker_count(where().workers))
    x = (images - (prior.mean if offsets is None else 0)) @ W
    # 2. Every encoding against every image, its own share in the image taken out.
    energy = np.einsum("ij,ij->i", e, e)
    products = e @ x.T
    products -= shares.T * energy[:, None]
    gram = (x @ x.T).astype(np.float64)
    scores = _scores(products, gram, float(np.median(noise)), bounds)
    # 3. The label of an encoding is the same mixture of its images' labels: more coordinates, and
    #    precise ones.
    if labels is not None:
        ours, theirs = labels
        scores = np.where(ours @ theirs.T > 0, scores, scores - NO_LABEL)
        products += LABEL**2 * (ours @ theirs.T)
        gram += LABEL**2 * (theirs @ theirs.T)
    # 4. Least squares on all k-subsets of the best candidates.
    number = min(max(CANDIDATES, bounds.k), n)
    chosen = np.argpartition(-scores, number - 1, axis=1)[:, :number]
    b = np.take_along_axis(products, chosen, axis=1).astype(np.float64)
    G = gram[chosen[:, :, None], chosen[:, None, :]]
    k = min(bounds.k, n)  # fewer images may have been found than an encoding mixes
    subsets = list(combinations(range(chosen.shape[1]), k))
    cost = np.empty((m, len(subsets)))
    fitted = np.empty((m, len(subsets), k), np.float32)
    for s, subset in enumerate(subsets):
        part = list(subset)
        g, h = G[:, part][:, :, part], b[:, part]
        fit = fit_bounded(g, h, bounds.largest, bounds.public)
        fitted[:, s] = fit
        cost[:, s] = np.einsum("ij,ijl,il->i", fit, g, fit) - 2 * np.einsum("ij,ij->i", fit, h)
    # 5. Expected weights: averages over subsets, by likelihood.
    cost /= noise[:, None]
    cost -= cost.min(axis=1, keepdims=True)
    cost *= -0.5 / TEMPERATURE
    spread = None
    if epochs is not None:
        cost, spread = match_members(cost, chosen, subsets, n, epochs)
    odds = np.exp(cost - cost.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    first = np.zeros((m, chosen.shape[1]), np.float32)
    second = np.zeros((m, chosen.shape[1]), np.float32)
    for s, subset in enumerate(subsets):
        for place, c in enumerate(subset):
            first[:, c] += odds[:, s] * fitted[:, s, place]
            second[:, c] += odds[:, s] * fitted[:, s, place] ** 2
    weights, squares = (sparse_rows(values, chosen, n) for values in (first, second))
    # 6. The best subset, and what it all leaves unexplained.
    at, best = np.arange(m), cost.argmax(axis=1)
    members = np.take_along_axis(chosen, np.array(subsets)[best], axis=1)
    left = e - weights @ x
    misfit = np.einsum("ij,ij->i", left, left) / W.shape[1] / noise
    return Weighing(weights, squares, members, fitted[at, best], misfit.astype(np.float32), spread)


def _scores(
    products: NDArray[Any], gram: NDArray[np.float64], noise: float, bounds: WeightBounds
) -> Floats:
    """Expected weights (m, n) were any number of images mixed: least squares over all images
    together, each weight small beforehand, since k of n are mixed."""
    n = len(gram)
    expected = min(bounds.k / n, 1.0) * (bounds.largest / 2) ** 2  # the mean of a squared weight
    return np.asarray(
        np.linalg.solve(gram + noise / expected * np.eye(n), products.T.astype(np.float64)).T,
        np.float32,
    )


def sparse_rows(values: Floats, columns: NDArray[np.int64], n: int) -> sparse.csr_array:
    """(m, n) with values (m, c) in these columns of each row."""
    rows = np.repeat(np.arange(len(values)), columns.shape[1])
    out = sparse.csr_array((values.ravel(), (rows, columns.ravel())), shape=(len(values), n))
    out.data[out.data < DUST] = 0
    out.eliminate_zeros()
    return out


def fit_bounded(
    g: NDArray[np.float64], h: NDArray[np.float64], largest: float, public: bool
) -> NDArray[np.float64]:
    """Least squares with weights between `LEAST` and `largest`; summing to one where there is no
    public part."""
    k = h.shape[1]
    g = g + 1e-6 * np.eye(k)  # two columns may be one image: solvable all the same
    free = np.linalg.solve(g, h[:, :, None])[:, :, 0]
    # The constrained optimum is the free one, moved along g⁻¹1 until the sum is one.
    if not public:
        towards = np.linalg.solve(g, np.ones_like(h)[:, :, None])[:, :, 0]
        free = free - towards * ((free.sum(axis=1) - 1) / towards.sum(axis=1))[:, None]
        return np.asarray(np.clip(free, LEAST, largest))
    weights: NDArray[np.float64] = np.clip(free, LEAST, largest)
    for _ in range(SWEEPS):  # where a bound holds, the others move
        for c in range(k):
            others = np.einsum("ij,ij->i", g[:, c], weights) - g[:, c, c] * weights[:, c]
            weights[:, c] = np.clip((h[:, c] - others) / g[:, c, c], LEAST, largest)
    return weights
