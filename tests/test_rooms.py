"""Every top-level result can be shown; those with a picture say so."""

import pytest

import unveil
from unveil.rooms import Pictured, Shown, room

RESULTS = [
    "Audit",
    "ChallengeScores",
    "Encodings",
    "Floral",
    "ImageScores",
    "Overlaps",
    "Plan",
    "Recovery",
    "Scores",
    "Simulation",
    "Supports",
]


@pytest.mark.parametrize("name", RESULTS)
def test_results_have_what_people_ask_for(name):
    result = getattr(unveil, name)
    assert issubclass(result, Shown)
    assert issubclass(result, Pictured) == hasattr(result, "plot")


def test_a_room_is_found_by_its_name():
    assert room("scoring.score").score is unveil.score
