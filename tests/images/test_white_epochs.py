"""Where rows come epoch by epoch an image that starts as a negative comes back the right way
round, and two in one column come apart."""

import numpy as np
import pytest

import unveil
from unveil.images.epochs import Epochs
from unveil.images.prior import image_prior, smooth_prior
from unveil.images.task import ImageTask, WeightLaw
from unveil.images.white_epochs import carry_on
from unveil.scheme import Scheme

SHAPE, N, BLOCKS = (16, 16), 12, 40


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    scheme = Scheme(2, 4, "released", pairing="epochs")
    private = np.clip(smooth_prior(SHAPE).draw(N, rng), -1, 1).astype(np.float32)
    public = rng.uniform(-1, 1, (2000, 256)).astype(np.float32)
    sim = unveil.simulate(scheme, private=private, public=public, m=BLOCKS * N, rng=1)
    m = sim.encodings.m
    prior = image_prior(SHAPE, public[:500])
    Y = np.abs(sim.encodings.values)
    task = ImageTask(Y, scheme, WeightLaw.of(scheme, rng), prior, None, shape=SHAPE)
    A = np.zeros((m, N), np.float32)
    np.put_along_axis(A, sim.selection.private, np.float32(task.law.mean), axis=1)
    epochs = Epochs(np.arange(m) // N, N, 2)
    return task, private, A, epochs, np.full(m, 0.05, np.float32)


def test_negatives_are_turned_and_a_shared_column_is_taken_apart(problem):
    task, private, A, epochs, noise = problem
    images, A = private.copy(), A.copy()
    images[[2, 7]] *= -1
    images[4] = (private[4] + private[9]) / 2
    images[9] = 0
    A[:, 4] = np.maximum(A[:, 4], A[:, 9])
    A[:, 9] = 0
    found = carry_on(task, images, A, noise, epochs, np.random.default_rng(0))
    likeness = np.corrcoef(found.images, private)[:N, N:]
    assert np.diag(likeness)[[2, 7]].min() > 0.9
    assert likeness.max(axis=0).min() > 0.85
    assert found.left.mean() < noise.mean()
    members = np.argsort(-found.weights, axis=1)[:, :2]
    assert members.shape == found.weighing.members.shape


def test_the_same_seed_gives_the_same_images(problem):
    task, private, A, epochs, noise = problem
    twice = [
        carry_on(task, private, A, noise, epochs, np.random.default_rng(3)).images for _ in range(2)
    ]
    np.testing.assert_array_equal(*twice)
