"""How like the truth each image is, without the truth.

Three things tell: how badly its encodings fit (`misfit`, against what noise explains), how well
images fitted to two halves of the encodings agree, and how many encodings there are. None is a
proof: signs were found with all encodings together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.prior import ImagePrior
from unveil.images.reweigh import Weighing, whiten
from unveil.images.sign_fields import Mixture, fit_to_signed

Floats = NDArray[np.float32]
COMPONENTS = 256
"""Whitened components in which halves are compared: finer ones are noise in any fit."""
HARDLY = 0.05
"""An image with less than this share of the median weight is hardly in any encoding."""
EMPTY = 1e-9
"""Guards divisions: an image may be in no encoding of a half."""
RECOGNISABLE = 0.5
"""SSIM from which on an image counts as seen: what people call recognisable begins about there."""
AGREEMENT = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Agreement of halves at which `LIKENESS` was read off."""
LIKENESS = (0.05, 0.2, 0.4, 0.56, 0.72, 0.81, 0.88, 0.95)

"""Mean SSIM there, over the cells of `python -m benchmarks.natural`, seeds 41000 to 41002. Single
images are within 0.13 of it (rms)."""


@dataclass(frozen=True, eq=False)
class Clues:
    """Of each image (n,): misfit of its encodings, agreement of its two halves (a correlation of
    whitened components), and the number of encodings it was fitted to, by weight."""

    misfit: NDArray[np.float64]
    agreement: NDArray[np.float64]
    encodings: NDArray[np.float64]

    def merged(self, became: NDArray[np.int64]) -> Clues:
        """Of images that became one: the mean of misfit and agreement, the sum of encodings."""
        count = np.bincount(became)
        misfit, agreement, encodings = (
            np.bincount(became, v).astype(np.float64)
            for v in (self.misfit, self.agreement, self.encodings)
        )
        return Clues(misfit / count, agreement / count, encodings)


def likeness(signs: Clues) -> NDArray[np.float64]:
    """The SSIM to expect of each image."""
    return np.interp(signs.agreement, AGREEMENT, LIKENESS)


def misfits(weighing: Weighing) -> NDArray[np.float64]:
    """How badly the encodings of each image fit, by weight; infinite for an image that hardly any
    encoding mixes."""
    total = np.asarray(weighing.weights.sum(axis=0)).ravel()
    mean = np.asarray(weighing.weights.T @ weighing.misfit) / np.maximum(total, EMPTY)
    return np.where(total > HARDLY * np.median(total), mean, np.inf)


def clues_of_likeness(
    E: Floats,
    mixture: Mixture,
    weighing: Weighing,
    prior: ImagePrior,
    offsets: Floats | None,
    rng: np.random.Generator,
) -> Clues:
    """Clues of every image, from signed encodings E and the mixture that gave them."""
    W = np.ascontiguousarray(whiten(prior)[:, :COMPONENTS])
    n = mixture.weights.shape[1]
    # Images fitted to a random half of the encodings, and to the others.
    first = rng.random(len(E)) < 0.5
    halves = []
    for half in (first, ~first):
        part = Mixture(sparse.csr_array(mixture.weights[half]), mixture.noise[half])
        rest = 1 - np.asarray(part.weights.sum(axis=1)).ravel().astype(np.float32)
        images = fit_to_signed(part, n)(
            E[half], rest, prior.mean, None if offsets is None else offsets[half]
        )
        x = (images - prior.mean) @ W
        halves.append(x / (np.linalg.norm(x, axis=1, keepdims=True) + EMPTY))
    # (Σλ)²/Σλ²: the number of encodings, were all weights the same.
    total = np.asarray(weighing.weights.sum(axis=0)).ravel()
    squares = np.asarray(weighing.weights.multiply(weighing.weights).sum(axis=0)).ravel()
    return Clues(
        misfits(weighing),
        (halves[0] * halves[1]).sum(axis=1),
        total**2 / np.maximum(squares, EMPTY),
    )
