"""Grids that values lie on, and encodings that relations join."""

import numpy as np
import pytest

from unveil.attacks.related import joined_by_relations, rounding


def test_continuous_values_lie_on_no_grid():
    assert rounding(np.random.default_rng(0).standard_normal((50, 40)).astype(np.float32)) == 0
    assert rounding(np.zeros((5, 4), np.float32)) == 0


@pytest.mark.parametrize("step", [1.0, 0.25, 1 / 255])
def test_the_step_of_a_grid_is_read_off(step):
    whole = np.random.default_rng(0).integers(0, 4000, (40, 30))
    assert rounding((step * whole).astype(np.float32)) == pytest.approx(step, rel=1e-3)


def test_the_largest_joined_set_is_kept_without_vectors_that_it_does_not_determine():
    # Rows 0–9 are all pairs of five vectors; row 10 has two used once; 11–14 are joined apart.
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    members = np.array([*pairs, (5, 10), (6, 7), (8, 9), (6, 8), (7, 9)])
    quads = np.array([[i, (i + 1) % 10, (i + 2) % 10, (i + 3) % 10] for i in range(10)])
    quads = np.vstack([quads, [[0, 1, 2, 10], [11, 12, 13, 14]]])
    rows, inside = joined_by_relations(members, quads)
    np.testing.assert_array_equal(rows, np.arange(10))
    np.testing.assert_array_equal(inside, quads[:10])
