"""`alg:public_attack`, `lem:public`, and diagonal thresholding as in the paper's experiments."""

import numpy as np
import pytest

import unveil
from unveil.paper.learn_public import moment_matrix, solve_sdp


def test_the_sdp_finds_the_support_and_its_solution_is_nearly_the_projector():
    sim = unveil.simulate(unveil.Scheme(2, 2), 20, n_public=40, m=3, d=6000, rng=0)
    supports = unveil.learn_public(sim.encodings, sim.public, method="sdp")
    np.testing.assert_array_equal(supports.indices, sim.selection.public)
    w = np.zeros(40)
    w[sim.selection.public[0]] = np.sqrt(0.5)
    Z = solve_sdp(moment_matrix(sim.encodings.values[0], sim.public), 2).matrix
    assert w @ Z @ w > 0.9


@pytest.mark.parametrize(
    ("weighting", "k_public", "d", "least", "most"),
    [
        ("equal", 2, 1000, 0.9, 1.0),
        ("equal", 4, 1800, 0.9, 1.0),
        ("equal", 6, 2400, 0.9, 1.0),
        ("paper", 2, 1000, 0.9, 1.0),
        ("paper", 4, 1800, 0.8, 0.97),
        ("paper", 6, 2400, 0.65, 0.85),
    ],
)
def test_diagonal_thresholding_finds_90_percent_for_unit_selection_vectors(
    weighting, k_public, d, least, most
):
    """The paper reports an average of at least 90%. True for weights of norm 1; with the weights as
    printed, the private part is half of the energy, and at k_public = 6 about a quarter of the
    support never makes it into the top 25."""
    sim = unveil.simulate(
        unveil.Scheme(2, k_public, weighting), 50, n_public=2000, m=30, d=d, rng=k_public
    )
    found = unveil.learn_public(sim.encodings, sim.public, method="diagonal").indices
    hits = [
        len(set(a) & set(b)) / k_public
        for a, b in zip(found.tolist(), sim.selection.public.tolist(), strict=True)
    ]
    assert least <= np.mean(hits) <= most


@pytest.mark.parametrize(
    ("weighting", "k_public", "d"),
    [
        ("equal", 6, 2400),
        ("paper", 2, 1000),
        ("paper", 4, 1800),
        ("paper", 6, 2400),
        ("paper", 6, 1500),
    ],
)
def test_the_default_method_finds_every_support_exactly(weighting, k_public, d):
    """Where diagonal thresholding finds 90% of the support, or 75%, the folded-normal search finds
    all of it. It did so for 200 of 200 encodings in each of these cells at n_public = 10,000: a
    miss rate below 1.5% (95%); at 2,000 it is easier."""
    sim = unveil.simulate(
        unveil.Scheme(2, k_public, weighting), 50, n_public=2000, m=30, d=d, rng=k_public
    )
    supports = unveil.learn_public(sim.encodings, sim.public)
    assert supports.method == "folded-em"
    np.testing.assert_array_equal(supports.indices, sim.selection.public)
    assert supports.certain.mean() > 0.9
