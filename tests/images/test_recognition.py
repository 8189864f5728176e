"""Clues weighed: better clues are never worth less, a negative is as good, and white noise claims
nothing."""

import numpy as np
import pytest

from unveil.images.likeness import Clues
from unveil.images.recognition import HIGH, LOW, MEAN, PROBABLE, features, recognition


def clues(again=0.5, agreement=0.9, encodings=50.0, misfit=0.3, expected=60.0, **more):
    each = (np.atleast_1d(v) for v in (misfit, agreement, encodings, again))
    return Clues(*each, expected, **more)


def test_features_are_bounded_whatever_the_clues():
    assert np.isfinite(features(clues(misfit=np.inf, encodings=1e9))).all()
    assert np.isfinite(features(clues(encodings=0.0, expected=0.0, agreement=-1.0))).all()


@pytest.mark.parametrize("name", ["again", "agreement", "encodings"])
def test_better_clues_are_worth_no_less(name):
    worse, better = (
        clues(**{name: value}) for value in ((0.1, 0.9), (10.0, 55.0))[name == "encodings"]
    )
    assert recognition(better).probability >= recognition(worse).probability
    assert recognition(better).likeness >= recognition(worse).likeness


def test_an_image_with_twice_the_encodings_is_two_images():
    usual, twice = clues(encodings=60.0), clues(encodings=120.0)
    assert recognition(twice).probability < recognition(usual).probability


def test_halves_of_few_encodings_may_agree_less():
    """What one encoding leaves of noise is the same: 0.8 of twenty is 0.94 of eighty."""
    few = clues(agreement=0.8, encodings=20.0, expected=20.0)
    many = clues(agreement=16 / 17, encodings=80.0, expected=80.0)
    np.testing.assert_allclose(features(few), features(many))


def test_misfit_speaks_against_an_image_by_channel_and_where_there_are_public_images():
    good, bad = clues(misfit=0.2), clues(misfit=0.8)
    assert recognition(good).probability > recognition(bad).probability
    colour = clues(misfit=0.2 * np.sqrt(3), channels=3)
    np.testing.assert_allclose(features(colour), features(good))
    alone = [clues(misfit=value, public=False) for value in (0.2, 0.8)]
    np.testing.assert_array_equal(*map(features, alone))


def test_the_likeness_lies_in_its_interval_and_tables_rise():
    for value in np.linspace(-0.5, 1, 16):
        found = recognition(clues(again=value))
        assert found.low <= found.likeness <= found.high
    for table in (PROBABLE, MEAN, LOW, HIGH):
        assert (np.diff(table) >= 0).all()


def test_a_new_start_that_ends_in_the_negative_is_as_much_evidence():
    np.testing.assert_array_equal(features(clues(again=-0.4)), features(clues(again=0.4)))


def test_white_noise_tells_no_signs_and_nothing_is_claimed():
    assert recognition(clues(rough=0.7)).probability == 0
    assert recognition(clues(rough=0.1)).probability > 0.5


def test_among_white_noise_an_image_that_comes_back_again_is_claimed():
    usual, strange, unsure = (
        recognition(clues(again=again, rough=0.7, certain=np.array([sure]))).probability
        for again, sure in ((0.99, 0.9), (0.6, 0.9), (0.99, 0.5))
    )
    assert usual > 0.9
    assert strange < 0.2
    assert unsure < usual


def test_without_public_images_what_is_left_of_encodings_speaks_against_images():
    sure = {"again": 0.95, "agreement": 0.99, "public": False}
    values = [recognition(clues(**sure, left=np.array([left]))).probability for left in (0, 0.05)]
    assert values[0] == recognition(clues(**sure)).probability
    assert values[1] < 0.4 * values[0]
