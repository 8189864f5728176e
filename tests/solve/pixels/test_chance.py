"""Evidence against chance: many nats for continuous pixels, hardly any for two levels, counted
where they can be."""

from itertools import combinations
from math import comb, log

import numpy as np
import pytest

from unveil import Encodings, Scheme, recover
from unveil.solve.pixels.chance import (
    LUCK,
    PLENTY,
    chance_nats,
    fit_nats,
    needed_nats,
    pattern_nats,
    spare_nats,
)


def nats(x, k, m=200, c=None, seed=0, bound=1e-6, plenty=PLENTY):
    rng = np.random.default_rng(seed)
    members = np.argsort(rng.random((m, len(x))), axis=1)[:, :k]
    y = np.abs(x[members].sum(axis=1) + (0 if c is None else c))
    y32, bounds = y.astype(np.float32), np.full(x.shape[1], bound)
    return chance_nats(y32, c, x, k, bounds, rng, plenty), y


@pytest.mark.parametrize("k", [2, 3])
def test_continuous_pixels_are_worth_ten_nats_and_two_levels_less_than_one(k):
    rng = np.random.default_rng(0)
    x = np.column_stack(
        [rng.standard_normal((60, 5)), rng.integers(0, 2, (60, 5)), np.full((60, 2), 0.7)]
    )
    got, _ = nats(x, k)
    assert got[:5].min() > 10
    assert 0 < got[5:10].min() <= got[5:10].max() < 1.5
    np.testing.assert_allclose(got[10:], 0, atol=1e-12)


@pytest.mark.parametrize("public", [False, True])
def test_levels_are_worth_what_all_subsets_count(public):
    """2,000 draws of a share of 0.1 and more: five standard deviations are 0.35 nats. Failure 1e-6
    for each of eight pixels."""
    rng = np.random.default_rng(1)
    x = rng.integers(-2, 3, (9, 8)).astype(float)
    c = rng.integers(-1, 2, (200, 8)).astype(np.float32) if public else None
    got, y = nats(x, 2, c=c)
    sums = np.array([x[list(pair)].sum(axis=0) for pair in combinations(range(9), 2)])
    fits = np.abs(np.abs(sums[:, None] + (0 if c is None else c)) - y) < 1e-6
    np.testing.assert_allclose(got, -np.log(fits.mean(axis=(0, 1))), atol=0.35)


def test_where_pixels_are_many_some_are_measured_and_the_others_count_for_nothing(monkeypatch):
    """Evidence of some is never more than that of all, and what is too little is never left off."""
    monkeypatch.setattr("unveil.solve.pixels.chance.MOST_MEASURED", 512)
    x = np.random.default_rng(5).standard_normal((20, 3000))
    y = np.abs(x[[0, 1]] + x[[2, 3]]).astype(np.float32)

    def measured(plenty):
        bound, rng = np.full(3000, 1e-6), np.random.default_rng(0)
        return chance_nats(y, None, x, 2, bound, rng, plenty)

    some, all_ = measured(100.0), measured(np.inf)
    assert (some > 0).sum() == 512
    assert (all_ > 0).all()
    assert 100 <= some.sum() < all_.sum()


def test_a_wider_bound_is_worth_less_by_its_logarithm():
    x = np.random.default_rng(2).standard_normal((80, 4))
    fine, coarse = nats(x, 2, bound=1e-6)[0], nats(x, 2, bound=1e-4)[0]
    np.testing.assert_allclose(fine - coarse, log(100), atol=0.05)


def test_the_nats_needed_are_those_of_the_choices():
    assert needed_nats(100, 2, 700) == pytest.approx(log(comb(100, 2) * 700) + LUCK)
    assert needed_nats(0, 2, 0) == LUCK


def test_more_pixels_than_a_block_are_all_measured_unless_some_say_plenty():
    x = np.random.default_rng(3).standard_normal((60, 300))
    got, _ = nats(x, 2, plenty=np.inf)
    assert got.shape == (300,)
    assert np.isfinite(got).all()
    assert got.min() > 8
    some, _ = nats(x, 2)
    assert (some > 0).sum() == 256
    assert PLENTY < some.sum() < got.sum()


def test_under_noise_many_pixels_say_more_than_chance_and_four_do_not():
    rng = np.random.default_rng(0)
    for d, more in ((4, False), (60, True)):
        x = rng.standard_normal((20, d))
        members = np.argsort(rng.random((150, 20)), axis=1)[:, :2]
        total = np.abs(x[members].sum(axis=1))
        nats = fit_nats(np.abs(total + 0.1 * rng.standard_normal(total.shape)), total, 0.1, rng)
        assert (spare_nats(nats, 150, 20, 2, 150, d) > 0) == more


def test_what_chance_fits_is_what_shuffled_encodings_are_fitted_by():
    """fit_nats against a count: how often an encoding of shuffled pixels is within reach of a sum
    that is not its own."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 2))
    members = np.argsort(rng.random((400, 20)), axis=1)[:, :2]
    total = np.abs(x[members].sum(axis=1))
    shuffled = np.column_stack([rng.permutation(column) for column in total.T])
    near = (np.abs(shuffled[:, None] - total) <= 3 * 0.1).all(axis=2).mean()
    assert abs(fit_nats(total, total, 0.1, rng) + log(near)) < 0.3


def test_as_many_vectors_as_encodings_say_nothing():
    assert spare_nats(1000.0, 50, 50, 2, 50, 0) < 0
    assert spare_nats(1000.0, 50, 30, 2, 50, 0) > 0
    assert spare_nats(5.0, 500, 27, 2, 700, 0) < 0
    assert fit_nats(np.ones((1, 3)), np.ones((1, 3)), 0.1, np.random.default_rng(0)) == 0


def test_patterns_of_signs_are_never_more_than_counted():
    """An oracle by draws: as many patterns as random values show, mirror images once."""
    rng = np.random.default_rng(0)
    for rows, n in ((4, 2), (6, 3), (8, 3), (3, 5)):
        signs = rng.standard_normal((rows, n)) @ rng.standard_normal((n, 20_000)) > 0
        seen = len({min(tuple(column), tuple(~column)) for column in signs.T})
        assert log(seen) <= pattern_nats(rows, n) + 1e-9
    assert pattern_nats(1, 5) == pattern_nats(7, 1) == 0


def test_pure_noise_is_not_read_as_vectors_seen_through_noise():
    """60 encodings of 50 pixels, 30 vectors: half the rows are free and the signs fit the rest."""
    assert spare_nats(75.0, 60, 30, 2, 60, 50) < 0 < spare_nats(75.0, 60, 30, 2, 60, 0)
    for seed in range(2):
        y = np.abs(np.random.default_rng(seed).standard_normal((60, 50)))
        found = recover(Encodings(y, Scheme(k_private=2)), attack="tensor", rng=seed)
        assert "recovered to about" not in found.explanation
