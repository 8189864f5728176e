"""Private images among public white noise, from soft weights to images and weights in turn.

    x ← cross terms of y² averaged over neighbours    images are smooth, noise averages out
    repeat  x ← expectation–maximisation              from smooth to detailed (`images.white_fit`)
            λ ← likelihood of pairs                   (`images.white_weights`)
            inverted regions are turned back          (`images.regions`)
            unsure images start again                 from nothing: the others tell their signs
            missed ones are grown                     in squares whitened by the spectrum

Public images have no mean, so that all images and their negatives are as likely: the sign of the
whole is that in which images are lit from above, or that of images like the private ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.ndimage import gaussian_filter

from unveil.gram.cosines import Alike
from unveil.gram.stationary import stationary
from unveil.images.cross_terms import cross_terms
from unveil.images.missing import regrow
from unveil.images.pixel_signs import synchronise
from unveil.images.prior import ImagePrior, smooth_prior
from unveil.images.regions import turned_back
from unveil.images.reweigh import Weighing
from unveil.images.sign_fields import REST, Mixture
from unveil.images.task import ImageTask, RoundState, unsure
from unveil.images.white_fit import WhiteFit
from unveil.images.white_weights import weigh_pairs
from unveil.records import Progress

Floats = NDArray[np.float32]
NEAR = 1.5
"""Width in pixels of the average of squares from which images start: of 0.7 to 2 the best."""
ROUNDS, LAST = 16, 2
"""Rounds, and how many of them end with fine detail and repair nothing: fewer leave images half
found that were still getting better."""
SMOOTH, FINE = (0.98, 0.97, 0.97, 0.95), (0.97, 0.95, 0.93, 0.92)
"""Correlation of neighbouring pixels along the steps of a round, and of the last ones: smooth
images keep their signs together, fine ones have the detail that SSIM asks for."""
HOT, COOL = 3.0, 1.2
"""Times the noise that is believed when a round starts, in the first half of the rounds and in the
second: with more noise signs stay soft."""
SWEEPS = 6
"""Rounds of expectation–maximisation in each step."""
GROW = (1, 2, 4, 6, 8)
"""Rounds after which missed images are looked for."""
AGAIN, FROM = 0.3, 2
"""Share of the images that start again after a round, the least sure, and the round from which on:
before it none is sure."""
FEWER = 0.5
"""Images with less than this share of the median weight stand for nothing."""
SAME = 0.75
"""Correlation from which on two columns are one image."""
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
) -> tuple[RoundState, NDArray[np.float64]]:
    """n images or more, and how sure each is, from 0 to 1 (`certainty`).

    weights, squares: expected λ and λ² (m, columns), as clusters have them
    """
    assert task.shape is not None
    # 1. A start from squares, and room for images that no cluster stands for.
    m, d = task.Y.shape
    flat = _flat(d)
    images = white_start(task, weights, squares, rng)
    A, A2 = weights.toarray().astype(np.float32), squares.toarray().astype(np.float32)
    room = max(0, n - len(images))
    images = np.concatenate([images, np.zeros((room, d), np.float32)])
    A, A2 = (np.concatenate([part, np.zeros((m, room), np.float32)], axis=1) for part in (A, A2))
    n = len(images)
    rest = np.clip(1 - A.sum(axis=1), *REST)
    noise = _with_unsure(rest**2 * task.law.public * _pixel(task), A, A2)
    alike = Alike.of(_similarity(task.Y, task.shape))
    priors = {value: smooth_prior(task.shape, neighbours=value) for value in {*SMOOTH, *FINE}}
    young = np.zeros(n, bool)
    for turn in range(ROUNDS):
        # 2. Images, from smooth to fine. One that starts from nothing is noise at first.
        last = turn >= ROUNDS - LAST
        new = ~images.any(axis=1)
        if new.any():
            more = noise + VARIANCE * (A[:, new] ** 2).sum(axis=1)
            images = WhiteFit.of(A, more, priors[SMOOTH[0]]).settle(task.Y, images, SWEEPS)
        hots = np.geomspace(HOT if turn < ROUNDS // 2 else COOL, 1, len(SMOOTH))
        for value, hot in zip(FINE if last else SMOOTH, hots, strict=True):
            fit = WhiteFit.of(A, (noise * hot).astype(np.float32), priors[value])
            images = fit.settle(task.Y, images, SWEEPS)
        # 3. Members, weights, noise.
        found = weigh_pairs(task.Y, images, fit, task.law.largest)
        weighing = found.weighing
        A, A2 = weighing.weights.toarray(), weighing.squares.toarray()
        noise = _with_unsure(found.noise, A, A2)
        sure = certainty(weighing)
        if progress:
            progress("rounds", turn + 1, ROUNDS)
        if last:
            continue
        images, A, A2 = _calibrated(task, images, A, A2, weighing)
        # 4. Regions are turned back; unsure images start again, and columns that stand for nothing
        #    are given to clusters that no column stands for.
        mixture = Mixture(sparse.csr_array(A), noise)
        images, _ = turned_back(task.Y, mixture, images, flat, task.shape)
        weight = A.sum(axis=0)
        idle = (_repeated(images, weight) | (weight < FEWER * np.median(weight))) & ~young
        again = np.zeros(n, bool)
        if turn >= FROM:
            again[np.argsort(np.where(young, 2, sure), kind="stable")[: int(AGAIN * n)]] = True
        images[again | idle] = 0
        young = again
        if turn in GROW and idle.any():
            for column, rows in regrow(
                alike, sparse.csr_array(A), idle, idle.astype(np.float64), np.ones(m, np.float32),
                task.scheme.k_private, task.law.mean, task.labels, rng,
            ):  # fmt: skip
                A[:, column] = A2[:, column] = 0
                A[rows, column], A2[rows, column] = task.law.mean, np.mean(task.law.sample**2)
                images[column], young[column] = 0, True
    # 5. Images once more with the last weights, and one sign for all.
    fit = WhiteFit.of(A, noise, priors[FINE[-1]])
    images = fit.settle(task.Y, images, SWEEPS)
    images = lit(images, task.shape, task.centre)
    signed = fit.signed(task.Y, A @ images)
    # The energy of a mixture is in the unit of a public pixel (`sign_fields.Mixture`).
    mixture = Mixture(sparse.csr_array(A), (noise / _pixel(task)).astype(np.float32))
    return RoundState(images, signed, mixture, weighing, polarity=0.0), sure


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
    prior = smooth_prior(task.shape)
    return synchronise(images, prior.correlation(), prior.mean, rng)


def certainty(weighing: Weighing) -> NDArray[np.float64]:
    """Of each image, Σ E[λ]²/Σ E[λ²] over its encodings, times its weight by the median where that
    is less than one: near one where its encodings are told from others, and all found."""
    weight = np.asarray(weighing.weights.sum(axis=0)).ravel()
    first = np.asarray(weighing.weights.multiply(weighing.weights).sum(axis=0)).ravel()
    second = np.asarray(weighing.squares.sum(axis=0)).ravel()
    share = np.minimum(weight / max(float(np.median(weight)), EMPTY), 1)
    return np.asarray(first / np.maximum(second, EMPTY) * share, np.float64)


def lit(images: Floats, shape: tuple[int, ...], centre: Floats | None) -> Floats:
    """Images or all their negatives: like the mean of private ones where it is known, else the
    upper half brighter than the lower. So are 97% of sets of thirty CIFAR-10 images, 90% of
    Caltech-101; not portraits."""
    if centre is not None:
        told = float(images.mean(axis=0) @ centre)
    else:
        rows = images.reshape(len(images), *shape).mean(axis=0)
        half = shape[0] // 2
        told = float(rows[:half].mean() - rows[-half:].mean())
    return -images if told < 0 else images


def _similarity(Y: Floats, shape: tuple[int, ...]) -> Floats:
    """(m, m), of squares whitened by the spectrum: among noise of the 2% most similar pairs 73%
    share an image there, by windows 50% (`gram.windows`)."""
    features, _ = stationary(Y * Y, shape)
    flat = features.reshape(len(Y), -1)
    return np.asarray(flat @ flat.T, np.float32)


def _calibrated(
    task: ImageTask, images: Floats, A: Floats, A2: Floats, weighing: Weighing
) -> tuple[Floats, Floats, Floats]:
    """The mean of an image's weights is made that of their law."""
    n = len(images)
    count = np.bincount(weighing.members.ravel(), minlength=n)
    total = np.bincount(weighing.members.ravel(), weighing.best.ravel(), minlength=n)
    ratio = np.clip(total / np.maximum(count, 1) / task.law.mean, *SCALE)
    scale = np.where(count > SEEN, ratio, 1).astype(np.float32)
    return images * scale[:, None], A / scale, A2 / scale**2


def _repeated(images: Floats, weight: Floats) -> NDArray[np.bool_]:
    """Columns that are another one with more weight, or its negative."""
    unit = images / (np.linalg.norm(images, axis=1, keepdims=True) + EMPTY)
    return np.asarray(((np.abs(unit @ unit.T) > SAME) & (weight > weight[:, None])).any(axis=1))


def _with_unsure(noise: NDArray[np.floating], A: Floats, A2: Floats) -> Floats:
    more = VARIANCE * unsure(sparse.csr_array(A), sparse.csr_array(A2))
    return np.asarray(noise + more, np.float32)


def _pixel(task: ImageTask) -> float:
    """The variance of a pixel of public images."""
    return float(task.prior.pixel.mean())


def _flat(d: int) -> ImagePrior:
    """Pixels of variance one around zero: energies are variances then."""
    ones = np.ones(d, np.float32)
    return ImagePrior(0 * ones, np.zeros((d, 0), np.float32), ones[:0], ones, known=False)
