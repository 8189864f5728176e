"""Windows of encodings, whitened in the same way wherever they lie: moves commute with it.

`gram.windows` whitens each window by its own covariance, which tells most where images lie still.
Of images that were moved, a window of one encoding is held against another window of the next. So
all windows are whitened by one covariance C, that of windows anywhere,

    v = C^-½ y,     u ∝ (E_q[v vᵀ] + s·I)⁻¹ v

and after that what windows at the place q have in common counts less: crops have black rims, whose
straight edges lie in the same place in many encodings. With C symmetric under mirroring each
component of a window keeps its value in the mirror image, or changes its sign. Every u has length
one, so that no window speaks for all of an encoding. O(m·d·64·components) for windows of 8×8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

Floats = NDArray[np.float32]
SIDE = 8
"""Pixels of a window's side, as in `gram.windows`. Of true moves 16% were beyond 99.8% of others,
with 5 or 11 pixels 14%."""
COMPONENTS = 96
"""Components of a window that are kept, of 192 in colour. Of pairs that share an image 17% have the
right move; with 64 components 14%, with 128 hardly more."""
SHRINKAGE = 0.003
"""Added to variances, by their mean, as in `gram.windows`: with ten times as much a sixth of the
true moves that stand out do so no more."""
COMMON = 0.3
"""s. Of true moves 19% were beyond 99.8% of others; with 0, where noise is blown up, 15%, and
without this step, where rims stand out, 16%."""
EMPTY = 1e-12
"""Guards divisions: all encodings may be zero."""


@dataclass(frozen=True, eq=False)
class MovedWindows:
    """values (down, across, m, r): the window of each encoding that begins at a pixel; parity (r,):
    the sign by which components change in a mirror image."""

    values: Floats
    parity: Floats

    def __len__(self) -> int:
        return int(self.values.shape[2])

    @property
    def places(self) -> tuple[int, int]:
        """How many windows there are down and across."""
        return self.values.shape[0], self.values.shape[1]

    def at(self, down: int, across: int, mirrored: bool) -> Floats:
        """(m, r): the window at a place of the encodings, or of their mirror images."""
        if not mirrored:
            return np.asarray(self.values[down, across])
        return np.asarray(self.values[down, self.places[1] - 1 - across] * self.parity)


def window_size(shape: tuple[int, ...]) -> int:
    """Numbers of all windows of an encoding of a shape."""
    height, width, channels, side = _sides(shape)
    components = min(COMPONENTS, side * side * channels)
    return (height - side + 1) * (width - side + 1) * components


def moved_windows(Y: Floats, shape: tuple[int, ...]) -> MovedWindows:
    """Of magnitudes (m, d) of images of a shape (height, width[, channels])."""
    # 1. Windows at every place.
    m = len(Y)
    height, width, channels, side = _sides(shape)
    pixels = side * side * channels
    images = Y.reshape(m, height, width, channels)
    every = np.lib.stride_tricks.sliding_window_view(images, (side, side), axis=(1, 2))
    down, across = every.shape[1:3]
    # 2. Their covariance, the same for mirror images, and its components that tell most.
    covariance = np.zeros((pixels, pixels))
    for y in range(down):
        part = np.ascontiguousarray(every[:, y]).reshape(-1, pixels)
        covariance += part.T @ part
    turned = np.arange(pixels).reshape(channels, side, side)[:, :, ::-1].ravel()
    covariance = covariance + covariance[np.ix_(turned, turned)]
    values, vectors = eigh(covariance / (2 * m * down * across))
    values = np.maximum(values, 0)
    counts = np.sqrt(values) / (values + SHRINKAGE * values.mean() + EMPTY)
    told = np.argsort(-counts * np.sqrt(values), kind="stable")[:COMPONENTS]
    parity = np.sign(np.einsum("ij,ij->j", vectors[:, told], vectors[turned][:, told]))
    whiten, parity = (vectors * counts)[:, told].astype(np.float32), parity.astype(np.float32)
    # 3. Whitened, and what a place has in common, left and right alike, counts less.
    out = np.empty((down, across, m, len(told)), np.float32)
    for y in range(down):
        for x in range(across):
            out[y, x] = np.ascontiguousarray(every[:, y, x]).reshape(m, pixels) @ whiten
        here = np.matmul(out[y].transpose(0, 2, 1), out[y]) / np.float32(m)
        here = (here + here[::-1] * np.outer(parity, parity)) / 2
        here += COMMON * np.eye(len(told), dtype=np.float32)
        line = np.matmul(out[y], np.linalg.inv(here))
        out[y] = line / (np.linalg.norm(line, axis=-1, keepdims=True) + np.float32(EMPTY))
    return MovedWindows(out, parity)


def _sides(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Height, width, channels, and the side of a window: images may be smaller."""
    height, width = shape[:2]
    return height, width, shape[2] if len(shape) == 3 else 1, min(SIDE, height, width)
