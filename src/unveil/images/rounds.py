"""Signs and weights of encodings of natural images, in turn, until images are as good as they get.

    repeat  E, x ← anneal                           signs of encodings as smooth fields       (`images.sign_fields`)
                                                    without public images: regions inverted in all
                                                    (`images.common_signs`)
            λ ← least squares on signed encodings   members and weights                       (`images.reweigh`)
            images whose encodings fit badly start again from the mean image; missed ones are grown
            (`images.missing`)

and then, where the candidates are known, the same with public images found and taken out
(`images.public_part`).
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
from unveil.images.missing import duplicates, regrow
from unveil.images.prior import ImagePrior
from unveil.images.public_part import PublicImages, find_public_part
from unveil.images.reweigh import Weighing, reweigh
from unveil.images.sign_fields import Mixture, anneal, fit_to_signed
from unveil.records import Progress, Scheme

HOT, COOLER, COLD, FINEST = 6.0, (4.0, 2.0, 2.0), 0.2, 0.1
STEPS, INNER = 10, 4
"""Each round anneals ε from hot to cold: hotter while images are bad, so that nothing wrong stays
frozen."""
ROUNDS, MORE, FEW = 6, 14, 60
"""Rounds; more where an image has few encodings (k·m/n): they are cheap then, and each repairs some
images."""
REGROW = (1, 2, 5, 8)
"""Rounds after which missed images are looked for."""
FAINT, FEWER = 0.05, 0.7
"""Weights that count, and the share of an image's encodings with less of which a column that fits
badly is free."""
MISFIT, MISFIT_FEW, MISFIT_ALONE = 1.2, 1.1, 5.0
"""An image whose encodings fit so much worse than the median starts again from the mean image;
without public images misfit is what is wrong with weights and images alone, and varies more."""
LEAST, LEAST_ALONE, WARM = 0.03, 0.004, 0.2
"""The least energy of what is not known, with public images and without. Without them, and where
all images start from the mean image, it starts high and falls from round to round: else the signs
of the mean image stay frozen."""
INFORMATIVE = 0.25
"""Where the mean image has so much of the energy (objects on an empty ground) it tells the signs
better than cross terms."""
PUBLIC_HOT = (2.0, 1.0)
PUBLIC_REST, PUBLIC_LEAST = 0.6, 0.01
"""Energy of public images not found, by the square of their weight, and the least noise that is
left when all are."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Law:
    """The law of weights: a sample of private ones, the largest, the mean, and the public energy
    Σλ² over (Σλ)²."""

    sample: NDArray[np.float64]
    largest: float
    mean: float
    public: float

    @classmethod
    def of(cls, scheme: Scheme, rng: np.random.Generator) -> Law:
        weights = sample_weights(scheme, 40_000, rng)
        private, public = weights[:, : scheme.k_private], weights[:, scheme.k_private :]
        rest = np.maximum(public.sum(axis=1), 1e-9)
        ratio = float(np.mean((public**2).sum(axis=1) / rest**2)) if scheme.k_public else 0.0
        return cls(np.sort(private.ravel()), float(private.max()), float(private.mean()), ratio)


