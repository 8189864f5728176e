"""The baselines are what they say: on easy instances each finds the support."""

import numpy as np
import pytest
from benchmarks.baselines import sparta, thresholded_wirtinger, truncated_power

import unveil


def instance(k_private, d, m=12):
    scheme = unveil.Scheme(k_private, k_public=3, weighting="paper")
    return unveil.simulate(scheme, 10, n_public=200, m=m, d=d, rng=4)


@pytest.mark.parametrize("method", [sparta, thresholded_wirtinger, truncated_power])
def test_without_a_private_part(method):
    sim = instance(k_private=0, d=800)
    found = method.support(sim.encodings.magnitudes(), sim.public, 3)
    assert (found == sim.selection.public).all(axis=1).mean() >= 0.9


@pytest.mark.parametrize("method", [sparta, thresholded_wirtinger])
def test_a_private_part_is_noise(method):
    sim = instance(k_private=2, d=4000)
    found = method.support(sim.encodings.magnitudes(), sim.public, 3, private_variance=1.0)
    assert (found == sim.selection.public).all(axis=1).mean() >= 0.9


def test_the_truncated_power_method_needs_no_private_variance():
    sim = instance(k_private=2, d=2000)
    assert np.array_equal(
        truncated_power.support(sim.encodings.magnitudes(), sim.public, 3), sim.selection.public
    )


@pytest.mark.parametrize("method", [sparta, thresholded_wirtinger, truncated_power])
def test_few_public_vectors(method):
    rng = np.random.default_rng(0)
    public = rng.standard_normal((4, 50), dtype=np.float32)
    y = np.abs(public[:2].sum(axis=0, keepdims=True))
    assert method.support(y, public, 2).tolist() == [[0, 1]]
