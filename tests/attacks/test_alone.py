"""One private vector per encoding: exact with a public part, and never more than magnitudes without
one."""

import numpy as np
import pytest

from unveil import Encodings, Scheme, recover, score, simulate


@pytest.mark.parametrize("k_public", [1, 2])
def test_with_a_public_part_every_vector_comes_back_with_signs(k_public):
    sim = simulate(Scheme(1, k_public), 8, n_public=30, m=60, d=500, rng=k_public)
    recovery = recover(sim.encodings, sim.public)
    found = score(recovery, sim.private)
    assert recovery.attack == "full"
    assert recovery.signed
    assert (found.exact, found.wrong) == (8, 0)


def test_a_vector_seen_with_one_public_part_only_is_ambiguous():
    sim = simulate(Scheme(1, 1), 3, n_public=5, m=3, d=400, rng=1)
    recovery = recover(sim.encodings, sim.public, attack="full")
    assert not recovery.verified.any()
    assert "one public part only" in recovery.reasons[0]


def test_without_a_public_part_the_encodings_are_the_magnitudes():
    sim = simulate(Scheme(1), 6, m=40, d=100, rng=0)
    recovery = recover(sim.encodings, attack="full")
    assert set(recovery.status) == {"ambiguous"}
    assert len(recovery) == len(np.unique(sim.selection.private))
    distance = np.abs(np.abs(recovery.vectors)[:, None, :] - np.abs(sim.private)[None, :, :]).max(
        axis=2
    )
    assert distance.min(axis=1).max() < 1e-5


def test_noise_and_wrong_public_vectors_verify_nothing():
    sim = simulate(Scheme(1, 1), 5, n_public=10, m=40, d=300, noise=0.05, rng=2)
    assert not recover(sim.encodings, sim.public, attack="full").verified.any()
    other = np.random.default_rng(0).standard_normal(sim.public.shape)
    clean = simulate(Scheme(1, 1), 5, n_public=10, m=40, d=300, rng=2).encodings
    assert not recover(clean, other, attack="full").verified.any()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_encodings_do_no_harm(value):
    assert not recover(Encodings(np.full((5, 30), value), Scheme(1)), attack="full").verified.any()
