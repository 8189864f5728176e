"""What the rounds believe of weights, against plain sums."""

import numpy as np
import pytest
from scipy import sparse

from unveil.images.prior import image_prior
from unveil.images.schedule import SCHEDULE
from unveil.images.task import ImageTask, WeightLaw, unsure
from unveil.scheme import Scheme

SHAPE = (4, 4)


def task(k_public=2, labels=None, m=6):
    scheme = Scheme(2, k_public, "released")
    law = WeightLaw.of(scheme, np.random.default_rng(0))
    return ImageTask(np.ones((m, 16), np.float32), scheme, law, image_prior(SHAPE), labels)


def weights(m=6, n=4, seed=0):
    dense = np.random.default_rng(seed).uniform(0.05, 0.3, (m, n)) * np.random.default_rng(
        seed + 1
    ).integers(0, 2, (m, n))
    return sparse.csr_array(dense.astype(np.float32))


def test_the_law_of_fixed_weights_is_those_weights():
    law = WeightLaw.of(Scheme(2, 4, "convex"), np.random.default_rng(0))
    assert (law.largest, law.mean) == pytest.approx((1 / 6, 1 / 6))
    assert law.public == pytest.approx(1 / 4)  # Σλ² / (Σλ)² of four equal ones


def test_the_law_of_drawn_weights_keeps_their_bounds():
    law = WeightLaw.of(Scheme(2, 4, "released"), np.random.default_rng(0))
    assert 0.6 < law.largest <= 0.65
    assert law.mean == pytest.approx(
        0.2175, abs=0.003
    )  # 80,000 draws, sd 0.118: more than five standard errors
    assert WeightLaw.of(Scheme(2, 0, "released"), np.random.default_rng(0)).public == 0


def test_energy_of_what_is_not_known_is_the_plain_formula():
    A = weights()
    squares = sparse.csr_array(1.3 * A.multiply(A))
    dense = A.toarray()
    doubt = 0.3 * (dense**2).sum(axis=1)
    np.testing.assert_allclose(unsure(A, squares), doubt, rtol=1e-5)
    here = task()
    rest = np.clip(1 - dense.sum(axis=1), 0.05, 0.75)
    np.testing.assert_allclose(
        here.mixture(A, squares).noise,
        np.maximum(rest**2 * here.law.public, SCHEDULE.least) + doubt,
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        task(0).mixture(A, squares).noise, SCHEDULE.least_alone + doubt, rtol=1e-5
    )


def test_labels_say_what_private_images_weigh_together():
    labels = np.random.default_rng(2).uniform(0.1, 0.3, (6, 2)).astype(np.float32)
    np.testing.assert_array_equal(task(labels=labels).private(weights()), labels.sum(axis=1))
    np.testing.assert_allclose(
        task().private(weights()), weights().toarray().sum(axis=1), rtol=1e-6
    )


def test_an_encoding_that_fitted_badly_counts_less_but_within_bounds():
    A = weights()
    plain = task().mixture(A, A.multiply(A).tocsr()).noise
    misfit = np.array([1, 1, 1, 1, 2, 100], np.float32)
    mixture = task().mixture(A, A.multiply(A).tocsr(), misfit)
    np.testing.assert_allclose(mixture.noise / plain, [1, 1, 1, 1, 2, 4], rtol=1e-5)
    np.testing.assert_allclose(mixture.raised, [1, 1, 1, 1, 2, 4])


def test_an_image_starts_from_the_mean_of_private_images_where_that_is_known():
    here = task()
    np.testing.assert_array_equal(here.start, here.prior.mean)
    own = np.full(16, 0.4, np.float32)
    one = ImageTask(here.Y, here.scheme, here.law, here.prior, None, own)
    np.testing.assert_array_equal(one.start, own)
