"""Attackers: nested, complete, and honest about what they did not try."""

import numpy as np

from unveil.attacks import ATTACKS
from unveil.auditing.release import Release
from unveil.auditing.threats import KNOWS, NOTHING_LEFT, attack_all
from unveil.auditing.trials import Laboratory
from unveil.scheme import Scheme

RECORDS = np.random.default_rng(0).standard_normal((12, 40)).astype(np.float32)


def runs(effort=0.0, scheme=None, public=None, make=None, m=84, cost=lambda attack, scheme: 1.0):
    release = Release(RECORDS, public, scheme or Scheme(2), m, 0.0, 1, make=make)
    return {run.who: run for run in attack_all(Laboratory(release), m, effort, cost)}


def test_every_attack_is_tried_or_has_a_reason():
    found = runs()
    assert list(found) == [who for who in KNOWS if who != "public"]
    blind = found["blind"]
    named = [arm.attack for arm in blind.arms] + [name for name, _ in blind.not_tried]
    assert set(named) == {*ATTACKS, "copies"}
    assert blind.best()[0].attack == "relations"
    assert dict(blind.not_tried)["full"] == NOTHING_LEFT
    assert all(reason for _, reason in blind.not_tried)


def test_with_nothing_to_find_effort_decides_about_the_rest():
    noise = np.abs(np.random.default_rng(1).standard_normal((40, 40))).astype(np.float32)
    few = runs(make=lambda number: noise, m=40)["blind"]
    assert any("effort" in why for _, why in few.not_tried)
    assert {"relations", "full", "tensor", "paper"} <= {arm.attack for arm in few.arms}
    assert "cliques" not in {arm.attack for arm in few.arms}
    more = runs(make=lambda number: noise, m=40, effort=1.0)["blind"]
    assert len(more.arms) == len(few.arms) + 1


def test_the_public_pool_makes_an_attacker_of_its_own():
    public = np.random.default_rng(2).standard_normal((6, 40)).astype(np.float32)
    found = runs(scheme=Scheme(1, 1), public=public, m=60)
    assert list(found) == list(KNOWS)
    assert dict(found["blind"].not_tried)["full"] == "needs the public vectors"
    assert any("public vectors taken for private ones" in arm.title for arm in found["blind"].arms)
    assert "substitution" in dict(found["insider"].not_tried)
