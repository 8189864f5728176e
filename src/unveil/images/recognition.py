"""How probably an image is recognisable, and how like the truth it is: clues weighed as learned.

A logistic law over the clues of `images.likeness` gives the probability of an SSIM above
`RECOGNISABLE`; the SSIM to expect, and between what it lies for eight images in ten, are read off
that probability. All numbers come from `python -m benchmarks.natural calibrate`, over pairs of sets
of private and public images; what they are worth on other seeds is in docs/natural_images.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from unveil.images.likeness import Clues
from unveil.images.polarity import right_sign

Doubles = NDArray[np.float64]
WORTH = (-5.02, 0.51, 2.93, 1.68, 4.57)
"""Constant, and the worth of: correlation with new starts, agreement of halves, share of the
encodings to be expected, and the median of the first over all images. Misfit was left out: its size
depends on the public images."""
PROBABLE = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Probabilities at which the following were read off."""
MEAN = (0.29, 0.29, 0.38, 0.74, 0.88, 0.95)
"""The mean SSIM there."""
LOW = (0.01, 0.01, 0.01, 0.12, 0.82, 0.85)
"""The SSIM that nine images in ten exceed there."""
HIGH = (0.92, 0.92, 0.92, 0.97, 0.97, 0.99)
"""The SSIM that one image in ten exceeds there."""
SHARES = (0.0, 2.0)
"""Bounds of the share of encodings: beyond, an image is no better."""


@dataclass(frozen=True, eq=False)
class Recognition:
    """Of each image (n,): the probability of being recognisable, the SSIM to expect, and between
    what it lies for eight in ten."""

    probability: Doubles
    likeness: Doubles
    low: Doubles
    high: Doubles


def features(clues: Clues) -> Doubles:
    """(n, 5): one, and what `WORTH` weighs."""
    share = np.clip(clues.encodings / max(clues.expected, 1e-9), *SHARES)  # guards the division
    median = np.full_like(share, np.median(clues.again))
    return np.stack([np.ones_like(share), clues.again, clues.agreement, share, median], axis=1)


def recognition(clues: Clues, polarity: float | None = None) -> Recognition:
    """polarity: how sure the common sign is, in standard deviations; None: it was never in
    doubt. In doubt, all images may be negatives, which nobody recognises."""
    probability = np.asarray(expit(features(clues) @ np.array(WORTH)))
    mean, low, high = (np.interp(probability, PROBABLE, at) for at in (MEAN, LOW, HIGH))
    if polarity is not None:
        right = right_sign(polarity)
        probability, mean = right * probability, right * mean
        # Eight in ten: one in ten is left on either side.
        low = low if right > 0.9 else np.minimum(low, 0)
    return Recognition(probability, mean, low, high)
