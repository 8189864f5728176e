"""Crops of simulated encodings: known exactly where one image is mixed, and shared by an epoch."""

import numpy as np
import pytest

from unveil import InputError, Scheme, simulate
from unveil.encode.augment import with_crops, with_flips
from unveil.encode.copies import Copies
from unveil.encodings import Selection

SHAPE = (4, 5)


def images(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 20)).astype(np.float32)


@pytest.mark.parametrize("flips", [False, True])
def test_every_crop_is_drawn_as_often_and_black_beyond_the_edge(flips):
    x, m = images(1), 3600
    sim = simulate(
        Scheme(1, 0, signs="kept"), private=x, m=m, image_shape=SHAPE, crops=1, flips=flips, rng=1
    )
    copies = Copies(SHAPE, 1, flips)
    every = copies.all_of(copies.padded(x, x.min()))[0]
    distance = np.abs(sim.encodings.values[:, None] - every).max(axis=2)
    assert distance.min(axis=1).max() < 1e-6
    counts = np.bincount(distance.argmin(axis=1), minlength=copies.count)
    fair = m / copies.count
    assert np.abs(counts - fair).max() < 5 * np.sqrt(fair)
    np.testing.assert_array_equal(sim.private, x)


def test_crops_of_an_epoch_are_shared_by_all_slots():
    x = images(6)
    chosen = np.random.default_rng(0).integers(0, 6, size=(60, 2))
    selection = Selection(chosen, np.empty((60, 0), np.int64))
    both, _, flipped = with_flips(x, None, selection, SHAPE, np.random.default_rng(1), 6)
    cut, new = with_crops(both, flipped, Copies(SHAPE, 1), 6, np.random.default_rng(2), 6)
    for epoch in range(10):
        rows = slice(6 * epoch, 6 * epoch + 6)
        names = {}
        for image, copy in zip(chosen[rows].ravel(), new.private[rows].ravel(), strict=True):
            names.setdefault(image, set()).add(copy)
        assert all(len(copies) == 1 for copies in names.values())
    assert len(cut) == len(np.unique(new.private))


def test_public_images_and_the_selection_are_left_alone():
    how = {"n_private": 4, "n_public": 3, "m": 9, "d": 20, "image_shape": SHAPE, "rng": 3}
    plain, cropped = simulate(Scheme(2, 1), **how), simulate(Scheme(2, 1), crops=1, **how)
    np.testing.assert_array_equal(plain.selection.private, cropped.selection.private)
    np.testing.assert_array_equal(plain.public, cropped.public)
    assert not np.array_equal(plain.encodings.values, cropped.encodings.values)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"crops": 1, "image_shape": None}, "add image_shape="),
        ({"crops": 9}, "smaller than they are"),
        ({"crops": 1, "crops_per": "epoch"}, "without epochs"),
        ({"crops": 1, "crops_per": "day"}, "choose 'use' or 'epoch'"),
    ],
)
def test_what_cannot_be_cropped_is_refused(how, words):
    with pytest.raises(InputError, match=words):
        simulate(Scheme(2), 4, m=9, d=20, rng=0, **({"image_shape": SHAPE} | how))
