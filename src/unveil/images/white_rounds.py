"""Private images among public white noise, from soft weights to images and weights in turn.

    x ← cross terms of y² averaged over neighbours    images are smooth, noise averages out
    repeat  A ← pairs, signs of some images free      (`images.white_pairs`; not the first time)
            x ← cross terms, then expectation–maximisation, from smooth to less smooth
            A ← pairs by the likelihood of magnitudes (`images.white_weights`), some times
            x ← as before
    A, x ← noise that rows of an epoch share tells    (`images.white_epochs`)

Until rows of an epoch tell signs, images are found anew from weights every time, never carried on:
a region with the wrong sign, of one image or of all, would keep itself. Its energy is right all the
same, and so are weights that energies tell. From these cross terms find the signs again, with
weights that get better.

Public images have no mean, so that all images and their negatives are as likely: the sign of the
whole is that in which images are lit from above, or that of images like the private ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.sign_fields import REST, Mixture
from unveil.images.task import ImageTask, RoundState
from unveil.images.white_columns import certainty
from unveil.images.white_epochs import carry_on
from unveil.images.white_fit import WhiteFit, smooth
from unveil.images.white_pairs import law_cells, soft_pairs
from unveil.images.white_shared import noise_agrees
from unveil.images.white_start import white_start
from unveil.images.white_weights import weigh_pairs, with_unsure
from unveil.records import Progress

Floats = NDArray[np.float32]
CYCLES = 7
"""Times signs are forgotten and found again, at most; the likeliest is kept."""
ENOUGH = 0.9
"""Agreement of the noise of rows of one epoch (`white_shared.noise_agrees`) from which on they tell
the rest: images had an SSIM of 0.68 and more there, and 0.93 in the end."""
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
    """n images or more; how sure each is, from 0 to 1 (`white_columns.certainty`); and how like
    itself it is where its signs were found again (`repeats`).

    weights, squares: expected λ and λ² (m, columns), as clusters have them
    """
    assert task.shape is not None
    Y, mean = task.Y, task.law.mean
    # 1. A start from squares, and room for images that no cluster stands for.
    A, A2 = weights.toarray().astype(np.float32), squares.toarray().astype(np.float32)
    more = ((0, 0), (0, max(0, n - A.shape[1])))
    A, A2 = np.pad(A, more), np.pad(A2, more)
    n = A.shape[1]
    rest = np.clip(1 - A.sum(axis=1), *REST)
    noise = with_unsure(rest**2 * task.law.public * _pixel(task), A, A2)
    cells = law_cells(task, rng)
    best, trials = -np.inf, []
    images = np.zeros((n, Y.shape[1]), np.float32)
    for cycle in range(CYCLES):
        # 2. The signs of some images are forgotten. Clusters tell the first members better than
        #    energies of images do.
        if cycle:
            told = np.where(rng.random(n) < FORGOTTEN, 0, BELIEVED)
            pairs = soft_pairs(task, images, cells, told)
            A, A2, noise = pairs.expected(pairs.odds(n, task.epochs), n)
            noise = with_unsure(noise, A, A2)
        # 3. Members, weights and noise by magnitudes, and images from these.
        for _ in range(SIGNED):
            trial, fit = _found(task, A, A2, noise, rng)
            found = weigh_pairs(Y, trial, fit, task.law.largest, task.epochs)
            A, A2 = found.calibrated(mean)
            noise = with_unsure(found.noise, A, A2)
        # 4. The likeliest cycle is where the next one starts; where noise agrees with signs, none
        #    is needed.
        likelihood = float(found.likelihood.mean())
        agree = task.epochs and noise_agrees(Y, A @ trial, noise, task.epochs) > ENOUGH
        if likelihood > best or agree:
            best, images, kept = likelihood, trial, (found.weighing, A, noise)
        trials.append(trial)
        if progress:
            progress("rounds", cycle + 1, CYCLES)
        if agree:
            break
    weighing, A, noise = kept
    # 5. Fine detail, what noise that rows share tells, and one sign for all.
    again, offsets = repeats(images, trials[-OTHERS:]), np.zeros_like(Y)
    images, _ = _settled(task, A, noise, images, FINE, COOL)
    if task.epochs is not None:
        carried = carry_on(task, images, A, noise, task.epochs, rng, progress)
        images, A = carried.images, carried.weights
        weighing = carried.found.weighing if carried.found else weighing
        again = repeats(images, [_found(task, A, carried.squares, noise, rng)[0]])
        offsets, noise = carried.offsets, carried.left
    sign = lit(images, task.shape, task.centre)
    signed = Y * np.tanh(Y * (A @ images + offsets) / noise[:, None])
    # The energy of a mixture is in the unit of a public pixel (`sign_fields.Mixture`).
    mixture = Mixture(sparse.csr_array(A), (noise / _pixel(task)).astype(np.float32))
    state = RoundState(sign * images, sign * signed, mixture, weighing, polarity=0.0)
    return state, certainty(weighing), again


def _found(
    task: ImageTask, A: Floats, A2: Floats, noise: Floats, rng: np.random.Generator
) -> tuple[Floats, WhiteFit]:
    """Images of what is believed of weights alone, and their last fit."""
    images = white_start(task, A, A2, rng)
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
        fit = WhiteFit.of(A, (noise * heat).astype(np.float32), smooth(task.shape, value))
        images = fit.settle(task.Y, images, SWEEPS)
    return images, fit


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
    the upper quarter brighter than the rest. So are 98% of sets of thirty CIFAR-10 images, 96% of
    Caltech-101 (by halves 97% and 87%); not portraits."""
    if centre is not None:
        told = float(images.mean(axis=0) @ centre)
    else:
        rows = images.reshape(len(images), *shape).mean(axis=0)
        upper = max(1, shape[0] // 4)
        told = float(rows[:upper].mean() - rows[upper:].mean())
    return -1 if told < 0 else 1


def _pixel(task: ImageTask) -> float:
    """The variance of a pixel of public images."""
    return float(task.prior.pixel.mean())
