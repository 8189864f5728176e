"""The words about utility follow the numbers."""

import pytest
from experiments.paper.utility import CHOICES, DATA
from experiments.paper.utility_page import draw, section
from experiments.reproduce import rows


def facts(instahide, mixup, data="by-magnitude", ahead=True):
    """Losses at k = 6: the given ones in one data set, 30 points elsewhere."""
    curves, drops = [], []
    for name in DATA:
        for scheme, k in (
            ("vanilla", 1),
            *((s, k) for s in ("mixup", "absolute", "random") for k in (1, 6)),
        ):
            last = {"vanilla": 0.9, "mixup": 0.8 if ahead else 0.5}.get(scheme, 0.6)
            shared = {
                "train": [0.5, 0.9],
                "test": [0.5, last],
                "low": [0.4, last - 0.1],
                "high": [0.6, last + 0.1],
            }
            curves.append({"data": name, "scheme": scheme, "k": k, "view": "x", **shared})
        for scheme in ("mixup", "absolute", "random"):
            for against in ("vanilla", "k=1"):
                points = 30.0 if name != data else mixup if scheme == "mixup" else instahide
                band = {"points": points, "low": points - 1, "high": points + 1}
                drops.append(
                    {"data": name, "scheme": scheme, "view": "x", "against": against, **band}
                )
    printed = [
        {
            "data": d,
            "seeds": 2,
            "alpha": 0.0,
            "train": 1.0,
            "test": 0.61,
            "logit": 9.0,
            "constant": 0.0,
        }
        for d in DATA
    ]
    return {
        "seeds": 2,
        "k": [1, 6],
        "curves": curves,
        "drops": drops,
        "choices": [],
        "printed": printed,
    }


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (facts(10.0, 5.0), "Agrees; with the text's data and absolute values MixUp is ahead"),
        (
            facts(10.0, 5.0, ahead=False),
            "Agrees; with the text's data and absolute values MixUp is not ahead",
        ),
        (
            facts(11.0, 4.0, "by-sign"),
            "Does not agree with the text's data, but with another: Gaussian vectors, labels by Σ xᵢvᵢ",
        ),
        (
            facts(20.0, 5.0, "by-sign"),
            "Does not agree: on none of three data sets are both losses near the paper's; the smallest are",
        ),
    ],
)
def test_verdicts_follow_the_numbers(made, words):
    assert section(made).verdict.startswith(words)


def test_the_smallest_losses_are_named():
    verdict = section(facts(20.0, 5.0, "by-sign")).verdict
    assert (
        "InstaHide's 20.0 (Gaussian vectors, labels by Σ xᵢvᵢ) and MixUp's 5.0 (Gaussian vectors, labels by Σ xᵢvᵢ)"
        in verdict
    )


def test_other_choices_are_counted():
    made = facts(20.0, 20.0)
    accuracy = {"vanilla": 0.9, "mixup": 0.85, "absolute": 0.8, "random": 0.5}
    made["choices"] = [
        {"choice": choice, "data": data, "scheme": scheme, "k": 1 if scheme == "vanilla" else 6}
        | {"test": test if choice == "batches of 8" else 0.9}
        for choice in CHOICES
        for data in DATA
        for scheme, test in accuracy.items()
    ]
    assert "3 of 12 choices have both losses" in section(made).body


def test_numbers_and_bars_in_the_tables():
    body = section(facts(12.3, 4.5)).body
    assert "12.3 (11.3 to 13.3)" in body
    assert "0.61 with α = 0; 0.90 with He's" in body
    lines = [line for line in body.splitlines() if line.startswith("| ")]
    widths = {
        len(line.replace("\\|", "").split("|"))
        for line in lines
        if "MixUp" in line or "InstaHide" in line
    }
    assert widths == {6}


def test_a_row_per_epoch_and_a_figure_per_data_set():
    made = facts(10.0, 5.0)
    assert len(rows(made)) == 2 * len(made["curves"])
    assert set(draw(made)) == {"", *(f"-{data}" for data in DATA)}
