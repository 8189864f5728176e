"""How like the truth each image is, without the truth.

Four things tell: how badly its encodings fit (`misfit`, against what noise explains), how well
images fitted to two halves of the encodings agree, how many encodings it has of those to be
expected, and how like it an image is that starts again from the mean of all on one half of the
encodings alone. The last is worth most: the halves share weights and nothing else. None is a proof.
What each is worth was learned on several pairs of sets (`images.recognition`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.prior import ImagePrior
from unveil.images.reweigh import Weighing, whiten
from unveil.images.sign_fields import Mixture, anneal, fit_to_signed
from unveil.images.task import ImageTask, RoundState

Floats = NDArray[np.float32]
COMPONENTS = 256
"""Whitened components in which halves are compared: finer ones are noise in any fit."""
HARDLY = 0.05
"""An image with less than this share of the median weight is hardly in any encoding."""
EMPTY = 1e-9
"""Guards divisions: an image may be in no encoding of a half."""
RECOGNISABLE = 0.5
"""SSIM from which on an image counts as seen: what people call recognisable begins about there."""
HALVES = np.geomspace(6.0, 0.2, 8)
"""ε of the new start on either half (`images.schedule`): coarser than a round, since likeness is
read off it and no image."""
SWEEPS = 3
"""Mean-field sweeps at each ε there."""


@dataclass(frozen=True, eq=False)
class Clues:
    """Of each image (n,): misfit of its encodings, agreement of its two halves (a correlation of
    whitened components), the number of encodings it was fitted to, by weight; the lower correlation
    with an image that starts again on one half; expected: encodings of an image on average, by
    weight as well.

    channels: of a pixel; public: there are public images, in whose unit misfit is; rough: share of
    the components of like images that have variance, near one for white noise."""

    misfit: NDArray[np.float64]
    agreement: NDArray[np.float64]
    encodings: NDArray[np.float64]
    again: NDArray[np.float64]
    expected: float
    channels: int = 1
    public: bool = True
    rough: float = 0.0
    certain: NDArray[np.float64] | None = None
    """Among public white noise: how sure the encodings of each image are (`images.white_rounds`),
    which is all that tells there."""
    labelled: bool = False
    """Labels tell members."""
    cropped: bool = False
    """Images were cropped before they were mixed."""
    left: NDArray[np.float64] | None = None
    """Without public images: the share of its encodings' energy that all images leave."""

    def merged(self, became: NDArray[np.int64]) -> Clues:
        """Of images that became one: the mean of all, but the sum of encodings."""
        count = np.bincount(became)
        misfit, agreement, encodings, again = (
            np.bincount(became, v).astype(np.float64)
            for v in (self.misfit, self.agreement, self.encodings, self.again)
        )
        return replace(
            self,
            misfit=misfit / count,
            agreement=agreement / count,
            encodings=encodings,
            again=again / count,
            certain=None if self.certain is None else np.bincount(became, self.certain) / count,
            left=None if self.left is None else np.bincount(became, self.left) / count,
            expected=self.expected * len(became) / len(count),
        )


def misfits(weighing: Weighing) -> NDArray[np.float64]:
    """How badly the encodings of each image fit, by weight; infinite for an image that hardly any
    encoding mixes."""
    total = np.asarray(weighing.weights.sum(axis=0)).ravel()
    mean = np.asarray(weighing.weights.T @ weighing.misfit) / np.maximum(total, EMPTY)
    return np.where(total > HARDLY * np.median(total), mean, np.inf)


def clues_of_likeness(
    task: ImageTask,
    state: RoundState,
    weighing: Weighing,
    rng: np.random.Generator,
    channels: int = 1,
) -> Clues:
    """Clues of every image, from signed encodings and the mixture that gave them."""
    prior, mixture = task.prior, state.mixture
    offsets = None if state.part is None else state.part.offsets
    W = np.ascontiguousarray(whiten(prior)[:, :COMPONENTS])
    n = len(state.images)
    centre = np.median(state.images, axis=0).astype(np.float32)
    start = np.repeat(centre[None], n, axis=0)
    final = _directions((state.images - centre) @ W)
    # Images fitted to a random half of the encodings, and to the others; and found anew there.
    first = rng.random(len(task.Y)) < 0.5
    halves, again = [], []
    for half in (first, ~first):
        part = Mixture(sparse.csr_array(mixture.weights[half]), mixture.noise[half])
        known = None if offsets is None else offsets[half]
        rest = 1 - np.asarray(part.weights.sum(axis=1)).ravel().astype(np.float32)
        fit = task.cropping.fit(part) if task.cropping else fit_to_signed(part, n)
        images = fit(state.signed[half], rest, prior.mean, known, None, start)
        halves.append(_directions((images - prior.mean) @ W))
        new, _ = anneal(
            task.Y[half], part, start, prior, HALVES, inner=SWEEPS, offsets=known, towards=centre,
            cropping=task.cropping,
        )  # fmt: skip
        again.append((_directions((new - centre) @ W) * final).sum(axis=1))
    return Clues(
        misfits(weighing),
        (halves[0] * halves[1]).sum(axis=1),
        _encodings(weighing),
        np.minimum(*again),
        _expected(task, n),
        channels,
        task.public and state.part is None,
        roughness(prior),
        labelled=task.labels is not None,
        cropped=task.cropping is not None,
        left=None if task.public or task.cropping else _left(task, state, weighing),
    )


def _left(task: ImageTask, state: RoundState, weighing: Weighing) -> NDArray[np.float64]:
    """(n,) what the images leave of magnitudes, where nothing else was mixed, by weight."""
    weights = sparse.csr_array(weighing.weights)
    apart = task.Y - np.abs(weights @ state.images)
    share = (apart**2).sum(axis=1) / ((task.Y**2).sum(axis=1) + EMPTY)
    total = np.asarray(weights.sum(axis=0)).ravel()
    return np.asarray((weights.T @ share) / np.maximum(total, EMPTY), np.float64)


def white_clues(
    task: ImageTask,
    state: RoundState,
    sure: NDArray[np.float64],
    again: NDArray[np.float64],
    channels: int,
) -> Clues:
    """Clues of images among public white noise, of which `sure` and `again` (n,) are what tells."""
    n = len(state.images)
    return Clues(
        misfits(state.weighing),
        sure,
        _encodings(state.weighing),
        again,
        _expected(task, n),
        channels,
        rough=roughness(task.prior),
        certain=sure,
    )


def _encodings(weighing: Weighing) -> NDArray[np.float64]:
    """(Σλ)²/Σλ²: the number of encodings of each image, were all weights the same."""
    total = np.asarray(weighing.weights.sum(axis=0)).ravel()
    squares = np.asarray(weighing.weights.multiply(weighing.weights).sum(axis=0)).ravel()
    return np.asarray(total**2 / np.maximum(squares, EMPTY), np.float64)


def _expected(task: ImageTask, n: int) -> float:
    """The same to be expected of each of n images."""
    return task.law.evenness * task.scheme.k_private * len(task.Y) / n


def roughness(prior: ImagePrior) -> float:
    """(Σv)²/Σv² of the variances of components, over their number: near one where all have the
    same, as in white noise; a hundredth for photographs."""
    v = prior.variances.astype(np.float64)
    return float(v.sum() ** 2 / max(float((v * v).sum()), EMPTY) / len(v))


def _directions(x: NDArray[Any]) -> Floats:
    return np.asarray(x / (np.linalg.norm(x, axis=1, keepdims=True) + EMPTY), np.float32)
