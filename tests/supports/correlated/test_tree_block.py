"""Search in the likelihood of a tree: the likeliest of all supports by brute force."""

from itertools import combinations

import numpy as np

from unveil import Scheme, simulate
from unveil.supports.correlated.pixel_law import measure_law
from unveil.supports.correlated.tree_block import TreeBlock, TreeSetting, once
from unveil.supports.folded.survey import survey_public


def walks(rng, n, d):
    x = np.cumsum(rng.standard_normal((n, d)), axis=1)
    return (x / np.sqrt(np.mean(x**2))).astype(np.float32)


def test_the_search_finds_the_likeliest_pair_of_all():
    rng = np.random.default_rng(4)
    P = survey_public(walks(rng, 25, 100), 64)
    sim = simulate(
        Scheme(2, 2, "equal"), private=walks(rng, 10, 100), public=P.vectors, m=20, rng=4
    )
    law = measure_law(P)
    block = TreeBlock(TreeSetting(sim.encodings, P, law, 2), sim.encodings.magnitudes(), 1 << 28)
    supports, value = block.find(np.tile([0, 1], (20, 1)))
    pairs = np.array(list(combinations(range(25), 2)))
    every = block._values(np.arange(20), np.tile(pairs, (20, 1, 1)))
    np.testing.assert_allclose(value, every.max(axis=1), atol=1e-2)
    np.testing.assert_array_equal(supports, pairs[every.argmax(axis=1)])


def test_supports_that_come_twice_are_kept_once():
    found = once(np.array([[[0, 1], [2, 3], [0, 1]], [[1, 2], [1, 2], [1, 2]]]))
    np.testing.assert_array_equal(found[0], [[0, 1], [2, 3], [-1, -1]])
    np.testing.assert_array_equal(found[1], [[1, 2], [-1, -1], [-1, -1]])


def test_a_list_of_one_vector_is_no_error():
    rng = np.random.default_rng(6)
    P = survey_public(walks(rng, 1, 100), 64)
    sim = simulate(Scheme(2, 1), private=walks(rng, 6, 100), public=P.vectors, m=20, rng=6)
    setting = TreeSetting(sim.encodings, P, measure_law(P), 1)
    supports, _ = TreeBlock(setting, sim.encodings.magnitudes(), 1 << 28).find(
        np.zeros((20, 1), int)
    )
    np.testing.assert_array_equal(supports, 0)
