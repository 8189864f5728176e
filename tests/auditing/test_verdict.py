"""Intervals cover, and counts agree with each other."""

import numpy as np
import pytest

import unveil
from unveil.auditing.attacker import INSIDER
from unveil.auditing.release import Release
from unveil.auditing.trial import run_trial
from unveil.auditing.verdict import share_interval


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("scatter", [0.0, 0.15])
def test_intervals_of_draws_that_scatter_cover(share, scatter):
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        chances = np.clip(share + scatter * min(share, 1 - share) * rng.standard_normal(3), 0, 1)
        low, high = share_interval((rng.binomial(40, chances) / 40).tolist(), 40)
        inside += low <= share <= high
    assert inside / 400 > 0.9


@pytest.mark.parametrize("m", [24, 60])
def test_intervals_of_small_audits_cover(m):
    shares = []
    for seed in range(60):
        x = np.random.default_rng(1000 + seed).standard_normal((40, 8)).astype(np.float32)
        release = Release(x, None, unveil.Scheme(2), m, 0.0, seed)
        trials = [run_trial(release, INSIDER, draw) for draw in range(3)]
        shares.append([trial.back(3) / trial.records for trial in trials])
    truth = float(np.mean(shares))
    inside = [low <= truth <= high for low, high in (share_interval(s, 20) for s in shares)]
    assert np.mean(inside) >= 0.88


def test_a_share_is_inside_its_interval_and_all_is_all():
    for hits in range(31):
        low, high = share_interval([hits / 30], 30)
        assert 0 <= low <= hits / 30 <= high <= 1
    assert share_interval([1.0, 1.0], 50)[1] == 1.0
