"""Signs and weights of encodings of natural images, in turn, until images are as good as they get.

    repeat  E, x ← anneal            signs of encodings as smooth fields (`images.sign_fields`);
                                     without public images, regions that are inverted in all images
                                     are turned back (`images.common_signs`)
            λ ← least squares on E   members and weights (`images.reweigh`)
            bad images start again   from the mean image; missed ones are grown from what is left
                                     (`images.missing`), merged ones split (`images.merged`)

Then, where the candidates are known, the same with public images found and taken out
(`images.public_part`). How many rounds and how hot: `images.schedule`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encode.weights import sample_weights
from unveil.images.common_signs import common_signs
from unveil.images.labels import vote
from unveil.images.likeness import misfits
from unveil.images.merged import split_merged
from unveil.images.missing import regrow, repeated_images
from unveil.images.prior import ImagePrior
from unveil.images.public_part import PublicImages, find_public_part
from unveil.images.reweigh import Weighing, WeightBounds, reweigh
from unveil.images.schedule import SCHEDULE
from unveil.images.sign_fields import REST, Mixture, anneal, fit_to_signed
from unveil.records import Progress
from unveil.scheme import Scheme

DRAWS = 40_000
"""Draws from the law of weights: enough to know its mean and its largest weight to a percent."""
SCALE = (0.7, 1.4)
"""Bounds of one correction of an image's scale: the next rounds can go further."""
SEEN = 3
"""An image with no more members than this says nothing of its scale."""
MOST = 0.97
"""Private weights sum to this at most after a correction, so that a public part is left."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class WeightLaw:
    """The law of weights: a sorted sample of private ones, the largest, the mean, and the public
    energy Σλ² over (Σλ)²."""

    sample: NDArray[np.float64]
    largest: float
    mean: float
    public: float

    @classmethod
    def of(cls, scheme: Scheme, rng: np.random.Generator) -> WeightLaw:
        weights = sample_weights(scheme, DRAWS, rng)
        private, public = weights[:, : scheme.k_private], weights[:, scheme.k_private :]
        rest = np.maximum(public.sum(axis=1), 1e-9)  # guards the division: zero without public ones
        ratio = float(np.mean((public**2).sum(axis=1) / rest**2)) if scheme.k_public else 0.0
        return cls(np.sort(private.ravel()), float(private.max()), float(private.mean()), ratio)


@dataclass(frozen=True, eq=False)
class ImageTask:
    """What is given: magnitudes Y (m, d), the scheme and its law, what images look like, and the
    labels of encodings where they were released."""

    Y: Floats
    scheme: Scheme
    law: WeightLaw
    prior: ImagePrior
    labels: Floats | None

    @property
    def public(self) -> bool:
        return self.scheme.k_public > 0

    def private(self, weights: sparse.csr_array) -> NDArray[Any]:
        """What the private images of each encoding weigh together. Labels say it exactly."""
        return np.asarray(
            weights.sum(axis=1) if self.labels is None else self.labels.sum(axis=1)
        ).ravel()

    def mixture(
        self,
        weights: sparse.csr_array,
        squares: sparse.csr_array,
        misfit: Floats | None = None,
        least: float | None = None,
    ) -> Mixture:
        """Expected weights with the energy of all else: the public part, and what is not known of
        the weights, `least` at the least. An encoding that fitted badly has more."""
        total = self.private(weights)
        rest = np.clip(1 - total, *REST) if self.public else np.zeros_like(total)
        if least is None:
            least = SCHEDULE.least if self.public else SCHEDULE.least_alone
        noise = np.maximum(rest**2 * self.law.public, least) + _unsure(weights, squares)
        if misfit is not None and self.public:
            # Bounded both ways: no single encoding may count for nothing, or for everything.
            noise = noise * np.clip(misfit / np.median(misfit), 0.5, 4)
        return Mixture(sparse.csr_array(weights).astype(np.float32), noise.astype(np.float32))


@dataclass(frozen=True, eq=False)
class RoundState:
    """Images, signed encodings, what was believed of the weights when these were found, and the
    weights found after."""

    images: Floats
    signed: Floats
    mixture: Mixture
    weighing: Weighing
    part: PublicImages | None = None

    def merged(self, images: Floats, became: NDArray[np.int64]) -> RoundState:
        """With images that became one (`images.mirrored`): members have their new names."""
        return replace(
            self,
            images=images,
            weighing=replace(self.weighing, members=became[self.weighing.members]),
        )


def alternate(
    task: ImageTask,
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    images: Floats,
    rng: np.random.Generator,
    progress: Progress | None,
    rounds: int | None = None,
) -> RoundState:
    """Signs, weights, and a new start for what fits badly, in turn. `rounds`: so many hot rounds
    and no cool ones, for a first look."""
    k, prior = task.scheme.k_private, task.prior
    few = k * len(task.Y) < SCHEDULE.few * len(images)
    starts = SCHEDULE.starts(few, rounds)
    least = SCHEDULE.least_energies(len(starts), task.public, prior.mean_share)
    last = len(starts) - 1
    misfit = None
    for turn, hot in enumerate(starts):
        # 1. Signs and images, from soft and coarse to sure and fine.
        mixture = task.mixture(weights, squares, misfit, least[turn])
        cold = SCHEDULE.finest if turn == last else SCHEDULE.cold
        epsilons = np.geomspace(hot, cold, SCHEDULE.steps)
        images, signed = anneal(task.Y, mixture, images, prior, epsilons, inner=SCHEDULE.sweeps)
        # 2. Without public images a region can be inverted in all images at once: turn it back.
        if not task.public:
            signs = common_signs(images, prior)
            images, signed = images * signs, signed * signs
        # 3. Members and weights, from encodings that now have signs.
        weighing = _weigh(task, mixture, images, signed)
        if progress:
            progress("rounds", turn + 1, len(starts))
        if turn == last:
            break
        images, weighing = _calibrated(task, images, weighing)
        weights, squares, misfit = weighing.weights, weighing.squares, weighing.misfit
        # 4. Images whose encodings fit badly, or that repeat another, start again from the mean.
        #    Not in the round before the last: too few rounds are left to repair them.
        of_images = misfits(weighing)
        bad = of_images > SCHEDULE.bad(task.public, few) * np.median(of_images)
        twice = repeated_images(images, weights, prior)
        bad |= twice
        if turn < last - 1:
            images[bad] = prior.mean
        # 5. Columns that stand for two images are split, and missed images grown, into bad columns.
        if turn not in SCHEDULE.regrow:
            continue
        weight = task.law.mean
        if not task.public:
            used = (weights > SCHEDULE.faint).toarray()
            unused = used.sum(axis=0) < SCHEDULE.fewer * k * len(used) / len(images)
            free = np.flatnonzero(bad & (twice | unused))
            split = split_merged(signed, weights, images, prior, used, free, k, rng)
            weights, squares = _take_over(weights, squares, split, weight)
            taken = [column for column, _ in split]
            images[taken], bad[taken] = prior.mean, False
        if bad.any():
            new = regrow(
                signed, weights, images, bad, of_images, misfit, prior, k, weight, task.labels, rng
            )
            weights, squares = _take_over(weights, squares, new, weight)
    return RoundState(images, signed, mixture, weighing)


def take_out_public(
    task: ImageTask, state: RoundState, candidates: Floats, progress: Progress | None
) -> RoundState:
    """Public images found among the candidates and taken out, in turn with signs and private
    weights."""
    for turn, hot in enumerate(SCHEDULE.public_hots):
        # 1. Which candidates explain what the private images leave of each signed encoding.
        weights, squares = state.weighing.weights, state.weighing.squares
        total = np.clip(1 - task.private(weights), 0, 1).astype(np.float32)
        part = find_public_part(
            task.Y, state.signed, weights, state.images, candidates, task.prior,
            task.scheme.k_public, total,
        )  # fmt: skip
        # 2. Signs and images again, with what was found as a known offset: little noise is left.
        noise = np.maximum(part.rest**2 * SCHEDULE.public_rest, SCHEDULE.public_least)
        noise = noise + _unsure(weights, squares)
        mixture = Mixture(weights.astype(np.float32), noise.astype(np.float32))
        epsilons = np.geomspace(hot, SCHEDULE.finest, SCHEDULE.steps)
        images, signed = anneal(
            task.Y, mixture, state.images, task.prior, epsilons, inner=SCHEDULE.sweeps,
            offsets=part.offsets,
        )  # fmt: skip
        # 3. Private weights again.
        weighing = _weigh(task, mixture, images, signed, part.offsets)
        state = RoundState(images, signed, mixture, weighing, part)
        if progress:
            progress("public images", turn + 1, len(SCHEDULE.public_hots))
    return state


def _take_over(
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    new: list[tuple[int, NDArray[np.int64]]],
    weight: float,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Columns with the encodings of new clusters in them, each with the same weight."""
    if not new:
        return weights, squares
    first, second = weights.tolil(), squares.tolil()
    for column, cluster in new:
        first[:, column] = second[:, column] = 0
        first[cluster, column], second[cluster, column] = weight, weight**2
    return sparse.csr_array(first), sparse.csr_array(second)


