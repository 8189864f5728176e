"""Regions of single images that are inverted, and single images that are negatives, turned back.

Annealing can leave a region of one image with the wrong sign: where that image is strong, signs of
encodings follow it, and all fits. But in its other encodings it meets images whose signs are right,
and there magnitudes tell. Pixel by pixel, with M what is known of an encoding besides the image x,
and v the variance of all else,

    log p(y | M + λx) − log p(y | M − λx) = log cosh(y(M + λx)/v) − log cosh(y(M − λx)/v) − 2Mλx/v

summed over the encodings of x, and over neighbouring pixels, which turn together. Signs of
encodings are not asked: they were fitted to the image as it is. O(m·d·k).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.ndimage import gaussian_filter

from unveil.images.prior import ImagePrior
from unveil.images.sign_fields import BLOCK, Mixture
from unveil.parallel import run_blocks, where, worker_count

Floats = NDArray[np.float32]
NEAR = 1.5
"""Pixels around each that turn with it: the width of a Gaussian over which evidence is summed."""
SURE = 30.0
"""Evidence of neighbouring pixels, which is not independent, that makes a sign certain: of images
that are right it is 170 in the median, and below 0 at one pixel in a hundred."""
LEFT = 0.1
"""What is left of a pixel at least: were all zero, no sign would ever be told."""
PIXELS = 256
"""Pixels looked at together."""
EMPTY = 1e-9
"""Guards divisions: an image may be in no encoding."""
FAINT = 0.03
"""Weights below tell nothing of an image's sign."""


def turned_back(
    Y: Floats, mixture: Mixture, images: Floats, prior: ImagePrior, shape: tuple[int, ...]
) -> tuple[Floats, Floats]:
    """Images (n, d), each pixel with the sign its encodings ask for, and smaller where they hardly
    tell; and (n,): the evidence each image has at its energy, by that of the median image."""
    found = evidence(Y, mixture, images, prior)
    told = _around(found, shape)
    factor = np.copysign(np.maximum(np.abs(np.tanh(told / np.float32(SURE))), LEFT), told)
    # Σλ²x²/v. Had it all to do with what others leave open, shares would be fairer to bright
    # images; but then negatives, to which weights have been fitted, do not show.
    A = sparse.csr_array(mixture.weights)
    energy = (A.multiply(A).T @ (1 / mixture.noise)) * (images**2 / prior.pixel).sum(axis=1)
    share = found.sum(axis=1) / (energy + EMPTY)
    share /= max(float(np.median(share)), EMPTY)
    return np.asarray(images * factor, np.float32), np.asarray(share, np.float32)


def evidence(Y: Floats, mixture: Mixture, images: Floats, prior: ImagePrior) -> Floats:
    """(n, d): how much likelier each pixel of each image is as it is than with the other sign."""
    weights = sparse.csr_array(mixture.weights)
    rest = 1 - np.asarray(weights.sum(axis=1)).ravel().astype(np.float32)
    n, d = images.shape
    out = np.zeros((n, d), np.float32)
    # Who is in which encodings, and where to add what they say. Some encodings after the other, and
    # some pixels on each core: what is in hand stays in the cache, sums are in the same order.
    blocks = []
    for start in range(0, len(Y), BLOCK):
        rows = slice(start, start + BLOCK)
        part = sparse.csr_array(weights[rows])
        some = part.tocoo()
        strong = some.data > FAINT
        row, column, weight = some.row[strong], some.col[strong], some.data[strong, None]
        places = column, np.arange(len(column))
        gather = sparse.csr_array((np.ones_like(weight[:, 0]), places), shape=(n, len(column)))
        blocks.append((rows, part, row, column, weight, gather))

    def task(start: int) -> None:
        pixels = slice(start, start + PIXELS)
        x = np.ascontiguousarray(images[:, pixels])
        for rows, part, row, column, weight, gather in blocks:
            variance = mixture.noise[rows, None] * prior.pixel[pixels]
            known = part @ x + rest[rows, None] * prior.mean[pixels]
            own = weight * x[column]
            other = known[row] - own
            scaled = (Y[rows, pixels] / variance)[row]
            out[:, pixels] += gather @ for_its_sign(scaled, other, own, variance[row])

    run_blocks(task, range(0, d, PIXELS), worker_count(where().workers))
    return out


def _around(values: Floats, shape: tuple[int, ...]) -> Floats:
    """The sum over neighbouring pixels, and over channels."""
    maps = values.reshape(len(values), *shape[:2], -1).sum(axis=3)
    near = gaussian_filter(maps, (0, NEAR, NEAR), mode="constant") * (2 * np.pi * NEAR**2)
    every = np.repeat(near[..., None], values.shape[1] // near[0].size, axis=3)
    return np.asarray(every.reshape(values.shape), np.float32)


def for_its_sign(scaled: Floats, other: Floats, own: Floats, variance: Floats) -> Floats:
    """How much likelier magnitudes are with `own` added to `other` than with it taken off; scaled:
    magnitudes over their variance."""
    found = log_cosh(scaled * (other + own)) - log_cosh(scaled * (other - own))
    found -= 2 * other * own / variance
    return found


def log_cosh(a: Floats) -> Floats:
    a = np.abs(a)
    return np.asarray(a + np.log1p(np.exp(-2 * a)), np.float32)
