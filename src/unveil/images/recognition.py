"""How probably an image is recognisable, and how like the truth it is: clues weighed as learned.

A logistic law over the clues of `images.likeness` gives the probability of an SSIM above
`RECOGNISABLE`; the SSIM to expect, and between what it lies for eight images in ten, are read off
that probability. An image and its negative count the same: anyone knows a face in a negative, and
which of both it is the clues do not tell (`images.polarity` does, sometimes). All numbers come from
`python -m benchmarks.natural_calibrate`, over pairs of sets of private and public images; what they
are worth on pairs left out is in docs/natural_images.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from unveil.images.likeness import Clues

Doubles = NDArray[np.float64]
WORTH = (8.99, 0.87, 1.73, 2.32, 5.28, 1.3)
"""Constant, and the worth of: correlation with new starts, how sharp halves are, how near the
encodings are to those to be expected, how little misfit there is, and the median of the second over
all images."""
LABELLED, CROPPED = 1.0, 2.0
"""Added to the log odds where labels tell members, and where images were cropped: the same clues
mean more there. Chosen on the photographs of docs/natural_images.md, five seeds of each kind."""
FLOOR = 0.1
"""Added to correlations before logarithms are taken: below it they are chance."""
WORST = 1.5
"""Misfit beyond which an image is no worse: encodings are then not explained at all."""
USUAL = 0.35
"""Misfit that is taken where there are no public images, or all are known, in whose unit it is
measured: that of images which are not the best. With 0.2 twelve images of a mean SSIM of 0.73 were
said to have 0.99."""
WHITE = 0.5
"""Roughness of like images from which on neighbours say nothing of each other: 0.7 for white noise,
below 0.1 for photographs and textures, 0.4 for forty textures alone. The clues above say nothing
then, and no image is claimed unless its encodings are sure (`Clues.certain`)."""
CERTAIN = (-19.0, 3.0, 21.0)
"""Constant, and the worth of that sureness and of how like an image is to itself where its signs
were found again (`images.white_rounds.repeats`), from 180 images on six seeds: those that were
found have correlations of 0.95 and more there, others mostly 0.85 and less."""
EXPLAINED = 0.03
"""Share of their energy that right images leave of encodings at most, where nothing else was mixed:
they left 0.015, wrong ones 0.05 and more (duplicates, negatives, digits, one grey image)."""
PROBABLE = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Probabilities at which the following were read off."""
MEAN = (0.25, 0.41, 0.6, 0.77, 0.9, 0.99)
"""The mean SSIM there."""
LOW = (0.05, 0.07, 0.13, 0.24, 0.56, 0.96)
"""The SSIM that nine images in ten exceed there, of sets that nothing was learned from."""
HIGH = (0.6, 0.87, 0.96, 0.98, 0.99, 1.0)
"""The SSIM that one such image in ten exceeds there."""
SHARES = (0.02, 3.0)
"""Bounds of the share of encodings: beyond, an image is no worse."""
AGREE = (0.05, 0.999)
"""Bounds of the agreement of halves: below it is chance, above all that can be told of two halves
was told."""


@dataclass(frozen=True, eq=False)
class Recognition:
    """Of each image (n,): the probability of being recognisable, the SSIM to expect, and between
    what it lies for eight in ten; of the image or of its negative."""

    probability: Doubles
    likeness: Doubles
    low: Doubles
    high: Doubles


def features(clues: Clues) -> Doubles:
    """(n, 6): one, and what `WORTH` weighs."""
    # A new start may end in the negative, which is as much evidence.
    again = np.log(FLOOR + np.abs(clues.again))
    # Halves agree to S/(S + N/encodings): N/S is the noise that one encoding leaves, however many
    # there are. That of an image is small, that of what stands for no image large.
    agree = np.clip(clues.agreement, *AGREE)
    sharp = -np.log1p((1 - agree) / agree * clues.encodings)
    median = np.full_like(sharp, np.median(sharp))
    # Too few encodings: an image half found; too many: several images in one.
    share = np.clip(clues.encodings / max(clues.expected, 1e-9), *SHARES)  # guards the division
    near = -np.abs(np.log(share))
    # Three channels say nearly the same, and noise in each of them is not shared.
    unit = np.sqrt(clues.channels)
    misfit = np.minimum(clues.misfit / unit, WORST) if clues.public else np.full_like(share, USUAL)
    return np.stack([np.ones_like(share), again, sharp, near, -misfit, median], axis=1)


def recognition(clues: Clues) -> Recognition:
    """What the clues say of each image."""
    more = LABELLED * clues.labelled + CROPPED * clues.cropped
    probability = np.asarray(expit(features(clues) @ np.array(WORTH) + more))
    if clues.left is not None:
        probability *= np.minimum(1, (EXPLAINED / np.maximum(clues.left, EXPLAINED)) ** 2)
    if clues.rough > WHITE:
        probability = np.zeros_like(probability)
        if clues.certain is not None:
            constant, sure, again = CERTAIN
            probability = np.asarray(expit(constant + sure * clues.certain + again * clues.again))
    mean, low, high = (np.interp(probability, PROBABLE, at) for at in (MEAN, LOW, HIGH))
    return Recognition(probability, mean, low, high)
