"""Intervals: they hold the share, shrink with records, and know that draws are clusters."""

import numpy as np
import pytest

from unveil.auditing.intervals import above_control, observations, over_draws, wilson


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_wilson_by_the_formula(share):
    n, z = 40, 1.96
    low, high = wilson(share, n)
    # The ends are where the share lies z standard errors away.
    for end in (low, high):
        if 0 < end < 1:
            assert abs(share - end) == pytest.approx(z * np.sqrt(end * (1 - end) / n), rel=1e-6)
    assert low <= share <= high


def test_wilson_covers():
    rng = np.random.default_rng(0)
    for p in (0.2, 0.5, 0.8):
        hits = [
            low <= p <= high
            for low, high in (wilson(x, 60) for x in rng.binomial(60, p, 3000) / 60)
        ]
        assert 0.93 <= np.mean(hits) <= 0.97


def test_draws_that_differ_count_for_less():
    assert observations([0.5, 0.5, 0.5], 30) == pytest.approx(
        90 * 10 / 8
    )  # a little less is common
    assert observations([0.0, 1.0, 0.5], 30) < 10
    assert observations([1.0], 30) == 30
    wide, narrow = over_draws([0.0, 1.0], 30), over_draws([0.5, 0.5], 30)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize("share", [0.14, 0.3, 0.5, 0.8])
def test_intervals_of_three_draws_hold_the_share(share):
    rng = np.random.default_rng(1)
    shares = rng.binomial(30, share, (2000, 3)) / 30
    held = [low <= share <= high for low, high in (over_draws(each, 30) for each in shares)]
    assert 0.93 <= np.mean(held) <= 0.97


def test_risk_above_a_control():
    assert above_control(0.5, (0.4, 0.6), 0.0, 50)[0] == 0.5
    risk, low, high = above_control(0.6, (0.5, 0.7), 0.2, 50)
    assert risk == pytest.approx(0.5)
    assert low < risk < high
    risk, low, high = above_control(0.1, (0.04, 0.2), 0.1, 50)
    assert risk == 0
    assert low < 0 < high
    assert above_control(1.0, (0.9, 1.0), 1.0, 50) == (0.0, 0.0, 0.0)
