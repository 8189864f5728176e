"""Natural images: private images out of encodings as InstaHide released them, with no training.

    1  K ← whitened products of y²                     which encodings are alike                 (`gram.energies`)
    2  p, λ ← clusters, templates, posteriors          who mixes whom, softly                    (`factor.image_memberships`)
    3  x ← cross terms, one pixel at a time            values of all images, a sign per pixel    (`solve.cross_terms`)
       x ← signs of pixels from their neighbours                                                (`solve.pixel_signs`)
    4  repeat: E, x ← anneal                           signs of encodings as smooth fields       (`solve.sign_fields`)
               λ ← least squares on signed encodings   members and weights                      (`solve.reweigh`)
               images whose encodings fit badly start again from the mean image

Labels, where released, tie members and weights. Public images, where the candidates are known, are found in what is left of
signed encodings and taken out (`solve.public_part`). Nothing here is exact: images come back unresolved, each with the likeness
to expect (`solve.likeness`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.data.prior import ImagePrior, image_prior
from unveil.encode.weights import draw_weights
from unveil.factor.image_labels import ImageMemberships, vote
from unveil.factor.image_memberships import image_memberships
from unveil.gram.energies import whitened_energies
from unveil.parallel import Stopwatch
from unveil.records import UNRESOLVED, Encodings, InputError, Progress, Recovery, Scheme, as_vectors
from unveil.seeds import Rng, child, root
from unveil.solve.cross_terms import cross_terms
from unveil.solve.likeness import Signs, likeness, misfits, signs_of_likeness
from unveil.solve.mirrored import merge_mirrored, mirror
from unveil.solve.missing_images import duplicates, regrow
from unveil.solve.pixel_signs import synchronise
from unveil.solve.public_part import PublicPart, find_public_part
from unveil.solve.reweigh import Weighing, reweigh
from unveil.solve.sign_fields import Mixture, anneal, fit_to_signed, folded_fit

NAME = "natural"
HOT, COOLER, COLD, FINEST = 6.0, (4.0, 2.0, 2.0), 0.2, 0.1
STEPS, INNER = 10, 4
"""Each round anneals ε from hot to cold: hotter while images are bad, so that nothing wrong stays frozen."""
ROUNDS, MORE, FEW = 6, 14, 60
"""Rounds; more where an image has few encodings (k·m/n): they are cheap then, and each repairs some images."""
REGROW = (1, 2, 5, 8)
"""Rounds after which missed images are looked for."""
MISFIT, MISFIT_FEW, MISFIT_ALONE = 1.2, 1.1, 5.0
"""An image whose encodings fit so much worse than the median starts again from the mean image; without public images misfit is
what is wrong with weights and images alone, and varies more."""
PUBLIC_HOT = (2.0, 1.0)
PUBLIC_REST, PUBLIC_LEAST = 0.6, 0.01
"""Energy of public images not found, by the square of their weight, and the least noise that is left when all are."""
INFORMATIVE = 0.25
"""Where the mean image has so much of the energy (objects on an empty ground) it tells the signs better than cross terms."""
FAINT = 0.02
RECOGNISABLE = 0.5
"""SSIM from which on an image counts as seen."""
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
            weights = np.tile(
                np.r_[[scheme.private_weight] * scheme.k_private, [scheme.public_weight] * scheme.k_public], (2, 1)
            )
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
        if misfit is not None and self.public:
            noise = noise * np.clip(misfit / np.median(misfit), 0.5, 4)
        return Mixture(sparse.csr_array(weights).astype(np.float32), noise.astype(np.float32))


@dataclass(frozen=True, eq=False)
class _State:
    """Images, signed encodings, what was believed of the weights when these were found, and the weights found after."""

    images: Floats
    signed: Floats
    mixture: Mixture
    weighing: Weighing
    part: PublicPart | None = None

    def merged(self, images: Floats, became: NDArray[np.int64]) -> _State:
        return replace(self, images=images, weighing=replace(self.weighing, members=became[self.weighing.members]))


def is_natural(encodings: Encodings) -> bool:
    """Images whose weights only this attack takes: of their own in every encoding, public ones among them."""
    return encodings.shape is not None and not encodings.scheme.fixed_weights and encodings.scheme.weighting != "half-normal"


def natural(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    like: ArrayLike | None = None,
    n_private: int | None = None,
    flips: bool = False,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private image that the encodings show, about as it was, with the likeness to expect.

    public: the candidates themselves, where they are known; like: other images of that kind; neither: natural images in general
    n_private: how many private images there are; None: as many as clusters are found
    flips: images were mirrored at random before they were mixed
    """
    shape, scheme = encodings.shape, encodings.scheme
    if shape is None:
        raise InputError("attack='natural' needs to know where pixels lie: give Encodings(shape=(height, width[, channels]))")
    if n_private is not None and n_private < scheme.k_private:
        raise InputError(f"n_private={n_private}: an encoding mixes {scheme.k_private} private images; give that many or more")
    seed = root(rng)
    clock = Stopwatch()
    total = None if n_private is None else (1 + flips) * n_private
    candidates = None if public is None or not scheme.k_public else as_vectors(public, "public")
    if candidates is not None and flips:
        candidates = np.concatenate([candidates, mirror(candidates, shape)])
    sample = candidates if like is None else as_vectors(like, "like")
    with clock("prior"):
        prior = image_prior(shape, sample)
    task = _Task(encodings.magnitudes(), scheme, _Law.of(scheme, child(seed, "law")), prior, encodings.labels)
    with clock("similarity"):
        energies = whitened_energies(task.Y)
    with clock("memberships"):
        draw = child(seed, "clusters")
        found = image_memberships(
            energies, scheme.k_private, total, task.law.sample, labels=task.labels, rng=draw, progress=progress
        )
    del energies
    if found is None:
        return Recovery.empty(encodings, NAME, "no two encodings look alike: more encodings are needed", clock.seconds)
    with clock("start"):
        weights, squares = _soft(task, found)
        images = _start(task, weights, squares, child(seed, "start"))
        # Images no cluster was found for have a place all the same: they may show themselves once signs are known.
        missing = max(0, (total or 0) - len(images))
        images = np.concatenate([images, np.repeat(prior.mean[None], missing, axis=0)])
        weights, squares = (
            sparse.csr_array(sparse.hstack([w, sparse.csr_array((encodings.m, missing))])) for w in (weights, squares)
        )
    with clock("rounds"):
        state = _rounds(task, weights, squares, images, child(seed, "rounds"), progress)
    if candidates is not None:
        with clock("public images"):
            state = _with_public(task, state, candidates, progress)
    with clock("likeness"):
        offsets = None if state.part is None else state.part.offsets
        signs = signs_of_likeness(state.signed, state.mixture, state.weighing, prior, offsets, child(seed, "halves"))
    if flips:
        with clock("mirrored"):
            images, became = merge_mirrored(state.images, signs.encodings, shape, prior)
            state, signs = state.merged(images, became), signs.merged(became)
    return _recovery(encodings, state, signs, prior.known, clock)


