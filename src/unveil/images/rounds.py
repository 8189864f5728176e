"""Signs and weights of encodings of natural images, in turn, until images are as good as they get.

    repeat  E, x ← anneal            signs of encodings as smooth fields (`images.sign_fields`);
                                     regions that are inverted in all images are turned back
                                     (`images.common_regions`, `images.common_signs`)
            λ ← least squares on E   members and weights (`images.reweigh`)
            inverted regions of single images are turned back (`images.regions`)
            bad images start again   from the mean image; missed ones are grown from what is left
                                     (`images.missing`), merged ones split (`images.merged`)

Where the first rounds show that private images have much in common (faces), all start again from
that (`images.own_mean`), and one sign for all of them is told later (`images.polarity`). Then,
where the candidates are known, the same with public images found and taken out
(`images.public_part`). How many rounds and how hot: `images.schedule`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.common_regions import inverted_regions
from unveil.images.common_signs import common_signs
from unveil.images.epochs import EVEN, UNEVEN
from unveil.images.labels import vote
from unveil.images.likeness import misfits
from unveil.images.merged import split_merged
from unveil.images.missing import regrow, repeated_images
from unveil.images.own_mean import common_share, consensus, turned
from unveil.images.polarity import LEANS, polarity
from unveil.images.public_part import find_public_part
from unveil.images.regions import turned_back
from unveil.images.reweigh import Weighing, WeightBounds, reweigh
from unveil.images.schedule import SCHEDULE
from unveil.images.sign_fields import Mixture, anneal, fit_to_signed
from unveil.images.task import ImageTask, RoundState, unsure
from unveil.records import Progress

SCALE = (0.7, 1.4)
"""Bounds of one correction of an image's scale: the next rounds can go further."""
LIGHT = 0.7
"""A column whose members weigh less than this share of the law's mean stands for no image, but for
what others leave: of images it is 0.9 and more."""
SEEN = 3
"""An image with no more members than this says nothing of its scale."""
BLIND = 2
"""Rounds without a mean of public images before the sign is told: the first of them still has
signs that followed it."""
MOST = 0.97
"""Private weights sum to this at most after a correction, so that a public part is left."""
Floats = NDArray[np.float32]


