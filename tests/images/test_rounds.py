"""What the rounds believe of weights, against plain sums; scale shared by image and weights;
columns that are taken over."""

import numpy as np
import pytest
from scipy import sparse

from unveil.images.prior import image_prior
from unveil.images.reweigh import Weighing
from unveil.images.rounds import ImageTask, WeightLaw, _calibrated, _take_over, _unsure
from unveil.images.schedule import SCHEDULE
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
    unsure = 0.3 * (dense**2).sum(axis=1)
    np.testing.assert_allclose(_unsure(A, squares), unsure, rtol=1e-5)
    here = task()
    rest = np.clip(1 - dense.sum(axis=1), 0.05, 0.75)
    np.testing.assert_allclose(
        here.mixture(A, squares).noise,
        np.maximum(rest**2 * here.law.public, SCHEDULE.least) + unsure,
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        task(0).mixture(A, squares).noise, SCHEDULE.least_alone + unsure, rtol=1e-5
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
    np.testing.assert_allclose(
        task().mixture(A, A.multiply(A).tocsr(), misfit).noise / plain,
        [1, 1, 1, 1, 2, 4],
        rtol=1e-5,
    )


def test_calibration_moves_scale_between_image_and_weights_only():
    here = task(m=8)
    members = np.tile([[0, 1], [2, 3]], (4, 1))
    best = np.full((8, 2), 0.8 * here.law.mean, np.float32)
    dense = np.zeros((8, 4), np.float32)
    np.put_along_axis(dense, members, best, axis=1)
    A = sparse.csr_array(dense)
    images = np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
    moved, weighing = _calibrated(
        here,
        images,
        Weighing(A, sparse.csr_array(A.multiply(A)), members, best, np.ones(8, np.float32)),
    )
    # the scale of the mean image, zero here, is not touched: products stay
    np.testing.assert_allclose(weighing.weights @ moved, A @ images, rtol=1e-4, atol=1e-5)
    assert weighing.weights.toarray()[0, 0] == pytest.approx(here.law.mean, rel=1e-4)


def test_a_column_that_is_taken_over_holds_its_cluster_and_nothing_else():
    A = weights()
    first, second = _take_over(A, sparse.csr_array(A.multiply(A)), [(1, np.array([0, 3]))], 0.2)
    np.testing.assert_allclose(first.toarray()[:, 1], [0.2, 0, 0, 0.2, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(second.toarray()[:, 1], [0.04, 0, 0, 0.04, 0, 0], rtol=1e-6)
    np.testing.assert_array_equal(
        np.delete(first.toarray(), 1, axis=1), np.delete(A.toarray(), 1, axis=1)
    )
