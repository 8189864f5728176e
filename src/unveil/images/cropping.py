"""Images under their copies: what encodings mix where images were cropped or mirrored first, and
the images that fit signed encodings best.

    z_i = Σ λ_it·C_t x + public part,     C_t: copy t of an image, black beyond its edge

Weights are over copies (`encode.copies`). Pixels of one image meet other pixels of another in every
encoding, so that images are no longer fitted pixel by pixel: the normal equations

    (Σ_i Aᵢᵀ Aᵢ/τᵢ² + 1) x = Σ_i Aᵢᵀ (z_i − mean part − black rims)/τᵢ² + towards

are solved by conjugate gradients, from the images there are, with the diagonal as preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encode.copies import Copies
from unveil.images.sign_fields import BLOCK, Mixture
from unveil.parallel import run_blocks, where, worker_count

Floats = NDArray[np.float32]
STEPS = 6
"""Conjugate gradients per fit: the images before are near, and the next fit goes on from there."""


@dataclass(frozen=True, eq=False)
class Cropping:
    """fill (channels,): what lies beyond the edge of an image, black."""

    copies: Copies
    fill: Floats

    def mixed(self, weights: sparse.csr_array, images: Floats) -> Floats:
        """(m, d): Σ λ·copy."""
        return self.copies.mix(weights, self.copies.padded(images, self.fill))

    def every(self, images: Floats) -> Floats:
        """(n, count, d): all copies."""
        return self.copies.all_of(self.copies.padded(images, self.fill))

    def of_images(self, weights: sparse.csr_array) -> sparse.csr_array:
        """(m, n): weights over copies (m, n·count), summed over the copies of each image."""
        count = self.copies.count
        columns = weights.shape[1]
        names = (np.ones(columns, np.float32), (np.arange(columns), np.arange(columns) // count))
        return sparse.csr_array(weights @ sparse.csr_array(names, (columns, columns // count)))

    def fit(self, mixture: Mixture) -> FitToCopies:
        A = sparse.csr_array(mixture.weights).astype(np.float32)
        inverse = sparse.diags_array(1 / mixture.noise)
        weighted = sparse.csr_array(inverse @ A).astype(np.float32)
        ones = np.ones((A.shape[0], int(np.prod(self.copies.shape))), np.float32)
        squares = sparse.csr_array(A.multiply(weighted))
        diagonal = self.copies.middle(self.copies.gather(squares, ones)) + 1
        return FitToCopies(self, A, weighted, diagonal)


@dataclass(frozen=True, eq=False)
class FitToCopies:
    """The weighted least-squares fit of images to signed encodings, towards a mean by the weight of
    one encoding: A (m, n·count) and A/τ², and the diagonal of the normal equations (n, d)."""

    cropping: Cropping
    A: sparse.csr_array
    weighted: sparse.csr_array
    diagonal: Floats

    def __call__(
        self,
        E: Floats,
        rest: Floats,
        mean: Floats,
        offsets: Floats | None,
        towards: Floats | None,
        images: Floats,
    ) -> Floats:
        """Images (n, d) after some steps from `images`."""
        # 1. What is left of encodings for images: without the public mean and black rims.
        copies = self.cropping.copies
        target = E - (rest[:, None] * mean if offsets is None else offsets)
        target -= self._mixed(np.zeros_like(images), self.cropping.fill)
        total = copies.middle(copies.gather(self.weighted, target))
        total += mean if towards is None else towards
        # 2. Conjugate gradients.
        x = images.copy()
        left = total - self._normal(x)
        direction = step = left / self.diagonal
        size = float(np.vdot(left, step))
        for _ in range(STEPS):
            if size <= 0:  # solved
                break
            moved = self._normal(direction)
            length = np.float32(size / float(np.vdot(direction, moved)))
            x += length * direction
            left -= length * moved
            step = left / self.diagonal
            before, size = size, float(np.vdot(left, step))
            direction = step + np.float32(size / before) * direction
        return x

    def _mixed(self, images: Floats, fill: Floats | float) -> Floats:
        """(m, d), blocks of encodings on all cores."""
        copies = self.cropping.copies
        wide = copies.padded(images, fill)
        out = np.empty((self.A.shape[0], images.shape[1]), np.float32)

        def task(rows: slice) -> None:
            out[rows] = copies.mix(self.A[rows], wide)

        blocks = [slice(start, start + BLOCK) for start in range(0, len(out), BLOCK)]
        run_blocks(task, blocks, worker_count(where().workers))
        return out

    def _normal(self, images: Floats) -> Floats:
        copies = self.cropping.copies
        mixed = self._mixed(images, 0.0)
        return copies.middle(copies.gather(self.weighted, mixed)) + images

    def shares(self) -> sparse.csr_array:
        """(m, n·count): what each signed encoding adds to an image by the copy it mixes, about."""
        precision = 1 / self.diagonal.mean(axis=1)
        each = np.repeat(precision, self.cropping.copies.count)
        return sparse.csr_array(self.weighted @ sparse.diags_array(each))
