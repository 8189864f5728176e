"""Supports where signs are kept: those of brute force, all of them with enough pixels, in blocks as
at once."""

from itertools import combinations

import numpy as np
import pytest

import unveil
from unveil.supports.pursuit import pursue


@pytest.mark.parametrize("weighting", ["equal", "paper", "convex"])
def test_all_supports_are_found(weighting):
    scheme = unveil.Scheme(2, 3, weighting, signs="kept")
    sim = unveil.simulate(scheme, 20, n_public=300, m=100, d=500, rng=0)
    for limit in (1 << 30, 1 << 14):
        found = pursue(sim.encodings.values, sim.public, 3, scheme.public_weight, limit)
        np.testing.assert_array_equal(found, sim.selection.public)


def test_it_finds_what_brute_force_finds():
    scheme = unveil.Scheme(2, 2, signs="kept")
    sim = unveil.simulate(scheme, 20, n_public=8, m=60, d=12, rng=1)
    Y, P = sim.encodings.values, sim.public
    sums = {
        pair: scheme.public_weight * P[list(pair)].sum(axis=0) for pair in combinations(range(8), 2)
    }
    best = np.array([min(sums, key=lambda pair: float(np.sum((y - sums[pair]) ** 2))) for y in Y])
    found = pursue(Y, P, 2, scheme.public_weight, 1 << 30)
    assert (found == best).all(axis=1).mean() > 0.9
    assert (best == sim.selection.public).all(
        axis=1
    ).mean() < 1  # it is hard enough for that to mean something


def test_no_vector_is_taken_twice():
    found = pursue(np.ones((3, 4), np.float32), np.ones((2, 4), np.float32), 2, 1.0, 1 << 30)
    np.testing.assert_array_equal(found, [[0, 1]] * 3)
