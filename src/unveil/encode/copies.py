"""Copies of an image under data augmentation: crops of the padded image, mirror images of these.

A training run pads an image by some black pixels, cuts a window of the image's own size out at
random, and mirrors it with probability one half (Huang et al., `train_cross.py`: `RandomCrop(32,
padding=4)`, then `RandomHorizontalFlip`). With a reach of r pixels an image has (2r + 1)² crops.
Copy t of image j is column j·count + t wherever columns are copies: sparse weights over such
columns say which copy an encoding mixes.

`mix` and `gather` are adjoint to each other: weighted sums of copies, and sums of encodings put
back where their pixels come from. Both cost one pass over the pixels of every weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from unveil.checks import InputError

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Copies:
    """Crops by up to `reach` pixels each way of images of a shape (height, width[, channels]), and
    mirror images of the crops where `flips`."""

    shape: tuple[int, ...]
    reach: int
    flips: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.reach, (int, np.integer)) or self.reach < 0:
            raise InputError(f"crops={self.reach!r}: give the number of pixels of the padding")
        if self.reach >= min(self.shape[:2]):
            raise InputError(
                f"crops={self.reach}: images of {self.shape[0]}×{self.shape[1]} pixels can be "
                "shifted out of sight; the padding must be smaller than they are"
            )

    @property
    def sides(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        height, width = self.shape[:2]
        return height, width, self.shape[2] if len(self.shape) == 3 else 1

    @property
    def wide(self) -> tuple[int, int, int]:
        """Height, width and channels of a padded image."""
        height, width, channels = self.sides
        return height + 2 * self.reach, width + 2 * self.reach, channels

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """(count, 3): of every copy whether it is mirrored, and its place in the padded image,
        down and across; the middle of the padded image, the image itself, is (0, reach, reach)."""
        side = np.arange(2 * self.reach + 1)
        grid = np.meshgrid(np.arange(1 + self.flips), side, side, indexing="ij")
        return np.stack([part.ravel() for part in grid], axis=1)

    @property
    def count(self) -> int:
        return (1 + self.flips) * (2 * self.reach + 1) ** 2

    def padded(self, images: Floats, fill: Floats | float) -> Floats:
        """(n, height, width, channels) of padded images; fill: one value per channel, or one."""
        n, r = len(images), self.reach
        height, width, channels = self.sides
        out = np.empty((n, *self.wide), np.float32)
        out[:] = fill
        out[:, r : r + height, r : r + width] = images.reshape(n, height, width, channels)
        return out

    def middle(self, wide: Floats) -> Floats:
        """(n, d): the images in the middle of padded ones."""
        r = self.reach
        height, width, _ = self.sides
        return np.ascontiguousarray(wide[:, r : r + height, r : r + width]).reshape(len(wide), -1)

    def all_of(self, wide: Floats) -> Floats:
        """(n, count, d): every copy of padded images."""
        height, width, channels = self.sides
        out = np.empty((len(wide), self.count, height, width, channels), np.float32)
        for t, (mirrored, down, across) in enumerate(self.steps):
            cut = wide[:, down : down + height, across : across + width]
            out[:, t] = cut[:, :, ::-1] if mirrored else cut
        return out.reshape(len(wide), self.count, -1)

    def mix(self, weights: sparse.csr_array, wide: Floats) -> Floats:
        """(m, d): Σ weight·copy of padded images, weights (m, n·count)."""
        out = np.zeros((weights.shape[0], *self.sides), np.float32)
        self._move(weights, wide, out, False)
        return out.reshape(len(out), -1)

    def gather(self, weights: sparse.csr_array, rows: Floats) -> Floats:
        """(n, height, width, channels): the adjoint of `mix`, of rows (m, d)."""
        out = np.zeros((weights.shape[1] // self.count, *self.wide), np.float32)
        values = np.ascontiguousarray(rows, np.float32).reshape(len(rows), *self.sides)
        self._move(weights, out, values, True)
        return out

    def _move(self, weights: sparse.csr_array, wide: Floats, rows: Floats, back: bool) -> None:
        data = weights.data.astype(np.float32)
        _move(weights.indptr, weights.indices, data, wide, self.steps, rows, back)


@njit(cache=True, nogil=True)
def _move(indptr, indices, data, wide, steps, rows, back):  # type: ignore[no-untyped-def]
    """Adds weighted copies out of padded images to rows; `back`: rows to where they come from."""
    m, height, width, channels = rows.shape
    for i in range(m):
        for at in range(indptr[i], indptr[i + 1]):
            j, t = divmod(indices[at], len(steps))
            mirrored, down, across = steps[t]
            for y in range(height):
                there = wide[j, down + y, across : across + width].ravel()
                here = rows[i, y].ravel()
                if mirrored:
                    for x in range(width):
                        for c in range(channels):
                            a, b = (width - 1 - x) * channels + c, x * channels + c
                            if back:
                                there[a] += data[at] * here[b]
                            else:
                                here[b] += data[at] * there[a]
                elif back:
                    _add(there, data[at], here)
                else:
                    _add(here, data[at], there)


@njit(cache=True, nogil=True)
def _add(to, weight, line):  # type: ignore[no-untyped-def]
    """Contiguous on both sides, so that the loop runs in vectors."""
    for x in range(len(line)):
        to[x] += weight * line[x]
