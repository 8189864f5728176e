"""The twelve settings, small; the words follow the numbers."""

import numpy as np
import pytest
from experiments.cells import Cells
from experiments.paper import learn_public
from experiments.paper.learn_public import _cell, section
from experiments.reproduce import rows


def facts(diagonal, default=1.0, m=20):
    def numbers(share):
        return {"share": share, "low": share, "high": share, "exact": round(m * share)}

    return {
        "m": m,
        "cells": [
            {"n_public": n, "k_public": k, "d": d, "weighting": w, "m": m}
            | {"diagonal": numbers(diagonal[w]), "folded-em": numbers(default)}
            for w in learn_public.WEIGHTINGS
            for k, d in learn_public.PIXELS.items()
            for n in learn_public.PUBLIC
        ],
    }


def test_there_are_twelve_settings_as_printed():
    assert learn_public.PIXELS == {2: 1000, 4: 1800, 6: 2400}
    assert learn_public.PUBLIC == (2000, 5000, 7500, 10_000)


def test_shares_are_those_of_the_supports():
    found = _cell(n_public=80, k_public=2, d=600, weighting="equal", m=6, seed=0)
    assert set(found) == {"diagonal", "folded-em"}
    assert found["folded-em"] == {"share": 1.0, "low": 1.0, "high": 1.0, "exact": 6}
    assert 0 <= found["diagonal"]["share"] <= 1
    assert found["diagonal"]["exact"] <= 6 * found["diagonal"]["share"] + 1e-9


def test_half_a_support_counts_half(monkeypatch):
    def half(encodings, public, method):
        truth = learn_public_truth[0]
        wrong = truth.copy()
        wrong[:, 1] = (truth.max() + 1) % 80
        return type("Found", (), {"indices": wrong})

    learn_public_truth = []
    real = learn_public.simulate

    def remember(*args, **how):
        sim = real(*args, **how)
        learn_public_truth.append(sim.selection.public)
        return sim

    monkeypatch.setattr(learn_public, "simulate", remember)
    monkeypatch.setattr(learn_public, "learn_public", half)
    found = _cell(n_public=80, k_public=2, d=30, weighting="paper", m=5, seed=0)
    assert found["diagonal"]["share"] == pytest.approx(0.5, abs=0.11)
    assert found["diagonal"]["exact"] < 5


def test_verdicts_follow_the_numbers():
    assert section(facts({"paper": 0.95, "equal": 0.92})).verdict.startswith("Agrees, with either")
    assert section(facts({"paper": 0.5, "equal": 0.92})).verdict.startswith(
        "Agrees with weighting equal"
    )
    part = section(facts({"paper": 0.5, "equal": 0.7}))
    assert "12 with paper and 12 with equal" in part.verdict
    assert "at least 50.0%" in part.ours


def test_rows_and_measure_small(monkeypatch):
    monkeypatch.setattr(learn_public, "PIXELS", {2: 300})
    monkeypatch.setattr(learn_public, "PUBLIC", (40, 60))
    found = learn_public.measure(Cells("learn-public", 1), False)
    assert [(c["weighting"], c["n_public"]) for c in found["cells"]] == [
        ("paper", 40), ("paper", 60), ("equal", 40), ("equal", 60),
    ]  # fmt: skip
    table = rows(found)
    assert len(table) == 4
    for method in ("diagonal", "folded-em"):
        assert np.isfinite([row[f"{method}.share"] for row in table]).all()
