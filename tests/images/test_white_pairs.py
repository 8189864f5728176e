"""Pairs while signs are known in part: block means, the law, members told by squares and better by
signs, and each image k times in an epoch."""

import numpy as np
import pytest

from unveil.images.epochs import Epochs
from unveil.images.prior import image_prior, smooth_prior
from unveil.images.task import ImageTask, WeightLaw
from unveil.images.white_pairs import Pairs, block_means, law_cells, soft_pairs
from unveil.scheme import Scheme

SHAPE = (16, 16)
N, EPOCHS = 8, 30


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    scheme = Scheme(2, 4, "released")
    images = np.clip(smooth_prior(SHAPE).draw(N, rng), -1, 1)
    members = np.concatenate(
        [np.stack([np.arange(N), np.roll(np.arange(N), 1 + b % 7)], axis=1) for b in range(EPOCHS)]
    )
    m = len(members)
    weights = rng.uniform(0.15, 0.4, (m, 2)).astype(np.float32)
    A = np.zeros((m, N), np.float32)
    np.put_along_axis(A, members, weights, axis=1)
    rest = 0.5 * (1 - A.sum(axis=1, keepdims=True))
    Y = np.abs(A @ images + rest * rng.uniform(-1, 1, (m, 256))).astype(np.float32)
    prior = image_prior(SHAPE, rng.uniform(-1, 1, (600, 256)).astype(np.float32))
    task = ImageTask(Y, scheme, WeightLaw.of(scheme, rng), prior, None, shape=SHAPE)
    return task, images, np.sort(members, axis=1), A, law_cells(task, rng)


def test_block_means_cover_every_pixel_once():
    for shape in ((16, 16), (13, 10), (8, 8, 3), (3, 3)):
        means, pixels = block_means(shape)
        assert pixels.sum() == np.prod(shape)
        assert means.shape == (len(pixels), np.prod(shape))
        np.testing.assert_allclose(means.sum(axis=1), 1, rtol=1e-5)
    flat = np.arange(16.0).reshape(4, 4).repeat(4, axis=0).repeat(4, axis=1)
    np.testing.assert_allclose(block_means(SHAPE)[0] @ flat.ravel(), np.arange(16), rtol=1e-5)


def test_cells_have_the_means_of_the_law(problem):
    task, *_, cells = problem
    assert cells[:, :2].mean() == pytest.approx(task.law.mean, rel=0.02)
    assert cells[:, 2].min() > 0


def test_squares_tell_members_and_signs_tell_more(problem):
    task, images, members, A, cells = problem
    right = []
    for told in (0, 1):
        pairs = soft_pairs(task, images, cells, np.full(N, told))
        odds = pairs.odds(N, None)
        np.testing.assert_allclose(odds.sum(axis=1), 1, rtol=1e-4)
        hit = (pairs.members == members[:, None]).all(axis=2)
        right.append(float((odds * hit).sum(axis=1).mean()))
        weights, squares, noise = pairs.expected(odds, N)
        assert np.corrcoef(weights.ravel(), A.ravel())[0, 1] > 0.5
        assert (squares - weights**2).min() > -1e-5
        assert noise.min() > 0
    # One of 28 by chance.
    assert 0.15 < right[0] < right[1]


def test_forgotten_signs_do_not_matter(problem):
    task, images, _, _, cells = problem
    turned = images.copy()
    turned[2, :100] *= -1
    told = np.where(np.arange(N) == 2, 0, 1)
    a, b = (soft_pairs(task, x, cells, told) for x in (images, turned))
    np.testing.assert_allclose(
        a.expected(a.odds(N, None), N)[0], b.expected(b.odds(N, None), N)[0], atol=1e-4
    )


def test_each_image_is_k_times_in_an_epoch(problem):
    task, images, _, _, cells = problem
    epochs = Epochs(np.arange(len(task.Y)) // N, N, 2)
    pairs = soft_pairs(task, images, cells, np.zeros(N))
    one = Pairs(
        pairs.members, pairs.likelihood, np.ones_like(pairs.weights), pairs.squares, pairs.noise
    )
    free, matched = (
        np.abs(epochs.totals(one.expected(one.odds(N, order), N)[0]) - 2)
        for order in (None, epochs)
    )
    assert matched.mean() < 0.1 * free.mean()
