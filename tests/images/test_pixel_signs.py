"""One sign per pixel: the best of all sign patterns on a small image, the truth on smooth ones."""

from itertools import product

import numpy as np
import pytest

from unveil.images.pixel_signs import synchronise
from unveil.images.prior import image_prior


def smooth(n, shape, seed=0):
    prior = image_prior(shape)
    return prior, prior.draw(n, np.random.default_rng(seed))


def flipped(images, seed=1):
    return images * np.random.default_rng(seed).choice([-1, 1], images.shape[1]).astype(np.float32)


def run(images, prior, mean=None, seed=0):
    mean = prior.mean if mean is None else mean
    return synchronise(images, prior.correlation(), mean, np.random.default_rng(seed))


def test_no_sign_pattern_is_better_on_a_small_image():
    prior, x = smooth(4, (3, 4))
    start = flipped(x)
    signs = np.sign((run(start, prior) * start).sum(axis=0))
    v = start / np.linalg.norm(start, axis=0)
    K = (v.T @ v) * prior.correlation()
    np.fill_diagonal(K, 0)
    best = max(float(s @ K @ s) for s in map(np.array, product([-1, 1], repeat=12)))
    assert signs @ K @ signs == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("shape", [(16, 16), (8, 8, 3)])
def test_signs_of_smooth_images_come_back_up_to_one_for_all(shape):
    prior, x = smooth(12, shape)
    found = run(flipped(x), prior)
    found *= np.sign((found * x).sum())
    assert (np.sign((found * x).sum(axis=0)) > 0).mean() > 0.99
    np.testing.assert_array_equal(np.abs(found), np.abs(x))


def test_the_mean_image_tells_the_sign_of_the_whole():
    prior, x = smooth(12, (16, 16))
    x += 0.5
    mean = np.full(256, 0.5, np.float32)
    for start in (flipped(x), -flipped(x)):
        np.testing.assert_allclose(run(start, prior, mean), x)


def test_a_sign_of_any_pixel_in_what_is_given_changes_nothing():
    prior, x = smooth(12, (16, 16))
    mean = np.full(256, 0.5, np.float32)
    np.testing.assert_array_equal(
        run(flipped(x + 0.5, 1), prior, mean), run(flipped(x + 0.5, 2), prior, mean)
    )


def test_the_order_of_images_only_moves_them_and_the_generator_does_not_matter_here():
    prior, x = smooth(12, (16, 16))
    start, mean = flipped(x + 0.5), np.full(256, 0.5, np.float32)
    one = run(start, prior, mean)
    np.testing.assert_array_equal(run(start[::-1], prior, mean, seed=5), one[::-1])


def test_noise_and_black_pixels_are_borne():
    prior, x = smooth(20, (16, 16))
    noisy = x + 0.3 * np.random.default_rng(3).standard_normal(x.shape).astype(np.float32)
    noisy[:, :8] = 0
    found = run(flipped(noisy), prior)
    found *= np.sign((found * x).sum())
    assert np.isfinite(found).all()
    assert (np.sign((found * x).sum(axis=0)) > 0)[8:].mean() > 0.95


def test_pixels_that_the_prior_says_are_opposite_come_out_opposite():
    prior, x = smooth(12, (16, 16))
    turned = np.random.default_rng(2).choice([-1, 1], 256).astype(np.float32)
    correlation = prior.correlation() * turned * turned[:, None]
    found = synchronise(flipped(x), correlation, turned, np.random.default_rng(0))
    found *= np.sign((found * x * turned).sum())
    assert (np.sign((found * x * turned).sum(axis=0)) > 0).mean() > 0.99
