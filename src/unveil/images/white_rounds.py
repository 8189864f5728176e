"""Private images among public white noise, from soft weights to images and weights in turn.

    x ← cross terms of y² averaged over neighbours    images are smooth, noise averages out
    repeat  A ← pairs by squares alone, signs free    (`images.white_pairs`)
            x ← cross terms, then expectation–maximisation, from smooth to less smooth
            A ← pairs, signs half believed            no region can vouch for itself
            x ← as before
            A ← pairs by the likelihood of magnitudes (`images.white_weights`), some times
            x ← as before
    x ← noise that rows of an epoch share taken out   (`images.white_shared`)

Images are found anew from weights every time, never carried on: a region with the wrong sign, of
one image or of all, would keep itself. Its energy is right all the same, and so are weights that
energies tell. From these cross terms find the signs again, with weights that get better.

Public images have no mean, so that all images and their negatives are as likely: the sign of the
whole is that in which images are lit from above, or that of images like the private ones.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.ndimage import gaussian_filter

from unveil.images.cross_terms import cross_terms
from unveil.images.pixel_signs import synchronise
from unveil.images.prior import ImagePrior, smooth_prior
from unveil.images.reweigh import Weighing
from unveil.images.sign_fields import REST, Mixture
from unveil.images.task import ImageTask, RoundState, unsure
from unveil.images.white_fit import WhiteFit
from unveil.images.white_pairs import law_cells, soft_pairs
from unveil.images.white_shared import without_shared_noise
from unveil.images.white_weights import weigh_pairs
from unveil.records import Progress

Floats = NDArray[np.float32]
NEAR = 1.5
"""Width in pixels of the average of squares from which images start: of 0.7 to 2 the best."""
COMMON = 0.8
"""Correlation of neighbouring pixels by which they get the same sign. Of things before a ground
pixels farther apart are often of opposite sign: at 0.97 an inverted region was left in the middle,
at 0.4 to 0.9 none (seed 53003)."""
CYCLES = 7
"""Times signs are forgotten and found again; the likeliest is kept. Without regions of the wrong
sign three suffice."""
TOLD = (0.0, 0.7)
"""How far the signs of images are believed in the two first steps of all: with squares alone
throughout energies get no better."""
FORGOTTEN, BELIEVED = 0.4, 0.9
"""Share of the images whose signs are forgotten when a later cycle starts, and how far those of the
others are believed: an image with an inverted region meets enough images that are right."""
SIGNED = 4
"""Steps of a cycle that believe all signs: going on while the likelihood rises, up to twelve, found
no better images on the seed that is worst (54000)."""
OTHERS, SELF = 4, 0.9999
"""The last cycles, with which images are compared; and the correlation of an image with itself."""
SMOOTH, FINE = (0.98, 0.97, 0.97, 0.95), (0.97, 0.95, 0.93, 0.92)
"""Correlation of neighbouring pixels along a fit, and of the last one: smooth images keep their
signs together, fine ones have the detail that SSIM asks for."""
HOT, COOL = 3.0, 1.2
"""Times the noise that is believed when a fit starts, and the last one: with more noise signs stay
soft."""
SWEEPS = 6
"""Rounds of expectation–maximisation at each smoothness."""
VARIANCE = 0.3
"""That of a pixel: what is not known of a weight adds so much noise."""
SCALE = (0.7, 1.4)
"""Bounds of one correction of an image's scale, which encodings fix badly."""
SEEN = 3
"""An image with no more members than this says nothing of its scale."""
EMPTY = 1e-9
"""Guards divisions: an image may be in no encoding."""


