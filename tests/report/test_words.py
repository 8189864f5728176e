"""Who audits a table is told of columns."""

from dataclasses import replace

import pytest

from unveil.auditing.result import Pictures
from unveil.report.words import assumed, day, hue, is_images, noun, why_untried


@pytest.mark.parametrize(
    ("kind", "word"), [("images", "pixel"), ("features", "column"), ("array", "value")]
)
def test_the_word_for_the_kind(whole_audit, kind, word):
    audit = replace(whole_audit("features"), data={"kind": kind}, pictures=Pictures())
    assert noun(audit, one=True) == word
    assert noun(audit) == f"{word}s"
    assert is_images(audit) == (kind == "images")


def test_an_array_that_is_shown_as_images_has_pixels(whole_audit):
    assert noun(replace(whole_audit(), data={"kind": "array"})) == "pixels"


def test_what_was_assumed_in_words(whole_audit):
    given = {"k_private": 2, "k_public": 0, "weights": "dirichlet", "m": 7000, "noise": 0.0}
    said = dict(assumed(whole_audit(assumed={**given, "own": 0.123456})))
    assert said == {
        "private records in each encoding": "2",
        "weights of the mixture": "dirichlet",
        "encodings released": "7,000",
        "own": "0.1235",
    }


def test_the_reason_that_most_attacks_have(whole_audit):
    threat = whole_audit().threats[3]
    left = (("a", "for plain sums"), ("b", "nothing was left"), ("c", "nothing was left"))
    assert why_untried(replace(threat, not_tried=left)) == "nothing was left"
    assert why_untried(replace(threat, not_tried=())) == ""


@pytest.mark.parametrize(
    ("key", "exact", "near", "hue_of_it"),
    [
        ("blind", 18, 0, "exact"),
        ("blind", 1, 0, "approximate"),
        ("told", 20, 0, "approximate"),
        ("blind", 0, 3, "approximate"),
        ("blind", 0, 0, "not-recovered"),
    ],
)
def test_the_row_of_an_attacker_has_the_colour_of_its_verdict(
    whole_audit, key, exact, near, hue_of_it
):
    threat = whole_audit().threats[0]
    counts = {"exact": exact, "approximate": near, "records": 20, "values": 0.0}
    assert hue(replace(threat, key=key, **counts)) == hue_of_it


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-01-02T03:04:05+00:00", "2026-01-02 03:04 UTC"),
        ("2026-01-02T03:04Z", "2026-01-02 03:04 UTC"),
        ("2026-01-02 03:04 UTC", "2026-01-02 03:04 UTC"),
        ("some day", "some day"),
    ],
)
def test_dates_as_people_write_them(text, said):
    assert day(text) == said
