"""Annealing: the energy that it says it lowers, and subsets from two encodings per vector."""

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.factor.all_vectors import factor_overlaps
from unveil.factor.annealed import _anneal, affordable, anneal, energy
from unveil.gram.similarity import counted, misfit, similarity


def overlaps(k, n, m, seed=0):
    rng = np.random.default_rng(seed)
    members = np.array([rng.choice(n, k, replace=False) for _ in range(m)])
    W = np.zeros((m, n))
    np.put_along_axis(W, members, 1, axis=1)
    S = W @ W.T
    np.fill_diagonal(S, 0)
    return S, W, members


def right(W, truth):
    """Rows whose overlaps with all others are right: names do not matter."""
    return (((truth @ truth.T) == (W @ W.T)).all(axis=1)).mean()


def test_the_energy_is_the_squared_error_off_the_diagonal():
    S, W, members = overlaps(3, 10, 30)
    rng = np.random.default_rng(1)
    noisy = S + 0.1 * (noise := rng.standard_normal(S.shape)) + 0.1 * noise.T
    np.fill_diagonal(noisy, 0)
    by_hand = sum((noisy - W @ W.T)[i, j] ** 2 for i in range(30) for j in range(i))
    assert energy(noisy, members, 10) == pytest.approx(by_hand)


@pytest.mark.parametrize("k", [2, 3])
def test_cold_moves_never_go_uphill(k):
    """The change of energy is right: with no temperature each sweep ends lower."""
    S, _, _ = overlaps(k, 8, 25)
    rng = np.random.default_rng(2)
    members = np.array([rng.choice(8, k, replace=False) for _ in range(25)])
    last = energy(S, members, 8)
    start = last
    for seed in range(1, 8):
        _anneal(S, members, 8, np.array([1e-9]), np.uint64(seed))
        now = energy(S, members, 8)
        assert now <= last + 1e-9
        last = now
    assert last < start
    assert all(len(set(row)) == k for row in members.tolist())


def test_two_encodings_per_vector_are_enough_where_refinement_is_lost():
    sim = simulate(Scheme(3), 50, m=100, d=3072, rng=1)
    truth = np.zeros((100, 50))
    np.put_along_axis(truth, sim.selection.private, 1, axis=1)
    S = similarity(sim.encodings.magnitudes(), 3)
    first = factor_overlaps(S, 3, 50)
    cooled = anneal(counted(S, 3), first.W, 3, 50, np.random.default_rng(0))
    assert right(first.W, truth) < 0.5
    assert right(cooled.W, truth) > 0.8
    # The misfit tells which of the two is right.
    assert misfit(S, first.W, 1.0, 3072) > 1.3
    assert misfit(S, cooled.W, 1.0, 3072) < 1.3


def test_the_same_generator_gives_the_same_subsets():
    S, W, _ = overlaps(3, 12, 40)
    first, second = (
        anneal(S, np.roll(W, 1, axis=0), 3, 12, np.random.default_rng(5)).W for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_many_encodings_are_not_annealed():
    assert affordable(300, 3, 100)
    assert not affordable(6000, 2, 1000)
