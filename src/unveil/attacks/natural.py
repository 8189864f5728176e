"""Natural images: private images out of encodings as InstaHide released them, with no training and none of the public images known.

    1  K ← whitened products of y²                     which encodings are alike                 (`gram.energies`)
    2  p, λ ← clusters, templates, posteriors          who mixes whom, softly                    (`factor.image_memberships`)
    3  x ← cross terms, one pixel at a time            values of all images, a sign per pixel    (`solve.cross_terms`)
       x ← signs of pixels from their neighbours                                                (`solve.pixel_signs`)
    4  repeat: E, x ← anneal                           signs of encodings as smooth fields       (`solve.sign_fields`)
               λ ← least squares on signed encodings   members and weights                      (`solve.reweigh`)
               images whose encodings fit badly start again from the mean image

Labels, where released, tie members and weights. Public images, where the candidates are known, are found in what is left of signed
encodings and taken out (`solve.public_part`). Nothing here is exact: images come back unresolved, each with the likeness to
expect (`solve.likeness`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.data.prior import ImagePrior, image_prior
from unveil.encode.weights import draw_weights
from unveil.factor.image_labels import vote, with_labels
from unveil.factor.image_memberships import ImageMemberships, image_memberships
from unveil.gram.energies import whitened_energies
from unveil.parallel import Stopwatch
from unveil.records import UNRESOLVED, Encodings, InputError, Overlaps, Progress, Recovery, Scheme, as_vectors
from unveil.seeds import Rng, child, root
from unveil.solve.cross_terms import cross_terms
from unveil.solve.missing_images import regrow
from unveil.solve.pixel_signs import synchronise
from unveil.solve.reweigh import Weighing, reweigh
from unveil.solve.sign_fields import Mixture, anneal, fit_to_signed, folded_fit

NAME = "natural"
HOT, COLD = (6.0, 6.0, 6.0, 4.0, 2.0, 2.0), (0.2, 0.2, 0.2, 0.2, 0.2, 0.1)
STEPS, INNER = 10, 4
"""Each round anneals ε from hot to cold: hotter while images are bad, so that nothing wrong stays frozen."""
RESET, REGROW = (0, 1, 2, 3), (1, 2)
"""Rounds after which images that fit badly start again, and missed ones are looked for."""
MISFIT = 1.2
"""An image whose encodings fit so much worse than the median starts again from the mean image."""
FAINT = 0.02
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class _Law:
    """The law of weights: a sample of private ones, the largest, the mean, and the public energy Σλ² over (Σλ)²."""

    sample: NDArray[np.float64]
    largest: float
    mean: float
    public: float

    @classmethod
    def of(cls, scheme: Scheme, rng: np.random.Generator) -> _Law:
        if scheme.fixed_weights:
            weights = np.tile(np.r_[[scheme.private_weight] * scheme.k_private, [scheme.public_weight] * scheme.k_public], (2, 1))
        else:
            weights = draw_weights(scheme, 40_000, rng)
        private, public = weights[:, : scheme.k_private], weights[:, scheme.k_private :]
        rest = np.maximum(public.sum(axis=1), 1e-9)
        ratio = float(np.mean((public**2).sum(axis=1) / rest**2)) if scheme.k_public else 0.0
        return cls(np.sort(private.ravel()), float(private.max()), float(private.mean()), ratio)


@dataclass(frozen=True, eq=False)
class _Task:
    Y: Floats
    scheme: Scheme
    law: _Law
    prior: ImagePrior
    labels: Floats | None

    @property
    def public(self) -> bool:
        return self.scheme.k_public > 0

    def mixture(
        self, weights: sparse.csr_array, squares: sparse.csr_array, misfit: Floats | None = None, least: float = 0.03
    ) -> Mixture:
        """Expected weights with the energy of all else: the public part, and what is not known of the weights; more for an
        encoding that fitted badly."""
        total = np.asarray(weights.sum(axis=1)).ravel() if self.labels is None else self.labels.sum(axis=1)
        rest = np.clip(1 - total, 0.05, 0.75) if self.public else np.zeros_like(total)
        unsure = np.asarray((squares - weights.multiply(weights)).sum(axis=1)).ravel()
        noise = np.maximum(rest**2 * self.law.public, least if self.public else 0.004) + np.maximum(unsure, 0)
        if misfit is not None:
            noise = noise * np.clip(misfit / np.median(misfit), 0.5, 4)
        return Mixture(sparse.csr_array(weights, dtype=np.float32), noise.astype(np.float32))

    def together(self) -> NDArray[np.bool_] | None:
        """(m, m): which encodings can share an image, as far as labels tell."""
        if self.labels is None:
            return None
        present = (self.labels > 0).astype(np.float32)
        return np.asarray(present @ present.T > 0)


def natural(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    like: ArrayLike | None = None,
    n_private: int | None = None,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private image that the encodings show, about as it was, with the likeness to expect.

    public: the candidates themselves, where they are known; like: other images of that kind; neither: natural images in general
    n_private: how many private images there are; None: as many as clusters are found
    """
    shape = encodings.shape
    if shape is None:
        raise InputError("attack='natural' needs to know where pixels lie: give Encodings(shape=(height, width[, channels]))")
    seed = root(rng)
    clock = Stopwatch()
    scheme = encodings.scheme
    candidates = None if public is None or not scheme.k_public else as_vectors(public, "public")
    sample = candidates if like is None else as_vectors(like, "like")
    with clock("prior"):
        prior = image_prior(shape, sample)
    task = _Task(encodings.magnitudes(), scheme, _Law.of(scheme, child(seed, "law")), prior, encodings.labels)
    with clock("similarity"):
        energies = whitened_energies(task.Y)
    with clock("memberships"):
        draw = child(seed, "clusters")
        found = image_memberships(
            energies, scheme.k_private, n_private, task.law.sample, allowed=task.together(), rng=draw, progress=progress
        )
    del energies
    if found is None:
        return Recovery.empty(encodings, NAME, "no two encodings look alike: more encodings are needed", clock.seconds)
    with clock("start"):
        weights, squares = _soft(task, found)
        images = _start(task, weights, squares, child(seed, "start"))
    with clock("rounds"):
        images, weighing = _rounds(task, weights, squares, images, child(seed, "rounds"), progress)
    return _recovery(encodings, images, weighing, clock)