def white_rounds(
    task: ImageTask,
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    n: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[RoundState, NDArray[np.float64], NDArray[np.float64]]:
    """n images or more; how sure each is, from 0 to 1 (`certainty`); and how like it the images of
    other cycles are (`repeats`).

    weights, squares: expected λ and λ² (m, columns), as clusters have them
    """
    assert task.shape is not None
    # 1. A start from squares, and room for images that no cluster stands for.
    A, A2 = weights.toarray().astype(np.float32), squares.toarray().astype(np.float32)
    rest = np.clip(1 - A.sum(axis=1), *REST)
    noise = _with_unsure(rest**2 * task.law.public * _pixel(task), A, A2)
    images, _ = _found(task, A, A2, noise, rng)
    room = np.zeros((max(0, n - len(images)), images.shape[1]), np.float32)
    images = np.concatenate([images, room])
    n = len(images)
    cells = law_cells(task, rng)
    best, trials = -np.inf, []
    for cycle in range(CYCLES):
        # 2. Signs are forgotten, then believed in part; later those of some images only.
        trial = images
        for told in TOLD if cycle == 0 else (np.where(rng.random(n) < FORGOTTEN, 0, BELIEVED),):
            pairs = soft_pairs(task, trial, cells, np.broadcast_to(told, n))
            A, A2, noise = pairs.expected(pairs.odds(n, task.epochs), n)
            noise = _with_unsure(noise, A, A2)
            trial, fit = _found(task, A, A2, noise, rng)
        # 3. Members, weights and noise by magnitudes, and images from these.
        for turn in range(SIGNED):
            if turn:
                trial, fit = _found(task, A, A2, noise, rng)
            found = weigh_pairs(task.Y, trial, fit, task.law.largest, task.epochs)
            A, A2 = _calibrated(task, found.weighing, n)
            noise = _with_unsure(found.noise, A, A2)
        # 4. The likeliest cycle is where the next one starts.
        likelihood = float(found.likelihood.mean())
        if likelihood > best:
            best, images, kept = likelihood, trial, (found.weighing, A, noise)
        trials.append(trial)
        if progress:
            progress("rounds", cycle + 1, CYCLES)
    weighing, A, noise = kept
    again = repeats(images, trials[-OTHERS:])
    # 5. Fine detail, noise that rows share, and one sign for all.
    images, fit = _settled(task, A, noise, images, FINE, COOL)
    offsets = np.zeros_like(task.Y)
    if task.epochs is not None:
        images, offsets, noise = without_shared_noise(task.Y, images, fit, task.epochs)
    sign = lit(images, task.shape, task.centre)
    signed = task.Y * np.tanh(task.Y * (A @ images + offsets) / noise[:, None])
    # The energy of a mixture is in the unit of a public pixel (`sign_fields.Mixture`).
    mixture = Mixture(sparse.csr_array(A), (noise / _pixel(task)).astype(np.float32))
    state = RoundState(sign * images, sign * signed, mixture, weighing, polarity=0.0)
    return state, certainty(weighing), again


def _found(
    task: ImageTask, A: Floats, A2: Floats, noise: Floats, rng: np.random.Generator
) -> tuple[Floats, WhiteFit]:
    """Images of what is believed of weights alone, and their last fit."""
    images = white_start(task, sparse.csr_array(A), sparse.csr_array(A2), rng)
    return _settled(task, A, noise, images, SMOOTH, HOT)


def _settled(
    task: ImageTask,
    A: Floats,
    noise: Floats,
    images: Floats,
    steps: tuple[float, ...],
    hot: float,
) -> tuple[Floats, WhiteFit]:
    """Images after expectation–maximisation, from smooth to less smooth and from hot to the noise
    that is believed."""
    assert task.shape is not None
    for value, heat in zip(steps, np.geomspace(hot, 1, len(steps)), strict=True):
        prior = _prior(task.shape, value)
        fit = WhiteFit.of(A, (noise * heat).astype(np.float32), prior)
        images = fit.settle(task.Y, images, SWEEPS)
    return images, fit


@cache
def _prior(shape: tuple[int, ...], neighbours: float) -> ImagePrior:
    return smooth_prior(shape, neighbours=neighbours)


def white_start(
    task: ImageTask,
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    rng: np.random.Generator,
) -> Floats:
    """Images (columns, d) of smoothed squares, neighbours with the same sign."""
    assert task.shape is not None
    pixels = (task.Y**2).reshape(len(task.Y), *task.shape[:2], -1)
    near = np.sqrt(gaussian_filter(pixels, (0, NEAR, NEAR, 0))).reshape(task.Y.shape)
    images = cross_terms(near, weights, squares, rng)
    prior = _prior(task.shape, COMMON)
    return synchronise(images, prior.correlation(), prior.mean, rng)


def certainty(weighing: Weighing) -> NDArray[np.float64]:
    """Of each image, Σ E[λ]²/Σ E[λ²] over its encodings, times its weight by the median where that
    is less than one: near one where its encodings are told from others, and all found."""
    weight = np.asarray(weighing.weights.sum(axis=0)).ravel()
    first = np.asarray(weighing.weights.multiply(weighing.weights).sum(axis=0)).ravel()
    second = np.asarray(weighing.squares.sum(axis=0)).ravel()
    share = np.minimum(weight / max(float(np.median(weight)), EMPTY), 1)
    return np.asarray(first / np.maximum(second, EMPTY) * share, np.float64)


def repeats(images: Floats, trials: list[Floats]) -> NDArray[np.float64]:
    """(n,) the median correlation of each image with itself in other cycles, all of which may be
    negatives; an image that came of this very cycle does not count."""
    unit, found = _unit(images), []
    for trial in trials:
        likeness = (unit * _unit(trial)).sum(axis=1)
        if likeness.min() < SELF:
            found.append(likeness * np.sign(np.median(likeness)))
    return np.median(found, axis=0) if found else np.ones(len(images))


def _unit(images: Floats) -> NDArray[np.float64]:
    centred = images - images.mean(axis=1, keepdims=True, dtype=np.float64)
    return np.asarray(centred / (np.linalg.norm(centred, axis=1, keepdims=True) + EMPTY))


def lit(images: Floats, shape: tuple[int, ...], centre: Floats | None) -> int:
    """1, or −1 where images are negatives: like the mean of private ones where it is known, else
    the upper half brighter than the lower. So are 97% of sets of thirty CIFAR-10 images, 90% of
    Caltech-101; not portraits."""
    if centre is not None:
        told = float(images.mean(axis=0) @ centre)
    else:
        rows = images.reshape(len(images), *shape).mean(axis=0)
        half = shape[0] // 2
        told = float(rows[:half].mean() - rows[-half:].mean())
    return -1 if told < 0 else 1


def _calibrated(task: ImageTask, weighing: Weighing, n: int) -> tuple[Floats, Floats]:
    """Expected weights and squares (m, n), with the mean of each image's weights made that of their
    law."""
    count = np.bincount(weighing.members.ravel(), minlength=n)
    total = np.bincount(weighing.members.ravel(), weighing.best.ravel(), minlength=n)
    ratio = np.clip(total / np.maximum(count, 1) / task.law.mean, *SCALE)
    scale = np.where(count > SEEN, ratio, 1).astype(np.float32)
    first, second = weighing.weights.toarray() / scale, weighing.squares.toarray() / scale**2
    return np.asarray(first, np.float32), np.asarray(second, np.float32)


def _with_unsure(noise: NDArray[np.floating], A: Floats, A2: Floats) -> Floats:
    more = VARIANCE * unsure(sparse.csr_array(A), sparse.csr_array(A2))
    return np.asarray(noise + more, np.float32)


def _pixel(task: ImageTask) -> float:
    """The variance of a pixel of public images."""
    return float(task.prior.pixel.mean())
