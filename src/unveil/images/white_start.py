"""Images to start from among public white noise: cross terms of y² averaged over neighbours, and
one sign at each pixel for all images.

Images are smooth, so that noise averages out. At every pixel cross terms give the values of all
images up to one sign (`images.cross_terms`), and neighbouring pixels give the signs
(`images.pixel_signs`). What all images have in common may well change its sign over the image, such
as a bright sky over dark ground; only what they differ by is of one sign at neighbouring pixels.
Where that was not taken off, half of the image was turned in all images on two seeds of four.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.ndimage import gaussian_filter

from unveil.images.cross_terms import cross_terms
from unveil.images.pixel_signs import synchronise
from unveil.images.task import ImageTask
from unveil.images.white_fit import smooth

Floats = NDArray[np.float32]
NEAR = 1.5
"""Width in pixels of the average of squares from which images start: of 0.7 to 2 the best."""
COMMON = 0.8
"""Correlation of neighbouring pixels by which they get the same sign. Of things before a ground
pixels farther apart are often of opposite sign: at 0.97 an inverted region was left in the middle,
at 0.4 to 0.9 none (seed 53003)."""
EMPTY = 1e-6
"""Guards divisions: an image may be zero."""


def white_start(task: ImageTask, A: Floats, A2: Floats, rng: np.random.Generator) -> Floats:
    """Images (n, d) of expected weights and squared weights (m, n)."""
    assert task.shape is not None
    # 1. Values at every pixel, up to its sign.
    pixels = (task.Y**2).reshape(len(task.Y), *task.shape[:2], -1)
    near = np.sqrt(gaussian_filter(pixels, (0, NEAR, NEAR, 0))).reshape(task.Y.shape)
    images = cross_terms(near, sparse.csr_array(A), sparse.csr_array(A2), rng)
    # 2. Signs, by what images differ by. Each image counts the same, whatever its contrast.
    differ = images / (np.sqrt((images**2).mean(axis=1, keepdims=True)) + EMPTY)
    differ -= differ.mean(axis=0)
    prior = smooth(task.shape, COMMON)
    turned = synchronise(differ, prior.correlation(), prior.mean, rng)
    return np.where((turned * differ).sum(axis=0) < 0, -images, images).astype(np.float32)
