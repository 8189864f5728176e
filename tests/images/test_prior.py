"""What images look like: sample moments against numpy's, the generic covariance against its
Kronecker product."""

from dataclasses import replace

import numpy as np
import pytest

from unveil.checks import InputError
from unveil.images import prior as module
from unveil.images.prior import CHANNELS, NEIGHBOURS, VARIANCE, image_prior


def mirrored(images, shape):
    return np.concatenate([images, images.reshape(-1, *shape)[:, :, ::-1].reshape(len(images), -1)])


def covariance(prior):
    return (prior.basis * prior.variances) @ prior.basis.T


def sample(count, shape, seed=0):
    """Images with a mean and a covariance of their own."""
    rng = np.random.default_rng(seed)
    d = int(np.prod(shape))
    mixing = rng.standard_normal((d, d)) / np.sqrt(d)
    return (rng.standard_normal((count, d)) @ mixing + rng.standard_normal(d)).astype(np.float32)


@pytest.mark.parametrize(
    ("count", "shape"), [(300, (4, 5)), (6, (4, 5)), (200, (3, 4, 3)), (10, (4, 3, 2))]
)
def test_a_sample_gives_its_mean_and_covariance_with_mirrored_images_in_it(count, shape):
    like = sample(count, shape)
    prior = image_prior(shape, like)
    both = mirrored(like, shape).astype(np.float64)
    np.testing.assert_allclose(prior.mean, both.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(covariance(prior), np.cov(both.T, bias=True), atol=2e-4)
    np.testing.assert_allclose(prior.pixel, both.var(axis=0), atol=1e-4)
    np.testing.assert_allclose(prior.basis.T @ prior.basis, np.eye(prior.basis.shape[1]), atol=1e-3)
    assert (np.diff(prior.variances) <= 1e-6).all()
    assert prior.known


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 3), (1, 6)])
def test_with_no_sample_the_covariance_is_a_product_over_rows_columns_and_channels(shape):
    expected = np.array([[VARIANCE]])
    for axis, size in enumerate(shape):
        apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        expected = np.kron(
            expected, NEIGHBOURS**apart if axis < 2 else np.where(apart == 0, 1, CHANNELS)
        )
    prior = image_prior(shape)
    np.testing.assert_allclose(covariance(prior), expected, atol=1e-5)
    np.testing.assert_allclose(prior.basis.T @ prior.basis, np.eye(len(expected)), atol=1e-5)
    np.testing.assert_allclose(prior.pixel, np.diag(expected), atol=1e-6)
    np.testing.assert_allclose(prior.correlation(), expected / VARIANCE, atol=1e-5)
    assert not prior.known
    assert not prior.mean.any()


def test_fewer_components_are_the_largest_ones():
    full, few = image_prior((6, 6)), image_prior((6, 6), rank=7)
    assert few.basis.shape == (36, 7)
    np.testing.assert_array_equal(few.variances, full.variances[:7])
    like = sample(100, (6, 6))
    full, few = image_prior((6, 6), like), image_prior((6, 6), like, rank=7)
    np.testing.assert_array_equal(few.variances, full.variances[:7])
    np.testing.assert_allclose(np.diag(few.correlation()), 1, atol=1e-4)


def test_order_and_mirroring_of_the_sample_say_nothing():
    shape = (4, 4, 3)
    like = sample(90, shape)
    prior = image_prior(shape, like)
    for other in (like[::-1], mirrored(like, shape)[90:]):
        again = image_prior(shape, np.ascontiguousarray(other))
        np.testing.assert_allclose(again.mean, prior.mean, atol=1e-5)
        np.testing.assert_allclose(covariance(again), covariance(prior), atol=1e-4)


def test_of_large_images_every_few_are_taken(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 10)
    like = sample(25, (40, 26))
    prior = image_prior((40, 26), like)
    np.testing.assert_allclose(prior.mean, mirrored(like[::3], (40, 26)).mean(axis=0), atol=1e-5)


def test_images_of_another_size_and_a_single_one_are_refused():
    with pytest.raises(InputError, match="20 pixels, encodings 16"):
        image_prior((4, 4), np.zeros((9, 20), np.float32))
    with pytest.raises(InputError, match="at least two"):
        image_prior((4, 4), np.zeros((1, 16), np.float32))


def test_most_of_what_varies_is_in_few_components():
    variances = image_prior((32, 32, 3)).variances
    assert variances[:60].sum() > 0.8 * VARIANCE * 3072
    assert variances.sum() > 0.98 * VARIANCE * 3072


def test_images_that_are_drawn_have_its_mean_and_variances():
    """20,000 draws of 16 pixels: five standard errors of a variance are 5·√(2/20000) = 0.05 of
    it."""
    prior = image_prior((4, 4))
    prior = replace(prior, mean=np.linspace(-1, 1, 16, dtype=np.float32))
    images = prior.draw(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(images.mean(axis=0), prior.mean, atol=5 * np.sqrt(0.3 / 20_000))
    np.testing.assert_allclose(
        ((images - prior.mean) @ prior.basis).var(axis=0), prior.variances, rtol=0.05
    )
