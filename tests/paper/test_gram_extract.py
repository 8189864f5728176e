"""`alg:private_attack`, `lem:gramextract`."""

import numpy as np
import pytest
from scipy.stats import norm

import unveil
from unveil.paper import psi, psi_inverse
from unveil.paper.overlap_engine import folded_levels, lattice


def truth(sim):
    n = len(sim.private)
    W = np.zeros((sim.encodings.m, n), dtype=int)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    return W @ W.T


@pytest.mark.parametrize(("k", "d"), [(1, 1500), (2, 6000), (3, 16000), (4, 40000)])
def test_with_enough_pixels_the_gram_matrix_is_exact(k, d):
    sim = unveil.simulate(unveil.Scheme(k), 12, m=60, d=d, rng=k)
    np.testing.assert_array_equal(unveil.gram_extract(sim.encodings).toarray(), truth(sim))


def test_it_is_the_printed_algorithm_entry_by_entry():
    """Empirical covariance, clip, Ψ⁻¹, rounding to multiples of 1/k: the same matrix as our
    thresholds give."""
    sim = unveil.simulate(unveil.Scheme(3), 15, m=40, d=3000, rng=4)
    Y = sim.encodings.values.astype(float)
    Y /= np.sqrt((Y**2).mean(axis=1, keepdims=True))
    centred = Y - Y.mean(axis=1, keepdims=True)
    printed = np.rint(3 * psi_inverse(centred @ centred.T / Y.shape[1])).astype(int)
    np.fill_diagonal(printed, 3)
    np.testing.assert_array_equal(
        unveil.gram_extract(sim.encodings, method="printed").toarray(), printed
    )


@pytest.mark.parametrize("weighting", ["equal", "paper", "convex"])
def test_the_public_part_is_taken_off_on_the_right_lattice(weighting):
    """k_pub ≠ k_priv: rounding to multiples of 1/k first, as printed, would be wrong for
    `paper`."""
    sim = unveil.simulate(unveil.Scheme(2, 3, weighting), 10, n_public=15, m=50, d=60_000, rng=8)
    supports = unveil.Supports(sim.selection.public, np.ones(50), "given")
    found = unveil.gram_extract(sim.encodings, sim.public, supports=supports)
    np.testing.assert_array_equal(found.toarray(), truth(sim))
    z = lattice(sim.encodings.scheme)
    on_the_printed_lattice = np.allclose(5 * z, np.rint(5 * z))
    assert on_the_printed_lattice == (weighting != "paper")


def test_balanced_thresholds_make_far_fewer_errors_at_overlap_zero():
    """k=3, d=8192: the paper's midpoint turns 1.4% of zeros into ones, the balanced threshold about
    one in 100,000."""
    one_pixel = 1 - 2 / np.pi  # the deviation of (|a| − E|a|)(|b| − E|b|), a and b independent
    scheme, rate = unveil.Scheme(3), {}
    thresholds = {"paper": psi(1 / 6), "balanced": folded_levels(scheme).balanced()[0, 0]}
    for rounding, threshold in thresholds.items():
        rate[rounding] = norm.sf(threshold / (one_pixel / np.sqrt(8192)))
    assert 0.012 < rate["paper"] < 0.016
    assert rate["balanced"] < 2e-5
    assert psi(1 / 3) > threshold
