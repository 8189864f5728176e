"""Distance from the Gaussian model: zero for it, seen for each way of leaving it, and guarantees
that follow."""

import numpy as np
import pytest

from unveil.auditing.model_check import KNEW, check_model, guarantees

RNG = np.random.default_rng(0)
GAUSS = RNG.standard_normal((60, 300)).astype(np.float32)


@pytest.mark.parametrize("shape", [(20, 100), (60, 784), (300, 50), (1500, 2000)])
def test_gaussian_data_pass(shape):
    for seed in range(5):
        check = check_model(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))
        assert check.gaussian, check
        assert check.dimension > 0.9
    assert all(g.holds for g in guarantees(check, wrong=0, who="blind")[:4])


def test_scale_does_not_matter_but_is_told():
    check = check_model(40 * GAUSS)
    assert check.gaussian
    assert check.rms == pytest.approx(40, rel=0.05)


OFF = {
    "heavy tails": (RNG.standard_t(3, (60, 300)), "normal"),
    "skewed": (RNG.exponential(size=(60, 300)) - 1, "normal"),
    "binary": (RNG.choice([-1.0, 1.0], (60, 300)), "normal"),
    "smooth": (np.cumsum(RNG.standard_normal((60, 300)), axis=1), "independent"),
    "low rank": (RNG.standard_normal((60, 5)) @ RNG.standard_normal((5, 300)), "independent"),
    "common part": (GAUSS + RNG.standard_normal(300), "independent"),
    "copies": (np.repeat(GAUSS[:6], 10, axis=0), "independent"),
}


@pytest.mark.parametrize("name", OFF)
def test_other_data_are_seen(name):
    values, what = OFF[name]
    check = check_model(values.astype(np.float32))
    assert not check.gaussian
    assert not getattr(check, what)
    assert check.sentence().startswith("The data are not")
    forecast = guarantees(check, wrong=0, who="blind")[2]
    assert not forecast.holds


def test_what_is_not_verified_is_not_claimed():
    smooth = check_model(OFF["smooth"][0].astype(np.float32))
    by_name = {g.what: g for g in guarantees(smooth, wrong=0, who="told")}
    held = [g for g in by_name.values() if g.holds]
    assert [g.what for g in held] == ["The counts of this audit are facts about these encodings"]
    trusted = guarantees(check_model(GAUSS), wrong=3, who="blind")[1]
    assert not trusted.holds
    assert "3 vectors" in trusted.why
    assert not guarantees(check_model(GAUSS), wrong=0, who="blind")[4].holds


@pytest.mark.parametrize("who", sorted(KNEW))
def test_what_the_attacker_of_the_headline_knew_is_said(who):
    alone = guarantees(check_model(GAUSS), wrong=0, who=who)[3]
    assert alone.holds == (who in ("blind", "public"))
    assert alone.why.startswith(KNEW[who])


def test_only_who_has_images_is_told_of_images():
    smooth = check_model(OFF["smooth"][0].astype(np.float32))
    for noun in ("pixel", "column", "value"):
        found = guarantees(smooth, wrong=0, who="told", noun=noun)
        found += guarantees(check_model(GAUSS), wrong=0, who="blind", noun=noun)
        text = " ".join(f"{g.what} {g.why}" for g in found) + smooth.sentence(noun)
        assert f"{noun} by {noun}" in text
        assert f"{noun}s are correlated" in text
        assert "told which encodings share a record" in text
        assert ("images" in text) == ("pixel" in text) == (noun == "pixel")


def test_constant_data_do_no_harm():
    assert not check_model(np.ones((5, 7), np.float32)).gaussian
    check_model(np.zeros((5, 7), np.float32))
