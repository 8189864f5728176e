"""Encodings that known vectors nearly reproduce are told from those that use others, and from those
that fit."""

import numpy as np
import pytest

from unveil.certify.contradictions import contradicting

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("levels", [0, 2, 9])
@pytest.mark.parametrize("k", [2, 3])
def test_damage_is_told_from_vectors_that_are_not_known(k, levels):
    X = (
        RNG.standard_normal((20, 300))
        if not levels
        else RNG.choice(np.linspace(-1, 1, levels), (20, 300))
    )
    known, rows = X[:15], np.array([RNG.choice(15, k, replace=False) for _ in range(8)])
    y = np.abs(known[rows].sum(axis=1))
    y[:3, :30] += 0.3
    y[3] += 0.005 * RNG.standard_normal(300)
    y[4:6] = np.abs(X[[[1, 16][:2], [17, 18][:2]]].sum(axis=1))
    places, members = contradicting(y.astype(np.float32), None, known, k, np.random.default_rng(0))
    assert places.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(np.sort(members, axis=1), np.sort(rows[:4], axis=1))


def test_open_values_contradict_nothing():
    X, rows = RNG.standard_normal((12, 100)), np.array([[0, 1], [2, 3]])
    y = np.abs(X[rows].sum(axis=1)).astype(np.float32)
    y[:, 5] += 1
    doubtful = np.zeros((12, 100), bool)
    doubtful[1, 5] = True
    assert contradicting(y, None, X, 2, np.random.default_rng(0), doubtful)[0].tolist() == [1]


def test_nothing_left_does_no_harm():
    assert not len(
        contradicting(
            np.empty((0, 5), np.float32), None, np.ones((3, 5)), 2, np.random.default_rng(0)
        )[0]
    )
    assert not len(
        contradicting(
            np.ones((2, 5), np.float32), None, np.ones((1, 5)), 2, np.random.default_rng(0)
        )[0]
    )
