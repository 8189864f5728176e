"""From subsets to vectors: exact ones solve, wrong ones are dropped, none is looked for."""

import numpy as np
import pytest

import unveil
from unveil.engine.blocks import Stopwatch
from unveil.exact.from_members import from_subsets
from unveil.records import UNRESOLVED


def run(sim, rows, members, **options):
    return from_subsets(
        sim.encodings, "test", rows, members, np.random.default_rng(1), Stopwatch(), **options
    )


@pytest.mark.parametrize("k", [2, 3, 4])
def test_true_subsets_give_every_vector(k):
    sim = unveil.simulate(unveil.Scheme(k), n_private=14, m=90, d=150, rng=k)
    recovery = run(sim, np.arange(90), sim.selection.private)
    scores = unveil.score(recovery, sim.private)
    assert (scores.exact, scores.wrong) == (14, 0)


def test_a_public_part_gives_signs():
    sim = unveil.simulate(unveil.Scheme(2, 2), n_private=12, n_public=30, m=80, d=200, rng=3)
    supports = unveil.Supports(sim.selection.public, np.ones(80), "known")
    recovery = run(sim, np.arange(80), sim.selection.private, public=sim.public, supports=supports)
    assert recovery.signed
    assert unveil.score(recovery, sim.private).exact == 12


def test_wrong_subsets_are_dropped_and_rows_without_one_stay_unexplained():
    sim = unveil.simulate(unveil.Scheme(2), n_private=12, m=100, d=200, rng=4)
    rows = np.arange(80)
    members = sim.selection.private[:80].copy()
    members[:3] = (members[:3] + 5) % 12
    members.sort(axis=1)
    recovery = run(sim, rows, members)
    scores = unveil.score(recovery, sim.private)
    assert (scores.exact, scores.wrong) == (12, 0)
    assert recovery.evidence["encodings_explained"] <= 80


def test_under_noise_nothing_is_verified_and_values_are_near():
    sim = unveil.simulate(unveil.Scheme(2), n_private=12, m=120, d=200, rng=5, noise=0.02)
    recovery = run(sim, np.arange(120), sim.selection.private)
    assert set(recovery.status) == {UNRESOLVED}
    assert unveil.score(recovery, sim.private).error.max() < 0.5


def test_noise_of_subsets_alone_is_declined():
    sim = unveil.simulate(unveil.Scheme(2), n_private=12, m=60, d=200, rng=6)
    random = np.sort(np.argsort(np.random.default_rng(0).random((60, 12)), axis=1)[:, :2], axis=1)
    recovery = run(sim, np.arange(60), random)
    assert not recovery.verified.any()


def test_too_few_subsets_are_declined():
    sim = unveil.simulate(unveil.Scheme(2), n_private=12, m=60, d=200, rng=6)
    recovery = run(sim, np.arange(3), sim.selection.private[:3])
    assert len(recovery) == 0
    assert "too few" in recovery.explanation
