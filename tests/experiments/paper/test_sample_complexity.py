"""Sample complexity: first moments, bounds no attack can pass, what an attack needs."""

import numpy as np
import pytest
from experiments.cells import Cells
from experiments.paper import sample_complexity
from experiments.paper.sample_complexity import (
    _all_twice,
    _attack,
    _existence,
    _predicted,
    exponent,
)

from unveil.paper.floral import encodings_needed, expected_florals


def test_the_papers_exponents():
    assert exponent(2) == pytest.approx(4 / 3)
    assert exponent(3) == 2.5


@pytest.mark.parametrize(("n", "k"), [(40, 2), (15, 3)])
def test_the_predicted_median_expects_log_two(n, k):
    m = _predicted(n, k, encodings_needed(n, k))
    assert expected_florals(n, k, m - 1) < np.log(2) <= expected_florals(n, k, m)


def test_first_florals_are_where_they_are_predicted_and_where_the_search_finds_them():
    found = _existence(k=2, n=30, draws=60, searched=3, seed=0)
    # The median of 60 draws; its standard error is about 4%, the bound four of them.
    assert found["subsets"]["median"] == pytest.approx(found["predicted"]["median"], rel=0.16)
    assert found["subsets"] == found["sunflower"]
    assert found["search"] == {"asked": 3, "agrees": 3, "real": 3}
    assert found["subsets"]["all"] == sorted(found["subsets"]["all"])


def test_sunflowers_come_first_for_three():
    found = _existence(k=3, n=16, draws=20, searched=2, seed=0)
    assert found["sunflower"]["median"] < found["subsets"]["median"]
    assert found["search"]["agrees"] == 2


def test_twice_means_two_different_encodings():
    assert not _all_twice(np.array([[0, 1], [0, 1], [1, 2], [0, 2], [3, 0], [3, 0]]), 4)
    assert _all_twice(np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3]]), 4)


def test_no_attack_is_below_what_is_possible(monkeypatch):
    monkeypatch.setattr(sample_complexity, "PIXELS", 512)
    found = _attack(k=2, n=14, draws=2, factors=[1.0, 1.5, 2.0, 3.0], seed=0)
    assert all(a <= b for a, b in zip(found["twice"]["all"], found["attack"]["all"], strict=True))
    assert found["failed"] == 0


def test_an_attack_that_never_succeeds_is_counted(monkeypatch):
    monkeypatch.setattr(sample_complexity, "PIXELS", 4)
    assert _attack(k=2, n=14, draws=1, factors=[1.0], seed=0)["failed"] == 1


def test_measure_small(monkeypatch):
    monkeypatch.setattr(sample_complexity, "QUICK", {2: (12, 16, 22)})
    monkeypatch.setattr(sample_complexity, "PIXELS", 512)
    found = sample_complexity.measure(Cells("sample-complexity", 0), False)
    assert found["fits"]["2"]["theory"] == 1.3333
    assert found["fits"]["2"]["predicted"]["exponent"] == pytest.approx(4 / 3, abs=0.25)
    assert {point["n"] for point in found["points"]} == {12, 16, 22}
