"""Regions of single images that are inverted: the evidence written out, and turned back."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm

from unveil.images.prior import image_prior
from unveil.images.regions import FAINT, LEFT, evidence, turned_back
from unveil.images.sign_fields import Mixture

SHAPE = (12, 12)


def problem(n=12, m=500, seed=0, noise=0.02):
    rng = np.random.default_rng(seed)
    prior = image_prior(SHAPE)
    images = prior.draw(n, rng)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    A = np.zeros((m, n), np.float32)
    np.put_along_axis(A, members, rng.uniform(0.1, 0.5, (m, 2)).astype(np.float32), axis=1)
    z = A @ images + np.sqrt(noise) * (prior.draw(m, rng) - prior.mean)
    mixture = Mixture(sparse.csr_array(A), np.full(m, noise, np.float32))
    return np.abs(z).astype(np.float32), mixture, images, prior


def test_evidence_is_the_folded_likelihood_of_both_signs():
    Y, mixture, images, prior = problem(m=20)
    found = evidence(Y, mixture, images, prior)
    A = mixture.weights.toarray()
    rest = 1 - A.sum(axis=1)
    spread = np.sqrt(mixture.noise[0] * prior.pixel)

    def folded(y, mean):
        return np.log(norm.pdf(y, mean, spread) + norm.pdf(-y, mean, spread))

    total = np.zeros_like(images)
    for i in range(20):
        known = A[i] @ images + rest[i] * prior.mean
        for j in np.flatnonzero(A[i] > FAINT):
            own = A[i, j] * images[j]
            total[j] += folded(Y[i], known) - folded(Y[i], known - 2 * own)
    np.testing.assert_allclose(found, total, rtol=1e-2, atol=0.05)


def test_an_inverted_region_and_a_negative_are_turned_back_and_the_rest_stays():
    Y, mixture, images, prior = problem()
    wrong = images.copy().reshape(-1, *SHAPE)
    wrong[1, :, :6] *= -1
    wrong[4] *= -1
    fixed, told = turned_back(Y, mixture, wrong.reshape(images.shape), prior, SHAPE)
    energy = np.abs(images)
    agree = (energy * (fixed * images > 0)).sum(axis=1) / energy.sum(axis=1)
    assert (agree > 0.95).all()
    # a negative has the least evidence, an image that is half inverted the next
    assert np.argsort(told)[:2].tolist() == [4, 1]
    assert told[4] < 0 < np.delete(told, [1, 4]).min()
    same, all_told = turned_back(Y, mixture, images, prior, SHAPE)
    np.testing.assert_allclose(same[0], images[0], atol=0.3)
    assert all_told.min() > 0.1  # that of an image much brighter than others
    assert np.median(all_told) == pytest.approx(1)


def test_where_nothing_tells_an_image_fades():
    Y, mixture, images, prior = problem(m=40)
    nobody = Mixture(sparse.csr_array(mixture.weights * 0), mixture.noise)
    faded, told = turned_back(Y, nobody, images, prior, SHAPE)
    np.testing.assert_allclose(faded, LEFT * images)
    assert not told.any()
