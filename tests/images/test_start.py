"""Images to start from: cross terms where they tell, a mean where they do not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from unveil.images.prior import smooth_prior
from unveil.images.start import start_images
from unveil.images.task import ImageTask, WeightLaw
from unveil.scheme import Scheme

SHAPE = (12, 12)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    prior = smooth_prior(SHAPE)
    n, m = 8, 400
    images = np.clip(prior.draw(n, rng), -1, 1).astype(np.float32)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    A = np.zeros((m, n), np.float32)
    np.put_along_axis(A, members, rng.uniform(0.2, 0.6, (m, 2)).astype(np.float32), axis=1)
    A /= A.sum(axis=1, keepdims=True)
    scheme = Scheme(2, 0, "half-normal")
    Y = np.abs(A @ images).astype(np.float32)
    task = ImageTask(Y, scheme, WeightLaw.of(scheme, rng), prior, None, shape=SHAPE)
    weights = sparse.csr_array(A)
    return task, weights, weights.multiply(weights).tocsr(), images


def test_images_come_back_up_to_one_sign_of_all(problem):
    task, weights, squares, images = problem
    found = start_images(task, weights, squares, None, np.random.default_rng(0))
    likeness = np.diag(np.corrcoef(found, images)[:8, 8:])
    assert abs(np.median(likeness)) > 0.8


def test_without_public_images_a_mean_that_says_much_is_the_start(problem):
    task, weights, squares, _ = problem
    mean = np.full(144, 0.9, np.float32)
    theirs = replace(task.prior, mean=mean)
    assert theirs.mean_share > 0.5
    found = start_images(task, weights, squares, theirs, np.random.default_rng(0))
    np.testing.assert_array_equal(found, np.repeat(mean[None], 8, axis=0))
