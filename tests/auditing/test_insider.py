"""Substitution: what follows from known records, and nothing else."""

import numpy as np
import pytest

from unveil import simulate
from unveil.auditing.insider import substitution
from unveil.scheme import Scheme


@pytest.mark.parametrize("signs", ["absolute", "kept"])
@pytest.mark.parametrize("k", [2, 3])
def test_records_follow_exactly(signs, k):
    sim = simulate(Scheme(k, signs=signs), 20, m=100, d=60, rng=0)
    known = np.arange(20) % 2 == 0
    recovery = substitution(sim.encodings, sim.selection.private, sim.private, known)
    assert len(recovery) == 10
    np.testing.assert_allclose(recovery.vectors, sim.private[~known], atol=1e-4)


def test_one_encoding_of_hidden_signs_leaves_two_values():
    sim = simulate(Scheme(2), 6, m=1, d=30, rng=0)
    known = np.ones(6, bool)
    known[sim.selection.private[0, 0]] = False
    assert len(substitution(sim.encodings, sim.selection.private, sim.private, known)) == 0


def test_who_knows_that_nothing_is_negative_needs_one_encoding():
    sim = simulate(Scheme(2), private=np.random.default_rng(0).random((6, 30)), m=1, rng=0)
    known = np.ones(6, bool)
    known[sim.selection.private[0, 0]] = False
    assert len(substitution(sim.encodings, sim.selection.private, sim.private, known)) == 1
