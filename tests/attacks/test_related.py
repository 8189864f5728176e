"""Grids that values lie on, and encodings that relations join."""

import numpy as np
import pytest

import unveil
from unveil.attacks.related import find_by_support, joined_by_relations, rounding
from unveil.attacks.units import in_units


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


def table(levels, noise=0.0):
    """500 encodings of 60 records with 8 columns of whole numbers, standardised as audits do."""
    x = np.random.default_rng(1).integers(0, levels, (60, 8)).astype(float)
    z = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
    return unveil.simulate(unveil.Scheme(2), private=z, m=500, noise=noise, rng=0), z


def test_a_table_of_whole_numbers_comes_back_by_relations_that_support_each_other():
    """Some relations hold by chance here: evidence is 14 nats short of ruling that out."""
    simulation, truth = table(20)
    found = unveil.recover(simulation.encodings, attack="relations", rng=0)
    scores = unveil.score(found, truth)
    assert (scores.exact, scores.wrong) == (60, 0)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_where_chance_makes_too_many_relations_there_are_none(noise):
    simulation, _ = table(4 if not noise else 20, noise)
    task = in_units(simulation.encodings, None, None)
    rng = np.random.default_rng(0)
    assert find_by_support(task, np.arange(500), 1 << 30, rng, None) is None
