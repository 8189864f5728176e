"""Intervals against their definitions."""

import numpy as np
import pytest
from experiments.bands import mean_band, power_law, share_band
from scipy.stats import binomtest, linregress, t


def test_the_mean_has_students_interval():
    values = np.random.default_rng(0).standard_normal((12, 3))
    mean, low, high = mean_band(values)
    half = t.ppf(0.975, 11) * values.std(axis=0, ddof=1) / np.sqrt(12)
    np.testing.assert_allclose((mean, low, high), (values.mean(axis=0), mean - half, mean + half))
    assert [float(part[0]) for part in mean_band(values[:1])] == [values[0, 0]] * 3


@pytest.mark.parametrize("count", [0, 1, 17, 40])
def test_a_share_has_wilsons_interval(count):
    exact = binomtest(count, 40).proportion_ci(method="wilson")
    share, low, high = share_band(count, 40)
    assert share == count / 40
    assert (float(low), float(high)) == pytest.approx((exact.low, exact.high), abs=1e-4)


def test_an_exponent_is_that_of_the_regression():
    rng = np.random.default_rng(1)
    n = np.array([20.0, 40, 80, 160, 320])
    m = 3 * n**1.7 * np.exp(0.1 * rng.standard_normal(5))
    line = linregress(np.log(n), np.log(m))
    found = power_law(n, m)
    half = t.ppf(0.975, 3) * line.stderr
    assert found == pytest.approx(
        (line.slope, line.slope - half, line.slope + half, np.exp(line.intercept))
    )


def test_an_exact_power_is_found():
    found = power_law([1, 2, 4, 8], [5, 20, 80, 320])
    assert found == pytest.approx((2, 2, 2, 5))
