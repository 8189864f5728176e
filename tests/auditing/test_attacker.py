"""Each attacker gets what its knowledge determines, and no more is claimed."""

import numpy as np
import pytest

import unveil
from unveil.auditing.attacker import ATTACKERS, BLIND, INSIDER, PUBLIC, TOLD, Clock
from unveil.auditing.release import Release
from unveil.auditing.trial import run_trial

X = np.random.default_rng(0).gamma(2, size=(24, 8)).astype(np.float32)
X = (X - X.mean(axis=0)) / X.std(axis=0)


def trial(attacker, *, m=170, noise=0.0, public=None, **scheme):
    release = Release(X, public, unveil.Scheme(2, **scheme), m, noise, 0)
    return run_trial(release, attacker)


def test_blind_gets_everything_of_a_table():
    assert trial(BLIND).complete


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_small_noise_stops_nobody_who_knows_who_is_mixed(noise):
    told = trial(TOLD, noise=noise)
    assert told.back(2) >= 23
    assert told.share() > (0.9 if noise == 0.01 else 0.4)


@pytest.mark.parametrize("weighting", ["dirichlet", "half-normal", "uniform"])
def test_mixup_is_undone_by_who_knows_who_is_mixed(weighting):
    assert trial(TOLD, weighting=weighting, signs="kept").complete
    insider = trial(INSIDER, weighting=weighting, signs="kept")
    assert insider.back(3) == insider.records == 12


@pytest.mark.parametrize("k", [2, 3])
def test_substitution_needs_two_encodings_per_record(k):
    release = Release(X, None, unveil.Scheme(k), 300, 0.0, 0)
    found = run_trial(release, INSIDER)
    assert found.back(3) == 12
    few = run_trial(Release(X, None, unveil.Scheme(k), 6, 0.0, 0), INSIDER)
    assert few.back(3) < 12


def test_one_encoding_leaves_an_insider_two_values_of_which_one_is_likely():
    """|c + x| = y: the candidate that is more like the known records is right for most values."""
    x = np.random.default_rng(5).standard_normal((60, 200)).astype(np.float32)
    found = run_trial(Release(x, None, unveil.Scheme(2), 25, 0.0, 0), INSIDER)
    uses = found.incidence.sum(axis=0)
    once = (uses == 1) & (found.outcome.vector >= 0) & ~found.known
    assert once.sum() >= 5
    assert 0.6 < (found.outcome.value[once] == 2).mean() < 0.95
    assert found.level() == "partly"


def test_what_an_insider_knows_beforehand_is_no_finding():
    found = trial(INSIDER)
    assert not (found.outcome.record[found.known] > 0).any()


def test_an_encoding_that_nearly_is_a_record_shows():
    found = trial(BLIND, weighting="dirichlet", signs="kept", alpha=0.05)
    assert found.back(2) > 12


def test_who_knows_the_pool_has_it():
    public = np.random.default_rng(1).standard_normal((40, 8)).astype(np.float32)
    assert trial(PUBLIC, public=public, k_public=1).attacker.key == "public"
    assert trial(PUBLIC).why_not == "there is no public part"


@pytest.mark.parametrize("attacker", ATTACKERS)
@pytest.mark.parametrize("signs", ["absolute", "kept", "random", "masked"])
@pytest.mark.parametrize("weighting", ["equal", "dirichlet", "released"])
def test_every_scheme_has_an_answer_or_a_reason(attacker, signs, weighting):
    masks = 4 if signs == "masked" else 0
    found = trial(attacker, m=60, weighting=weighting, signs=signs, masks=masks)
    assert found.tried or found.why_not
    assert found.outcome.wrong == 0


def test_time_that_is_over_is_said():
    release = Release(X, None, unveil.Scheme(2), 170, 0.0, 0)
    clock = Clock(1e-9)
    found = run_trial(release, BLIND, clock=clock)
    assert found.stopped
    assert found.back(1) == 0
