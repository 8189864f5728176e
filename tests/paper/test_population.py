"""`lem:population`: E[M̃] is 2·[w]_S [w]_Sᵀ, not ½."""

import numpy as np

import unveil
from unveil.paper.learn_public import moment_matrix


def test_the_moment_matrix_is_twice_the_outer_product():
    scheme = unveil.Scheme(2, 2)
    sim = unveil.simulate(scheme, 4, n_public=12, m=1, d=400_000, rng=3)
    w = np.zeros(12)
    w[sim.selection.public[0]] = scheme.public_weight
    error = moment_matrix(sim.encodings.values[0], sim.public) - 2 * np.outer(w, w)
    # One entry's standard deviation is at most √(E[(y²−1)²(p²−1)²]/d) < √(60/d) = 0.0122; five of
    # them, 144 entries: fails with probability below 1e-4, and ½ instead of 2 would be off by
    # 0.375.
    assert np.abs(error).max() < 5 * np.sqrt(60 / 400_000)
