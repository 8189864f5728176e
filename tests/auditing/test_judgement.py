"""From trials to words: nothing is said that was not measured."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from unveil.auditing.judgement import level_of, record_risks, verdict, weakest
from unveil.auditing.linking import Links
from unveil.auditing.model_check import check_model
from unveil.auditing.result import Attempt, CurvePoint, Threat

CHECK = check_model(np.random.default_rng(0).standard_normal((30, 200)).astype(np.float32))


def threat(key, exact, almost=0, n=20, values=0.0, tried=("relations", "full")):
    attempts = tuple(Attempt(name, exact, almost, 1.0) for name in tried)
    knows = f"knows what {key} knows"
    shares = (0.0, 1.0, 0.0, 0.0, -1.0, 1.0)
    return Threat(key, knows, exact, almost, n, *shares, values=values, tried=attempts)


def judge(*threats, wrong=0, records=20, asides=(), curve=None, linked=None):
    best = weakest(threats) or threats[0]
    exact, almost = best.exact, best.approximate
    points = [
        CurvePoint(50, 0.0, 0, 0.5, 0.0, 3),
        CurvePoint(90, exact / 40, 0, 1, almost / 40, 3),
        CurvePoint(140, exact / 20, 0, 1, almost / 20, 3),
    ]
    return verdict(
        threats,
        curve or points,
        CHECK,
        140,
        records=records,
        signed=False,
        wrong=wrong,
        asides=asides,
        linked=linked,
    )


@pytest.mark.parametrize(
    ("exact", "almost", "attacker", "level"),
    [
        (20, 0, "blind", "leaks"),
        (3, 0, "blind", "leaks"),
        (2, 0, "blind", "partly"),
        (0, 20, "blind", "partly"),
        (20, 0, "public", "leaks"),
        (20, 0, "told", "partly"),
        (20, 0, "insider", "partly"),
        (0, 0, "blind", "nothing"),
    ],
)
def test_level(exact, almost, attacker, level):
    found = judge(threat(attacker, exact, almost))
    assert found.level == level
    assert ("no proof" in found.headline) == (level == "nothing")
    assert ("once it is known" in found.headline) == (attacker == "told")
    assert found.headline.startswith("Do not release") == (level == "leaks")
    if level != "nothing":
        assert f"{exact or almost} of 20 records" in found.headline
        assert "90" in found.sentences[0]


def test_blind_success_is_a_leak_whatever_a_told_attacker_adds():
    found = judge(threat("blind", 18), threat("told", 20))
    assert found.level == "leaks"
    assert (
        found.headline == "Do not release: 18 of 20 records come back exactly from 140 encodings."
    )
    assert any("20 of 20" in s for s in found.sentences)


def test_a_few_blind_and_all_told_is_partly_and_the_weakest_speaks():
    threats = threat("blind", 1), threat("told", 20)
    assert level_of(threats) == "partly"
    assert weakest(threats).key == "blind"


def test_what_chance_explains_is_not_the_headline():
    threats = threat("blind", 0, almost=1), threat("told", 20)
    assert weakest(threats).key == "told"
    assert weakest(threats[:1]).key == "blind"
    assert level_of(threats[:1]) == "partly"


def test_nothing_names_every_attack_that_tried():
    found = judge(
        threat("blind", 0, tried=("copies", "full")), threat("told", 0, tried=("tensor",))
    )
    assert "copies, full and tensor got none of 20 records" in found.headline


def test_nothing_recovered_names_every_attack_that_tried():
    names = ("copies", "relations", "full", "full (signs hidden)", "tensor", "unmix")
    found = judge(threat("blind", 0, tried=names))
    assert all(name in found.headline for name in names)


def test_linked_encodings_are_partly_where_nothing_comes_back():
    linked = Links(0.9, 0.8, 0.95, 0.05, sure=True, members=False)
    found = judge(threat("blind", 0), linked=linked)
    assert found.level == "partly"
    assert "no record comes back, but 90% of the encodings can be linked" in found.headline
    assert found.sentences[0].startswith("Nothing recovered")
    unsure = judge(threat("blind", 0), linked=replace(linked, sure=False))
    assert (unsure.level, unsure.headline[:7]) == ("nothing", "Nothing")
    assert judge(threat("blind", 18), linked=linked).level == "leaks"


@pytest.mark.parametrize(
    ("mean", "words"),
    [(0.9, "As many come back in the mean over 3"), (0.6, "first of 3 .* 60% of the records")],
)
def test_the_draw_that_the_headline_counts_is_said(mean, words):
    curve = [CurvePoint(140, mean, 0.5, 1.0, 0.0, 3)]
    found = judge(threat("blind", 18), curve=curve)
    assert re.search(words, " ".join(found.sentences))
    one = judge(threat("blind", 18), curve=[replace(curve[0], runs=1)])
    assert not re.search("draws", " ".join(one.sentences))


def test_single_values_count():
    found = judge(threat("blind", 0, values=0.4))
    assert found.level == "partly"
    assert "40% of single values" in found.headline


def test_doubts_are_said():
    assert any("wrong" in s for s in judge(threat("blind", 20), wrong=2).sentences)
    assert any("not proved safe" in s for s in judge(threat("blind", 5, 5)).sentences)
    told = judge(threat("blind", 0), threat("told", 20))
    assert any("relations and full got none of 20" in s for s in told.sentences)
    assert any(
        "40 records, 20 of them" in s for s in judge(threat("blind", 20), records=40).sentences
    )
    assert "an aside" in judge(threat("blind", 20), asides=("an aside",)).sentences


def test_risks_of_records():
    def trial(outcome):
        n = len(outcome)
        return (
            SimpleNamespace(
                outcome=np.array(outcome),
                error=np.array([0.0, np.nan, np.nan]),
                correlation=np.array([1.0, np.nan, np.nan]),
                status=("verified", "", ""),
                reasons=("because", "", ""),
                explanation="told you",
            )
            if n
            else None
        )

    data = SimpleNamespace(names=("a", "b", "c"))
    chosen = np.array([[0, 1], [0, 1], [0, 1]])
    points = {10: [trial([0, 0, 0])], 20: [trial([1, 0, 0])], 40: [trial([2, 0, 0])]}
    a, b, c = record_risks(data, chosen, points, 40)
    assert (a.outcome, a.from_m, a.encodings, a.reason) == ("exact", 20, 3, "because")
    assert (b.outcome, b.from_m, b.error, b.status) == ("not recovered", None, None, "unresolved")
    assert b.reason == "no recovered vector is near it"
    assert c.reason == "no encoding uses it"
