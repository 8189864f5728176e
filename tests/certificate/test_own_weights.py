"""The certificate for own weights believes nobody: a wrong claim is never verified."""

import numpy as np
import pytest
from scipy import sparse

import unveil
from unveil import Scheme
from unveil.certificate import certify

KEPT = Scheme(2, weighting="dirichlet", signs="kept")
HIDDEN = Scheme(2, weighting="half-normal")


def claim(scheme, n=15, m=200, d=60, seed=0):
    sim = unveil.simulate(scheme, n_private=n, m=m, d=d, rng=seed)
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, sim.selection.weights, 1)
    return sim, sim.private.astype(np.float64), W


def found(encodings, x, W, **known):
    weights = sparse.csr_array(W)
    return certify(encodings, x, weights.astype(bool), weights=weights, **known)


def judged(encodings, x, W, **known):
    return found(encodings, x, W, **known).status


@pytest.mark.parametrize("scheme", [KEPT, HIDDEN, Scheme(3, weighting="half-normal")])
def test_the_truth_is_verified(scheme):
    sim, x, W = claim(scheme)
    assert (judged(sim.encodings, x, W) == "verified").all()


@pytest.mark.parametrize("scheme", [KEPT, HIDDEN])
def test_one_wrong_value_is_not_verified(scheme):
    sim, x, W = claim(scheme)
    x[3, 7] += 0.05
    status = judged(sim.encodings, x, W)
    assert status[3] != "verified"


@pytest.mark.parametrize("scheme", [KEPT, HIDDEN])
def test_a_record_of_noise_is_not_verified(scheme):
    sim, x, W = claim(scheme)
    x[0] = np.random.default_rng(0).standard_normal(x.shape[1])
    assert judged(sim.encodings, x, W)[0] != "verified"


def test_a_wrong_value_in_a_column_of_small_size_is_not_verified():
    sim, x, W = claim(KEPT)
    scale = np.ones(60)
    scale[5] = 1e-5
    encodings = unveil.Encodings(sim.encodings.values * scale, KEPT, None)
    x = x * scale
    assert (judged(encodings, x, W) == "verified").all()
    x[2, 5] += 0.1 * scale[5]
    assert judged(encodings, x, W)[2] != "verified"


def test_another_reading_of_the_same_encodings_is_not_verified():
    # Records and weights of an invertible map: WT, T⁻¹X reproduces everything.
    sim, x, W = claim(KEPT, n=6, m=60)
    T = np.eye(6)
    T[0, 1] = 0.5
    T[0, 0] = 0.5
    # Only the first record differs from the truth.
    status = judged(sim.encodings, np.linalg.solve(T, x), W @ T)
    assert status[0] != "verified"


def test_weights_that_do_not_sum_to_one_prove_nothing():
    sim, x, W = claim(KEPT)
    assert not (judged(sim.encodings, x / 2, 2 * W) == "verified").any()


def test_equal_weights_are_not_in_general_position():
    sim = unveil.simulate(Scheme(2, weighting="convex", signs="kept"), 15, m=200, d=60, rng=0)
    W = np.zeros((200, 15))
    np.put_along_axis(W, sim.selection.private, 0.5, 1)
    encodings = unveil.Encodings(sim.encodings.values, KEPT, None)
    assert not (judged(encodings, sim.private.astype(float), W) == "verified").any()


def test_too_few_encodings_leave_it_open():
    sim, x, W = claim(KEPT, n=15, m=18)
    assert (judged(sim.encodings, x, W) != "verified").any()


def test_a_record_that_is_never_used_is_unresolved():
    sim, x, W = claim(KEPT)
    status = judged(sim.encodings, np.vstack([x, x[:1] + 1]), np.column_stack([W, np.zeros(200)]))
    assert status[-1] == "unresolved"


def test_values_that_the_claim_leaves_open_stay_open():
    sim, x, W = claim(KEPT)
    doubtful = np.zeros(x.shape, bool)
    doubtful[2, 4] = True
    x[2, 4] += 3
    recovery = found(sim.encodings, x, W, doubtful=doubtful)
    assert recovery.doubtful[2, 4]
    assert recovery.status[0] == "verified"


def test_a_record_may_be_a_public_vector_that_is_not_listed():
    scheme = Scheme(2, 1, "uniform", signs="kept")
    sim = unveil.simulate(scheme, n_private=12, n_public=10, m=400, d=60, rng=0)
    W = np.zeros((400, 12))
    np.put_along_axis(W, sim.selection.private, sim.selection.weights, 1)
    x = sim.private.astype(np.float64)
    with_list = judged(sim.encodings, x, W, public=sim.public, supports=sim.selection.public)
    assert (with_list == "verified").all()
    assert not (judged(sim.encodings, x, W) == "verified").any()
    moved = (sim.selection.public + 1) % 10
    assert not (judged(sim.encodings, x, W, public=sim.public, supports=moved) == "verified").any()


def test_declaring_values_open_makes_no_wrong_record_verified():
    """All but three values of one record are open: that record is in doubt, whatever they are."""
    sim, x, W = claim(KEPT)
    doubtful = np.zeros(x.shape, bool)
    doubtful[2, 3:] = True
    x[2, 3:] = 7
    recovery = found(sim.encodings, x, W, doubtful=doubtful)
    assert recovery.status[2] != "verified"


def test_values_that_are_clipped_are_in_general_position_elsewhere():
    """One value in fifty is -1 or 1: ties at some columns, and none at most of them."""
    x = np.random.default_rng(0).standard_normal((20, 200))
    x = np.clip(x / np.quantile(np.abs(x), 0.98), -1, 1).astype(np.float32)
    sim = unveil.simulate(HIDDEN, private=x, m=280, rng=0)
    W = np.zeros((280, 20))
    np.put_along_axis(W, sim.selection.private, sim.selection.weights, 1)
    assert (judged(sim.encodings, x, W) == "verified").all()
    x[3, 7] *= -1
    assert judged(sim.encodings, x, W)[3] != "verified"
    levels = np.sign(sim.private)
    again = unveil.Encodings(np.abs(W @ levels), HIDDEN, None)
    assert not (judged(again, levels, W) == "verified").any()


@pytest.mark.parametrize("seed", range(3))
def test_parts_that_meet_in_zeros_only_have_signs_of_their_own(seed):
    """Records 8 to 11 join two parts, and are 0 at five columns: there each part may be turned."""
    r = np.random.default_rng(seed)
    x = r.standard_normal((20, 80)).astype(np.float32)
    x[8:12, :5] = 0
    parts = [np.arange(12), np.arange(8, 20)]
    rows = np.array([r.choice(part, 2, False) for part in parts for _ in range(150)])
    W = np.zeros((300, 20))
    np.put_along_axis(W, rows, r.dirichlet([1.0, 1.0], 300), 1)
    encodings = unveil.Encodings(np.abs(W @ x).astype(np.float32), HIDDEN, None)
    x[12:, :5] *= -1
    recovery = found(encodings, x, W)
    assert recovery.verified.all()
    assert recovery.doubtful[:, :5].all()
    assert not recovery.doubtful[:, 5:].any()
