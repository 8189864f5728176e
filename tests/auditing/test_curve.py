"""The leakage curve: found where it changes, with a band that covers, and within its effort."""

from types import SimpleNamespace

import numpy as np
import pytest

from unveil.auditing.curve import curve, trace, wilson


def trial(exact, almost=0.0):
    return SimpleNamespace(exact=exact, recovered=exact + almost)


def step(at):
    return lambda m, draw: trial(float(m >= at + draw))


@pytest.mark.parametrize("at", [15, 60, 333, 990])
def test_a_step_is_found_by_few_trials(at):
    calls = []
    points = trace(
        10,
        1000,
        lambda m, draw: calls.append(m) or step(at)(m, draw),
        lambda m: 1.0,
        draws=2,
        effort=1e9,
    )
    levels = {m: np.mean([t.exact for t in several]) for m, several in points.items()}
    below, above = (
        max(m for m in levels if levels[m] < 0.5),
        min(m for m in levels if levels[m] >= 0.5),
    )
    assert below < at + 1 <= above + 1
    assert above / below <= 1.2
    assert len(points) <= 12
    assert len(calls) == 2 * len(points)


def test_nothing_from_many_means_the_few_are_not_tried():
    points = trace(10, 1000, lambda m, draw: trial(0.0), lambda m: 1.0, draws=3, effort=1e9)
    assert list(points) == [1000]


def test_all_from_the_fewest_ends_at_once():
    assert sorted(
        trace(10, 1000, lambda m, draw: trial(1.0), lambda m: 1.0, draws=1, effort=1e9)
    ) == [10, 1000]


def test_effort_bounds_the_forecast_not_the_clock():
    made = trace(10, 1000, step(300), lambda m: m / 100, draws=2, effort=12)
    assert 5 < sum(2 * m / 100 for m in made if m != 1000) <= 12
    assert len(made) < len(trace(10, 1000, step(300), lambda m: m / 100, draws=2, effort=1e9))


def test_approximate_records_count_for_the_search_and_stand_by_themselves():
    points = trace(
        10, 1000, lambda m, draw: trial(0.0, float(m > 200)), lambda m: 1.0, draws=1, effort=1e9
    )
    assert len(points) > 4
    last = curve(points)[-1]
    assert (last.exact, last.approximate, last.runs) == (0.0, 1.0, 1)


def test_wilson_against_known_values():
    assert wilson(0.5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-3)
    assert wilson(1.0, 3) == pytest.approx((0.4385, 1.0), abs=1e-3)
    assert wilson(0.0, 3)[0] == 0.0


@pytest.mark.parametrize("spread", ["all or nothing", "uniform", "beta"])
def test_the_band_covers_the_mean_for_any_spread_between_draws(spread):
    """Three draws; 2000 repetitions, so that 95 % has a standard error of 0.5 %: at least 93 % must
    be covered."""
    rng = np.random.default_rng(0)
    draw = {
        "all or nothing": lambda: rng.random(3) < 0.6,
        "uniform": lambda: rng.random(3),
        "beta": lambda: rng.beta(8, 2, 3),
    }[spread]
    mean = {"all or nothing": 0.6, "uniform": 0.5, "beta": 0.8}[spread]
    covered = 0
    for _ in range(2000):
        low, high = wilson(float(np.mean(draw())), 3)
        covered += low <= mean <= high
    assert covered > 0.93 * 2000
