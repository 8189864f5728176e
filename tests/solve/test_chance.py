"""Evidence against chance: many nats for continuous pixels, hardly any for two levels, counted where they can be."""

from itertools import combinations
from math import comb, log

import numpy as np
import pytest

from unveil.solve.chance import LUCK, chance_nats, needed_nats


def nats(x, k, m=200, c=None, seed=0, bound=1e-6):
    rng = np.random.default_rng(seed)
    members = np.argsort(rng.random((m, len(x))), axis=1)[:, :k]
    y = np.abs(x[members].sum(axis=1) + (0 if c is None else c))
    return chance_nats(y.astype(np.float32), c, x, k, np.full(x.shape[1], bound), rng), y


@pytest.mark.parametrize("k", [2, 3])
def test_continuous_pixels_are_worth_ten_nats_and_two_levels_less_than_one(k):
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.standard_normal((60, 5)), rng.integers(0, 2, (60, 5)), np.full((60, 2), 0.7)])
    got, _ = nats(x, k)
    assert got[:5].min() > 10
    assert 0 < got[5:10].min() <= got[5:10].max() < 1.5
    np.testing.assert_allclose(got[10:], 0, atol=1e-12)


@pytest.mark.parametrize("public", [False, True])
def test_levels_are_worth_what_all_subsets_count(public):
    """2,000 draws of a share of 0.1 and more: five standard deviations are 0.35 nats. Failure 1e-6 for each of eight pixels."""
    rng = np.random.default_rng(1)
    x = rng.integers(-2, 3, (9, 8)).astype(float)
    c = rng.integers(-1, 2, (200, 8)).astype(np.float32) if public else None
    got, y = nats(x, 2, c=c)
    sums = np.array([x[list(pair)].sum(axis=0) for pair in combinations(range(9), 2)])
    fits = np.abs(np.abs(sums[:, None] + (0 if c is None else c)) - y) < 1e-6
    np.testing.assert_allclose(got, -np.log(fits.mean(axis=(0, 1))), atol=0.35)


def test_a_wider_bound_is_worth_less_by_its_logarithm():
    x = np.random.default_rng(2).standard_normal((80, 4))
    fine, coarse = nats(x, 2, bound=1e-6)[0], nats(x, 2, bound=1e-4)[0]
    np.testing.assert_allclose(fine - coarse, log(100), atol=0.05)


def test_the_nats_needed_are_those_of_the_choices():
    assert needed_nats(100, 2, 700) == pytest.approx(log(comb(100, 2) * 700) + LUCK)
    assert needed_nats(0, 2, 0) == LUCK


def test_more_pixels_than_a_block_are_all_measured():
    x = np.random.default_rng(3).standard_normal((60, 300))
    got, _ = nats(x, 2)
    assert got.shape == (300,)
    assert np.isfinite(got).all()
    assert got.min() > 8
