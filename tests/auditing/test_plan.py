"""How many encodings which attack needs."""

import json

import pytest

import unveil
from unveil.scheme import SIGNS, WEIGHTINGS


def test_a_good_instance_should_succeed_and_does():
    found = unveil.plan(unveil.Scheme(2), n_private=20, m=140, d=200)
    assert found.feasible
    sim = unveil.simulate(unveil.Scheme(2), 20, m=140, d=200, rng=0)
    assert unveil.score(unveil.recover(sim.encodings, rng=0), sim.private).exact == 20
    assert str(20) in str(found)


def test_too_few_are_too_few():
    found = unveil.plan(n_private=100, m=50)
    assert not found.feasible
    assert found.needed > 50
    assert unveil.plan(n_private=100, m=found.needed).feasible


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_every_scheme_has_a_plan(weighting, signs, k):
    found = unveil.plan(unveil.Scheme(k, weighting=weighting, signs=signs), n_private=50)
    assert found.needs
    json.dumps(found.facts())
    assert found.to_frame().shape[0] == len(found.needs)


@pytest.mark.parametrize("k", [2, 3])
def test_needs_grow_with_n(k):
    needed = [unveil.plan(unveil.Scheme(k), n_private=n).needed for n in (20, 50, 100, 200)]
    assert needed == sorted(needed)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"m": 0}, "m=0"),
        ({"n_private": 1}, "k_private=2 of only 1"),
        ({"scheme": unveil.Scheme(2, 2)}, "k_public=2 of only 0"),
        ({"scheme": 3}, "unveil.Scheme"),
    ],
)
def test_bad_input(options, words):
    with pytest.raises(unveil.InputError, match=words):
        unveil.plan(**options)


def test_what_more_encodings_do_not_help_is_no_advice():
    few = unveil.plan(unveil.Scheme(4), n_private=3000, d=12, m=2000)
    assert few.needed == max(need.encodings for need in few.needs if need.records == "all")
    assert f"{few.needed:,}" in few.advice
    none = unveil.plan(unveil.Scheme(4), n_private=3000, d=3, m=2000)
    assert "nor from more" in none.advice
    assert "480 or more columns" in none.advice
