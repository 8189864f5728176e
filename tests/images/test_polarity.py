"""One sign for all images: the fitted public mean tells it, odd in the signs, and says nothing
where nothing is known."""

import numpy as np
from scipy import sparse

from unveil.images.polarity import SURE, polarity
from unveil.images.prior import ImagePrior, image_prior
from unveil.images.reweigh import whiten


def problem(mean=0.25, seed=0, m=300, n=8):
    """Signed encodings of two private images and a public one; the mean of public images is known
    to the prior."""
    rng = np.random.default_rng(seed)
    generic = image_prior((12, 12))
    level = np.float32(mean) * np.sign(np.sin(np.arange(144))).astype(np.float32)
    prior = ImagePrior(level, generic.basis, generic.variances, generic.pixel, True)
    images = image_prior((12, 12)).draw(n, rng)
    weights = rng.dirichlet(np.full(3, 4.0), m).astype(np.float32)
    L = np.zeros((m, n), np.float32)
    np.put_along_axis(
        L, rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2], weights[:, :2], axis=1
    )
    z = (L @ images + weights[:, 2:] * prior.draw(m, rng)).astype(np.float32)
    return prior, sparse.csr_array(L), (weights[:, 2] ** 2).astype(np.float32), z


def test_right_signs_are_sure_and_turned_ones_as_sure_of_the_opposite():
    prior, L, noise, z = problem()
    right = polarity(np.abs(z), z, L, noise, prior)
    assert right > SURE
    np.testing.assert_allclose(polarity(np.abs(z), -z, L, noise, prior), -right, rtol=1e-5)


def test_it_is_the_last_column_of_a_plain_fit_over_its_standard_error():
    prior, L, noise, z = problem()
    A = np.column_stack([L.toarray(), 1 - L.toarray().sum(axis=1)]).astype(np.float64)
    w = 1 / noise[:, None].astype(np.float64)
    inverse = np.linalg.inv(A.T @ (w * A) + 1e-3 * np.eye(A.shape[1]))
    fitted = (inverse @ A.T @ (w * (z @ whiten(prior))))[-1]
    known = prior.mean @ whiten(prior)
    expected = fitted @ known / np.linalg.norm(known) / np.sqrt(inverse[-1, -1])
    np.testing.assert_allclose(
        polarity(np.abs(z), z, L, noise, prior), expected, rtol=1e-3, atol=1e-3
    )


def test_without_a_known_public_mean_nothing_is_told():
    prior, L, noise, z = problem()
    assert polarity(np.abs(z), z, L, noise, prior.centred()) == 0
    assert polarity(np.abs(z), z, L, noise, image_prior((12, 12))) == 0


def test_where_public_images_have_no_mean_chance_seldom_seems_sure():
    prior, *_ = problem()
    values = []
    for seed in range(40):
        _, L, noise, z = problem(mean=0.0, seed=seed)
        values.append(polarity(np.abs(z), z, L, noise, prior))
    assert np.mean(np.abs(values) > SURE) <= 0.05
    assert np.std(values) < 1.5
