"""Run time: what is timed is what it says; exponents of the paper; words."""

import numpy as np
import pytest
from experiments.cells import Cells
from experiments.paper import run_time
from experiments.paper.run_time import STAGES, _seconds, _write_down, bounds, section

from unveil.encode import selection_matrix


def test_the_papers_exponents():
    assert bounds(2) == pytest.approx((8 / 3, 8 / 3))
    assert bounds(3) == pytest.approx((5, 4.5))


def test_writing_down_gives_every_entry():
    chosen = np.sort(
        np.random.default_rng(0).permuted(np.tile(np.arange(9), (600, 1)), axis=1)[:, :3], axis=1
    )
    W = selection_matrix(chosen, 9).astype(np.int8)
    np.testing.assert_array_equal(_write_down(W), (W.astype(int) @ W.T.astype(int)).toarray())


def test_the_least_of_three():
    calls = []
    assert _seconds(lambda: calls.append(sum(range(1000)))) > 0
    assert len(calls) == 3


def facts(search, exponent=2.0):
    fit = {"exponent": exponent, "low": exponent - 0.1, "high": exponent + 0.1}
    point = {
        "n": 100,
        "m": 500,
        "draws": 1,
        "there": 1,
        "pixels": 1.0,
        "matrix": 0.1,
        "one": search / 4,
        "all": search,
    }
    return {
        "points": [{"k": k, **point} for k in (2, 3)],
        "fits": {k: dict.fromkeys(("m", *STAGES), fit) for k in ("2", "3")},
    }


def test_verdicts_follow_the_numbers():
    assert section(facts(0.2)).verdict.startswith(
        "Agrees: the search for all florals is the smaller part"
    )
    assert "2.0 times (k=2)" in section(facts(0.2)).verdict
    assert section(facts(3.0)).verdict.startswith(
        "Agrees in part: the search for all florals is not everywhere"
    )
    assert "is not everywhere within" in section(facts(0.2, exponent=6.0)).verdict


def test_measure_small(monkeypatch):
    monkeypatch.setattr(run_time, "QUICK", {2: (20, 30, 40)})
    monkeypatch.setattr(run_time, "PIXELS", {2: 256})
    found = run_time.measure(Cells("run-time", 0), False)
    assert [point["m"] for point in found["points"]] == [
        int(1.2 * n ** (4 / 3)) for n in (20, 30, 40)
    ]
    assert found["fits"]["2"]["m"]["exponent"] == pytest.approx(4 / 3, abs=0.02)
    assert all(point[stage] > 0 for point in found["points"] for stage in STAGES)
