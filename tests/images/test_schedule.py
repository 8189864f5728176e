"""How many rounds, how hot each starts, how little may be unknown, and what counts as bad."""

import numpy as np
import pytest

from unveil.images.schedule import SCHEDULE


def test_few_encodings_get_more_rounds_and_both_end_cool():
    many, few = (SCHEDULE.starts(few, None) for few in (False, True))
    assert (len(many), len(few)) == (SCHEDULE.rounds, SCHEDULE.rounds_few)
    for starts, cooler in ((many, SCHEDULE.cool(False)), (few, SCHEDULE.cool(True))):
        assert starts[-len(cooler) :] == cooler
        assert set(starts[: -len(cooler)]) == {SCHEDULE.hot}
        assert (np.diff(starts) <= 0).all()


def test_a_first_look_is_hot_throughout():
    assert SCHEDULE.starts(True, 3) == SCHEDULE.starts(False, 3) == (SCHEDULE.hot,) * 3


def test_without_public_images_energy_falls_where_all_start_from_the_mean_image():
    assert SCHEDULE.least_energies(4, True, 0.9) == [SCHEDULE.least] * 4
    np.testing.assert_allclose(SCHEDULE.least_energies(4, False, 0.1), SCHEDULE.least_alone)
    falling = SCHEDULE.least_energies(4, False, 0.9)
    assert falling[0] == pytest.approx(SCHEDULE.warm)
    assert falling[-1] == pytest.approx(SCHEDULE.least_alone)
    assert (np.diff(falling) < 0).all()


def test_the_rule_for_bad_images_is_looser_where_encodings_are_few_or_public_images_none():
    assert 1 < SCHEDULE.bad(True, False) < SCHEDULE.bad(True, True) < SCHEDULE.bad(False, False)
    assert SCHEDULE.bad(False, True) == SCHEDULE.bad(False, False)
