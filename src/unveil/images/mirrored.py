"""Images that were mirrored at random before they were mixed: each is found twice, and the two are
one.

An image and its mirror image are two images to the attack, each with half of the encodings. Pairs
are matched by how alike one is to the mirror image of the other, all at once; each pair becomes one
image, the mean by number of encodings, facing as the one with more of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from unveil.images.prior import ImagePrior
from unveil.images.reweigh import whiten

Floats = NDArray[np.float32]


def mirror(images: Floats, shape: tuple[int, ...]) -> Floats:
    """Left to right."""
    return np.ascontiguousarray(
        images.reshape(len(images), *shape)[:, :, ::-1].reshape(images.shape)
    )


def merge_mirrored(
    images: Floats, encodings: NDArray[np.float64], shape: tuple[int, ...], prior: ImagePrior
) -> tuple[Floats, NDArray[np.int64]]:
    """Half as many images (an odd one stays alone), and for each image given the one it became."""
    W = whiten(prior)
    mirrored = mirror(images, shape)
    x, y = ((part - prior.mean) @ W for part in (images, mirrored))
    # Correlations; 1e-9 guards the divisions, since an image may be the mean image.
    x /= np.linalg.norm(x, axis=1, keepdims=True) + 1e-9  # see above
    y /= np.linalg.norm(y, axis=1, keepdims=True) + 1e-9  # see above
    alike = x @ y.T
    alike = (alike + alike.T) / 2
    np.fill_diagonal(alike, -2)  # below any correlation: no image is its own pair
    became = np.full(len(images), -1, np.int64)
    merged: list[Floats] = []
    # The assignment need not be symmetric: its pairs are taken by likeness, each image once. Images
    # it leaves over are paired by likeness too.
    rows, columns = linear_sum_assignment(-alike)
    best = np.argsort(-alike[rows, columns], kind="stable")
    others = np.argsort(-alike, axis=None, kind="stable")
    pairs = [(int(rows[i]), int(columns[i])) for i in best]
    pairs += [(int(i // len(alike)), int(i % len(alike))) for i in others]
    for a, b in pairs:
        if a == b:
            continue
        if became[a] >= 0 or became[b] >= 0:
            continue
        first, second = (a, b) if encodings[a] >= encodings[b] else (b, a)
        # 1e-9 guards the division, should neither have an encoding.
        share = encodings[first] / max(encodings[first] + encodings[second], 1e-9)
        became[[a, b]] = len(merged)
        merged.append(
            np.asarray(share * images[first] + (1 - share) * mirrored[second], np.float32)
        )
    # An image without a partner, of an odd number, stays as it is.
    for left in np.flatnonzero(became < 0):
        became[left] = len(merged)
        merged.append(images[left])
    return np.stack(merged), became
