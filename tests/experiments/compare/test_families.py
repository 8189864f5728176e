"""Families of instances: what each sentence says is so, and every process draws the same bytes."""

import numpy as np
import pytest
from experiments.compare.families import FAMILIES, instance


@pytest.mark.parametrize("name", FAMILIES)
def test_an_instance_is_what_the_family_says(name):
    family, drawn = FAMILIES[name], instance(FAMILIES[name], 3)
    encodings = drawn.simulation.encodings
    assert (encodings.m, encodings.d) == (family.m + round(family.copies * family.m), family.d)
    assert encodings.scheme == family.scheme
    assert len(drawn.simulation.private) == family.n
    assert len(drawn.simulation.selection.private) == encodings.m
    assert family.sentence.endswith((".", "?"))
    again = instance(family, 3)
    np.testing.assert_array_equal(encodings.values, again.simulation.encodings.values)
    assert not np.array_equal(encodings.values, instance(family, 4).simulation.encodings.values)


def test_copies_are_copies_with_their_truth():
    sim = instance(FAMILIES["copies"], 0).simulation
    values, pairs = (
        len(np.unique(rows, axis=0)) for rows in (sim.encodings.values, sim.selection.private)
    )
    assert values == pairs <= 180
    assert sim.encodings.m == 240
    mixed = np.abs(sim.private[sim.selection.private].sum(axis=1)) / np.sqrt(2)
    np.testing.assert_allclose(sim.encodings.values, mixed, atol=1e-5)


@pytest.mark.parametrize("name", ["told-k2", "told-k3"])
def test_told_overlaps_are_true(name):
    drawn = instance(FAMILIES[name], 1)
    chosen = drawn.simulation.selection.private
    M = drawn.options["overlaps"].toarray()
    assert all(
        M[i, j] == len(set(chosen[i]) & set(chosen[j])) for i in range(40) for j in range(40)
    )


def test_one_overlap_in_a_hundred_is_wrong_by_one():
    true, told = (
        instance(FAMILIES[name], 1).options["overlaps"].toarray()
        for name in ("told-k2", "told-wrong")
    )
    off = np.triu(told - true, 1)
    pairs = len(true) * (len(true) - 1) / 2
    assert 0.006 < np.count_nonzero(off) / pairs < 0.014
    assert set(np.unique(off)) == {-1, 0, 1}
    assert told.min() == 0
    assert told.max() == 2


def test_like_images_are_given_where_no_candidates_are_known():
    alone, candidates = instance(FAMILIES["images"], 0), instance(FAMILIES["images-public"], 0)
    assert set(alone.options) == {"n_private", "like"}
    assert set(candidates.options) == {"n_private"}
    same = (alone.options["like"][:, None] == alone.simulation.private[None]).all(axis=2)
    assert not same.any()
    assert np.abs(alone.simulation.private).max() <= 1
