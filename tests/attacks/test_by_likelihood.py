"""Noise of half the signal: all vectors, with errors that are what they are said to be."""

import numpy as np
import pytest

import unveil
from unveil import Scheme, simulate
from unveil.attacks.by_likelihood import shared_level
from unveil.gram.similarity import above_chance, similarity


@pytest.mark.parametrize(("noise", "at_most"), [(0.2, 1.15), (0.4, 1.3)])
def test_every_vector_comes_back_with_its_error(noise, at_most):
    n, m = 20, 240
    sim = simulate(Scheme(2), n, m=m, d=400, noise=noise, rng=3)
    recovery = unveil.recover(sim.encodings, rng=0)
    assert recovery.attack == "full"
    assert len(recovery) == n
    assert recovery.explained == m
    assert not recovery.verified.any()
    assert recovery.evidence["noise"] == pytest.approx(noise, rel=0.05)
    # Which vector is which: by the encodings that use it.
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    place = (recovery.members.toarray().astype(float).T @ W).argmax(axis=1)
    assert sorted(place) == list(range(n))
    truth = sim.private[place]
    signs = np.sign((recovery.vectors * truth).sum(axis=0))
    error = np.sqrt(np.mean((recovery.vectors * signs - truth) ** 2, axis=1))
    least = noise * np.sqrt(2) * np.sqrt(np.diag(np.linalg.inv(W.T @ W)))[place]
    assert np.sqrt(np.mean(error**2) / np.mean(least**2)) < at_most
    np.testing.assert_allclose(error, recovery.evidence["standard_error"], rtol=0.35)


def test_pure_noise_is_told_at_once():
    rng = np.random.default_rng(0)
    values = np.abs(rng.standard_normal((300, 200))).astype(np.float32)
    recovery = unveil.recover(unveil.Encodings(values, Scheme(2)), attack="full", rng=0)
    assert len(recovery) == 0
    assert "chance" in recovery.explanation
    assert "feedback" not in recovery.seconds


def test_the_level_of_shared_pairs_tells_the_noise():
    for noise, least, most in ((0.0, 0.97, 1.03), (0.4, 0.68, 0.8)):
        sim = simulate(Scheme(2), 20, m=200, d=2000, noise=noise, rng=1)
        S = similarity(sim.encodings.magnitudes(), 2)
        W = np.zeros((200, 20))
        np.put_along_axis(W, sim.selection.private, 1, axis=1)
        assert least < shared_level(S, W) < most
    assert shared_level(S, np.eye(200)) == 0


@pytest.mark.parametrize("k", [2, 4])
def test_eigenvalues_above_chance_are_those_of_vectors(k):
    rng = np.random.default_rng(k)
    pure = np.abs(rng.standard_normal((300, 400))).astype(np.float32)
    assert above_chance(similarity(pure, k), 400) < 2
    sim = simulate(Scheme(k), 30, m=300, d=1500, rng=k)
    assert above_chance(similarity(sim.encodings.magnitudes(), k), 1500) > 15
