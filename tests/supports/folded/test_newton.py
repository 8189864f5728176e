"""Newton steps find what starts lack, and never end below where they began."""

import numpy as np
from tests.supports.folded.test_search import instance

from unveil.supports.folded.likelihood import log_likelihood
from unveil.supports.folded.newton import newton


def test_newton_climbs_from_half_the_truth_and_tells_what_a_support_lacks():
    encodings, public, model, truth = instance(4, 500, 1500, 20, seed=3)
    starts = truth.copy()
    for t in range(20):
        starts[t, :2] = [j for j in range(4) if j not in truth[t]][:2]
    rows = np.arange(20)
    found, L, lacking = newton(encodings.magnitudes(), public, rows, starts, model, 8, 16)
    before = log_likelihood(
        encodings.magnitudes(), public.vectors, rows, starts, model.weight, model.variance
    )
    assert (before - 1e-2 <= L).all()
    assert (found == truth).all(axis=1).mean() >= 0.9
    assert not (lacking[:, :, None] == found[:, None, :]).any()
