"""Where rows come epoch by epoch images that start as negatives come back the right way round, and
regions that are inverted in all of them."""

import numpy as np
import pytest

import unveil
from unveil.images import white_epochs as module
from unveil.images.epochs import Epochs
from unveil.images.prior import image_prior, smooth_prior
from unveil.images.task import ImageTask, WeightLaw
from unveil.images.white_epochs import carry_on
from unveil.scheme import Scheme

SHAPE, N, BLOCKS = (24, 24), 12, 40


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    scheme = Scheme(2, 4, "released", pairing="epochs")
    private = np.clip(smooth_prior(SHAPE).draw(N, rng), -1, 1).astype(np.float32)
    public = rng.uniform(-1, 1, (2000, 576)).astype(np.float32)
    sim = unveil.simulate(scheme, private=private, public=public, m=BLOCKS * N, rng=1)
    m = sim.encodings.m
    prior = image_prior(SHAPE, public[:500])
    Y = np.abs(sim.encodings.values)
    task = ImageTask(Y, scheme, WeightLaw.of(scheme, rng), prior, None, shape=SHAPE)
    A = np.zeros((m, N), np.float32)
    np.put_along_axis(A, sim.selection.private, np.float32(task.law.mean), axis=1)
    epochs = Epochs(np.arange(m) // N, N, 2)
    return task, private, A, epochs, np.full(m, 0.05, np.float32)


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    monkeypatch.setattr(module, "ROUNDS", 3)


def test_negatives_are_turned(problem):
    task, private, A, epochs, noise = problem
    images = private.copy()
    images[[2, 7]] *= -1
    found = carry_on(task, images, A, noise, epochs, np.random.default_rng(0))
    likeness = np.diag(np.corrcoef(found.images, private)[:N, N:])
    assert likeness.min() > 0.9
    assert found.left.mean() < noise.mean()
    assert found.found is not None
    assert found.found.weighing.members.shape == (BLOCKS * N, 2)


def test_a_region_inverted_in_all_images_is_turned_back(problem):
    """Rows cannot tell it, a start from weights alone can."""
    task, private, A, epochs, noise = problem
    sides = np.ones(SHAPE, np.float32)
    sides[8:18, 8:18] = -1
    found = carry_on(task, private * sides.ravel(), A, noise, epochs, np.random.default_rng(0))
    likeness = np.diag(np.corrcoef(found.images, private)[:N, N:])
    assert abs(np.median(likeness)) > 0.95


def test_the_same_seed_gives_the_same_images(problem, monkeypatch):
    task, private, A, epochs, noise = problem
    monkeypatch.setattr(module, "ROUNDS", 1)
    twice = [
        carry_on(task, private, A, noise, epochs, np.random.default_rng(3)).images for _ in range(2)
    ]
    np.testing.assert_array_equal(*twice)
