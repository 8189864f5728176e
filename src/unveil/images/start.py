"""Images to start from, where nothing is known of signs: cross terms, and neighbouring pixels.

    y² = Σ λ_j²x_j² + 2 Σ_{j<l} λ_jλ_l x_j x_l + public energy + …

Least squares of y² on λ² gives x_j² at every pixel. What is left is mostly cross terms: at a pixel

    M = Σ_i residual_i·L_i L_iᵀ    (L_i the expected weights of row i; without its diagonal)

is near a multiple of x xᵀ, so that its leading eigenvector has the values of all images there, up
to one sign. Expectation and maximisation sharpen them, each pixel by itself.

At two pixels the values of all images correlate as the prior says, up to the signs of both pixels.
Next to each other that is sure, so that signs follow the spanning tree of the surest pairs, and are
then improved greedily (`pixel_signs`). O(n²·d) and O(d²) numbers; the eigenvectors of a block of
pixels at a time.

Without public images nothing else ties the signs of pixels to each other: if all images change
their sign at a pixel, no encoding changes. There signs are found again after every round.

The sign of the whole. Turn the sign of every image and every encoding, and all magnitudes stay.
Only the public mean does not turn, which is known from like images. Images are annealed without
it, so that neither sign is favoured. Then the public mean, fitted to the signed encodings as one
more image, whose weight is what private images leave, is held against the known one in whitened
components, where the public part is white noise (`polarity`):

    z = ⟨fitted, known⟩ / (‖known‖·standard error)
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from unveil.images.fields import Fit, Mixture, row_blocks
from unveil.images.model import Copies, Floats, Prior, mirror


def start_images(
    Y: Floats,
    squares: sparse.csr_array,
    mixture: Mixture,
    prior: Prior,
    copies: Copies,
    rng: np.random.Generator,
    *,
    sharpen: int = 6,
) -> Floats:
    """(n, d) up to one sign for all, from magnitudes and expected λ² (m, count·n); sharpen: rounds
    of expectation and maximisation."""
    # 1. Columns are as many images, until signs are known; mirrored rows mix mirrored columns.
    Y, A, squares = copies.both(Y), copies.of_mirrored(mixture.A), copies.of_mirrored(squares)
    noise, rest = (np.tile(part, copies.count) for part in (mixture.noise, mixture.rest))
    single, nothing = Copies(copies.shape), np.zeros_like(prior.mean)
    # 2. Values, each pixel with a sign of its own, which a public mean of zero keeps.
    x = cross_terms(Y, A, squares, rng)
    fit = Fit(Mixture(A, noise, rest, nothing), single)
    E = np.empty_like(Y)
    for _ in range(sharpen):
        for rows in row_blocks(len(Y)):
            y = Y[rows]
            E[rows] = y * np.tanh(y * (A[rows] @ x) / (noise[rows, None] * prior.pixel))
        x = fit(E, x, nothing)
    # 3. One sign per pixel, by its neighbours.
    x = np.asarray(x * pixel_signs(x, prior), np.float32)
    if copies.symmetric:
        n = len(x) // 2
        return np.asarray((x[:n] + mirror(x[n:], copies.shape)) / 2, np.float32)
    return x


def cross_terms(
    Y: Floats,
    L: sparse.csr_array,
    squares: sparse.csr_array,
    rng: np.random.Generator,
    *,
    ridge: float = 0.05,
    turns: int = 60,
    numbers: int = 1 << 23,
) -> Floats:
    """(n, d) up to a sign per pixel, from expected λ (m, n) and λ².

    ridge: added to the normal equations of energies, by their mean.
    turns: power iterations.
    numbers: entries of M that are held at once.
    """
    # 1. Energies: least squares of y² on λ², and on what public images add.
    m, n = L.shape
    total, own = L.sum(axis=1), L.multiply(L).sum(axis=1)
    rest = np.clip(1 - total, 0, 0.75)
    Q = np.column_stack([squares.toarray(), np.ones(m), rest**2, (total**2 - own) / 2])
    normal = Q.T.astype(np.float64) @ Q
    normal[np.diag_indices(n + 3)] += 1e-8
    normal[np.diag_indices(n)] += ridge * np.trace(normal[:n, :n]) / n
    solve = np.linalg.solve(normal, Q.T).astype(np.float32)
    Q = Q.astype(np.float32)
    # 2. M from products of the weights of a row, two by two.
    row = np.repeat(np.arange(m), np.diff(L.indptr))
    first, second = _pairs(L.indptr)
    products = (L.data[first] * L.data[second]).astype(np.float32)
    names = L.indices[first].astype(np.int64) * n + L.indices[second]
    outer = sparse.csr_array((products, (names, row[first])), shape=(n * n, m))
    out = np.empty((n, Y.shape[1]), np.float32)
    begin = rng.standard_normal((n, 1)).astype(np.float32)
    for pixels in row_blocks(Y.shape[1], max(8, min(128, numbers // n**2))):
        energy = Y[:, pixels] ** 2
        x2 = solve @ energy
        M = (outer @ (energy - Q @ x2)).reshape(n, n, -1)
        M = np.ascontiguousarray(M.transpose(2, 0, 1))
        # 3. The eigenvector of the largest eigenvalue, by powers. The shift keeps one that is more
        #    negative from winning.
        v = np.repeat(begin[None], len(M), axis=0)
        shift = 0.4 * np.sqrt((M**2).sum(axis=(1, 2), keepdims=True))
        for _ in range(turns):
            v = M @ v + shift * v
            v /= np.linalg.norm(v, axis=1, keepdims=True) + np.float32(1e-30)
        size = np.clip(x2[:n], 1e-3, 1)
        v = v[:, :, 0].T * np.sqrt(size.sum(axis=0))
        out[:, pixels] = 0.5 * np.sign(v) * np.sqrt(size) + 0.5 * v  # both are noisy
    return out


def _pairs(indptr: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of all pairs of two different entries of each row."""
    parts = [np.indices((b - a, b - a)).reshape(2, -1) + a for a, b in pairwise(indptr)]
    first, second = np.concatenate(parts, axis=1)
    return first[first != second], second[first != second]


