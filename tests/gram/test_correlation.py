"""Squared correlations: right on average at every level, without bias at zero."""

import numpy as np

from unveil import Scheme, simulate
from unveil.gram.correlation import squared_correlations


def test_they_are_the_products_of_the_shares():
    sim = simulate(Scheme(2, weighting="half-normal"), 12, m=80, d=20_000, rng=0)
    unit = sim.selection.weights / np.linalg.norm(sim.selection.weights, axis=1, keepdims=True)
    U = np.zeros((80, 12))
    np.put_along_axis(U, sim.selection.private, unit, axis=1)
    z = U @ U.T
    off = ~np.eye(80, dtype=bool)
    error = (squared_correlations(sim.encodings.magnitudes()) - z**2)[off]
    assert np.abs(error).max() < 0.06
    assert abs(error[z[off] == 0].mean()) < 2e-3


def test_rows_without_contrast_are_like_nothing():
    values = np.vstack(
        [np.ones((2, 50)), np.abs(np.random.default_rng(0).standard_normal((3, 50)))]
    ).astype(np.float32)
    Z = squared_correlations(values)
    assert np.isfinite(Z).all()
    assert np.abs(Z[:2]).max() == 0
