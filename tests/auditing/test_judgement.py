"""From trials to words: nothing is said that was not measured."""

from types import SimpleNamespace

import numpy as np
import pytest

from unveil.auditing.judgement import record_risks, verdict
from unveil.auditing.model_check import check_model
from unveil.auditing.result import CurvePoint, RecordRisk

CHECK = check_model(np.random.default_rng(0).standard_normal((30, 200)).astype(np.float32))


def records(exact, almost, n=20):
    outcomes = (
        ["exact"] * exact + ["approximate"] * almost + ["not recovered"] * (n - exact - almost)
    )
    return [
        RecordRisk(i, str(i), o, "verified", 0.0, 1.0, 4, None, "") for i, o in enumerate(outcomes)
    ]


def judge(exact, almost, attacker="blind", blind=0, wrong=0):
    trial = SimpleNamespace(outcome=np.array([2] * blind + [0] * (20 - blind)))
    points = [
        CurvePoint(50, 0.0, 0, 0.5, 0.0, 3),
        CurvePoint(90, exact / 40, 0, 1, almost / 40, 3),
        CurvePoint(140, exact / 20, 0, 1, almost / 20, 3),
    ]
    return verdict(
        records(exact, almost),
        points,
        trial,
        trial,
        attacker,
        CHECK,
        140,
        signed=False,
        wrong=wrong,
    )


@pytest.mark.parametrize(
    ("exact", "almost", "attacker", "level"),
    [
        (20, 0, "blind", "leaks"),
        (3, 0, "blind", "leaks"),
        (2, 0, "blind", "partly"),
        (0, 20, "blind", "partly"),
        (20, 0, "told", "partly"),
        (0, 0, "blind", "nothing"),
    ],
)
def test_level(exact, almost, attacker, level):
    found = judge(exact, almost, attacker)
    assert found.level == level
    assert ("no proof" in found.headline) == (level == "nothing")
    assert ("once it is known" in found.headline) == (attacker == "told")
    if level != "nothing":
        assert f"{exact or almost} of 20 records" in found.headline
        assert "90" in found.sentences[0]


def test_doubts_are_said():
    assert any("wrong" in s for s in judge(20, 0, wrong=2).sentences)
    assert any("not proved safe" in s for s in judge(5, 5).sentences)
    assert any("got 4 of 20" in s for s in judge(0, 20, "told", blind=4).sentences)


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
