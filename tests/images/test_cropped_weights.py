"""Members, copies and weights of signed encodings: found where signs are right, and left open while
images are missing."""

import numpy as np
from scipy import sparse

from unveil.encode.copies import Copies
from unveil.images.cropped_weights import reweigh_copies
from unveil.images.cropping import Cropping
from unveil.images.epochs import EVEN, Epochs
from unveil.images.prior import image_prior
from unveil.images.reweigh import WeightBounds

SHAPE = (12, 12)
PRIOR = image_prior(SHAPE)


def instance(n=6, m=80, seed=0):
    rng = np.random.default_rng(seed)
    cropping = Cropping(Copies(SHAPE, 2), np.array([-1.0], np.float32))
    count = cropping.copies.count
    images = PRIOR.draw(n, rng)
    pairs = np.stack([rng.choice(n, 2, replace=False) for _ in range(m)])
    columns = pairs * count + rng.integers(0, count, (m, 2))
    values = rng.uniform(0.2, 0.45, (m, 2)).astype(np.float32)
    rows = np.repeat(np.arange(m), 2)
    weights = sparse.csr_array((values.ravel(), (rows, columns.ravel())), shape=(m, n * count))
    rest = 1 - values.sum(axis=1)
    public = rest[:, None] * PRIOR.draw(m, rng) * 0.5
    z = (cropping.mixed(weights, images) + public).astype(np.float32)
    noise = np.maximum(0.25 * rest**2, 0.01).astype(np.float32)
    return cropping, images, columns, values, z, noise


def run(cropping, images, z, noise, missing=0.0, epochs=None):
    none = sparse.csr_array((len(z), len(images) * cropping.copies.count), dtype=np.float32)
    return reweigh_copies(
        np.abs(z), z, images, none, noise, PRIOR, WeightBounds(2, 0.6), cropping, missing, epochs
    )


def test_copies_and_weights_are_found():
    cropping, images, columns, values, z, noise = instance()
    found = run(cropping, images, z, noise)
    order = np.argsort(columns, axis=1)
    mine = np.argsort(found.members, axis=1)
    right = np.take_along_axis(found.members, mine, 1) == np.take_along_axis(columns, order, 1)
    assert right.mean() > 0.9
    both = right.all(axis=1)
    error = np.take_along_axis(found.best, mine, 1) - np.take_along_axis(values, order, 1)
    assert np.abs(error[both]).mean() < 0.05


def test_a_member_that_is_not_there_is_left_open():
    """Every other encoding mixes one image only."""
    cropping, images, columns, values, _, noise = instance()
    values[::2, 1] = 0
    rows = np.repeat(np.arange(len(values)), 2)
    shape = (len(values), len(images) * cropping.copies.count)
    weights = sparse.csr_array((values.ravel(), (rows, columns.ravel())), shape=shape)
    rng = np.random.default_rng(1)
    public = 0.5 * np.sqrt(noise)[:, None] * PRIOR.draw(len(values), rng)
    z = (cropping.mixed(weights, images) + public).astype(np.float32)
    z += (1 - values.sum(axis=1))[:, None] * PRIOR.mean
    left = (run(cropping, images, z, noise, missing=0.25).members < 0).any(axis=1)
    assert left[::2].mean() > 0.7
    assert left[1::2].mean() < 0.1
    assert not (run(cropping, images, z, noise).members < 0).any()


def in_epochs(n=6, epochs=16, seed=0):
    """Every epoch of n rows has each image twice, and much public energy."""
    rng = np.random.default_rng(seed)
    cropping, images, *_ = instance(n, 4, seed)
    count, m = cropping.copies.count, n * epochs
    pairs = []
    while len(pairs) < epochs:
        pair = np.stack([rng.permutation(n), rng.permutation(n)], axis=1)
        if (pair[:, 0] != pair[:, 1]).all():
            pairs.append(pair)
    columns = np.concatenate(pairs) * count + rng.integers(0, count, (m, 2))
    values = rng.uniform(0.1, 0.35, (m, 2)).astype(np.float32)
    places = np.repeat(np.arange(m), 2), columns.ravel()
    weights = sparse.csr_array((values.ravel(), places), shape=(m, n * count))
    rest = 1 - values.sum(axis=1)
    public = rest[:, None] * PRIOR.draw(m, rng) * 0.5
    z = (cropping.mixed(weights, images) + public).astype(np.float32)
    order = Epochs(np.arange(m) // n, n, 2)
    return cropping, images, columns, z, (0.25 * rest**2).astype(np.float32), order


def test_rows_of_an_epoch_are_matched_with_images():
    """Members are right more often, and more evenly spread, over five instances."""
    free, matched = [], []
    for seed in range(5):
        cropping, images, columns, z, noise, order = in_epochs(seed=seed)
        count = cropping.copies.count
        for known, right in ((None, free), (order, matched)):
            found = run(cropping, images, z, noise, epochs=known).members // count
            right.append(np.mean(np.sort(found, 1) == np.sort(columns // count, 1)))
    assert np.mean(matched) > np.mean(free)


def test_images_are_spread_evenly_over_epochs_and_a_stranger_is_not():
    cropping, images, _, z, noise, order = in_epochs()
    stranger = PRIOR.draw(1, np.random.default_rng(99))
    found = run(cropping, np.concatenate([images, stranger]), z, noise, epochs=order)
    assert (found.spread[:-1] < EVEN).all()
    assert not found.spread[-1] < EVEN
    assert run(cropping, images, z, noise).spread is None
