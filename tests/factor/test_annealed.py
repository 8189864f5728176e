"""Annealing: the energy that it says it lowers, and subsets from two encodings per vector."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from unveil import Scheme, simulate
from unveil.factor.all_vectors import factor_overlaps
from unveil.factor.annealed import (
    MOST_TIMES,
    _anneal,
    anneal,
    annealings,
    differences,
    energy,
    take,
)
from unveil.gram.similarity import misfit, moments, similarity


def drawn(k, n, m, d=3072, seed=1):
    """(similarities, the true W)."""
    sim = simulate(Scheme(k), n, m=m, d=d, rng=seed)
    truth = np.zeros((m, n))
    np.put_along_axis(truth, sim.selection.private, 1, axis=1)
    return similarity(sim.encodings.magnitudes(), k), truth


def right(W, truth):
    """Rows whose overlaps with all others are right: names do not matter."""
    return (((truth @ truth.T) == (W @ W.T)).all(axis=1)).mean()


def test_the_energy_is_the_likelihood_of_every_pair():
    S, truth = drawn(3, 10, 30, d=500)
    mean, variance = moments(3)
    D, told = differences(S, 3, 500)
    spread = max(1.0, np.mean(S[(S < 0)] ** 2) / (variance[0] / 500))
    variance *= spread / 500
    shared = (truth @ truth.T).astype(int)
    by_hand = 0.0
    for i in range(30):
        for j in range(i):
            q = shared[i, j]
            for level, sign in ((q, 1), (0, -1)):
                nats = (S[i, j] - mean[level]) ** 2 / variance[level] + np.log(variance[level])
                by_hand += sign * nats / 2
    assert energy(D, take(truth, 3)) == pytest.approx(by_hand, rel=1e-5)
    assert told == pytest.approx(0.5 / variance[0])


@pytest.mark.parametrize("k", [2, 3])
def test_cold_moves_never_go_uphill(k):
    """The change of energy is right: with no temperature each sweep ends lower."""
    S, _ = drawn(k, 8, 25, d=500)
    D, _ = differences(S, k, 500)
    members = take(np.random.default_rng(2).random((25, 8)), k)
    last = start = energy(D, members)
    for seed in range(1, 8):
        _anneal(D, members, 8, np.array([1e-9]), np.uint64(seed), np.zeros((25, 8)), 0)
        now = energy(D, members)
        assert now <= last + 1e-3
        last = now
    assert last < start
    assert all(len(set(row)) == k for row in members.tolist())


def test_hot_rows_are_drawn_by_their_posterior():
    """Of two rows, with everything else held apart, the share of each overlap is exp(−E)."""
    S = np.array([[0.0, 0.4], [0.4, 0.0]])
    D, _ = differences(S, 2, 30)
    count, turns = np.zeros(3), 40_000
    members = np.array([[0, 1], [0, 1]])
    state = np.random.default_rng(0)
    for seed in state.integers(1, 2**63 - 1, size=turns // 10, dtype=np.uint64):
        _anneal(D, members, 4, np.ones(10), seed, np.zeros((2, 4)), 0)
        count[len(set(members[0]) & set(members[1]))] += 1
    # Of the six pairs of four columns one is the same, four share a member, one shares none.
    ways = np.array([1, 4, 1]) * np.exp(-np.append(0, np.cumsum(D[0, 1, :2])))
    np.testing.assert_allclose(count / count.sum(), ways / ways.sum(), atol=0.03)


def test_two_encodings_per_vector_are_enough_where_refinement_is_lost():
    S, truth = drawn(3, 50, 100)
    first = factor_overlaps(S, 3, 50)
    cooled = anneal(S, 3, 53, 3072, np.random.default_rng(0))
    assert right(first.W, truth) < 0.5
    assert right(cooled.W, truth) > 0.8
    # The misfit tells which of the two is right.
    assert misfit(S, first.W, 1.0, 3072) > 1.3
    assert misfit(S, cooled.W, 1.0, 3072) < 1.3


def test_six_in_an_encoding_are_told_apart_by_likelihood():
    """One pair in five looks as if it shared another number of vectors; pooled they do not."""
    S, truth = drawn(6, 60, 150, d=4000)
    cooled = anneal(S, 6, 66, 4000, np.random.default_rng(0))
    mine, theirs = linear_sum_assignment(-(cooled.W.T @ truth))
    assert (cooled.W.T @ truth)[mine, theirs].sum() > 0.9 * truth.sum()
    D, _ = differences(S, 6, 4000)
    assert energy(D, take(cooled.W, 6)) < 0.98 * energy(D, take(truth, 6)) < 0
    # Columns beyond the sixty hold nothing, and are dropped.
    assert cooled.W.shape[1] < 66
    # Scores are probabilities.
    np.testing.assert_allclose(cooled.scores.sum(axis=1), 6)
    assert cooled.scores.max() <= 1


def test_the_same_generator_gives_the_same_subsets():
    S, _ = drawn(3, 12, 40, d=500)
    first, second = (anneal(S, 3, 14, 500, np.random.default_rng(5)).W for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_many_encodings_are_not_annealed():
    assert annealings(200, 6) == MOST_TIMES
    assert annealings(1000, 3) == 1
    assert annealings(6000, 2) == 0
