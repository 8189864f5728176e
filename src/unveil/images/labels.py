"""What labels say of memberships: an encoding's label is the mixture of its private images' labels.

An image's class is that which the encodings it is likely in have in common. Encodings without that
class do not mix it; where an encoding has as many classes as images, each weight can be read off.
Labels that are smoothed, or sum to one next to public images, are brought to that form
(`lawful_labels`); others are not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.images.epochs import Epochs

Floats = NDArray[np.float32]
EMPTY = 1e-9
"""Guards a division: an image may be in no encoding."""
SPARE = 1e-3
"""A class that all encodings have would leave nothing to divide by."""
UNSEEN = 1e-6
"""Probability that no image of a class is quite without: else none of them could be it."""
LAWFUL = 1.5
"""Times what the law has, or a part of it, that labels may weigh on average: more than laws differ.
Labels that sum to one next to four public images are 2.1 times as heavy."""
FAINT = 1e-3
"""Weights below are rounding errors of what was taken off."""


@dataclass(frozen=True, eq=False)
class ImageMemberships:
    """probability (m, n) that encoding i mixes image j; weight (m, n): the λ to expect if it does;
    epochs: the order of rows, where they have one."""

    probability: NDArray[np.float32]
    weight: NDArray[np.float32]
    epochs: Epochs | None = None


def lawful_labels(labels: Floats, k: int, mean: float) -> Floats | None:
    """Labels whose weights are those of k images, of this mean; None: they cannot be.

    With labels as they are, where they sum to one, an SSIM of 0.29 at T = 10, with none 0.57,
    brought to the law 0.91 (one seed).
    """
    # 1. What all classes have was added to all: k images leave some class without, if there are
    #    more classes.
    if labels.shape[1] > k:
        labels = labels - labels.min(axis=1, keepdims=True)
    labels = np.where(labels > FAINT, labels, 0).astype(np.float32)
    # 2. No row has more classes than images, and one class alone tells nothing (0.66 for 0.94 at
    #    T = 25). Rows of one are not all, as where only the heaviest class is named.
    present = labels > 0
    several = present.sum(axis=1)
    told = several > 0
    if (several > k).any() or np.count_nonzero(present.any(axis=0)) < 2:
        return None
    share = present.sum(axis=0) / present.sum()
    if k > 1 and np.mean(several[told] == 1) > (1 + (share**2).sum()) / 2:
        return None
    # 3. In the unit of the law.
    heavy = float(labels.sum() / told.sum()) / (k * mean)
    return labels if 1 / LAWFUL < heavy < LAWFUL else np.asarray(labels / np.float32(heavy))


def vote(weights: Floats, labels: Floats) -> Floats:
    """The class of each image (n, classes), ones and zeros: that of most of the encodings that mix
    it, against chance."""
    # Frequent classes are in most encodings of any image: what counts is how much more often.
    present = (labels > 0).astype(np.float32)
    share = weights.T @ present / np.maximum(weights.sum(axis=0)[:, None], EMPTY)
    chance = present.mean(axis=0)
    lift = (share - chance) / (1 - chance + SPARE)
    out = np.zeros(share.shape, np.float32)
    out[np.arange(len(share)), lift.argmax(axis=1)] = 1
    return out


def with_labels(
    found: ImageMemberships, labels: Floats, classes: Floats, k: int
) -> ImageMemberships:
    """Memberships that respect the labels: per class of an encoding the probabilities of its images
    sum to their number."""
    present = labels > 0
    several = present.sum(axis=1)
    probability = np.zeros_like(found.probability)
    weight = found.weight.copy()
    for c in range(labels.shape[1]):
        images = np.flatnonzero(classes[:, c])
        rows = np.flatnonzero(present[:, c])
        if not len(images) or not len(rows):
            continue
        part = found.probability[np.ix_(rows, images)] + UNSEEN
        # k images over `several` classes: one each, and what is left evenly.
        number = 1 + (k - several[rows]) / several[rows]
        scaled = part / part.sum(axis=1, keepdims=True) * number[:, None]
        probability[np.ix_(rows, images)] = np.minimum(scaled, 1)
        # As many classes as images: the label is the weight.
        single = rows[several[rows] == k]
        weight[np.ix_(single, images)] = labels[single, c][:, None]
    return ImageMemberships(probability, weight, found.epochs)
