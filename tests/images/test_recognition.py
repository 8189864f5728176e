"""Clues weighed: better clues are never worth less, a doubtful sign halves what is claimed."""

import numpy as np
import pytest

from unveil.images.likeness import Clues
from unveil.images.recognition import HIGH, LOW, MEAN, PROBABLE, features, recognition


def clues(again=0.5, agreement=0.9, encodings=50.0, misfit=0.3, expected=60.0):
    return Clues(*(np.atleast_1d(v) for v in (misfit, agreement, encodings, again)), expected)


def test_features_are_bounded_whatever_the_clues():
    found = features(clues(misfit=np.inf, encodings=1e9))
    assert np.isfinite(found).all()
    assert features(clues(encodings=0.0, expected=0.0))[0, 3] == 0


@pytest.mark.parametrize("name", ["again", "agreement", "encodings"])
def test_better_clues_are_worth_no_less(name):
    worse, better = (
        clues(**{name: value}) for value in ((0.1, 0.9), (10.0, 55.0))[name == "encodings"]
    )
    assert recognition(better).probability >= recognition(worse).probability
    assert recognition(better).likeness >= recognition(worse).likeness


def test_the_likeness_lies_in_its_interval_and_tables_rise():
    for value in np.linspace(-0.5, 1, 16):
        found = recognition(clues(again=value))
        assert found.low <= found.likeness <= found.high
    for table in (PROBABLE, MEAN, LOW, HIGH):
        assert (np.diff(table) >= 0).all()


def test_images_that_may_all_be_negatives_are_claimed_half():
    sure, unsure = recognition(clues()), recognition(clues(), polarity=0.0)
    np.testing.assert_allclose(unsure.probability, sure.probability / 2)
    assert unsure.low <= 0
    np.testing.assert_allclose(
        recognition(clues(), polarity=12.0).probability, sure.probability, rtol=1e-6
    )
