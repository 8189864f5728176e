"""The comparison in words: who wins follows the numbers, and the page has them all."""

import pytest
from experiments.compare.families import FAMILIES, Family
from experiments.compare.page import (
    MEASURES,
    matrix,
    page,
    rows,
    seconds,
    share,
    verdict,
    winners,
)


def result(attack, family, share=None, wrong=0, outcome="ran", reason=""):
    known = (
        {}
        if share is None
        else {"share": share, "exact": share, "close": share, "seconds": 0.25, "mib": 7.0, "ran": 2}
    )
    return {
        "attack": attack,
        "family": family,
        "outcome": outcome,
        "reason": reason,
        "wrong": wrong,
        **known,
    }


def facts(*results, diagrams=()):
    attacks, families = (
        list(dict.fromkeys(r[name] for r in results)) for name in ("attack", "family")
    )
    about = {
        name: {"sentence": f"About {name}.", "size": "m=1", "measure": "exact"} for name in families
    }
    asked = {"attacks": attacks, "families": families}
    told = {"full": False, "seed": 3, "limit": 20.0, "draws": 2, "asked": asked, "families": about}
    return {**told, "results": list(results), "diagrams": list(diagrams)}


FOUND = facts(
    result("a", "one", 1.0),
    result("b", "one", 0.999),
    result("a", "two", 0.5),
    result("b", "two", 0.9, wrong=2),
    result("a", "three", outcome="refused", reason="not for these"),
    result("b", "three", 0.0),
    result("a", "four", outcome="limit", reason="over the limit of 20 s"),
    result("b", "four", 0.3),
    diagrams=[{"attack": "a", "ground": "none", "reason": "not for these"}],
)


def test_wrong_results_disqualify_and_nothing_is_no_win():
    assert winners(FOUND) == {"one": ["a", "b"], "two": ["a"], "three": [], "four": ["b"]}
    words = "a wins 1 of 4 families and is level with others in 1; b wins 1 and is level with others in 1"
    assert verdict(FOUND) == f"{words}. Wrong results called verified: b 2."


def test_one_attack_wins_against_nobody():
    assert verdict(facts(result("a", "one", 0.5), result("a", "two", 0.0))).startswith(
        "a recovers something in 1 of 2 families."
    )
    assert verdict(facts(result("a", "one", 0.0))).startswith("Nothing was recovered")
    never = facts(result("a", "one", 0.5), result("b", "one", 0.1))
    assert (
        verdict(never)
        == "a wins 1 of 1 families; never best: b. Wrong results called verified: none."
    )


def test_cells_say_what_happened():
    heads, lines = matrix(FOUND, share)
    assert heads == ["family", "a", "b"]
    assert lines == [
        ["one", "100%", "100%"],
        ["two", "50%", "90%, 2 wrong"],
        ["three", "–", "0%"],
        ["four", "over limit", "30%"],
    ]
    assert share({**result("a", "one", 0.876), "ssim": 0.876}) == "0.88"
    assert [seconds(r) for r in FOUND["results"][3:5]] == ["0.25", "–"]


def test_the_page_has_the_verdict_and_every_number():
    text = page(FOUND, "figures")
    assert f"**{verdict(FOUND)}**" in text
    assert "| one | **100%** | **100%** |" in text
    assert "| two | **50%** | 90%, 2 wrong |" in text
    assert "`python -m experiments.compare --seed 3`" in text
    assert "figures/" not in text  # no diagram was drawn
    shown = [{"attack": a, "ground": "k = 2", "share": [[1]]} for a in "ab"]
    text = page({**FOUND, "diagrams": shown}, "figures")
    assert [f"(figures/compare-phase{name}.svg)" in text for name in ("", "-a", "-b", "-c")] == [
        True,
        True,
        True,
        False,
    ]


def test_rows_are_all_alike_and_hold_every_result():
    lines = rows(FOUND)
    assert len({tuple(line) for line in lines}) == 1
    assert [(line["attack"], line["family"], line["share"]) for line in lines[3:5]] == [
        ("b", "two", 0.9),
        ("a", "three", ""),
    ]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_measure_has_words(family: Family):
    assert family.measure in MEASURES
