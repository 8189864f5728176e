"""MixUp as it is used comes back whole by default, with honest words under noise."""

import numpy as np
import pytest

from unveil import Encodings, Scheme, recover, score, simulate
from unveil.checks import InputError

MIXUP = Scheme(2, weighting="dirichlet", signs="kept")


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_default_recovers_every_record(k):
    scheme = Scheme(k, weighting="dirichlet", signs="kept")
    sim = simulate(scheme, n_private=20, m=240, d=60, rng=0)
    recovery = recover(sim.encodings, rng=0)
    scores = score(recovery, sim.private)
    assert (recovery.attack, scores.exact, scores.wrong) == ("unmix", 20, 0)
    assert recovery.signed
    assert recovery.explained == 240
    # Weights come with them.
    which = scores.matches
    W = np.zeros((240, 20))
    np.put_along_axis(W, sim.selection.private, sim.selection.weights, axis=1)
    assert np.abs(recovery.weights.toarray() - W[:, which]).max() < 1e-3


@pytest.mark.parametrize("weighting", ["half-normal", "uniform", "sorted", "unknown"])
def test_any_law_of_the_weights(weighting):
    law = "released" if weighting == "unknown" else weighting
    sim = simulate(Scheme(2, weighting=law, signs="kept"), n_private=15, m=200, d=40, rng=1)
    taken = Encodings(sim.encodings.values, Scheme(2, weighting=weighting, signs="kept"))
    assert score(recover(taken, rng=0), sim.private).exact == 15


def test_noise_verifies_nothing_and_tells_the_error():
    sim = simulate(MIXUP, n_private=20, m=240, d=100, noise=0.05, rng=0)
    recovery = recover(sim.encodings, rng=0)
    assert len(recovery) == 20
    assert not recovery.verified.any()
    assert recovery.evidence["noise"] == pytest.approx(0.05, rel=0.1)
    apart = ((recovery.vectors[:, None] - sim.private) ** 2).mean(axis=2)
    error = np.sqrt(apart.min(axis=1))
    assert np.median(error / recovery.evidence["standard_error"]) == pytest.approx(1.0, abs=0.3)


def test_public_vectors_are_corners_and_are_left_out():
    scheme = Scheme(2, 1, "dirichlet", signs="kept")
    sim = simulate(scheme, n_private=12, n_public=8, m=300, d=60, rng=0)
    recovery = recover(sim.encodings, sim.public, rng=0)
    assert score(recovery, sim.private).exact == len(recovery) == 12
    assert "8 further corners are public" in recovery.explanation
    assert len(recover(sim.encodings, attack="unmix", rng=0)) == 20


def test_more_records_than_pixels_are_refused_in_words():
    sim = simulate(MIXUP, n_private=40, m=300, d=20, rng=0)
    recovery = recover(sim.encodings, rng=0)
    assert not len(recovery)
    assert "at most 21" in recovery.explanation


def test_the_wrong_number_of_records_verifies_nothing():
    sim = simulate(Scheme(3, weighting="dirichlet", signs="kept"), 15, m=200, d=40, rng=0)
    values = sim.encodings.values
    for k in (2, 4):
        taken = Encodings(values, Scheme(k, weighting="dirichlet", signs="kept"))
        assert not recover(taken, rng=0).verified.any()


def test_other_schemes_are_refused_with_the_cure():
    sim = simulate(Scheme(2), n_private=6, m=20, d=16, rng=0)
    with pytest.raises(InputError, match="attack='mixup'"):
        recover(sim.encodings, attack="unmix")


def test_the_number_of_records_may_be_told():
    sim = simulate(MIXUP, n_private=10, m=120, d=40, noise=0.02, rng=0)
    assert len(recover(sim.encodings, n_private=10, rng=0)) == 10


@pytest.mark.parametrize("listed", [0, 4, 8])
def test_public_vectors_that_are_not_listed_are_not_called_private(listed):
    scheme = Scheme(2, 1, "dirichlet", signs="kept")
    sim = simulate(scheme, 10, n_public=8, m=300, d=60, rng=0)
    recovery = recover(sim.encodings, sim.public[:listed] if listed else None, rng=0)
    scores = score(recovery, sim.private)
    assert (scores.exact, scores.wrong) == (10 if listed else 0, 0)
    assert len(recovery) == 18 - listed
