"""Forecasts: preconditions that hold or not, the attack that is then really used, bad input in one
sentence."""

import json

import pytest

import unveil
from unveil.auditing.costs import NOMINAL
from unveil.auditing.plan import encodings_for_all, plan
from unveil.checks import InputError
from unveil.scheme import Scheme


def missing(found):
    return {item.what for item in found.preconditions if not item.holds}


def test_a_good_instance_should_succeed_and_does():
    found = plan(Scheme(2), 30, None, 400, machine=NOMINAL)
    assert found.feasible
    assert found.m == found.needed == 210
    assert "should come back" in found.advice
    sim = unveil.simulate(Scheme(2), 30, m=found.m, d=400, rng=0)
    assert unveil.score(unveil.recover(sim.encodings, rng=0), sim.private).exact == 30


@pytest.mark.parametrize(
    ("options", "lacks"),
    [
        ({"m": 60}, "enough encodings"),
        ({"d": 3}, "enough pixels"),
        ({"n_private": 4}, "more than 2·k_private vectors"),
        ({"noise": 0.1}, "no noise"),
        ({"m": 5000, "d": 10**8}, "enough memory"),
    ],
)
def test_what_is_missing_is_named(options, lacks):
    found = plan(Scheme(2), **{"n_private": 30, "d": 400, "machine": NOMINAL, **options})
    assert lacks in missing(found)
    assert not found.feasible
    assert lacks in found.advice


def test_more_encodings_than_the_full_attack_takes_with_a_public_part():
    found = plan(Scheme(3, 1), 1000, 7000, 512, n_public=50, machine=NOMINAL)
    assert found.attack == "paper"
    assert "an attack on all vectors applies" in missing(found)
    assert plan(Scheme(2), 1000, 7000, 512, machine=NOMINAL).attack == "full"
    assert plan(Scheme(2, 1), 1000, 7000, 3072, n_public=50, machine=NOMINAL).attack == "full"


def test_facts_are_json_and_stages_add_up():
    found = plan(Scheme(3), 50, 350, 784, machine=NOMINAL)
    facts = json.loads(json.dumps(found.facts(), allow_nan=False))
    assert sum(facts["stages"].values()) == pytest.approx(facts["seconds"])
    assert facts["feasible"]
    assert str(found) == found.advice


@pytest.mark.parametrize("k", [2, 3, 6])
def test_encodings_needed_grow_with_n(k):
    needed = [encodings_for_all(Scheme(k), n) for n in (k + 2, 20, 100, 400)]
    assert needed == sorted(needed)
    assert needed[2] == 700


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"m": 0}, "m=0"),
        ({"n_private": 1}, "lower k_private"),
        ({"scheme": Scheme(1)}, "2 or more"),
        ({"scheme": Scheme(2, 3), "n_public": 2}, "lower k_public"),
        ({"d": 1.5}, "whole number"),
        ({"scheme": "x"}, "unveil.Scheme"),
    ],
)
def test_bad_input(options, words):
    with pytest.raises(InputError, match=words):
        plan(**options)


def test_what_follows_the_first_attack_is_forecast_too():
    found = plan(Scheme(4), n_private=40, m=2000, d=3072, machine=NOMINAL)
    assert found.tried[0] == found.attack == "relations"
    assert len(found.tried) > 1
    assert found.most_seconds > 10 * found.seconds
    assert found.facts()["most_seconds"] == found.most_seconds
