"""Geometry of what if: marks where measured, the line of differential privacy between its
neighbours."""

import pytest

from unveil.auditing.result import WhatIf
from unveil.report.what_if import BOTTOM, LEFT, RIGHT, TOP, panels


def point(value, recovered=0.5, **others):
    return WhatIf("noise", value, recovered, 0.4, 0.6, **others)


def test_one_panel_per_axis_with_values_in_order():
    points = (point(0.2), point(0.0), WhatIf("k", 4, 0.2, 0.1, 0.3))
    noise, k = panels(points, {"noise": 0.0})
    assert [spot.label for spot in noise.spots] == ["0", "0.2"]
    assert [spot.now for spot in noise.spots] == [True, False]
    assert [spot.now for spot in k.spots] == [False]
    assert all(LEFT < spot.x < RIGHT for spot in (*noise.spots, *k.spots))


def test_heights_are_shares():
    spots = panels((point(0, 0.0), point(1, 1.0), point(2, 0.5)), {})[0].spots
    assert [spot.y for spot in spots] == [BOTTOM, TOP, (TOP + BOTTOM) / 2]


def test_a_gap_where_utility_was_not_measured():
    worths = (0.9, 0.8, None, 0.6, 0.5, None, 0.1)
    panel = panels([point(i, utility=worth) for i, worth in enumerate(worths)], {})[0]
    assert len(panel.worths) == 2  # a single one needs no guide
    assert [spot.worth is None for spot in panel.spots] == [worth is None for worth in worths]


@pytest.mark.parametrize(
    ("epsilons", "between"),
    [
        ((None, 1000.0, 0.1), (1, 2)),
        ((None, 10.0, 5.0), (1, 1)),
        ((None, 1000.0, 20.0), None),
        ((None, 3.0, 1.0), None),
        ((None, None, None), None),
    ],
)
def test_the_line_stands_where_epsilon_falls_to_ten(epsilons, between):
    panel = panels([point(i, epsilon=eps) for i, eps in enumerate(epsilons)], {})[0]
    if between is None:
        assert panel.promise is None
    else:
        low, high = (panel.spots[i].x for i in between)
        assert low <= panel.promise <= high


def test_half_way_by_the_logarithm():
    panel = panels((point(0, epsilon=1000.0), point(1, epsilon=0.1)), {})[0]
    assert panel.promise == pytest.approx((panel.spots[0].x + panel.spots[1].x) / 2, abs=0.1)
