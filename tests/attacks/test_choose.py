"""One place decides which attack: it agrees with what the attacks themselves refuse."""

import numpy as np
import pytest

from unveil import Scheme, recover, simulate
from unveil.attacks import ATTACKS
from unveil.attacks.choose import BLIND, LAST, TOLD, Situation, choose, situation_of, usual, why_not
from unveil.checks import InputError
from unveil.records import Overlaps

SCHEMES = [
    Scheme(2),
    Scheme(3),
    Scheme(1),
    Scheme(2, 1),
    Scheme(1, 1),
    Scheme(2, signs="kept"),
    Scheme(2, weighting="half-normal"),
    Scheme(2, 1, "released"),
    Scheme(2, weighting="dirichlet", signs="kept"),
    Scheme(2, weighting="half-normal", signs="kept"),
    Scheme(0, 2),
]


def small(scheme, shape=None):
    n_public = 6 if scheme.k_public else 0
    return simulate(scheme, 6, n_public=n_public, m=12, d=16, shape=shape, rng=0)


def test_every_attack_has_a_rule_and_a_place():
    assert set(BLIND) == set(ATTACKS)
    assert set(TOLD) <= set(BLIND)
    assert len(set(BLIND)) == len(BLIND)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("shape", [None, (4, 4)])
def test_what_cannot_be_used_is_refused_by_the_attack_and_what_can_is_not(scheme, shape):
    sim = small(scheme, shape)
    situation = situation_of(sim.encodings, sim.public)
    for choice in choose(situation):
        if choice.attack in ("phase-retrieval", "natural", "noisy-relations"):
            continue  # the first looks at the public vectors, the others take more than is wise
        refused = ""
        try:
            recover(sim.encodings, sim.public, attack=choice.attack, rng=0)
        except InputError as error:
            refused = str(error)
        assert bool(refused) == (not choice.applies), (choice, refused)


@pytest.mark.parametrize("scheme", [Scheme(2), Scheme(3), Scheme(2, signs="kept")], ids=str)
def test_attacks_that_are_told_take_overlaps_and_no_others_do(scheme):
    sim = small(scheme)
    overlaps = Overlaps.from_array(scheme.k_private * np.eye(12, dtype=int), scheme.k_private)
    for choice in choose(situation_of(sim.encodings, None, told=True)):
        if choice.applies:
            recover(sim.encodings, attack=choice.attack, overlaps=overlaps, rng=0)
        elif "no use" in choice.why_not:
            with pytest.raises(InputError):
                recover(sim.encodings, attack=choice.attack, overlaps=overlaps, rng=0)


def test_the_usual_order():
    assert usual(Situation(Scheme(2), 100)) == ("relations", "full", "noisy-relations", *LAST)
    gaussian = Situation(Scheme(2), 100, normal=True)
    assert usual(gaussian) == ("full", "relations", "noisy-relations", *LAST)
    assert usual(Situation(Scheme(2), 100, unhidden=True))[0] == "unhidden"
    assert usual(Situation(Scheme(2), 100, told=True)) == ("full", *LAST)
    assert usual(Situation(Scheme(2), 20_000))[0] == "full"
    assert usual(Situation(Scheme(2, signs="kept"), 100)) == ("mixing", "relations")
    own = Scheme(2, weighting="dirichlet", signs="kept")
    assert usual(Situation(own, 100)) == ("mixing",)
    assert usual(Situation(own, 100, images=True)) == ("mixing", "natural")
    assert usual(Situation(Scheme(2, weighting="half-normal", signs="kept"), 100)) == ("mixing",)
    assert usual(Situation(Scheme(0, 2), 100)) == ("phase-retrieval",)
    assert usual(Situation(Scheme(2, 2, "released"), 100, images=True)) == ("natural",)
    assert usual(Situation(Scheme(2, 2, "released"), 100)) == LAST[1:]
    assert usual(Situation(Scheme(2, 1), 7000)) == ("full", *LAST)
    assert usual(Situation(Scheme(2, weighting="half-normal"), 100)) == ("mixing",)
    assert usual(Situation(Scheme(1), 100)) == ("full",)


def test_reasons_are_sentences():
    assert "share a record" in why_not("relations", Situation(Scheme(2), 100, told=True))
    assert "public vectors" in why_not("full", Situation(Scheme(2, 1), 100, pool=False))
    assert not why_not("natural", Situation(Scheme(2, 2, "released"), 9, images=True, pool=False))
    assert "two private" in why_not("noisy-relations", Situation(Scheme(3), 100))
    assert "15,000" in why_not("relations", Situation(Scheme(2), 15_001))


def test_values_are_looked_at_only_where_it_can_decide_something():
    x = np.random.default_rng(0).random((20, 30)).astype(np.float32)
    sim = simulate(Scheme(2), private=x, m=140, rng=0)
    assert situation_of(sim.encodings, None).unhidden
    assert situation_of(sim.encodings, None, told=True).unhidden is None
