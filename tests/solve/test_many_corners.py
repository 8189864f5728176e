"""More corners than pixels: mixtures of few of them tell all, and weights with them."""

import numpy as np
import pytest

from unveil.solve.many_corners import find_many_corners, guess_corners


def mixtures(n, k, *, m=1500, d=40, seed=0):
    rng = np.random.default_rng(seed)
    # Alike and stretched, as features are: whitening has something to do.
    corners = rng.standard_normal((n, d)) * np.linspace(0.2, 3, d) + 5
    chosen = np.array([rng.choice(n, k, replace=False) for _ in range(m)])
    weights = np.abs(rng.standard_normal((m, k)))
    weights /= weights.sum(axis=1, keepdims=True)
    return corners, chosen, weights, np.einsum("ij,ijd->id", weights, corners[chosen])


def nearest(found, corners):
    return np.array([np.abs(found - x).max(axis=1).min() for x in corners])


@pytest.mark.parametrize(("n", "k"), [(60, 2), (50, 3)])
def test_all_come_back(n, k):
    corners, _, weights, Y = mixtures(n, k)
    found = find_many_corners(Y, k, float(np.square(weights).sum(axis=1).mean()))
    assert found.exact
    assert found.fits.mean() > 0.99
    assert len(found.values) == n
    assert nearest(found.values, corners).max() < 1e-2
    assert np.abs(found.matrix @ found.values - Y)[found.fits].max() < 1e-3
    assert np.allclose(found.weights.sum(axis=1), 1)


def test_known_corners_stay():
    corners, _, weights, Y = mixtures(60, 2)
    squares = float(np.square(weights).sum(axis=1).mean())
    found = find_many_corners(Y, 2, squares, corners[:30])
    assert (found.values[:30] == corners[:30]).all()
    assert nearest(found.values[30:], corners[30:]).max() < 1e-2


def test_a_guess_starts_where_it_is_told():
    corners, chosen, weights, Y = mixtures(60, 2)
    squares = float(np.square(weights).sum(axis=1).mean())
    guess = guess_corners(Y, 2, squares, start=corners, turns=1)
    assert (np.sort(guess.members, axis=1) == np.sort(chosen, axis=1)).mean() > 0.9
    assert np.abs(guess.mixed() - Y).max() < 1e-6


def test_what_is_no_mixture_is_not_explained():
    Y = np.random.default_rng(0).standard_normal((400, 20))
    assert find_many_corners(Y, 2, 0.7) is None
