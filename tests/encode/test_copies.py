"""Copies of images: against loops over pixels, and mixing against its adjoint."""

import numpy as np
import pytest
from scipy import sparse

from unveil.checks import InputError
from unveil.encode.copies import Copies


def instance(shape=(5, 6, 2), reach=2, flips=True, n=3, m=7, seed=0):
    rng = np.random.default_rng(seed)
    copies = Copies(shape, reach, flips)
    images = rng.standard_normal((n, int(np.prod(shape)))).astype(np.float32)
    chosen = rng.random((m, n * copies.count)) < 0.05
    weights = sparse.csr_array((chosen * rng.random(chosen.shape)).astype(np.float32))
    return copies, images, weights, rng


def slow(copies, image, step, fill):
    """One copy, pixel by pixel."""
    height, width, channels = copies.sides
    mirrored, down, across = step
    x = image.reshape(height, width, channels)
    out = np.full((height, width, channels), fill, np.float32)
    for row in range(height):
        for column in range(width):
            y = row + down - copies.reach
            z = (width - 1 - column if mirrored else column) + across - copies.reach
            if 0 <= y < height and 0 <= z < width:
                out[row, column] = x[y, z]
    return out.ravel()


@pytest.mark.parametrize("shape", [(5, 6, 2), (4, 3)])
@pytest.mark.parametrize("flips", [False, True])
def test_every_copy_against_the_loop(shape, flips):
    copies, images, _, _ = instance(shape, flips=flips)
    every = copies.all_of(copies.padded(images, -1.0))
    assert every.shape == (3, copies.count, int(np.prod(shape)))
    for t, step in enumerate(copies.steps):
        np.testing.assert_array_equal(every[1, t], slow(copies, images[1], step, -1.0))
    (itself,) = np.flatnonzero((copies.steps == [0, copies.reach, copies.reach]).all(axis=1))
    np.testing.assert_array_equal(every[:, itself], images)


@pytest.mark.parametrize("flips", [False, True])
def test_mixing_is_the_product_with_all_copies_and_gathering_its_adjoint(flips):
    copies, images, weights, rng = instance(flips=flips)
    wide = copies.padded(images, np.array([-1.0, 0.5], np.float32))
    every = copies.all_of(wide).reshape(-1, images.shape[1])
    mixed = copies.mix(weights, wide)
    np.testing.assert_allclose(mixed, weights @ every, atol=1e-5)
    rows = rng.standard_normal(mixed.shape).astype(np.float32)
    assert np.vdot(mixed, rows) == pytest.approx(
        np.vdot(wide, copies.gather(weights, rows)), rel=1e-4
    )


def test_padding_is_undone_and_has_one_value_per_channel():
    copies, images, _, _ = instance()
    wide = copies.padded(images, np.array([1.0, 2.0], np.float32))
    np.testing.assert_array_equal(copies.middle(wide), images)
    assert (wide[:, 0, :, 0] == 1).all()
    assert (wide[:, :, -1, 1] == 2).all()


@pytest.mark.parametrize("reach", [-1, 1.5, 5])
def test_paddings_that_make_no_sense_are_refused(reach):
    with pytest.raises(InputError, match="crops="):
        Copies((5, 6), reach)
