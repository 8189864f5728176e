"""Which way round regions are at the start: the cut against all signs there are, evidence that is
odd in the sign, and a region that is inverted in all images."""

from itertools import product

import numpy as np
import pytest
from tests.images.test_polarity import problem

from unveil.images.public_sides import cut, evidence, neighbours, public_sides
from unveil.images.sign_fields import Mixture

SHAPE = (12, 12)


def images_of(seed):
    """A problem whose images are fitted with signs known; its mixture and magnitudes."""
    prior, L, noise, z = problem(seed=seed)
    A = np.column_stack([L.toarray(), 1 - L.toarray().sum(axis=1)])
    images = np.linalg.lstsq(A, z, rcond=None)[0][:-1].astype(np.float32)
    return prior, Mixture(L, noise), np.abs(z), images


@pytest.mark.parametrize("seed", range(10))
def test_the_cut_is_the_best_of_all_signs(seed):
    rng = np.random.default_rng(seed)
    places = np.arange(9).reshape(3, 3)
    p = np.concatenate([places[:, :-1].ravel(), places[:-1].ravel()])
    q = np.concatenate([places[:, 1:].ravel(), places[1:].ravel()])
    field, pull = rng.standard_normal(9), rng.random(12) * (rng.random(12) < 0.8)

    def value(t):
        return field @ t + pull @ (t[p] * t[q])

    best = max(value(np.array(t)) for t in product([-1.0, 1.0], repeat=9))
    found = cut(field, p, q, pull)
    assert set(found) <= {-1.0, 1.0}
    assert value(found) == pytest.approx(best, abs=1e-4)


def test_without_any_pull_every_place_follows_its_field():
    p, q = np.array([0, 1]), np.array([1, 2])
    np.testing.assert_array_equal(cut(np.array([2.0, -1, 3]), p, q, np.zeros(2)), [1, -1, 1])


def test_evidence_is_for_images_as_they_are_and_as_much_against_their_negatives():
    for seed in range(5):
        prior, mixture, Y, images = images_of(seed)
        right = evidence(Y, mixture, images, prior)
        assert right.sum() > 0
        turned = evidence(Y, mixture, -images, prior)
        np.testing.assert_allclose(turned, -right, rtol=1e-3, atol=1e-2)


def test_a_region_that_is_inverted_in_all_images_is_turned_back():
    for seed in range(5):
        prior, mixture, Y, images = images_of(seed)
        inverted = np.ones(SHAPE, np.float32)
        inverted[4:10, 3:9] = -1
        t = public_sides(Y, mixture, images * inverted.ravel(), prior, SHAPE)
        # Nine in ten: neighbours at the edge of the region can go with either side.
        assert np.mean(t == inverted.ravel()) > 0.9


def test_negatives_are_turned_as_a_whole_and_right_images_not_at_all():
    for seed in range(5):
        prior, mixture, Y, images = images_of(seed)
        right = public_sides(Y, mixture, images, prior, SHAPE)
        assert np.mean(right == 1) > 0.95
        np.testing.assert_array_equal(public_sides(Y, mixture, -images, prior, SHAPE), -right)


def test_where_nothing_is_known_of_the_public_mean_all_stays():
    prior, mixture, Y, images = images_of(0)
    assert (public_sides(Y, mixture, images, prior.centred(), SHAPE) == 1).all()


def test_neighbours_that_differ_in_most_images_do_not_pull():
    images = np.ones((5, 144), np.float32)
    images[:, :72] = -1
    p, q, pull = neighbours(images, SHAPE)
    across = (p < 72) != (q < 72)
    assert (pull[across] == 0).all()
    assert (pull[~across] > 0).all()
