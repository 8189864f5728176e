"""Encodings without a private part: who mixes which public vectors, exactly, or a word why not."""

import numpy as np
import pytest

from unveil import Encodings, InputError, Scheme, learn_public, recover, simulate


def attack(encodings, public):
    return recover(encodings, public, attack="phase-retrieval", rng=0)


@pytest.mark.parametrize(("k", "weighting"), [(1, "equal"), (3, "equal"), (6, "convex")])
def test_every_mixture_is_found_with_its_weights(k, weighting):
    sim = simulate(Scheme(0, k, weighting), n_public=40, m=50, d=160, rng=k)
    recovery = attack(sim.encodings, sim.public)
    assert recovery.verified.all()
    np.testing.assert_array_equal(recovery.vectors, sim.public[recovery.evidence["public"]])
    assert recovery.evidence["encodings_explained"] >= 48
    whole = np.zeros((50, 40))
    whole[:, recovery.evidence["public"]] = recovery.weights.toarray()
    solved = whole.any(axis=1)
    truth = np.zeros((50, 40))
    np.put_along_axis(truth, sim.selection.public, sim.encodings.scheme.public_weight, axis=1)
    np.testing.assert_allclose(whole[solved], truth[solved], atol=1e-4)
    np.testing.assert_array_equal(recovery.members.toarray(), recovery.weights.toarray() != 0)


def test_it_is_what_recover_chooses_without_a_private_part():
    sim = simulate(Scheme(0, 2), n_public=20, m=10, d=120, rng=0)
    recovery = recover(sim.encodings, sim.public, rng=0)
    assert recovery.attack == "phase-retrieval"
    assert "nothing private here" in recovery.explanation


def test_the_sparse_method_needs_far_fewer_pixels():
    """An oracle for the supports, and the comparison: 60 pixels, 100 vectors."""
    sim = simulate(Scheme(0, 3), n_public=100, m=20, d=60, rng=0)
    with pytest.raises(InputError, match=r"needs at least 199; unveil\.learn_public"):
        attack(sim.encodings, sim.public)
    assert (learn_public(sim.encodings, sim.public).indices == sim.selection.public).all(
        axis=1
    ).mean() > 0.6
    sim = simulate(Scheme(0, 3), n_public=30, m=20, d=150, rng=0)
    found = attack(sim.encodings, sim.public)
    sparse = learn_public(sim.encodings, sim.public)
    for i in np.flatnonzero(found.members.sum(axis=1) == 3):
        names = np.array(found.evidence["public"])[found.members[[i]].toarray()[0]]
        np.testing.assert_array_equal(names, sparse.indices[i, :3])


def test_noise_leaves_nothing_verified():
    sim = simulate(Scheme(0, 2), n_public=20, m=30, d=200, noise=0.02, rng=0)
    recovery = attack(sim.encodings, sim.public)
    assert len(recovery) > 15
    assert not recovery.verified.any()
    names = np.array(recovery.evidence["public"])
    found = [set(names[row.astype(bool)].tolist()) for row in recovery.members.toarray()]
    right = sum(
        mine == set(true.tolist()) for mine, true in zip(found, sim.selection.public, strict=True)
    )
    assert right > 25


def test_other_vectors_or_a_private_part_denied_find_nothing():
    sim = simulate(Scheme(0, 2), n_public=20, m=30, d=100, rng=0)
    other = np.random.default_rng(1).standard_normal(sim.public.shape)
    mixed = simulate(Scheme(2, 2), 10, n_public=20, m=30, d=100, rng=0)
    for values, public in (
        (sim.encodings.values, other),
        (mixed.encodings.values, mixed.public),
        (np.zeros((3, 100)), other),
    ):
        recovery = attack(Encodings(values, Scheme(0, 2)), public)
        assert not recovery.verified.any()
        assert recovery.explanation


def test_permuted_pixels_and_a_wrong_number_of_vectors():
    sim = simulate(Scheme(0, 3), n_public=20, m=20, d=120, rng=0)
    shuffled = np.random.default_rng(0).permuted(sim.encodings.values, axis=1)
    assert not attack(Encodings(shuffled, Scheme(0, 3)), sim.public).verified.any()
    told = attack(
        Encodings(sim.encodings.values, Scheme(0, 5)), sim.public
    )  # the equations say how many there are
    np.testing.assert_array_equal(np.unique(told.members.sum(axis=1)), [3])


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 20), (2, 3), (10, 29)])
def test_too_few_pixels_to_rule_out_chance_verify_nothing(n, d):
    rng = np.random.default_rng(0)
    public = rng.standard_normal((n, d))
    for values in (rng.standard_normal((20, d)), rng.standard_normal((20, n)) @ public):
        assert not attack(Encodings(np.abs(values), Scheme(0, 1)), public).verified.any()


def test_equal_vectors_are_named_once_and_said_to_be():
    sim = simulate(Scheme(0, 2), n_public=12, m=30, d=100, rng=0)
    recovery = attack(sim.encodings, np.vstack([sim.public, sim.public[:1]]))
    assert recovery.verified.all()
    assert sum("or one equal to it" in reason for reason in recovery.reasons) == 1


def test_what_it_cannot_take_on_is_refused():
    sim = simulate(Scheme(2, 2), 10, n_public=20, m=20, d=100, rng=0)
    with pytest.raises(InputError, match=r"unveil\.learn_public finds the public vectors"):
        attack(sim.encodings, sim.public)
    sim = simulate(Scheme(0, 2), n_public=12, m=30, d=100, rng=0)
    with pytest.raises(InputError, match="combinations of others"):
        attack(sim.encodings, np.vstack([sim.public, sim.public[0] + sim.public[1]]))
    with pytest.raises(InputError, match="pass public="):
        attack(sim.encodings, None)


def test_a_list_that_lacks_a_vector_which_others_make_up_verifies_none_of_them():
    """p = a + b is mixed, and not in the list: a and b explain it, and are not mixed."""
    P = np.random.default_rng(0).standard_normal((6, 80))
    mixed = P[0] + P[1] + P[2]  # k_public = 2: p and vector 2
    for k, verified in ((2, False), (3, True)):
        recovery = attack(Encodings(np.abs(mixed)[None], Scheme(0, k)), P)
        assert recovery.explained == 1
        assert recovery.verified.all() == recovery.verified.any() == verified
    assert all(
        "may lack one" in r for r in attack(Encodings(np.abs(mixed)[None], Scheme(0, 2)), P).reasons
    )


def test_pixels_at_which_every_public_vector_is_zero_do_no_harm():
    sim = simulate(Scheme(0, 2), n_public=8, m=10, d=80, rng=0)
    public, values = sim.public.copy(), sim.encodings.values.copy()
    public[:, :5] = values[:, :5] = 0
    assert attack(Encodings(values, Scheme(0, 2)), public).verified.any()
