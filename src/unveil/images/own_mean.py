"""The mean of the private images themselves, learned from the first images an attack finds.

Photographs have little in common, and start from the mean of public images as well as from any
other. Faces, scans and objects on a plain ground share a quarter or half of their energy. A start
from that shows most of their signs, while the mean of public images shows the wrong ones: images
come back as negatives, or with regions inverted. How much they share is read off products between
different images, which need no correction for noise, and in which brightness does not count: where
half-found images come back with their dark regions inverted, all are bright. Single images that are
negatives of the others are turned first, by the leading eigenvector of these products, where a
clear majority agrees; of photographs about as many are dark as bright, and none is turned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
MAJORITY = 0.5
"""Least mean of the signs ±1: three in four agree. Of fifty photographs, signs that mean nothing,
as many do once in two thousand draws."""
EMPTY = 1e-9
"""Guards a division: images may be nothing but the mean image of zero."""


def turned(images: Floats) -> Floats:
    """The images (n, d), a minority of negatives among them turned; as they are where there is no
    clear majority."""
    signs = np.sign(np.linalg.eigh((images @ images.T).astype(np.float64))[1][:, -1])
    signs = signs if signs.sum() > 0 else -signs
    if signs.mean() < MAJORITY:
        return images
    return np.asarray(signs[:, None] * images, np.float32)


def common_share(images: Floats) -> float:
    """How much of their energy images (n, d) have in common, the brightness of each taken off: the
    mean product of two different ones over that of one with itself."""
    n = len(images)
    if n < 2:
        return 0.0
    images = images - images.mean(axis=1, keepdims=True)
    gram = (images @ images.T).astype(np.float64)
    own = float(np.trace(gram))
    return (float(gram.sum()) - own) / (n - 1) / max(own, EMPTY)


def consensus(images: Floats) -> Floats:
    """(d,): what they have in common, pixel by pixel."""
    return np.asarray(np.median(images, axis=0), np.float32)
