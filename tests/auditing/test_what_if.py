"""What if: more noise gives less back, costs worth, and buys differential privacy."""

import numpy as np
import pytest
from scipy.stats import norm

from unveil.auditing.release import Release
from unveil.auditing.what_if import gaussian_epsilon, sensitivity, what_if, worth
from unveil.scheme import Scheme

RECORDS = np.random.default_rng(0).standard_normal((14, 60)).astype(np.float32)


def release(**changes):
    facts = {"scheme": Scheme(2), "top": 98, "noise": 0.0, "seed": 1}
    return Release(**{"private": RECORDS, "public": None, **facts, **changes})


def test_noise_takes_records_and_worth_away():
    points = what_if(release(), ("noise",), 98, relative_tolerance=1e-2)
    assert points[0].recovered == 1.0
    assert points[0].epsilon is None
    assert points[-1].recovered < 0.5
    worths = [point.utility for point in points]
    assert worths == sorted(worths, reverse=True)
    epsilons = [point.epsilon for point in points[1:]]
    assert epsilons == sorted(epsilons, reverse=True)
    assert all(point.low <= point.recovered <= point.high for point in points)


def test_fewer_encodings_give_less_back():
    points = what_if(release(), ("m",), 98, relative_tolerance=1e-2)
    assert [point.value for point in points] == [12, 24, 49, 98, 196]
    assert points[0].recovered < points[-1].recovered == 1.0


def test_a_classifier_learns_from_encodings_of_labelled_records():
    labels = np.repeat([0, 1], 7)
    apart = np.abs(RECORDS)
    apart[:7, :30] += 4
    apart[7:, 30:] += 4
    assert worth(release(private=apart), labels) == 1.0
    assert worth(release(private=apart, noise=300.0), labels) < 1.0


@pytest.mark.parametrize("ratio", [0.1, 0.5, 2.0, 10.0])
def test_epsilon_solves_its_equation(ratio):
    eps = gaussian_epsilon(ratio)
    left = norm.cdf(1 / (2 * ratio) - eps * ratio)
    right = np.exp(eps + norm.logcdf(-1 / (2 * ratio) - eps * ratio))
    assert left - right == pytest.approx(1e-5, rel=1e-2)
    # The classical formula is an upper bound where it holds, below ε = 1.
    if eps < 1:
        assert eps < np.sqrt(2 * np.log(1.25e5)) / ratio


def test_sensitivity_bounds_what_one_record_moves():
    mine = release()
    chosen = mine.draw(0).chosen
    moved = RECORDS.copy()
    moved[3] = RECORDS[5]
    weight = 1 / np.sqrt(2)
    before, after = (np.abs(weight * x[chosen].sum(axis=1)) for x in (RECORDS, moved))
    assert np.linalg.norm(before - after) <= sensitivity(mine)
