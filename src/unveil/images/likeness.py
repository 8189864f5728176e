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
RECOGNISABLE = 0.5
"""SSIM from which on an image counts as seen."""
AGREEMENT = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
LIKENESS = (0.05, 0.2, 0.4, 0.56, 0.72, 0.81, 0.88, 0.95)
"""Mean SSIM by agreement of halves, over the cells of `python -m benchmarks.natural`; single images
are within 0.13 (rms)."""


@dataclass(frozen=True, eq=False)
class Signs:
    """Of each image (n,): misfit of its encodings, agreement of its two halves (a correlation of
    whitened components), and the number of encodings it was fitted to, by weight."""

    misfit: NDArray[np.float64]
    agreement: NDArray[np.float64]
    encodings: NDArray[np.float64]

    def merged(self, became: NDArray[np.int64]) -> Signs:
        """Of images that became one: the mean of misfit and agreement, the sum of encodings."""
        count = np.bincount(became)
        misfit, agreement, encodings = (
            np.bincount(became, v).astype(np.float64)
            for v in (self.misfit, self.agreement, self.encodings)
        )
        return Signs(misfit / count, agreement / count, encodings)


def likeness(signs: Signs) -> NDArray[np.float64]:
    """The SSIM to expect of each image."""
    return np.interp(signs.agreement, AGREEMENT, LIKENESS)


def misfits(weighing: Weighing) -> NDArray[np.float64]:
    """How badly the encodings of each image fit, by weight; infinite for an image that hardly any
    encoding mixes."""
    total = np.asarray(weighing.weights.sum(axis=0)).ravel()
    mean = np.asarray(weighing.weights.T @ weighing.misfit) / np.maximum(total, 1e-9)
    return np.where(total > 0.05 * np.median(total), mean, np.inf)


def signs_of_likeness(
    E: Floats,
    mixture: Mixture,
    weighing: Weighing,
    prior: ImagePrior,
    offsets: Floats | None,
    rng: np.random.Generator,
) -> Signs:
    W = np.ascontiguousarray(whiten(prior)[:, :COMPONENTS])
    n = mixture.weights.shape[1]
    first = rng.random(len(E)) < 0.5
    halves = []
    for half in (first, ~first):
        part = Mixture(sparse.csr_array(mixture.weights[half]), mixture.noise[half])
        rest = 1 - np.asarray(part.weights.sum(axis=1)).ravel().astype(np.float32)
        images = fit_to_signed(part, n)(
            E[half], rest, prior.mean, None if offsets is None else offsets[half]
        )
        x = (images - prior.mean) @ W
        halves.append(x / (np.linalg.norm(x, axis=1, keepdims=True) + 1e-9))
    total = np.asarray(weighing.weights.sum(axis=0)).ravel()
    squares = np.asarray(weighing.weights.multiply(weighing.weights).sum(axis=0)).ravel()
    return Signs(
        misfits(weighing), (halves[0] * halves[1]).sum(axis=1), total**2 / np.maximum(squares, 1e-9)
    )
