"""Classical phase retrieval: exact where pixels suffice, one solver for recover and learn_public, and
nothing verified that another mixture explains."""

import numpy as np
import pytest

from unveil import Encodings, InputError, Scheme, learn_public, recover, simulate
from unveil.rivals.phase_retrieval import METHODS, retrieve_weights


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_dense_weights_at_generous_d(method):
    rng = np.random.default_rng(0)
    P, w = rng.standard_normal((15, 240)), rng.standard_normal((8, 15))
    found, residual = retrieve_weights(
        np.abs(w @ P).astype(np.float32), P.astype(np.float32), rng, method=method
    )
    solved = residual < 1e-4
    assert solved.mean() >= 0.8
    turned = found * np.sign((found * w).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(turned[solved], w[solved], atol=1e-3)


@pytest.mark.parametrize(("n_public", "d"), [(20, 200), (300, 300)])
def test_recover_and_learn_public_agree(n_public, d):
    """With ten pixels a vector by classical means, with one by sparsity."""
    sim = simulate(Scheme(0, 3), 0, n_public=n_public, m=20, d=d, rng=1)
    supports = learn_public(sim.encodings, sim.public)
    recovery = recover(sim.encodings, sim.public, attack="phase-retrieval", rng=0)
    assert supports.certain.mean() >= 0.9
    assert recovery.explained >= 18
    right = (supports.indices[:, :3] == sim.selection.public).all(axis=1)
    assert right[supports.certain].all()
    rows = np.flatnonzero(supports.certain)
    for i in rows:
        used = np.array(recovery.evidence["public"])[recovery.members[[i]].indices]
        np.testing.assert_array_equal(np.sort(used), sim.selection.public[i])
    np.testing.assert_allclose(recovery.weights[rows].data, Scheme(0, 3).public_weight, atol=1e-4)
    assert not recovery.verified.any()


def test_a_list_that_lacks_a_vector_which_others_make_up_verifies_none_of_them():
    """p = a + b is mixed, and not in the list: a and b explain it, and are not mixed."""
    P = np.random.default_rng(0).standard_normal((6, 80))
    mixed = P[0] + P[1] + P[2]  # k_public = 2: p and vector 2
    for k in (2, 3):
        recovery = recover(
            Encodings(np.abs(mixed)[None], Scheme(0, k)), P, attack="phase-retrieval"
        )
        assert recovery.explained == 1
        assert not recovery.verified.any()


def test_vectors_that_differ_in_signs_only_are_not_verified():
    rng = np.random.default_rng(2)
    P = rng.standard_normal((4, 100))
    P = np.vstack([P, P[0] * rng.choice([-1, 1], 100)])
    recovery = recover(Encodings(np.abs(P[[0]]), Scheme(0, 1)), P, attack="phase-retrieval", rng=0)
    assert not recovery.verified.any()


def test_noise_alone_is_no_mixture_and_a_private_part_is_refused():
    rng = np.random.default_rng(3)
    Y = np.abs(rng.standard_normal((5, 100)))
    P = rng.standard_normal((6, 100))
    assert not recover(Encodings(Y, Scheme(0, 2)), P, attack="phase-retrieval").verified.any()
    with pytest.raises(InputError, match="without a private part"):
        recover(Encodings(Y, Scheme(2, 2)), P, attack="phase-retrieval")