def alternate(
    task: ImageTask,
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    images: Floats,
    rng: np.random.Generator,
    progress: Progress | None,
    rounds: int | None = None,
    starts: tuple[float, ...] | None = None,
) -> RoundState:
    """Signs, weights, and a new start for what fits badly, in turn. `rounds`: so many hot rounds
    and no cool ones, for a first look; `starts`: ε at which each round starts, if not scheduled."""
    k, prior = task.scheme.k_private, task.prior
    few = k * len(task.Y) < SCHEDULE.few * len(images)
    looks = rounds is None and starts is None and task.centre is None and task.public
    starts = SCHEDULE.starts(few, rounds) if starts is None else starts
    least = SCHEDULE.least_energies(len(starts), task.public, prior.mean_share)
    last = len(starts) - 1
    misfit = None
    young = np.zeros(len(images), bool)
    for turn, hot in enumerate(starts):
        # 1. Signs and images, from soft and coarse to sure and fine.
        mixture = task.mixture(weights, squares, misfit, least[turn])
        cold = SCHEDULE.finest if turn == last else SCHEDULE.cold
        epsilons = np.geomspace(hot, cold, SCHEDULE.steps)
        images, signed = anneal(
            task.Y, mixture, images, prior, epsilons, inner=SCHEDULE.sweeps, towards=task.start
        )
        # 2. A region can be inverted in all images at once: turn it back.
        signs = _common_signs(task, images)
        images = images * signs
        signed *= signs  # in place: as large as all encodings
        # 3. Members and weights, from encodings that now have signs.
        weighing = _weigh(task, mixture, images, signed)
        if progress:
            progress("rounds", turn + 1, len(starts))
        if looks and (turn in SCHEDULE.look or turn == last):
            better = images[np.argsort(misfits(weighing), kind="stable")[: -(-len(images) // 2)]]
            better = turned(better)
            if common_share(better) > SCHEDULE.informative:
                return _from_own_mean(task, weighing, images, rng, progress, few)
        if turn == last:
            break
        if task.public:
            del signed  # a matrix less while clusters are looked for, which takes most memory
        light = _too_light(task, weighing, len(images))
        images, weighing = _calibrated(task, images, weighing)
        weights, squares, misfit = weighing.weights, weighing.squares, weighing.misfit
        # 4. Regions of single images that are inverted are turned back; images whose sign nothing
        #    tells are bad.
        of_images = misfits(weighing)
        bad = of_images > SCHEDULE.bad(task.public, few) * np.median(of_images)
        #    Where members lie evenly over epochs the column is an image, however badly it fits, and
        #    where they do not it is none, however well.
        even = np.zeros(len(images), bool)
        if weighing.spread is not None:
            even = weighing.spread < EVEN
            bad |= weighing.spread >= UNEVEN
        bad, light = bad & ~even, light & ~even
        if task.public and task.shape:
            mixture = task.mixture(weights, squares, misfit)
            images, told = turned_back(task.Y, mixture, images, prior, task.shape)
            bad |= told < SCHEDULE.untold
        # 5. Bad images, and those that repeat another, start again from the mean. Not in the round
        #    before the last: too few rounds are left to repair them. Those that were found a round
        #    ago have one more to show themselves. Where encodings are few, light ones may be given
        #    to other images, but go on where they are not: some are images not quite found yet.
        twice = repeated_images(images, weights, prior, task.start)
        again = bad & ~young | twice
        bad = (bad | light) & ~young | twice
        young[:] = False
        if turn < last - 1:
            images[again if few and task.public else bad] = task.start
        # 6. Columns that stand for two images are split, and missed images grown, into bad columns.
        if turn not in SCHEDULE.regrow:
            continue
        bad &= ~even | twice
        weight = task.law.mean
        if not task.public:
            used = (weights > SCHEDULE.faint).toarray()
            unused = used.sum(axis=0) < SCHEDULE.fewer * k * len(used) / len(images)
            free = np.flatnonzero(bad & (twice | unused))
            split = split_merged(signed, weights, images, prior, used, free, k, rng)
            weights, squares = _take_over(weights, squares, split, weight)
            taken = [column for column, _ in split]
            images[taken], bad[taken] = task.start, False
        if bad.any() and task.alike is not None:
            new = regrow(
                task.alike,
                weights,
                bad,
                of_images,
                misfit,
                k,
                weight,
                task.labels,
                rng,
                task.epochs,
            )
            weights, squares = _take_over(weights, squares, new, weight)
            taken = [column for column, _ in new]
            images[taken], young[taken] = task.start, True
    # 7. Images once more with the last weights: signs hardly move.
    if task.public and last:
        mixture = task.mixture(weighing.weights, weighing.squares, weighing.misfit)
        images, signed = anneal(
            task.Y, mixture, images, prior, SCHEDULE.polish, inner=SCHEDULE.sweeps,
            towards=task.start,
        )  # fmt: skip
    return RoundState(images, signed, mixture, weighing)


def _from_own_mean(
    task: ImageTask,
    weighing: Weighing,
    images: Floats,
    rng: np.random.Generator,
    progress: Progress | None,
    few: bool,
) -> RoundState:
    """Images go on with a mean of their own. Its sign is not known, so that public images have no
    mean either at first; once they show their own, the sign is told by it."""
    starts = SCHEDULE.starts(few, None)
    cool = len(SCHEDULE.cool(few))
    # 1. Rounds that know no sign.
    blind = replace(task, prior=task.prior.centred(), centre=consensus(images))
    state = alternate(
        blind, weighing.weights, weighing.squares, images, rng, progress,
        starts=starts[-cool - BLIND : -cool],
    )  # fmt: skip
    # 2. The sign of the whole.
    sure = polarity(task.Y, state.signed, state.weighing.weights, state.mixture.noise, task.prior)
    sign = np.float32(-1 if sure < -LEANS else 1)
    # 3. Cool rounds with the mean of public images.
    told = replace(task, centre=sign * consensus(state.images))
    images, weighing = sign * state.images, state.weighing
    state = alternate(
        told, weighing.weights, weighing.squares, images, rng, progress, starts=starts[-cool:]
    )
    return replace(state, polarity=abs(sure) if task.prior.known else 0.0)


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
        noise = noise + unsure(weights, squares)
        mixture = Mixture(weights.astype(np.float32), noise.astype(np.float32))
        epsilons = np.geomspace(hot, SCHEDULE.finest, SCHEDULE.steps)
        images, signed = anneal(
            task.Y, mixture, state.images, task.prior, epsilons, inner=SCHEDULE.sweeps,
            offsets=part.offsets, towards=task.start,
        )  # fmt: skip
        # 3. Private weights again.
        weighing = _weigh(task, mixture, images, signed, part.offsets)
        state = RoundState(images, signed, mixture, weighing, part)
        if progress:
            progress("public images", turn + 1, len(SCHEDULE.public_hots))
    return state


def _common_signs(task: ImageTask, images: Floats) -> Floats:
    """(d,) the sign that each pixel of all images should have. Without public images nothing but
    smoothness tells, and the prior knows most of that; with them it tells too much."""
    if not task.public:
        return common_signs(images, task.prior)
    if task.shape is None:
        return np.ones(images.shape[1], np.float32)
    return np.where(inverted_regions(images, task.shape), -1, 1).astype(np.float32)


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
    found = reweigh(
        task.Y, signed, images, shares, mixture.noise, task.prior, bounds,
        labels=labels, offsets=offsets, epochs=task.epochs,
    )  # fmt: skip
    # In the unit of the energy itself: in that of what was raised, encodings that fit badly would
    # fit well in every other round.
    raised = 1 if mixture.raised is None else mixture.raised
    return replace(found, misfit=found.misfit * raised)


def _too_light(task: ImageTask, weighing: Weighing, n: int) -> NDArray[np.bool_]:
    """Columns whose weights are too small for their law: what is left over, not an image."""
    count = np.bincount(weighing.members.ravel(), minlength=n)
    total = np.bincount(weighing.members.ravel(), weighing.best.ravel(), minlength=n)
    return np.asarray(total < LIGHT * task.law.mean * count)


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
