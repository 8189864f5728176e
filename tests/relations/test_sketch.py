"""A sketch has the pixels that tell, and says how much: measured against quadruples counted one by
one."""

from itertools import combinations, product

import numpy as np
import pytest

from unveil.relations.sketch import (
    MOST_PIXELS,
    ROUNDING,
    TAIL,
    WIDTH,
    _distance,
    nats_against_chance,
    sketch,
)

SIGNS = np.array(list(product((1.0, -1.0), repeat=4)))


def drawn(y, c=None, noise=0.0, seed=0, **options):
    return sketch(y.astype(np.float32), c, noise, np.random.default_rng(seed), **options)


@pytest.mark.parametrize("public", [False, True])
def test_distances_are_the_least_over_all_signs(public):
    rng = np.random.default_rng(0)
    y = np.abs(rng.standard_normal((12, 5))).astype(np.float32)
    c = rng.standard_normal((12, 5)).astype(np.float32) if public else None
    quads = np.array(list(combinations(range(12), 4)))
    offset = np.zeros((12, 5)) if c is None else c.astype(np.float64)
    plain = [
        np.abs(SIGNS @ y[q].astype(np.float64) - [1, -1, -1, 1] @ offset[q]).min(axis=0)
        for q in quads
    ]
    np.testing.assert_allclose(_distance(y, c, quads), plain, atol=1e-6)


def test_nats_of_levels_are_what_all_quadruples_count():
    """4,000 draws of a chance of 0.2 and more: within 0.15 nats, five standard deviations of the
    share. Failure 1e-6."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 6, (20, 8)).astype(np.float32)
    quads = np.array(list(combinations(range(20), 4)))
    share = (_distance(y, None, quads) == 0).mean(axis=0)
    view = drawn(y)
    np.testing.assert_allclose(view.nats, -np.log(share[view.pixels]), atol=0.15)


def test_nats_of_continuous_pixels_are_the_density_at_zero():
    """Four uniform values: the density of the least |±a ± b ± c ± d| at zero, by 10⁶ draws, holds
    within 0.3 nats."""
    rng = np.random.default_rng(2)
    y = rng.random((400, 6)).astype(np.float32)
    one, two, three, four = rng.random((4, 1_000_000))
    near = np.minimum.reduce(
        [np.abs(one + a * two + b * three + c * four) for a, b, c in product((1, -1), repeat=3)]
    )
    expected = -np.log((near <= 1e-3).mean() * WIDTH * ROUNDING / 1e-3)
    np.testing.assert_allclose(drawn(y).nats, expected, atol=0.3)


def test_where_nothing_is_near_the_tail_is_extrapolated_and_where_many_are_they_are_counted():
    distance = np.column_stack(
        [np.linspace(0.5, 1.5, 1000), np.where(np.arange(1000) < 300, 0.0, 1.0), np.zeros(1000)]
    )
    nats = nats_against_chance(distance, np.full(3, 1e-6))
    edge = np.quantile(distance[:, 0], TAIL)
    np.testing.assert_allclose(nats, -np.log([TAIL * WIDTH * 1e-6 / edge, 0.3, 1.0]), atol=1e-12)


def test_pixels_that_tell_nothing_are_left_out_and_the_telling_ones_come_first():
    rng = np.random.default_rng(3)
    y = np.column_stack(
        [np.ones(50), np.zeros(50), rng.integers(0, 2, 50), rng.random(50), rng.integers(0, 9, 50)]
    )
    view = drawn(y)
    np.testing.assert_array_equal(view.pixels, [3, 4, 2])
    assert (np.diff(view.nats) <= 0).all()
    assert view.nats[2] < 1 < view.nats[1] < 10 < view.nats[0]


def test_a_sketch_holds_both_values_of_every_encoding():
    rng = np.random.default_rng(4)
    y, c = rng.random((2, 30, 100)).astype(np.float32)
    for offset in (None, c):
        view = drawn(y, offset)
        assert view.free == (offset is None)
        assert len(set(view.pixels)) == MOST_PIXELS
        part = 0.0 if offset is None else c[:, view.pixels]
        np.testing.assert_allclose(view.hi, y[:, view.pixels] - part, atol=1e-6)
        np.testing.assert_allclose(view.lo, -y[:, view.pixels] - part, atol=1e-6)
        some = view.of(np.array([5, 2]))
        assert some.m == 2
        np.testing.assert_array_equal(some.hi, view.hi[[5, 2]])
    assert len(drawn(y, most=7).pixels) == 7


def test_noise_widens_and_devalues_every_pixel():
    y = np.random.default_rng(5).random((100, 10))
    exact, noisy = drawn(y), drawn(y, noise=0.01)
    np.testing.assert_allclose(noisy.spread, 0.02)
    assert (exact.spread < 1e-6).all()
    assert noisy.nats.max() < 5 < exact.nats.min()


def test_the_same_seed_gives_the_same_sketch():
    y = np.random.default_rng(6).random((40, 500))
    one, two = drawn(y, seed=1), drawn(y, seed=1)
    np.testing.assert_array_equal(one.pixels, two.pixels)
    np.testing.assert_array_equal(one.nats, two.nats)


@pytest.mark.parametrize("m", range(5))
def test_a_handful_of_encodings_and_no_pixels_at_all_make_an_empty_sketch(m):
    assert len(drawn(np.ones((m, 3))).pixels) == 0
    assert drawn(np.ones((m, 0))).hi.shape == (m, 0)
    assert len(drawn(np.zeros((m, 3)), np.ones((m, 3), np.float32)).pixels) == 0