def _soft(task: _Task, found: ImageMemberships) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Expected weights and squared weights; those of labels, where there are some."""
    if task.labels is not None:
        classes = vote(found.probability * found.weight, task.labels)
        found = with_labels(found, task.labels, classes, task.scheme.k_private)
    p = np.where(found.probability > FAINT, found.probability, 0)
    weights, squares = p * found.weight, p * found.weight**2
    total = weights.sum(axis=1, keepdims=True)
    most = 0.85 if task.public else 1.0
    scale = np.minimum(1, most / np.maximum(total, 1e-6)).astype(np.float32)
    return sparse.csr_array(weights * scale), sparse.csr_array(squares * scale**2)


def _start(task: _Task, weights: sparse.csr_array, squares: sparse.csr_array, rng: np.random.Generator) -> Floats:
    images = cross_terms(task.Y, weights, squares, rng, public=task.public)
    images = folded_fit(task.Y, task.mixture(weights, squares), images, task.prior, mean=False, rounds=6)
    return synchronise(images, task.prior.correlation(), task.prior.mean, rng)


def _rounds(
    task: _Task,
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    images: Floats,
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[Floats, Weighing]:
    """Signs, weights, and a new start for what fits badly, in turn."""
    misfit = None
    for turn, (hot, cold) in enumerate(zip(HOT, COLD, strict=True)):
        mixture = task.mixture(weights, squares, misfit)
        images, signed = anneal(task.Y, mixture, images, task.prior, np.geomspace(hot, cold, STEPS), inner=INNER)
        weighing = _reweigh(task, mixture, images, signed)
        if progress:
            progress("rounds", turn + 1, len(HOT))
        if turn == len(HOT) - 1:
            break
        images, weighing = _calibrated(task, images, weighing)
        weights, squares, misfit = weighing.weights, weighing.squares, weighing.misfit
        of_images = misfits(weighing)
        bad = of_images > MISFIT * np.median(of_images)
        if turn in RESET:
            images[bad] = task.prior.mean
        if turn in REGROW and bad.any():
            k, weight = task.scheme.k_private, task.law.mean
            new = regrow(signed, weights, images, bad, of_images, task.prior, k, weight, task.together(), rng)
            weights, squares = _take_over(weights, squares, new, weight)
    return images, weighing


def _take_over(
    weights: sparse.csr_array, squares: sparse.csr_array, new: list[tuple[int, NDArray[np.int64]]], weight: float
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Columns with the encodings of new clusters in them."""
    if not new:
        return weights, squares
    first, second = weights.tolil(), squares.tolil()
    for column, cluster in new:
        first[:, column] = second[:, column] = 0
        first[cluster, column], second[cluster, column] = weight, weight**2
    return sparse.csr_array(first), sparse.csr_array(second)


