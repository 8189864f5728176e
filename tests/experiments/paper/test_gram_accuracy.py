"""Wrong entries against the printed algorithm written out; crossings and words."""

import numpy as np
import pytest
from experiments.cells import Cells
from experiments.paper import gram_accuracy
from experiments.paper.gram_accuracy import _cell, _crossing, section
from experiments.reproduce import rows

from unveil.encode import simulate
from unveil.paper import psi_inverse
from unveil.scheme import Scheme


def test_wrong_entries_are_those_of_the_printed_algorithm(monkeypatch):
    monkeypatch.setattr(gram_accuracy, "M", 60)
    k, steps = 2, [4, 16, 64]
    found = _cell(k, steps, 1, seed=3)
    sim = simulate(
        Scheme(k),
        100,
        m=60,
        d=64 * 16,
        rng=np.random.default_rng(np.random.SeedSequence([3, k, 0])),
    )
    shared = [
        [len(set(a) & set(b)) for b in sim.selection.private.tolist()]
        for a in sim.selection.private.tolist()
    ]
    for d, wrong in zip(found["d"], found["paper"], strict=True):
        Y = sim.encodings.values[:, :d].astype(float)
        Y /= np.sqrt((Y**2).mean(axis=1, keepdims=True))
        Y -= Y.mean(axis=1, keepdims=True)
        M = np.rint(k * psi_inverse(Y @ Y.T / d)).astype(int)
        assert wrong == int(np.triu(np.array(shared) != M, 1).sum())
    assert found["pairs"] == 60 * 59 // 2
    assert found["paper"][0] > found["paper"][-1]
    assert found["balanced"][-1] <= found["paper"][-1]


def test_the_crossing_is_where_the_line_of_logarithms_passes():
    pairs, pixels = 10**6, [100, 200, 300, 400]
    wrong = [round(pairs * np.exp(-0.02 * d)) for d in pixels]
    assert _crossing(pixels, wrong, pairs) == pytest.approx(np.log(100) / 0.02, rel=0.01)
    assert _crossing(pixels, [pairs] * 4, pairs) is None


def small(exponent):
    curves = [
        {"k": k, "d": [k**4, 100 * k**4], "pairs": 100, "paper": [50, 0], "balanced": [40, 0]}
        | {"needed": {"paper": 20.0 * k**exponent, "balanced": 5.0 * k**exponent}}
        for k in gram_accuracy.KS
    ]
    fit = {"exponent": exponent, "low": exponent - 0.05, "high": exponent + 0.05, "scale": 20.0}
    return {
        "n_private": 100,
        "m": 200,
        "repeats": 2,
        "level": 0.01,
        "curves": curves,
        "exponent": {"paper": fit, "balanced": fit},
    }


def test_verdicts_follow_the_numbers():
    assert section(small(4.0)).verdict.startswith("Agrees: the exponent is close to 4")
    assert "fewer pixels at every k" in section(small(4.0)).verdict
    assert section(small(3.0)).verdict.startswith("The measured exponent is not 4")


def test_straightness_is_told():
    made = small(4.0)
    for curve in made["curves"]:
        curve["d"], curve["pairs"] = [1, 2, 3, 4], 10**6
        curve["paper"] = [10**5, 10**4, 10**3, 10**2]
    assert "R² at least 1.000" in section(made).verdict
    made["curves"][0]["paper"] = [10**5, 10**5, 10**5, 10**2]
    assert "R² at least 0.600" in section(made).verdict


def test_measure_small(monkeypatch):
    monkeypatch.setattr(gram_accuracy, "KS", (2, 3))
    monkeypatch.setattr(gram_accuracy, "M", 60)
    found = gram_accuracy.measure(Cells("gram-accuracy", 0), False)
    assert 2.5 < found["exponent"]["paper"]["exponent"] < 5.5
    assert len(rows(found)) == 10
    assert all(curve["paper"] == sorted(curve["paper"], reverse=True) for curve in found["curves"])
