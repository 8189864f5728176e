"""Unknown weights under noise: nearly what least squares with everything known makes of it, and
nothing where there is nothing."""

import numpy as np
import pytest

from unveil.attacks import recover
from unveil.encode import simulate
from unveil.encodings import Encodings
from unveil.scheme import Scheme

N, M, D, NOISE = 15, 250, 300, 0.05


def noisy(k, seed=0):
    return simulate(Scheme(k, 0, "half-normal"), N, m=M, d=D, noise=NOISE, rng=seed)


@pytest.mark.parametrize("k", [2, 3])
def test_errors_are_those_of_least_squares_with_members_weights_and_signs_known(k):
    sim = noisy(k)
    recovery = recover(sim.encodings, attack="full", rng=0)
    assert len(recovery) == N
    assert not (recovery.status == "verified").any()
    # 1. Whose vector is whose, with one sign per pixel common to all.
    found, truth = recovery.vectors, sim.private
    names = (np.abs(found) @ np.abs(truth).T / np.linalg.norm(truth, axis=1)).argmax(axis=1)
    assert len(set(names.tolist())) == N
    signs = np.where((found * truth[names]).sum(axis=0) < 0, -1, 1)
    error = np.sqrt(np.mean((found * signs - truth[names]) ** 2))
    # 2. Least squares with everything known; signs that are hidden cost a few hundredths.
    W = np.zeros((M, N))
    np.put_along_axis(W, sim.selection.private, sim.selection.weights[:, :k], axis=1)
    least = NOISE * np.sqrt(np.mean(np.diag(np.linalg.inv(W.T @ W))))
    assert error < 1.15 * least
    # 3. What it says of itself: its error, the noise, the weights.
    assert 0.8 * error < np.median(recovery.evidence["standard_error"]) < 1.2 * error
    assert recovery.evidence["noise"] == pytest.approx(NOISE, rel=0.1)
    weights = recovery.weights.toarray()[:, np.argsort(names)]
    assert np.median(np.abs(weights - W)[W > 0.1]) < 0.02


def test_pixels_that_have_nothing_to_do_with_each_other_give_nothing():
    """Every pixel of every encoding from another one: the same values, nothing shared."""
    Y = np.random.default_rng(0).permuted(noisy(2).encodings.values, axis=0)
    assert not len(recover(Encodings(Y, Scheme(2, 0, "half-normal")), attack="full", rng=0))


def test_two_members_where_there_are_three_are_no_explanation():
    """They fit most of each encoding, beyond chance; what is left is not the same in all."""
    Y = noisy(3).encodings.values
    assert not len(recover(Encodings(Y, Scheme(2, 0, "half-normal")), attack="full", rng=0))
