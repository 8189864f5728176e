"""Signs and weights of encodings in turn, where images were cropped or mirrored before mixing.

    repeat  E, x ← anneal             signs as smooth fields, images under their copies
                                      (`images.sign_fields`, `images.cropping`)
            λ ← least squares on E    members, their copies and weights (`images.cropped_weights`)
            x moves                   where most copies of an image lie to one side of its reach
            bad images start again    from the mean image; missed ones are grown from pairs whose
                                      moves agree (`images.moved_clusters`): signed encodings with
                                      wrong members show them less

Black rims tell the sign of the whole, and a start from the mean image is as good as any. What
`images.rounds` does besides (a mean of their own, weights read off labels) is not done here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encode.copies import Copies
from unveil.gram.aligned import Alignment
from unveil.images.clusters import cluster_size
from unveil.images.cropped_memberships import missed_clusters
from unveil.images.cropped_weights import reweigh_copies
from unveil.images.cropping import Cropping
from unveil.images.epochs import EVEN, UNEVEN
from unveil.images.likeness import misfits
from unveil.images.missing import repeated_images
from unveil.images.reweigh import Weighing, WeightBounds
from unveil.images.schedule import SCHEDULE
from unveil.images.sign_fields import anneal
from unveil.images.task import ImageTask, RoundState
from unveil.records import Progress

Floats = NDArray[np.float32]
HOT = 4
"""Hot rounds: one more than where images lie still, since copies have to be found too."""
EMPTY_SIDE = 0.3
"""An image is moved by one pixel when the outermost copies on one side have less than this share of
what they would have, and those on the other side have it all: its black rim is in the wrong
place."""
FEWEST, MOST = 0.5, 2.0
"""A column with less than this share of the encodings to be expected, or so many times as many, is
given up: it stands for no image, or for what many have in common."""


def alternate_cropped(
    task: ImageTask,
    cropping: Cropping,
    seen: Seen,
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    n: int,
    progress: Progress | None,
) -> RoundState:
    """weights, squares (m, columns·count): what is expected of λ and λ², over copies; n: how many
    private images there are. Those that are never found are not among the images. Weights of the
    state's mixture are over copies, those of its weighing over images."""
    # 1. Images to start from: the mean of all.
    prior, k, count = task.prior, task.scheme.k_private, cropping.copies.count
    images = np.repeat(task.start[None], weights.shape[1] // count, axis=0)
    bounds = WeightBounds(k, task.law.largest, task.public)
    starts = (SCHEDULE.hot,) * HOT + SCHEDULE.cooler
    last = len(starts) - 1
    misfit = None
    for turn, hot in enumerate(starts):
        # 2. Signs and images.
        mixture = task.mixture(weights, squares, misfit)
        cold = SCHEDULE.finest if turn == last else SCHEDULE.cold
        images, signed = anneal(
            task.Y, mixture, images, prior, np.geomspace(hot, cold, SCHEDULE.steps),
            inner=SCHEDULE.sweeps, towards=task.start, cropping=cropping,
        )  # fmt: skip
        # 3. Members, copies and weights. While images are missing an encoding may have fewer.
        weighing = reweigh_copies(
            task.Y, signed, images, cropping.fit(mixture).shares(), mixture.noise, prior, bounds,
            cropping, max(0.0, 1 - len(images) / n) if turn < last else 0.0, task.epochs,
        )  # fmt: skip
        weights, squares, misfit = weighing.weights, weighing.squares, weighing.misfit
        if progress:
            progress("rounds", turn + 1, len(starts))
        if turn >= last - 1:
            continue
        # 4. Images in the wrong place move. Columns that stand for no image are given up, and bad
        #    ones start again.
        images, weights, squares = _moved(images, weights, squares, cropping)
        whole = of_images(weighing, cropping)
        of_each = misfits(whole)
        used = np.bincount(whole.members[whole.members >= 0], minlength=len(images))
        share = used / (k * len(task.Y) / n)
        none = (share < FEWEST) | (share > MOST)
        bad = of_each > SCHEDULE.misfit * np.median(of_each)
        if whole.spread is not None:  # who is in which row was matched: all have the same share
            none, bad = whole.spread >= UNEVEN, bad & (whole.spread >= EVEN)
        none |= repeated_images(images, whole.weights, prior, task.start)
        images[bad] = task.start
        if turn >= HOT - 1 or none.all():
            continue
        keep = np.flatnonzero(~none)
        columns = (keep[:, None] * count + np.arange(count)).ravel()
        weights, squares = (sparse.csr_array(part[:, columns]) for part in (weights, squares))
        images = images[keep]
        # 5. Images that are missing: pairs alike that share no image known by now.
        new = seen.missed(whole.weights[:, keep], task, n)
        weights = sparse.csr_array(sparse.hstack([weights, new * np.float32(task.law.mean)]))
        squares = sparse.csr_array(sparse.hstack([squares, new * np.float32(task.law.mean**2)]))
        extra = new.shape[1] // count
        images = np.concatenate([images, np.repeat(task.start[None], extra, axis=0)])
    # 6. Images once more with the last weights: signs hardly move.
    mixture = task.mixture(weights, squares, misfit)
    images, signed = anneal(
        task.Y, mixture, images, prior, SCHEDULE.polish, inner=SCHEDULE.sweeps,
        towards=task.start, cropping=cropping,
    )  # fmt: skip
    return RoundState(images, signed, mixture, of_images(weighing, cropping))


@dataclass(frozen=True, eq=False)
class Seen:
    """How encodings align (`gram.aligned`)."""

    alignment: Alignment
    copies: Copies

    def missed(self, weights: sparse.csr_array, task: ImageTask, n: int) -> sparse.csr_array:
        """(m, new columns·count): ones where encodings of new clusters show a copy."""
        m, k, count = weights.shape[0], task.scheme.k_private, self.copies.count
        dense = weights.toarray()
        inside = (dense > SCHEDULE.faint).astype(np.float32)
        clusters = missed_clusters(
            self.alignment,
            self.copies,
            inside,
            dense * inside,
            most=n - weights.shape[1],
            size=cluster_size(k, m, n),
            epochs=task.epochs,
        )
        if not clusters:
            return sparse.csr_array(np.zeros((m, 0), np.float32))
        rows = np.concatenate([part for part, _ in clusters])
        columns = np.concatenate([j * count + at for j, (_, at) in enumerate(clusters)])
        ones = np.ones(len(rows), np.float32)
        return sparse.csr_array((ones, (rows, columns)), shape=(m, len(clusters) * count))


def of_images(weighing: Weighing, cropping: Cropping) -> Weighing:
    """The same with all copies of an image taken together."""
    members = np.where(weighing.members < 0, -1, weighing.members // cropping.copies.count)
    return replace(
        weighing,
        weights=cropping.of_images(weighing.weights),
        squares=cropping.of_images(weighing.squares),
        members=members,
    )


def _moved(
    images: Floats,
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    cropping: Cropping,
) -> tuple[Floats, sparse.csr_array, sparse.csr_array]:
    """Images of which one side of the reach is hardly used are moved by a pixel towards it, with
    all their copies; copies that are moved out of reach are dropped."""
    # 1. How much weight each place has, down and across; every place should have the same.
    copies = cropping.copies
    side = 2 * copies.reach + 1
    if not copies.reach:
        return images, weights, squares
    total = np.asarray(weights.sum(axis=0)).reshape(len(images), 1 + copies.flips, side, side)
    new, shift = images.copy(), np.zeros((len(images), 2), np.int64)
    for axis, along in enumerate((total.sum(axis=(1, 3)), total.sum(axis=(1, 2)))):
        fair = along.mean(axis=1)
        first, after = along[:, 0], along[:, -1]
        shift[:, axis] += (first < EMPTY_SIDE * fair) & (after > fair)
        shift[:, axis] -= (after < EMPTY_SIDE * fair) & (first > fair)
    # 2. The image as it lies one pixel further, and the names of its copies.
    names = np.arange(weights.shape[1]).reshape(len(images), 1 + copies.flips, side, side)
    became = np.full(weights.shape[1], -1, np.int64)
    for j, (down, across) in enumerate(shift):
        wide = copies.padded(images[j : j + 1], cropping.fill)
        moved = np.roll(wide, (-down, -across), axis=(1, 2))
        new[j] = copies.middle(moved)[0]
        old = names[j]
        for place in np.ndindex(old.shape):
            there = (place[0], place[1] - down, place[2] - across)
            if 0 <= there[1] < side and 0 <= there[2] < side:
                became[old[place]] = old[there]
    if not shift.any():
        return images, weights, squares
    keep = np.flatnonzero(became >= 0)
    rename = sparse.csr_array(
        (np.ones(len(keep), np.float32), (keep, became[keep])), shape=(len(became), len(became))
    )
    return new, sparse.csr_array(weights @ rename), sparse.csr_array(squares @ rename)
