"""How alike encodings are where pixels go together, as in images: by patches of pixels within which
hidden signs hardly change.

At one pixel the sign of z = Σx is hidden. In a patch of an image z mostly has one sign, so that y =
±z there, one sign for all of the patch, and the square of a product of two encodings does not ask
which:

    K_ij = Σ_patches ⟨u_i, u_j⟩²,   u = y·(C + s·I)^(−½) within the patch,
    C = E[y yᵀ],   s = 0.03·tr C / |patch|

Whitening counts what differs between images, not the brightness that they share. Encodings with q
members in common have ⟨u_i, u_j⟩ of about ±q/k in every patch, so that the root of K above what all
pairs have grows like q. Squares of single pixels (`gram.energies`) are patches of one pixel: on
photographs, k = 3, one shared image then stands out by 1.5 times the spread of pairs that share
none; with 8 patches by 7.

Patches come from the encodings alone, whatever the order of pixels: pixels are halved by their
leading principal component, again and again, each half without what it has in common. O(m·d) for
patches, O(m²·d) for products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.paper.overlap_levels import Floats

PATCHES = 8
"""With 4 to 32 of them about as many encodings of photographs are read right; fewer suit pictures
with one object each."""
SHRINKAGE = 0.03
"""Ten times as much leaves too much brightness in, a tenth of it lets noise in."""
FEWEST = 16
"""Pixels of a patch, at least: with four, as in a table of 30 columns, one shared record does not
stand out."""
ALIKE = 0.72
"""Correlation of a pixel with its nearest relative, from which pixels go together: images have 0.8
and more, independent pixels of 20 vectors and more below 0.5, of 12 vectors 0.65."""
LOOKED = 1000
"""Pixels looked at to tell: their correlations are a matter of a moment."""
STEPS = 30
"""Of power iteration: a rough component does, since pixels near the border may go either way."""
STILL = 1e-4
"""Spread of a pixel, relative to the largest value of all, below which it says nothing: rounding
alone leaves 1e-7."""


def go_together(Y: Floats) -> bool:
    """Whether there are pixels for all patches, and a typical one has another that is nearly the
    same."""
    return nearest_relative(Y, FEWEST * PATCHES) > ALIKE


def nearest_relative(Y: Floats, fewest: int) -> float:
    """The correlation of a typical pixel's magnitudes with those most like them; 0 where fewer than
    `fewest` pixels change."""
    A = _standardised(Y[:, :: -(-Y.shape[1] // LOOKED)])
    if A.shape[1] < max(fewest, 2):
        return 0.0
    C = np.abs(A.T @ A) / np.float32(len(A))
    np.fill_diagonal(C, 0)
    return float(np.median(C.max(axis=0)))


def patches(Y: Floats, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Pixels in PATCHES groups (a power of two) of those that go together; pixels that never change
    are left out."""
    A = _standardised(Y)
    groups = [np.arange(A.shape[1])]
    while 2 * len(groups) <= PATCHES:
        groups = [half for group in groups for half in _halves(A[:, group], group, rng)]
    moving = np.flatnonzero(_moves(Y))
    return [moving[group] for group in groups if len(group)]


def patch_similarity(Y: Floats, rng: np.random.Generator) -> NDArray[np.float64]:
    """S (m, m): the root of K above what is common to all pairs, about 0 for pairs that share
    nothing, growing with overlap."""
    m = len(Y)
    K = np.zeros((m, m), np.float32)
    for patch in patches(Y, rng):
        part = Y[:, patch]
        values, vectors = eigh((part.T @ part).astype(np.float64) / m)
        scale = np.sqrt(np.maximum(values, 0) + SHRINKAGE * max(float(values.mean()), 1e-30))
        u = part @ (vectors / scale).astype(np.float32)
        K += (u @ u.T) ** 2
    # What a row or a column has in common with all others is taken off; then units of its own size.
    S = K.astype(np.float64)
    S -= S.mean(axis=0)
    S -= S.mean(axis=1, keepdims=True)
    size = np.sqrt(np.maximum(np.diag(S), 1e-30))
    S /= np.outer(size, size)
    np.fill_diagonal(S, 0)
    return np.asarray(np.sign(S) * np.sqrt(np.abs(S)))


def _unit(Y: Floats) -> Floats:
    """The largest value is 1, so that squares of it are numbers."""
    return np.asarray(Y / np.float32(max(float(Y.max(initial=0.0)), 1e-30)))


def _moves(Y: Floats) -> NDArray[np.bool_]:
    return np.asarray(_unit(Y).std(axis=0) > STILL)


def _standardised(Y: Floats) -> Floats:
    A = _unit(Y)
    spread = A.std(axis=0)
    A = A[:, spread > STILL]
    return np.asarray((A - A.mean(axis=0)) / spread[spread > STILL])


def _halves(
    A: Floats, group: NDArray[np.int64], rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """The two sides of the leading component, of the same size."""
    if len(group) < 2:
        return [group]
    B = A - A.mean(axis=1, keepdims=True)
    v = rng.standard_normal(len(group), dtype=np.float32)
    for _ in range(STEPS):
        v = B.T @ (B @ v)
        v /= max(float(np.linalg.norm(v)), 1e-30)
    order = np.argsort(v, kind="stable")
    return [group[order[: len(group) // 2]], group[order[len(group) // 2 :]]]
