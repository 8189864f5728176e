"""Units: re-encoding in them gives the encodings back."""

import numpy as np
import pytest

import unveil
from unveil.attacks.units import in_units


@pytest.mark.parametrize("k_public", [0, 2])
def test_true_vectors_give_the_encodings_in_units(k_public):
    scheme = unveil.Scheme(2, k_public)
    sim = unveil.simulate(scheme, n_private=8, n_public=20, m=40, d=500, rng=0)
    supports = None
    if k_public:
        supports = unveil.Supports(sim.selection.public, np.ones(40), "known")
    task = in_units(sim.encodings, sim.public, supports)
    total = sim.private[sim.selection.private].sum(axis=1) / task.unit + (
        0 if task.offsets is None else task.offsets
    )
    assert np.allclose(np.abs(total), task.y, atol=1e-4)
    assert task.unit == pytest.approx(
        1, abs=0.1
    )  # vectors are standard normal: 40·500 pixels, 3% at most
