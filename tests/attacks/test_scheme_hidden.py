"""Schemes that hide signs, tried one after another: the one behind the encodings is believed."""

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.attacks.scheme_hidden import _Reading, hidden_scheme
from unveil.attacks.seen import look


def asked(values, rng=0):
    return hidden_scheme(values, look(values), None, False, rng, None)


@pytest.mark.parametrize("k", [2, 3])
def test_the_number_of_records_is_found_with_what_they_are(k):
    sim = simulate(Scheme(k), 10, m=90, d=100, rng=k)
    found = asked(sim.encodings.values)
    assert found is not None
    assert (found.scheme.k_private, found.sure) == (k, True)
    assert found.vectors == 10


def test_of_fresh_noise_no_scheme_is_believed():
    values = np.abs(np.random.default_rng(0).normal(size=(60, 50))).astype(np.float32)
    assert asked(values) is None


class Explains:
    """What a reading is judged by."""

    exact = False

    def __init__(self, explained, noise):
        self.explained, self.evidence = explained, {"noise": noise}

    def __len__(self):
        return 20


def test_equal_weights_stand_before_own_ones_that_explain_as_much():
    """Two records with equal weights are also four, two of them next to nothing."""
    equal = _Reading(Scheme(2, weighting="convex"), Explains(299, 0.03), True)
    own = _Reading(Scheme(4, weighting="half-normal"), Explains(300, 0.03), True)
    assert equal.better(own)
    assert not own.better(equal)
    # Not if they explain less, are uneven, or leave more noise.
    for worse in (Explains(200, 0.03), Explains(299, 0.06)):
        assert own.better(_Reading(equal.scheme, worse, True))
    assert own.better(_Reading(equal.scheme, Explains(299, 0.03), False))
