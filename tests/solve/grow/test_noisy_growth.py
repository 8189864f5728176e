"""Under noise: columns of one vector become one, vectors that no relation showed are found in what
is left."""

import numpy as np
import pytest

from unveil.solve.grow.noisy_growth import merged, new_vectors
from unveil.solve.pixels.noisy import NoisySolution

NOISE = 0.02


def problem(n, m, d, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * rng.gamma(1.0, 1.0, d)
    members = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    y = np.abs(x[members].sum(axis=1) + NOISE * rng.standard_normal((m, d))).astype(np.float32)
    return x, members, y


def test_a_vector_under_two_names_gets_one():
    """Columns 0 and 20 share the encodings of one vector. Their difference is within five
    deviations but once in a million."""
    x, members, _ = problem(20, 300, 40, 0)
    rng = np.random.default_rng(1)
    some = (members == 0).any(axis=1) & (rng.random(300) < 0.5)
    members[some] = np.where(members[some] == 0, 20, members[some])
    W = np.zeros((300, 21))
    W[np.arange(300)[:, None], members] = 1
    z = x[np.where(members == 20, 0, members)].sum(axis=1) + NOISE * rng.standard_normal((300, 40))
    values = np.linalg.lstsq(W, z, rcond=None)[0]
    noisy = NoisySolution(
        values, np.arange(300), members, NOISE, np.zeros(21), np.ones(21, bool), 50.0
    )
    np.testing.assert_array_equal(merged(noisy), [*range(20), 0])


def test_unknown_vectors_are_found_with_their_rows():
    x, members, y = problem(16, 200, 60, 2)
    hidden = (members >= 14).any(axis=1)
    both = (members >= 14).all(axis=1)
    values, rows, theirs = new_vectors(
        y, x[:14], np.flatnonzero(hidden), NOISE, np.random.default_rng(0)
    )
    assert len(values) == 2
    np.testing.assert_array_equal(np.sort(rows), np.flatnonzero(hidden & ~both))
    for column in (14, 15):
        truth = {int(members[r][members[r] >= 14][0]) for r in rows[theirs[:, 1] == column]}
        assert len(truth) == 1
        # Values come with one sign: those of the known vectors fix it.
        assert np.abs(values[column - 14] - x[truth.pop()]).max() < 6 * NOISE
    np.testing.assert_array_equal(theirs[:, 0], [members[r][members[r] < 14][0] for r in rows])


@pytest.mark.parametrize("left", [[], [3]])
def test_less_than_two_rows_show_nothing(left):
    x, _, y = problem(8, 30, 20, 3)
    values, rows, members = new_vectors(
        y, x, np.array(left, np.int64), NOISE, np.random.default_rng(0)
    )
    assert values.shape == (0, 20)
    assert rows.shape == (0,)
    assert members.shape == (0, 2)


def test_rows_that_share_nothing_show_nothing():
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((10, 40)), np.abs(rng.standard_normal((30, 40))).astype(np.float32)
    assert len(new_vectors(y, x, np.arange(30), NOISE, rng)[0]) == 0
