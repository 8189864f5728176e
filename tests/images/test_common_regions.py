"""Regions inverted in all images: drawings times one of them, a channel, and nothing where nothing
is wrong."""

import numpy as np
import pytest

from unveil.images.common_regions import FEWEST, inverted_regions
from unveil.images.prior import image_prior

SIDE = 16


def drawings(n, seed):
    """Images in black and white: a half-plane and a disc each, so that edges lie anywhere."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE - 0.5
    out = []
    for _ in range(n):
        angle, at = rng.uniform(0, 2 * np.pi), rng.uniform(-0.4, 0.4)
        top, left, radius = *rng.uniform(-0.4, 0.4, 2), rng.uniform(0.1, 0.3)
        plane = np.cos(angle) * x + np.sin(angle) * y < at
        out.append(np.where(plane ^ (np.hypot(x - left, y - top) < radius), 1, -1))
    return np.array(out, np.float32).reshape(n, -1)


@pytest.mark.parametrize("which", range(4))
def test_drawings_turned_where_one_of_them_is_black_are_turned_back(which):
    """As a product with one of them all images are drawings still, and look no less likely."""
    images = drawings(20, seed=1)
    field = images[which]
    found = np.where(inverted_regions(images * field, (SIDE, SIDE)), -1, 1)
    # Up to one sign for the whole; regions below the least size stay.
    assert abs(np.mean(found * field)) > 1 - 2 * FEWEST / SIDE**2


def test_half_found_images_are_turned_back_too():
    images = drawings(20, seed=2)
    noisy = images * images[0] + np.random.default_rng(0).normal(0, 0.5, images.shape)
    found = np.where(inverted_regions(noisy.astype(np.float32), (SIDE, SIDE)), -1, 1)
    assert abs(np.mean(found * images[0])) > 1 - 2 * FEWEST / SIDE**2


def test_a_channel_that_is_negative_in_all_images_is_turned():
    grey = drawings(20, seed=3)
    images = np.stack([grey, grey, -grey], axis=2)
    found = inverted_regions(images.reshape(20, -1), (SIDE, SIDE, 3)).reshape(-1, 3)
    np.testing.assert_array_equal(found, np.tile([False, False, True], (SIDE**2, 1)))


@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_nothing_is_turned_where_nothing_is_wrong(scale):
    rng = np.random.default_rng(4)
    shape = (SIDE, SIDE)
    for images in (
        drawings(20, seed=5),
        image_prior(shape).draw(20, rng),
        rng.normal(size=(20, SIDE**2)).astype(np.float32),
        rng.normal(size=(1, SIDE**2)).astype(np.float32)[:, :1] + np.zeros((2, SIDE**2), "f4"),
    ):
        assert not inverted_regions(scale * images, shape).any()


def test_a_few_pixels_stay_as_they_are():
    images = drawings(20, seed=6)
    images[:, : FEWEST - 1] *= -1
    assert not inverted_regions(images, (SIDE, SIDE)).any()
    images[:, FEWEST - 1] *= -1
    np.testing.assert_array_equal(
        np.flatnonzero(inverted_regions(images, (SIDE, SIDE))), np.arange(FEWEST)
    )
