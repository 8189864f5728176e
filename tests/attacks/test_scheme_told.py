"""What is said of a scheme that was found: weights equal or not, noise or none, single records."""

import numpy as np
import pytest

from unveil import Scheme, recover, simulate
from unveil.attacks.scheme_told import SchemeFound, alone_each, told
from unveil.attacks.seen import look


@pytest.fixture(scope="module")
def exact():
    sim = simulate(Scheme(2), 10, m=80, d=120, rng=0)
    return sim, recover(sim.encodings, attack="relations", rng=0)


def test_an_exact_recovery_tells_k_weights_and_that_there_is_no_noise(exact):
    sim, recovery = exact
    found = told(sim.encodings.scheme, recovery, look(sim.encodings.values))
    assert found.exact
    assert found.vectors == len(recovery)
    assert "80 of 80 encodings are mixtures of 2" in found.evidence["k_private"]
    assert "equal weights" in found.evidence["weighting"]
    assert "no noise" in found.evidence["noise"]


def test_what_was_recovered_on_the_way_is_kept(exact):
    sim, recovery = exact
    assert told(sim.encodings.scheme, recovery, look(sim.encodings.values)).recovery is recovery


def test_encodings_that_repeat_and_share_nothing_are_single_records():
    values = np.abs(np.random.default_rng(0).normal(size=(6, 20))).astype(np.float32)
    found = alone_each(6, 30, look(values))
    assert found.scheme.k_private == 1
    assert "30 encodings are 6 different ones" in found.words


def test_a_scheme_that_is_not_sure_is_not_called_found():
    found = SchemeFound(Scheme(2), {"k_private": "two records"}, sure=False)
    assert "was not found out" in found.words
    assert "two records" in found.words