def _reweigh(task: _Task, mixture: Mixture, images: Floats, signed: Floats) -> Weighing:
    labels = None
    if task.labels is not None:
        labels = task.labels, vote(mixture.weights.toarray(), task.labels)
    return reweigh(
        task.Y, signed, images, fit_to_signed(mixture, len(images)).shares(), mixture.noise, task.prior, task.scheme.k_private,
        largest=task.law.largest, public=task.public, labels=labels,
    )  # fmt: skip


def misfits(weighing: Weighing) -> NDArray[np.float64]:
    """How badly the encodings of each image fit, by weight."""
    total = np.asarray(weighing.weights.sum(axis=0)).ravel()
    return np.asarray(weighing.weights.T @ weighing.misfit) / np.maximum(total, 1e-9)


def _calibrated(task: _Task, images: Floats, weighing: Weighing) -> tuple[Floats, Weighing]:
    """Image and weights share a scale that encodings fix badly: the mean of an image's weights is that of their law."""
    if task.labels is not None or not task.public:
        return images, weighing
    n = len(images)
    count = np.bincount(weighing.members.ravel(), minlength=n)
    mean = np.bincount(weighing.members.ravel(), weighing.best.ravel(), minlength=n) / np.maximum(count, 1)
    scale = np.where(count > 3, np.clip(mean / task.law.mean, 0.7, 1.4), 1).astype(np.float32)
    mid = task.prior.mean
    images = (images - mid) * scale[:, None] + mid
    weights = sparse.csr_array(weighing.weights @ sparse.diags_array(1 / scale))
    squares = sparse.csr_array(weighing.squares @ sparse.diags_array(1 / scale**2))
    total = np.asarray(weights.sum(axis=1)).ravel()
    weights = sparse.csr_array(sparse.diags_array(np.minimum(1, 0.97 / np.maximum(total, 1e-6))) @ weights)
    return images, replace(weighing, weights=weights, squares=squares)


def _recovery(encodings: Encodings, images: Floats, weighing: Weighing, clock: Stopwatch) -> Recovery:
    n = len(images)
    m, k = weighing.members.shape
    rows = np.repeat(np.arange(m), k)
    members = sparse.csr_array((np.ones(m * k, bool), (rows, weighing.members.ravel())), shape=(m, n))
    weights = sparse.csr_array((weighing.best.ravel(), (rows, weighing.members.ravel())), shape=(m, n))
    return Recovery(
        vectors=np.clip(images, -1, 1),
        status=np.full(n, UNRESOLVED, dtype="<U10"),
        signed=True,
        members=members,
        residual=misfits(weighing),
        reasons=("an image about as it was: nothing is exact here",) * n,
        attack=NAME,
        explanation=f"{n} private images, about as they were, from {m} encodings",
        seconds=clock.seconds,
        weights=weights,
    )