@dataclass(frozen=True, eq=False)
class Task:
    Y: Floats
    scheme: Scheme
    law: Law
    prior: ImagePrior
    labels: Floats | None

    @property
    def public(self) -> bool:
        return self.scheme.k_public > 0

    def private(self, weights: sparse.csr_array) -> NDArray[Any]:
        """What the private images of each encoding weigh together: known where labels are."""
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
        the weights, `least` at the least; more for an encoding that fitted badly."""
        total = self.private(weights)
        rest = np.clip(1 - total, 0.05, 0.75) if self.public else np.zeros_like(total)
        least = (LEAST if self.public else LEAST_ALONE) if least is None else least
        noise = np.maximum(rest**2 * self.law.public, least) + _unsure(weights, squares)
        if misfit is not None and self.public:
            noise = noise * np.clip(misfit / np.median(misfit), 0.5, 4)
        return Mixture(sparse.csr_array(weights).astype(np.float32), noise.astype(np.float32))


@dataclass(frozen=True, eq=False)
class State:
    """Images, signed encodings, what was believed of the weights when these were found, and the
    weights found after."""

    images: Floats
    signed: Floats
    mixture: Mixture
    weighing: Weighing
    part: PublicImages | None = None

    def merged(self, images: Floats, became: NDArray[np.int64]) -> State:
        return replace(
            self,
            images=images,
            weighing=replace(self.weighing, members=became[self.weighing.members]),
        )


def alternate(
    task: Task,
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    images: Floats,
    rng: np.random.Generator,
    progress: Progress | None,
    rounds: int | None = None,
) -> State:
    """Signs, weights, and a new start for what fits badly, in turn; rounds: so many hot ones, and
    no end."""
    misfit = None
    few = task.scheme.k_private * len(task.Y) < FEW * len(images)
    hots = (
        (HOT,) * ((MORE if few else ROUNDS) - len(COOLER)) + COOLER
        if rounds is None
        else (HOT,) * rounds
    )
    last = len(hots) - 1
    warm = task.prior.mean_share > INFORMATIVE
    least = (
        np.full(len(hots), LEAST)
        if task.public
        else np.geomspace(WARM if warm else LEAST_ALONE, LEAST_ALONE, len(hots))
    )
    for turn, hot in enumerate(hots):
        cold = FINEST if turn == last else COLD
        mixture = task.mixture(weights, squares, misfit, float(least[turn]))
        images, signed = anneal(
            task.Y, mixture, images, task.prior, np.geomspace(hot, cold, STEPS), inner=INNER
        )
        if not task.public:
            signs = common_signs(images, task.prior)
            images, signed = images * signs, signed * signs
        weighing = _reweigh(task, mixture, images, signed)
        if progress:
            progress("rounds", turn + 1, len(hots))
        if turn == last:
            break
        images, weighing = _calibrated(task, images, weighing)
        weights, squares, misfit = weighing.weights, weighing.squares, weighing.misfit
        of_images = misfits(weighing)
        threshold = MISFIT_ALONE if not task.public else MISFIT_FEW if few else MISFIT
        bad = of_images > threshold * np.median(of_images)
        twice = duplicates(images, weights, task.prior)
        bad |= twice
        if turn < last - 1:
            images[bad] = task.prior.mean
        k, weight = task.scheme.k_private, task.law.mean
        if turn in REGROW and not task.public:
            used = (weights > FAINT).toarray()
            free = np.flatnonzero(
                bad & (twice | (used.sum(axis=0) < FEWER * k * len(used) / len(images)))
            )
            split = split_merged(signed, weights, images, task.prior, used, free, k, rng)
            weights, squares = _take_over(weights, squares, split, weight)
            taken = [column for column, _ in split]
            images[taken], bad[taken] = task.prior.mean, False
        if turn in REGROW and bad.any():
            new = regrow(
                signed,
                weights,
                images,
                bad,
                of_images,
                misfit,
                task.prior,
                k,
                weight,
                task.labels,
                rng,
            )
            weights, squares = _take_over(weights, squares, new, weight)
    return State(images, signed, mixture, weighing)


def take_out_public(
    task: Task, state: State, candidates: Floats, progress: Progress | None
) -> State:
    """Public images found among the candidates and taken out, in turn with signs and private
    weights."""
    for turn, hot in enumerate(PUBLIC_HOT):
        weighing = state.weighing
        total = np.clip(1 - task.private(weighing.weights), 0, 1).astype(np.float32)
        part = find_public_part(
            task.Y,
            state.signed,
            weighing.weights,
            state.images,
            candidates,
            task.prior,
            task.scheme.k_public,
            total,
        )
        noise = np.maximum(part.rest**2 * PUBLIC_REST, PUBLIC_LEAST) + _unsure(
            weighing.weights, weighing.squares
        )
        mixture = Mixture(weighing.weights.astype(np.float32), noise.astype(np.float32))
        schedule = np.geomspace(hot, FINEST, STEPS)
        images, signed = anneal(
            task.Y, mixture, state.images, task.prior, schedule, inner=INNER, offsets=part.offsets
        )
        weighing = _reweigh(task, mixture, images, signed, part.offsets)
        state = State(images, signed, mixture, weighing, part)
        if progress:
            progress("public images", turn + 1, len(PUBLIC_HOT))
    return state


def _take_over(
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    new: list[tuple[int, NDArray[np.int64]]],
    weight: float,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Columns with the encodings of new clusters in them."""
    if not new:
        return weights, squares
    first, second = weights.tolil(), squares.tolil()
    for column, cluster in new:
        first[:, column] = second[:, column] = 0
        first[cluster, column], second[cluster, column] = weight, weight**2
    return sparse.csr_array(first), sparse.csr_array(second)


def _reweigh(
    task: Task, mixture: Mixture, images: Floats, signed: Floats, offsets: Floats | None = None
) -> Weighing:
    labels = None
    if task.labels is not None:
        labels = task.labels, vote(mixture.weights.toarray(), task.labels)
    return reweigh(
        task.Y, signed, images, fit_to_signed(mixture, len(images)).shares(), mixture.noise, task.prior, task.scheme.k_private,
        largest=task.law.largest, public=task.public, labels=labels, offsets=offsets,
    )  # fmt: skip


def _calibrated(task: Task, images: Floats, weighing: Weighing) -> tuple[Floats, Weighing]:
    """Image and weights share a scale that encodings fix badly: the mean of an image's weights is
    that of their law."""
    if task.labels is not None or not task.public:
        return images, weighing
    n = len(images)
    count = np.bincount(weighing.members.ravel(), minlength=n)
    mean = np.bincount(weighing.members.ravel(), weighing.best.ravel(), minlength=n) / np.maximum(
        count, 1
    )
    scale = np.where(count > 3, np.clip(mean / task.law.mean, 0.7, 1.4), 1).astype(np.float32)
    mid = task.prior.mean
    images = (images - mid) * scale[:, None] + mid
    weights = sparse.csr_array(weighing.weights @ sparse.diags_array(1 / scale))
    squares = sparse.csr_array(weighing.squares @ sparse.diags_array(1 / scale**2))
    total = np.asarray(weights.sum(axis=1)).ravel()
    weights = sparse.csr_array(
        sparse.diags_array(np.minimum(1, 0.97 / np.maximum(total, 1e-6))) @ weights
    )
    return images, replace(weighing, weights=weights, squares=squares)


def _unsure(weights: sparse.csr_array, squares: sparse.csr_array) -> NDArray[Any]:
    """The variance of what is believed of an encoding's weights."""
    return np.asarray(
        np.maximum(np.asarray((squares - weights.multiply(weights)).sum(axis=1)).ravel(), 0)
    )