def pixel_signs(
    x: Floats, prior: Prior, *, near: int = 8, power: int = 8, greedy: int = 30
) -> Floats:
    """(d,) signs in which neighbouring pixels of images (n, d) have in common what the prior says,
    up to one sign for all.

    near: pixels that each may be joined to in the tree.
    power: of the prior's correlations. One weighs the many distant pixels as much as the few next
        to it, which alone are sure.
    greedy: passes in which all pixels take the sign that others ask for.
    """
    v = x / (np.linalg.norm(x, axis=0) + np.float32(1e-9))
    alike = prior.correlation()
    K = (v.T @ v) * alike * np.abs(alike) ** (power - 1)
    np.fill_diagonal(K, 0)
    # 1. The tree of the surest pairs, from one pixel to all others.
    d = len(K)
    other = np.argpartition(-np.abs(K), min(near, d - 1) - 1, axis=1)[:, :near]
    places = (np.repeat(np.arange(d), other.shape[1]), other.ravel())
    doubt = np.maximum(1.0 - np.abs(K[places], dtype=np.float64), 1e-6)
    tree = minimum_spanning_tree(sparse.csr_array((doubt, places), shape=(d, d)))
    signs = np.zeros(d, np.float32)
    while not signs.all():  # pixels that hardly vary may be joined to no others
        first = int(np.flatnonzero(signs == 0)[0])
        order, before = breadth_first_order(tree, first, directed=False)
        signs[first] = 1
        for pixel in order[1:]:
            agree = K[pixel, before[pixel]] >= 0
            signs[pixel] = signs[before[pixel]] if agree else -signs[before[pixel]]
    # 2. All others together.
    for _ in range(greedy):
        signs = np.where(K @ signs < 0, -1, 1).astype(np.float32)
    return np.asarray(signs)


def polarity(Y: Floats, E: Floats, mixture: Mixture, prior: Prior, copies: Copies) -> float:
    """z of signed encodings E of magnitudes Y (m, d)."""
    W = prior.whitener
    known = (prior.mean @ W).astype(np.float64)
    count = 1 + copies.symmetric
    weights = copies.of_mirrored(mixture.A)
    weights = copies.merged(weights) if copies.reach else weights
    A = np.column_stack([weights.toarray(), np.tile(mixture.rest, count)]).astype(np.float64)
    scaled = A / np.tile(mixture.noise, count)[:, None]
    inverse = np.linalg.inv(A.T @ scaled + 1e-3 * np.eye(A.shape[1]))
    fitted = np.zeros(len(known))
    along = scaled @ inverse[-1]
    for rows in row_blocks(len(Y)):
        both = copies.both(np.copysign(Y[rows], E[rows])) @ W
        size = len(Y[rows])
        fitted += along[rows] @ both[:size]
        if copies.symmetric:
            fitted += along[len(Y) :][rows] @ both[size:]
    error = float(np.linalg.norm(known)) * float(np.sqrt(inverse[-1, -1]))
    return float(fitted @ known) / max(error, 1e-12)
