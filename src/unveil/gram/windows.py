"""How alike encodings of images are, window by window.

At one pixel the sign of z = Σ λx is hidden. In a small window of an image z mostly has one sign, so
that y = ±z there, and the square of a product of two encodings does not ask which:

    K_ij = Σ_windows ⟨u_i, u_j⟩²,   u = (C − N)^½ (C + s·I)⁻¹ y within the window,
    C = E[y yᵀ],   s = 0.003·tr C / pixels

N is the level to which the variances of C fall: that of white noise, where public images are noise;
of images next to nothing, and u is y whitened.

It is a product of features uuᵀ, to which each image adds λ² times its own, as it adds λ²x² to
squares (`gram.stationary`): those are windows of one pixel. But where squares of two encodings that
share a photograph stand out by 0.7 of the spread of pairs that share none, windows stand out by
2.9, and of the 2% most similar pairs 84% share one, not 47% (30 grey photographs of CIFAR-10, 50
encodings of each, four public images in each). `gram.patches` finds groups of pixels where nobody
says where pixels lie.

O(m²·d) for each of the four layers of windows; no whitening beyond them: it lost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.gram.cosines import Alike, in_tiles
from unveil.parallel import run_blocks, where, worker_count

Floats = NDArray[np.float32]
SIDE = 8
"""Pixels of a window's side: with 5 the most similar pairs are as many, with 16 fewer."""
STEP = 4
"""Pixels from one window to the next: with 8, no pixel twice, a tenth less stands out."""
SHRINKAGE = 0.003
"""A third or ten times as much is as good, by set of images."""
FAINT, ABOVE = 0.1, 1.1
"""The quantile of variances, and times that, which is taken for noise. At the median photographs
among photographs stand out by a fifth less, among noise by a fifth more."""
LEAST = 1e-3
"""Least share of its variance that a component keeps."""
TOLD = 0.995
"""Share of what products of u vary by that is kept, by the components that vary most: a quarter of
them has the rest."""
EMPTY = 1e-30
"""Guards divisions: all encodings may be zero."""


def window_energies(Y: Floats, shape: tuple[int, ...]) -> Alike:
    """Of magnitudes (m, d) of images of a shape."""
    # 1. Whitened windows, the product of each encoding with itself, and its mean with all.
    m, everywhere = len(Y), windows(shape)
    parts: list[Floats] = [Y] * len(everywhere)
    own, with_all = np.empty((2, len(everywhere), m))

    def whiten(window: int) -> None:
        u = parts[window] = _whitened(Y[:, everywhere[window]])
        own[window] = np.einsum("ij,ij->i", u, u) ** 2
        with_all[window] = np.einsum("ij,ij->i", u @ (u.T @ u / np.float32(m)), u)

    run_blocks(whiten, range(len(everywhere)), worker_count(where().workers))
    # 2. What all encodings have in common is told apart, as their level.
    unit = max(float(own.sum()) / m, EMPTY)
    mean = with_all.sum(axis=0) / unit
    level = (mean - mean.mean()).astype(np.float32)
    common = mean.astype(np.float32)

    # 3. Products, squared, over all windows. A tile stays in the processor's cache meanwhile.
    def tile(down: slice, across: slice) -> Floats:
        total = -np.add.outer(level[down], common[across])
        total *= np.float32(unit)
        product = np.empty_like(total)  # once: new memory takes longer than the product
        for u in parts:
            np.matmul(u[down], u[across].T, out=product)
            product *= product
            total += product
        total /= np.float32(unit)
        return np.asarray(total, np.float32)

    cosines, lengths = in_tiles(own.sum(axis=0) / unit - mean - level, tile)
    return Alike(cosines, lengths, level, float(mean.mean()))


def _whitened(part: Floats) -> Floats:
    """u (m, pixels) of a window."""
    values, vectors = eigh((part.T @ part).astype(np.float64) / len(part))
    values = np.maximum(values, 0)
    signal = np.maximum(values - ABOVE * np.quantile(values, FAINT), LEAST * values)
    counts = np.sqrt(signal) / (values + SHRINKAGE * values.mean() + EMPTY)
    # Variances of u: components add their squares to the variance of a product.
    told = np.sort((counts**2 * values) ** 2)
    least = told[np.searchsorted(np.cumsum(told), (1 - TOLD) * told.sum())]
    kept = (counts**2 * values) ** 2 >= least
    return np.asarray(part @ (vectors * counts)[:, kept].astype(np.float32))


def windows(shape: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """The pixels of each window, all channels; windows cover the image."""
    places = np.arange(int(np.prod(shape))).reshape(shape)
    down, across = (_starts(length) for length in shape[:2])
    return [places[top : top + SIDE, left : left + SIDE].ravel() for top in down for left in across]


def _starts(length: int) -> NDArray[np.int64]:
    """Where windows start along a side, about `STEP` apart, the last at the end."""
    last = max(length - SIDE, 0)
    return np.unique(np.linspace(0, last, -(-last // STEP) + 1).round().astype(np.int64))