def _weigh(
    task: ImageTask,
    mixture: Mixture,
    images: Floats,
    signed: Floats,
    offsets: Floats | None = None,
) -> Weighing:
    labels = None
    if task.labels is not None:
        labels = task.labels, vote(mixture.weights.toarray(), task.labels)
    shares = fit_to_signed(mixture, len(images)).shares()
    bounds = WeightBounds(task.scheme.k_private, task.law.largest, task.public)
    return reweigh(
        task.Y, signed, images, shares, mixture.noise, task.prior, bounds,
        labels=labels, offsets=offsets,
    )  # fmt: skip


def _calibrated(task: ImageTask, images: Floats, weighing: Weighing) -> tuple[Floats, Weighing]:
    """Image and weights share a scale that encodings fix badly: the mean of an image's weights is
    made that of their law. Labels fix it, and so does a sum of one."""
    if task.labels is not None or not task.public:
        return images, weighing
    n = len(images)
    count = np.bincount(weighing.members.ravel(), minlength=n)
    total = np.bincount(weighing.members.ravel(), weighing.best.ravel(), minlength=n)
    ratio = total / np.maximum(count, 1) / task.law.mean
    scale = np.where(count > SEEN, np.clip(ratio, *SCALE), 1).astype(np.float32)
    mid = task.prior.mean
    images = (images - mid) * scale[:, None] + mid
    weights = sparse.csr_array(weighing.weights @ sparse.diags_array(1 / scale))
    squares = sparse.csr_array(weighing.squares @ sparse.diags_array(1 / scale**2))
    # 1e-6 guards the division: an encoding may have lost all its weights.
    together = np.maximum(np.asarray(weights.sum(axis=1)).ravel(), 1e-6)
    weights = sparse.csr_array(sparse.diags_array(np.minimum(1, MOST / together)) @ weights)
    return images, replace(weighing, weights=weights, squares=squares)


def _unsure(weights: sparse.csr_array, squares: sparse.csr_array) -> NDArray[Any]:
    """The variance of what is believed of an encoding's weights."""
    variance = np.asarray((squares - weights.multiply(weights)).sum(axis=1)).ravel()
    return np.asarray(np.maximum(variance, 0))
