"""Pairs of known vectors against a search of all pairs; new vectors against those that made
them."""

from itertools import combinations

import numpy as np
import pytest

from unveil.solve.signs.pair_matching import agreed, known_pairs, match_pairs, new_vectors


def instance(n, m, seed, levels=None, pixels=30):
    rng = np.random.default_rng(seed)
    x = (
        rng.standard_normal((n, pixels))
        if levels is None
        else rng.integers(0, levels, (n, pixels)) / 100.0 - levels / 200
    )
    pairs = np.array(list(combinations(range(n), 2)))[rng.permutation(n * (n - 1) // 2)[:m]]
    return x, pairs, np.abs(x[pairs].sum(axis=1)), np.full(pixels, 1e-6)


@pytest.mark.parametrize("levels", [None, 256])
def test_known_pairs_as_a_search_of_all_pairs(levels):
    x, _, y, bound = instance(30, 200, 0, levels)
    known = x[:20]
    got = known_pairs(y, known, bound, np.arange(4))
    u, v = np.triu_indices(20, 1)
    for row, value in zip(got, y, strict=True):
        fits = (np.abs(np.abs(known[u] + known[v]) - value) <= 2e-6).all(axis=1)
        expected = [u[fits][0], v[fits][0]] if fits.sum() == 1 else [-1, -1]
        assert row.tolist() == expected


@pytest.mark.parametrize("most", [10**7, 2000])
def test_new_vectors_are_those_of_three_encodings_and_more(most):
    x, pairs, y, bound = instance(24, 200, 1)
    known = 18
    left = (pairs >= known).any(axis=1)
    members, values = new_vectors(y[left], x[:known], bound, np.arange(4), most)
    # Up to nothing: the sign of each pixel is that of the known vectors.
    distance = np.abs(values[:, None] - x[known:]).max(axis=2)
    assert (distance.min(axis=1) < 1e-5).all()
    assert len(values) == len(np.unique(distance.argmin(axis=1))) == 6
    assert (members >= 0).any()


@pytest.mark.parametrize("levels", [None, 256])
def test_all_from_a_few(levels):
    x, pairs, y, bound = instance(60, 420, 2, levels)
    start = np.full(pairs.shape, -1)
    inside = (pairs < 25).all(axis=1)
    start[inside] = pairs[inside]
    matched = match_pairs(y, start, x[:25], bound, 20, np.random.default_rng(0))
    assert (matched.members >= 0).all()
    assert len(matched.values) == 60
    total = np.abs(matched.values[matched.members].sum(axis=1))
    told = ~np.isnan(total)
    assert np.abs(np.where(told, total - y, 0)).max() < 1e-5


def test_a_value_with_a_rival_is_left_open():
    partner = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    value = np.array([0.5, 0.25])  # at the second pixel all partners are equal: −2.25 fits as well
    got, fits = agreed(np.abs(partner + value), partner, np.full(2, 1e-6))
    assert fits.all()
    assert got[0] == pytest.approx(0.5)
    assert np.isnan(got[1])
