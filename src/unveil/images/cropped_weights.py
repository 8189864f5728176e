"""Which copies of which images each signed encoding mixes, and with what weights.

As in `images.reweigh`, least squares in whitened components, where the public part is white noise.
Every encoding is held against all copies of all images, its own share taken out; then, with the
best copy taken out too, once more, so that a faint second member shows. All k-subsets of the best
candidates, no two of one image, are fitted, and expected weights are averages by likelihood. While
images are missing, smaller subsets take part: any encoding of a missing image would else be given
to the image, of all copies of all images, that chance favours.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.cropping import Cropping
from unveil.images.epochs import Epochs, match_members
from unveil.images.prior import ImagePrior
from unveil.images.reweigh import (
    TEMPERATURE,
    Weighing,
    WeightBounds,
    fit_bounded,
    half_signed,
    sparse_rows,
    whiten,
)
from unveil.parallel import run_blocks, where, worker_count

Floats = NDArray[np.float32]
FIRST, SECOND = 3, 5
"""Candidates of an encoding: images whose best copy explains most of it, and of what the best one
of all leaves. Together eight, as in `images.reweigh`."""
EMPTY = 1e-3
"""Added to the squared norms of copies, some hundred each: one may be the mean image."""
ROWS = 512
"""Encodings held against all copies at a time, to bound memory."""


def reweigh_copies(
    Y: Floats,
    E: Floats,
    images: Floats,
    shares: sparse.csr_array,
    noise: Floats,
    prior: ImagePrior,
    bounds: WeightBounds,
    cropping: Cropping,
    missing: float = 0.0,
    epochs: Epochs | None = None,
) -> Weighing:
    """Weights, squares (m, n·count) and members (m, k) over copies, of signed encodings E (m, d) of
    magnitudes Y (m, d).

    shares (m, n·count): what each encoding adds to an image by the copy it mixes
    (`FitToCopies.shares`); noise (m,): energy of all else in each encoding; missing: the share of
    private images that are not among these; epochs: where rows come epoch by epoch. A member that
    is none of them is −1.
    """
    # 1. Copies in whitened components, image by image.
    m, n, count = len(E), len(images), cropping.copies.count
    W = whiten(prior)
    X = np.concatenate([(cropping.every(one[None])[0] - prior.mean) @ W for one in images]).astype(
        np.float32
    )
    norms = np.einsum("cr,cr->c", X, X) + EMPTY
    k = min(bounds.k, n)
    wide = min(FIRST, n) + min(SECOND, n)
    sizes = range(k + 1) if missing > 0 else [k]
    subsets = [s for size in sizes for s in combinations(range(wide), size)]
    chosen = np.zeros((m, wide), np.int64)
    fits, odds = np.zeros((m, len(subsets), k), np.float32), np.zeros((m, len(subsets)))

    def whitened(rows: slice) -> Floats:
        return np.asarray((half_signed(Y[rows], E[rows]) - prior.mean) @ W, np.float32)

    def fit(rows: slice) -> None:
        # 2. Products with all copies, an encoding's own share taken out.
        e = whitened(rows)
        products = np.asarray(e @ X.T, np.float32)
        own = shares[rows].tocoo()
        products[own.row, own.col] -= own.data * np.einsum("ir,ir->i", e, e)[own.row]
        chosen[rows] = _candidates(products, norms, X, count, bounds.largest)
        # 3. All k-subsets of the candidates.
        x = X[chosen[rows]]
        gram = np.einsum("icr,ier->ice", x, x).astype(np.float64)
        b = np.take_along_axis(products, chosen[rows], axis=1).astype(np.float64)
        fits[rows], odds[rows] = _fitted(
            b, gram, chosen[rows] // count, noise[rows], bounds, subsets, missing, len(X)
        )

    blocks = [slice(start, min(start + ROWS, m)) for start in range(0, m, ROWS)]
    run_blocks(fit, blocks, worker_count(where().workers))
    # 4. Where rows come epoch by epoch, each image has its k rows of each.
    spread = None
    if epochs is not None:
        odds, spread = match_members(odds, chosen // count, subsets, n, epochs)
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    # 5. Expected weights, the best subset, and what it all leaves unexplained.
    first, second = np.zeros((m, wide), np.float32), np.zeros((m, wide), np.float32)
    members = np.full((m, k), -1, np.int64)
    likeliest = odds.argmax(axis=1)
    for s, subset in enumerate(subsets):
        for place, c in enumerate(subset):
            first[:, c] += odds[:, s] * fits[:, s, place]
            second[:, c] += odds[:, s] * fits[:, s, place] ** 2
        rows = np.flatnonzero(likeliest == s)
        members[rows, : len(subset)] = chosen[rows][:, list(subset)]
    best, misfit = fits[np.arange(m), likeliest], np.zeros(m, np.float32)

    def explain(rows: slice) -> None:
        left = whitened(rows) - np.einsum("ic,icr->ir", first[rows], X[chosen[rows]])
        misfit[rows] = np.einsum("ir,ir->i", left, left) / W.shape[1] / noise[rows]

    run_blocks(explain, blocks, worker_count(where().workers))
    weights, squares = (sparse_rows(values, chosen, len(X)) for values in (first, second))
    return Weighing(weights, squares, members, best, misfit, spread)


def _candidates(
    products: Floats, norms: Floats, X: Floats, count: int, largest: float
) -> NDArray[np.int64]:
    """(m, candidates) columns: the best copy of each of the best images; then of what the best
    of all leaves. A column may come twice."""
    at = np.arange(len(products))
    gains, copies = _by_image(products, norms, count, largest)
    top = gains.argmax(axis=1)
    one = top * count + copies[at, top]
    weight = np.clip(products[at, one] / norms[one], 0, largest)
    after, others = _by_image(products - weight[:, None] * (X[one] @ X.T), norms, count, largest)
    after[at, top] = -np.inf
    out = []
    for gain, copy, number in ((gains, copies, FIRST), (after, others, SECOND)):
        number = min(number, gain.shape[1])
        images = np.argpartition(-gain, number - 1, axis=1)[:, :number]
        out.append(images * count + np.take_along_axis(copy, images, axis=1))
    return np.concatenate(out, axis=1)


def _by_image(
    products: Floats, norms: Floats, count: int, largest: float
) -> tuple[Floats, NDArray[np.int64]]:
    """(m, n): how much the best copy of each image explains, and which it is."""
    weight = np.clip(products / norms, 0, largest)
    gain = (weight * (2 * products - weight * norms)).reshape(len(products), -1, count)
    copy = gain.argmax(axis=2)
    return np.take_along_axis(gain, copy[:, :, None], axis=2)[:, :, 0], copy


def _fitted(
    b: NDArray[np.float64],
    gram: NDArray[np.float64],
    images: NDArray[np.int64],
    noise: Floats,
    bounds: WeightBounds,
    subsets: list[tuple[int, ...]],
    missing: float,
    columns: int,
) -> tuple[Floats, NDArray[np.float64]]:
    """Weights (m, subsets, k) of subsets of candidates, and the logarithm of how likely each is; a
    subset with two candidates of one image is not."""
    m, k = len(b), len(subsets[-1])
    cost = np.zeros((m, len(subsets)))
    fits = np.zeros((m, len(subsets), k), np.float32)
    for s, subset in enumerate(subsets):
        part = list(subset)
        if part:
            # 1. What the subset explains.
            g, h = gram[:, part][:, :, part], b[:, part]
            fit = fit_bounded(g, h, bounds.largest, bounds.public)
            fits[:, s, : len(part)] = fit
            cost[:, s] = np.einsum("ij,ijl,il->i", fit, g, fit) - 2 * np.einsum("ij,ij->i", fit, h)
            names = np.sort(images[:, part], axis=1)
            cost[(names[:, 1:] == names[:, :-1]).any(axis=1), s] = np.inf
        cost[:, s] /= noise * TEMPERATURE
        if missing > 0:
            # 2. Twice the logarithm of its probability beforehand: a copy is one of `columns`, and
            #    a member that is missing has the probability of that.
            cost[:, s] += 2 * len(part) * np.log(columns / (1 - missing))
            cost[:, s] -= 2 * (k - len(part)) * np.log(missing)
    return fits, -0.5 * (cost - cost.min(axis=1, keepdims=True))