def _soft(task: _Task, found: ImageMemberships) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Expected weights and squared weights."""
    p = np.where(found.probability > FAINT, found.probability, 0)
    weights, squares = p * found.weight, p * found.weight**2
    total = weights.sum(axis=1, keepdims=True)
    most = 0.85 if task.public else 1.0
    scale = np.minimum(1, most / np.maximum(total, 1e-6)).astype(np.float32)
    return sparse.csr_array(weights * scale), sparse.csr_array(squares * scale**2)


def _start(task: _Task, weights: sparse.csr_array, squares: sparse.csr_array, rng: np.random.Generator) -> Floats:
    """Images to start from: cross terms with signs from neighbours, or the mean image where that says most."""
    mean = task.prior.mean
    if (mean**2).sum() > INFORMATIVE * ((mean**2).sum() + task.prior.pixel.sum()):
        return np.repeat(mean[None], weights.shape[1], axis=0)
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
) -> _State:
    """Signs, weights, and a new start for what fits badly, in turn."""
    misfit = None
    few = task.scheme.k_private * len(task.Y) < FEW * len(images)
    hots = (HOT,) * ((MORE if few else ROUNDS) - len(COOLER)) + COOLER
    last = len(hots) - 1
    for turn, hot in enumerate(hots):
        cold = FINEST if turn == last else COLD
        mixture = task.mixture(weights, squares, misfit)
        images, signed = anneal(task.Y, mixture, images, task.prior, np.geomspace(hot, cold, STEPS), inner=INNER)
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
        bad |= duplicates(images, weights, task.prior)
        if turn < last - 1:
            images[bad] = task.prior.mean
        if turn in REGROW and bad.any():
            k, weight = task.scheme.k_private, task.law.mean
            new = regrow(signed, weights, images, bad, of_images, misfit, task.prior, k, weight, task.labels, rng)
            weights, squares = _take_over(weights, squares, new, weight)
    return _State(images, signed, mixture, weighing)


def _with_public(task: _Task, state: _State, candidates: Floats, progress: Progress | None) -> _State:
    """Public images found among the candidates and taken out, in turn with signs and private weights."""
    for turn, hot in enumerate(PUBLIC_HOT):
        weighing = state.weighing
        private = np.asarray(weighing.weights.sum(axis=1)).ravel() if task.labels is None else task.labels.sum(axis=1)
        total = np.clip(1 - private, 0, 1).astype(np.float32)
        part = find_public_part(
            task.Y, state.signed, weighing.weights, state.images, candidates, task.prior, task.scheme.k_public, total
        )
        unsure = np.asarray((weighing.squares - weighing.weights.multiply(weighing.weights)).sum(axis=1)).ravel()
        noise = np.maximum(part.rest**2 * PUBLIC_REST, PUBLIC_LEAST) + np.maximum(unsure, 0)
        mixture = Mixture(weighing.weights.astype(np.float32), noise.astype(np.float32))
        schedule = np.geomspace(hot, FINEST, STEPS)
        images, signed = anneal(task.Y, mixture, state.images, task.prior, schedule, inner=INNER, offsets=part.offsets)
        weighing = _reweigh(task, mixture, images, signed, part.offsets)
        state = _State(images, signed, mixture, weighing, part)
        if progress:
            progress("public images", turn + 1, len(PUBLIC_HOT))
    return state


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


def _reweigh(task: _Task, mixture: Mixture, images: Floats, signed: Floats, offsets: Floats | None = None) -> Weighing:
    labels = None
    if task.labels is not None:
        labels = task.labels, vote(mixture.weights.toarray(), task.labels)
    return reweigh(
        task.Y, signed, images, fit_to_signed(mixture, len(images)).shares(), mixture.noise, task.prior, task.scheme.k_private,
        largest=task.law.largest, public=task.public, labels=labels, offsets=offsets,
    )  # fmt: skip


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


def _recovery(encodings: Encodings, state: _State, signs: Signs, signed: bool, clock: Stopwatch) -> Recovery:
    weighing, n = state.weighing, len(state.images)
    m, k = weighing.members.shape
    rows = np.repeat(np.arange(m), k)
    places = (rows, weighing.members.ravel())
    expected = likeness(signs)
    seen = int((expected > RECOGNISABLE).sum())
    evidence = {
        "likeness": expected.tolist(),
        "misfit": signs.misfit.tolist(),
        "agreement": signs.agreement.tolist(),
        "encodings": signs.encodings.tolist(),
    }
    if state.part is not None:
        evidence["public_images_found"] = float((state.part.indices >= 0).mean())
    return Recovery(
        vectors=np.clip(state.images, -1, 1),
        status=np.full(n, UNRESOLVED, dtype="<U10"),
        signed=signed,
        members=sparse.csr_array((np.ones(m * k, bool), places), shape=(m, n)),
        residual=signs.misfit,
        reasons=tuple(
            f"an SSIM of about {value:.1f} is to be expected: fits to two halves of the encodings agree to {agree:.1f}"
            for value, agree in zip(expected, signs.agreement, strict=True)
        ),
        attack=NAME,
        explanation=f"{n} private images from {m} encodings, {seen} of them probably recognisable; none is exact",
        seconds=clock.seconds,
        evidence=evidence,
        weights=sparse.csr_array((weighing.best.ravel(), places), shape=(m, n)),
    )
