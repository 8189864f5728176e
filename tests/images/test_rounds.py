"""Scale shared by image and weights; columns that are taken over; a start from what images have in
common."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from tests.images.test_task import task, weights

from unveil.images.reweigh import Weighing
from unveil.images.rounds import _calibrated, _take_over, _weigh


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


def test_misfit_is_in_the_unit_of_the_energy_whatever_was_raised_before():
    here = task(m=8)
    A = weights(m=8)
    squares = sparse.csr_array(A.multiply(A))
    images = np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
    odd = np.array([1, 1, 1, 1, 1, 1, 3, 0.6], np.float32)
    plain, raised = here.mixture(A, squares), here.mixture(A, squares, odd)
    # The same noise, once as it is and once as what misfit made of a smaller one.
    same = replace(plain, noise=raised.noise)
    known, told = (_weigh(here, mixture, images, here.Y) for mixture in (same, raised))
    np.testing.assert_allclose(told.misfit, known.misfit * odd, rtol=1e-5)
