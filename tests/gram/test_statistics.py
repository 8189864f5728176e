"""Features against plain NumPy, pixel order, and what is known of the public part."""

import numpy as np
import pytest

from unveil import Encodings, InputError, Scheme, simulate
from unveil.gram.statistics import (
    STATISTICS,
    feature_rows,
    pixel_order,
    public_part,
    statistic_levels,
)


def plain(values, statistic, order):
    y = np.abs(values.astype(np.float64))
    d = y.shape[1]
    square = (y**2).mean(axis=1, keepdims=True)
    if statistic == "squares":
        return ((y**2 / square - 1) / np.sqrt(d))[:, order]
    return ((y - y.mean(axis=1, keepdims=True)) / np.sqrt(square * d))[:, order]


@pytest.mark.parametrize("screen", [200, 64, 1])
@pytest.mark.parametrize("statistic", ["folded", "squares", "likelihood"])
def test_features_equal_the_plain_twin(statistic, screen):
    values = np.random.default_rng(0).standard_normal((7, 200)).astype(np.float32)
    order = pixel_order(200, screen)
    F, offset = feature_rows(values, statistic, order)
    assert F.dtype == np.float32
    np.testing.assert_allclose(F, plain(values, statistic, order), atol=2e-6)
    y = np.abs(values[:, order])
    rms = np.sqrt((y.astype(np.float64) ** 2).mean(axis=1, keepdims=True))
    if statistic != "squares":
        np.testing.assert_allclose(F * np.sqrt(200) + offset[:, None], y / rms, atol=1e-5)


def test_assisted_features_equal_the_plain_twin_from_any_start():
    sim = simulate(Scheme(2, 3, "paper"), 9, n_public=20, m=12, d=150, rng=0)
    part = public_part(sim.encodings, sim.selection.public, sim.public)
    order = pixel_order(150, 40)
    mu = sim.public[sim.selection.public].sum(axis=1) / np.sqrt(3)
    y = np.abs(sim.encodings.values)
    expected = ((y * np.tanh(y * mu) - mu) / np.sqrt(150))[:, order]
    F, _ = feature_rows(sim.encodings.values[5:], "assisted", order, part, 5)
    np.testing.assert_allclose(F, expected[5:], atol=2e-6)


@pytest.mark.parametrize("statistic", ["folded", "squares", "assisted"])
def test_rows_without_contrast_have_zero_features(statistic):
    sim = simulate(Scheme(2, 2), 9, n_public=20, m=4, d=50, rng=0)
    values = sim.encodings.values.copy()
    values[0], values[1] = 0, 1.7
    encodings = Encodings(values, sim.encodings.scheme)
    F, _ = feature_rows(
        values, statistic, np.arange(50), public_part(encodings, sim.selection.public, sim.public)
    )
    assert not F[:2].any()
    assert F[2:].all()


@pytest.mark.parametrize(("d", "screen"), [(10, 10), (10, 20), (3072, 704), (7, 3), (100, 1)])
def test_pixel_order_is_a_permutation_with_the_screen_spread_out(d, screen):
    order = pixel_order(d, screen)
    np.testing.assert_array_equal(np.sort(order), np.arange(d))
    if screen < d:
        assert (np.diff(order[:screen]) >= d // screen).all()


def test_the_private_variance_is_measured_when_the_pixels_are_not_known():
    sim = simulate(Scheme(2, 2, "paper"), 30, n_public=30, m=200, d=2000, rng=1)
    known = public_part(sim.encodings, sim.selection.public, sim.public)
    unknown = public_part(
        Encodings(3 * sim.encodings.values, sim.encodings.scheme, None),
        sim.selection.public,
        3 * sim.public,
    )
    assert known.variance == pytest.approx(1)
    assert unknown.variance == pytest.approx(9, rel=0.1)
    assert unknown.ratio == pytest.approx(known.ratio, rel=0.1)


def test_levels_exist_for_every_statistic():
    sim = simulate(Scheme(3, 2), 9, n_public=20, m=4, d=50, rng=0)
    part = public_part(sim.encodings, sim.selection.public, sim.public)
    for statistic in STATISTICS:
        levels = statistic_levels(statistic, sim.encodings.scheme, part)
        assert levels.mean.shape == levels.sd.shape == (3, 4)
        assert (np.diff(levels.mean, axis=1) > 0).all()
    with pytest.raises(InputError, match="pass public="):
        statistic_levels("assisted", sim.encodings.scheme, None)
