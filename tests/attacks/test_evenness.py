"""Noise leaves the same in all encodings; wrong weights do not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from unveil import Scheme, simulate
from unveil.attacks.evenness import uneven
from unveil.records import Recovery


def reading(truth, noise, m, d=200, n=12, seed=0):
    """Encodings, and least squares with members and signs known and equal weights."""
    sim = simulate(replace(truth, signs="kept"), n, m=m, d=d, noise=noise, rng=seed)
    k, chosen = truth.k_private, sim.selection.private
    members = sparse.csr_array(
        (np.ones(m * k, bool), chosen.ravel(), np.arange(m + 1) * k), shape=(m, n)
    )
    vectors = np.linalg.lstsq(members.toarray() / k, sim.encodings.values, rcond=None)[0]
    empty = Recovery.empty(sim.encodings, "full", "", {})
    recovery = replace(
        empty, vectors=vectors.astype(np.float32), members=members, status=np.full(n, "ambiguous")
    )
    return np.abs(sim.encodings.values), recovery, Scheme(k, weighting="convex")


@pytest.mark.parametrize(("k", "m", "noise"), [(2, 150, 0.05), (2, 40, 0.05), (3, 90, 0.2)])
def test_noise_alone_is_even(k, m, noise):
    assert not uneven(*reading(Scheme(k, weighting="convex"), noise, m))


@pytest.mark.parametrize(("k", "noise"), [(2, 0.0), (2, 0.05), (3, 0.05)])
def test_weights_of_their_own_taken_for_equal_ones_are_not(k, noise):
    assert uneven(*reading(Scheme(k, weighting="half-normal"), noise, 150))


def test_too_few_encodings_say_nothing():
    assert not uneven(*reading(Scheme(2, weighting="half-normal"), 0.0, 9))
