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

from unveil.gram.energies import Energies

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
ROWS, AT_ONCE = 512, 7
"""Encodings held against as many others, a megabyte of products; and windows in memory."""
EMPTY = 1e-30
"""Guards divisions: all encodings may be zero."""


def window_energies(Y: Floats, shape: tuple[int, ...]) -> Energies:
    """Of magnitudes (m, d) of images of a shape."""
    # 1. Products of whitened windows, squared, over all windows.
    m = len(Y)
    K = np.zeros((m, m), np.float32)
    everywhere = windows(shape)
    for first in range(0, len(everywhere), AT_ONCE):
        some = [_whitened(Y[:, pixels]) for pixels in everywhere[first : first + AT_ONCE]]
        # Tiles stay in the processor's cache while the windows pass, and half of them suffice.
        for top in range(0, m, ROWS):
            for left in range(top, m, ROWS):
                down, across = slice(top, top + ROWS), slice(left, left + ROWS)
                for u in some:
                    product = u[down] @ u[across].T
                    product *= product
                    K[down, across] += product
    for top in range(ROWS, m, ROWS):
        K[top : top + ROWS, :top] = K[:top, top : top + ROWS].T
    # 2. What all encodings have in common is told apart, as their level.
    K /= max(float(np.trace(K)) / m, EMPTY)
    mean = K.mean(axis=0, dtype=np.float64)
    level = (mean - mean.mean()).astype(np.float32)
    K -= mean.astype(np.float32)
    K -= level[:, None]
    return Energies(K, level, float(mean.mean()))


def _whitened(part: Floats) -> Floats:
    """u (m, pixels) of a window."""
    values, vectors = eigh((part.T @ part).astype(np.float64) / len(part))
    values = np.maximum(values, 0)
    signal = np.maximum(values - ABOVE * np.quantile(values, FAINT), LEAST * values)
    counts = np.sqrt(signal) / (values + SHRINKAGE * values.mean() + EMPTY)
    return np.asarray(part @ (vectors * counts).astype(np.float32))


def windows(shape: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """The pixels of each window, all channels; windows cover the image."""
    places = np.arange(int(np.prod(shape))).reshape(shape)
    down, across = (_starts(length) for length in shape[:2])
    return [places[top : top + SIDE, left : left + SIDE].ravel() for top in down for left in across]


def _starts(length: int) -> NDArray[np.int64]:
    """Where windows start along a side, about `STEP` apart, the last at the end."""
    last = max(length - SIDE, 0)
    return np.unique(np.linspace(0, last, -(-last // STEP) + 1).round().astype(np.int64))
