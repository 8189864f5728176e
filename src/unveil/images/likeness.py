"""How like the truth each image is, without the truth.

Clues. How badly the encodings of an image fit, how well images fitted to two halves of the
encodings agree, how many encodings it has of those to be expected, how sure its sign is, and how
like it an image is that starts again from the median image on one half of the encodings alone; the
halves share weights and nothing else. None of these is a proof.

A logistic law over the clues gives the probability of an SSIM above 0.5, about where people call
an image recognisable; the SSIM to expect, and between what it lies for eight images in ten, are
read off that probability. An image and its negative count the same: anyone knows a face in a
negative. The numbers below were fitted by `python -m benchmarks.images --calibrate` to runs on
fourteen pairs of sets of private and public images, every pair with the same weight;
docs/natural_images.md has what they say of sets they were not fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from unveil.images.fields import Fit, anneal
from unveil.images.model import Floats
from unveil.images.rounds import Found

Doubles = NDArray[np.float64]
WORTH = (4.65, 1.02, 1.26, 1.81, 1.13, 0.88, 0.21)
"""Constant, and the worth of the columns of `features`."""
PROBABLE = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Probabilities at which the following were read off."""
MEAN = (0.25, 0.36, 0.5, 0.66, 0.84, 0.97)
"""The mean SSIM there."""
LOW = (0.13, 0.14, 0.15, 0.17, 0.43, 0.92)
"""The SSIM that nine images in ten exceed there."""
HIGH = (0.44, 0.71, 0.82, 0.95, 0.98, 1.0)
"""The SSIM that one image in ten exceeds there."""


@dataclass(frozen=True, eq=False)
class Clues:
    """Of each image (n,): misfit of its encodings, correlation of its two halves in whitened
    components, the number of encodings it was fitted to by weight, the lower correlation with an
    image that starts again on one half, and the evidence for its sign, over the median.

    expected: encodings of an image on average, by weight; channels: of a pixel; public: there are
    public images that are not known, in whose unit misfit is; left: without public images, the
    share of its encodings' energy that all images leave.
    """

    misfit: Doubles
    agreement: Doubles
    encodings: Doubles
    again: Doubles
    sign: Doubles
    expected: float
    channels: int = 1
    public: bool = True
    left: Doubles | None = None


@dataclass(frozen=True, eq=False)
class Recognition:
    """Of each image (n,): the probability of being recognisable, the SSIM to expect, and between
    what it lies for eight in ten; of the image or of its negative."""

    probability: Doubles
    likeness: Doubles
    low: Doubles
    high: Doubles


def clues_of(
    found: Found,
    rng: np.random.Generator,
    *,
    components: int = 256,
    steps: int = 6,
    sweeps: int = 3,
) -> Clues:
    """Clues of every image found.

    components: whitened components in which images are compared. Finer ones are noise in any fit.
    steps, sweeps: of the annealing on either half, which is coarser than a round.
    """
    task, mixture, weighing = found.task, found.mixture, found.weighing
    prior, copies, n = task.prior, task.copies, len(found.images)
    W = np.ascontiguousarray(prior.whitener[:, :components])
    centre = np.median(found.images, axis=0).astype(np.float32)
    start = np.repeat(centre[None], n, axis=0)
    final = _directions((found.images - centre) @ W)
    # 1. Images fitted to a random half of the encodings and to the others, and found anew there.
    first = rng.random(len(task.Y)) < 0.5
    halves, again = [], []
    epsilons = np.geomspace(6.0, 0.2, steps)
    for half in (first, ~first):
        part = mixture.at(half)
        fitted = Fit(part, copies)(found.signed[half], found.images, prior.mean)
        halves.append(_directions((fitted - prior.mean) @ W))
        new = anneal(task.Y[half], part, start, prior, copies, epsilons, centre, sweeps=sweeps)[0]
        again.append((_directions((new - centre) @ W) * final).sum(axis=1))
    # 2. What weights say.
    weights = copies.merged(weighing.weights).toarray().astype(np.float64)
    total = np.maximum(weights.sum(axis=0), 1e-9)
    law = task.law
    even = law.mean**2 / max(float(np.mean(law.sample**2)), 1e-12)
    left = None
    if not task.public and not copies.reach:
        mixed = copies.mix(weighing.weights.astype(np.float32), found.images)
        share = ((task.Y - np.abs(mixed)) ** 2).sum(axis=1) / ((task.Y**2).sum(axis=1) + 1e-9)
        left = np.asarray((weights.T @ share) / total, np.float64)
    return Clues(
        misfit=np.asarray((weights.T @ weighing.misfit) / total, np.float64),
        agreement=np.asarray((halves[0] * halves[1]).sum(axis=1), np.float64),
        encodings=np.asarray(total**2 / np.maximum((weights**2).sum(axis=0), 1e-9), np.float64),
        again=np.asarray(np.minimum(*again), np.float64),
        sign=found.evidence,
        expected=even * task.scheme.k_private * len(task.Y) / n,
        channels=copies.shape[2] if len(copies.shape) == 3 else 1,
        public=task.public and task.candidates is None,
        left=left,
    )


def _directions(x: NDArray[Any]) -> Floats:
    x = x.astype(np.float32)
    return np.asarray(x / (np.linalg.norm(x, axis=1, keepdims=True) + np.float32(1e-9)))


def features(clues: Clues, *, worst: float = 1.5, usual: float = 0.35) -> Doubles:
    """(n, 7): one, and what `WORTH` weighs; better clues are larger.

    worst: misfit beyond which an image is no worse.
    usual: misfit taken where there are no public images, or all are known, in whose unit it is.
    """
    # A new start may end in the negative, which is as much evidence.
    again = np.log(0.1 + np.abs(clues.again))
    # Halves agree to S/(S + N/encodings): N/S is the noise that one encoding leaves.
    agree = np.clip(clues.agreement, 0.05, 0.999)
    sharp = -np.log1p((1 - agree) / agree * clues.encodings)
    # Too few encodings: an image half found; too many: several images in one.
    near = -np.abs(np.log(np.clip(clues.encodings / max(clues.expected, 1e-9), 0.02, 3.0)))
    # Three channels say nearly the same, and noise in each of them is not shared.
    misfit = np.minimum(clues.misfit / np.sqrt(clues.channels), worst)
    misfit = misfit if clues.public else np.full_like(misfit, usual)
    sign = np.log(0.1 + np.clip(clues.sign, 0, 1)) if clues.public else np.zeros_like(misfit)
    median = np.full_like(sharp, np.median(sharp))
    return np.stack([np.ones_like(sharp), again, sharp, near, -misfit, median, sign], axis=1)


def recognise(clues: Clues, *, explained: float = 0.03) -> Recognition:
    """What the clues say of each image; explained: share of their energy that right images leave of
    encodings at most, where nothing else was mixed."""
    probability = np.asarray(expit(features(clues) @ np.array(WORTH)))
    if clues.left is not None:
        probability *= np.minimum(1, (explained / np.maximum(clues.left, explained)) ** 2)
    mean, low, high = (np.interp(probability, PROBABLE, at) for at in (MEAN, LOW, HIGH))
    return Recognition(probability, mean, low, high)
