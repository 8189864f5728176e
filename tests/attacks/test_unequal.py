"""The full attack on unequal unknown weights: every vector and weight where they are determined,
nothing wrong elsewhere."""

import warnings

import numpy as np
import pytest

from unveil import Encodings, Scheme, gram_extract, learn_private_image, recover, score, simulate
from unveil.checks import InputError

SCHEME = Scheme(2, weighting="half-normal")


def attack(encodings, rng=0, name="full"):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return recover(encodings, attack=name, rng=rng)


@pytest.mark.parametrize(("n", "m", "d"), [(20, 300, 300), (40, 400, 600), (10, 100, 1000)])
def test_every_vector_and_weight_is_exact_without_knowing_how_many_there_are(n, m, d):
    sim = simulate(SCHEME, n, m=m, d=d, rng=1)
    recovery = attack(sim.encodings)
    found = score(recovery, sim.private)
    assert (found.exact, found.wrong, len(recovery)) == (n, 0, n)
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, sim.selection.weights, axis=1)
    np.testing.assert_allclose(recovery.weights.toarray(), W[:, found.matches], atol=2e-5)
    np.testing.assert_array_equal(recovery.members.toarray(), recovery.weights.toarray() > 0)
    assert recovery.evidence["unknowns"] == n * d + m
    assert not recovery.signed


def test_three_at_a_time_are_verified():
    sim = simulate(Scheme(3, weighting="half-normal"), 20, m=300, d=1000, rng=2)
    recovery = attack(sim.encodings)
    found = score(recovery, sim.private)
    assert (found.exact, found.wrong) == (20, 0)


def test_the_default_attack_is_this_one_and_others_refuse_in_one_sentence():
    sim = simulate(SCHEME, 10, m=100, d=300, rng=3)
    assert score(attack(sim.encodings, name=None), sim.private).exact == 10
    noise = Encodings(np.abs(np.random.default_rng(0).standard_normal((30, 40))), SCHEME)
    assert not attack(noise, name=None).verified.any()
    for other in (gram_extract, learn_private_image):
        with pytest.raises(InputError, match="weights of its own; use attack='full'"):
            other(sim.encodings)


@pytest.mark.parametrize("signs", ["random", "kept"])
def test_signs_in_the_input_are_not_needed(signs):
    sim = simulate(Scheme(2, weighting="half-normal", signs=signs), 12, m=150, d=300, rng=4)
    assert (sim.encodings.values < 0).any()
    assert score(attack(sim.encodings), sim.private).exact == 12


def test_the_same_seed_gives_the_same_bytes():
    sim = simulate(SCHEME, 10, m=120, d=200, rng=5)
    one, two = attack(sim.encodings, rng=6), attack(sim.encodings, rng=6)
    assert one.vectors.tobytes() == two.vectors.tobytes()
    assert one.weights.data.tobytes() == two.weights.data.tobytes()


def test_the_scale_of_the_pixels_is_followed_when_it_is_unknown():
    sim = simulate(SCHEME, 12, m=150, d=300, rng=7)
    recovery = attack(Encodings(100 * sim.encodings.values, SCHEME, pixel_rms=None))
    assert score(recovery, 100 * sim.private, tolerance=0.1).exact == 12


@pytest.mark.parametrize("weighting", ["equal", "convex"])
@pytest.mark.parametrize("pixel_rms", [1.0, None])
def test_fixed_weights_taken_for_half_normal_ones_verify_nothing_wrong(weighting, pixel_rms):
    sim = simulate(Scheme(2, weighting=weighting), 12, m=150, d=300, rng=8)
    assert not attack(Encodings(sim.encodings.values, SCHEME, pixel_rms)).verified.any()


def test_half_normal_weights_taken_for_fixed_ones_verify_nothing_wrong():
    sim = simulate(SCHEME, 12, m=150, d=300, rng=9)
    for weighting in ("equal", "convex"):
        assert (
            score(
                attack(Encodings(sim.encodings.values, Scheme(2, weighting=weighting), None)),
                sim.private,
            ).wrong
            == 0
        )


def test_weights_that_do_not_sum_to_one_verify_nothing():
    sim = simulate(SCHEME, 12, m=150, d=300, rng=10)
    norms = np.linalg.norm(sim.selection.weights, axis=1, keepdims=True)
    assert not attack(Encodings(sim.encodings.values / norms, SCHEME, None)).verified.any()


@pytest.mark.parametrize("true_k", [1, 3])
def test_a_wrong_k_verifies_nothing_wrong(true_k):
    sim = simulate(Scheme(true_k, weighting="half-normal"), 12, m=150, d=300, rng=11)
    assert score(attack(Encodings(sim.encodings.values, SCHEME)), sim.private).wrong == 0


@pytest.mark.parametrize("noise", [1e-4, 1e-2])
def test_with_noise_what_is_verified_is_right(noise):
    sim = simulate(SCHEME, 12, m=150, d=300, noise=noise, rng=12)
    assert score(attack(sim.encodings), sim.private).wrong == 0


@pytest.mark.parametrize(("m", "d"), [(1, 50), (4, 50), (8, 300), (80, 1), (80, 2), (80, 10)])
def test_tiny_instances_verify_nothing_wrong(m, d):
    sim = simulate(SCHEME, 10, m=m, d=d, rng=m + d)
    assert score(attack(sim.encodings), sim.private).wrong == 0


@pytest.mark.parametrize("constant", [0.0, 1.0, 1e-30, 1e18])
def test_constant_encodings_verify_nothing(constant):
    assert not attack(Encodings(np.full((60, 100), constant), SCHEME)).verified.any()


def test_one_encoding_repeated_verifies_nothing():
    row = np.abs(np.random.default_rng(0).standard_normal(300))
    assert not attack(Encodings(np.tile(row, (80, 1)), SCHEME)).verified.any()


@pytest.mark.parametrize("seed", [0, 2])
def test_epochs_in_which_vectors_meet_themselves_are_recovered_without_a_wrong_one(seed):
    """Such an encoding is one vector with weight 1, and another one with weight 0."""
    sim = simulate(Scheme(2, weighting="half-normal", pairing="epochs"), 20, m=150, d=600, rng=seed)
    assert (sim.selection.private[:, 0] == sim.selection.private[:, 1]).any()
    scores = score(recover(sim.encodings, rng=0), sim.private)
    assert scores.wrong == 0
    assert scores.exact >= 18
