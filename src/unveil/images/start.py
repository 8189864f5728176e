"""Images to start from, where nothing is known of signs: cross terms, and neighbours; or a mean.

At every pixel cross terms give the values of all images up to one sign (`images.cross_terms`),
neighbouring pixels give the signs (`images.pixel_signs`), and the mean of public images tells which
way round each region is (`images.public_sides`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.cross_terms import cross_terms
from unveil.images.labelled import places_of
from unveil.images.own_mean import common_share
from unveil.images.pixel_signs import synchronise
from unveil.images.prior import ImagePrior
from unveil.images.public_sides import public_sides
from unveil.images.schedule import SCHEDULE
from unveil.images.sign_fields import folded_fit
from unveil.images.task import ImageTask

Floats = NDArray[np.float32]
FOLDED = 6
"""Rounds of expectation–maximisation that sharpen the start, pixel by pixel."""
ALIKE = 0.07
"""Share of the energy of magnitudes that images have in common, from which on they are no
photographs of all kinds: those have 0.05 at most, portraits 0.09, faces 0.14, clothes 0.2."""


def start_images(
    task: ImageTask,
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    theirs: ImagePrior | None,
    rng: np.random.Generator,
) -> Floats:
    """Images to start from: cross terms with signs from neighbours, or without public images the
    mean of images like the private ones (`theirs`), where that says most. Where labels tell members
    and weights but encodings are few, the mean as well: cross terms are noise then, and rounds
    stay where they put regions (0.38 and 0.65 for 0.76 and 0.78 on two seeds at T = 10)."""
    m, n = weights.shape
    k = task.scheme.k_private
    told = task.labels is not None and places_of(task.labels, k) is not None
    if told and task.public and k * m < SCHEDULE.few * n:
        return np.repeat(task.start[None], n, axis=0)
    if theirs is not None and not task.public and theirs.mean_share > SCHEDULE.informative:
        return np.repeat(theirs.mean[None], weights.shape[1], axis=0)
    images = cross_terms(task.Y, weights, squares, rng, public=task.public)
    images = folded_fit(
        task.Y, task.mixture(weights, squares), images, task.prior, mean=False, rounds=FOLDED
    )
    images = synchronise(images, task.prior.correlation(), task.start, rng)
    if not task.public or task.shape is None:
        return images
    mixture = task.mixture(weights, squares)
    images *= public_sides(task.Y, mixture, images, task.prior, task.shape)
    # Of images with much in common the sign of the whole is told later, and that of the public mean
    # serves the first rounds best (`images.own_mean`).
    alike = common_share(np.abs(images)) > ALIKE
    return -images if alike and images.mean(axis=0) @ task.start < 0 else images
