"""Relaxed reflect-reflect on known subsets, and the least squares inside it against numpy's."""

import numpy as np
import pytest

from unveil.solve.affine_rrr import Range, solve_all


def problem(k=3, n=12, m=90, d=40, seed=0):
    rng = np.random.default_rng(seed)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k]
    x = rng.standard_normal((n, d))
    return rng, members, x


def start(rng, m, d):
    return rng.standard_normal((m, d), dtype=np.float32)


def dense(members, n, a):
    W = np.zeros((len(members), n))
    np.put_along_axis(W, members, a, axis=1)
    return W


def test_the_fit_is_weighted_least_squares():
    rng, members, _ = problem()
    weights = rng.random(90)
    v = start(rng, 90, 40)
    W, root = dense(members, 12, 0.7), np.sqrt(weights)[:, None]
    expected = np.linalg.lstsq(root * W, root * v, rcond=None)[0]
    target = Range(members, 12, weights, 0.7)
    np.testing.assert_allclose(target.fit(v), expected, atol=1e-3)
    np.testing.assert_allclose(target.image(expected.astype(np.float32)), W @ expected, atol=1e-5)
    np.testing.assert_allclose(target.pinv() @ (W.T @ (weights[:, None] * v)), expected, atol=1e-5)


def test_undetermined_directions_are_left_at_zero_by_the_pseudo_inverse():
    target = Range(np.array([[0, 1], [0, 1]]), 3, np.ones(2), 1.0)
    np.testing.assert_allclose(target.pinv() @ target.gram @ [1.0, 3.0, 5.0], [2, 2, 0], atol=1e-9)


@pytest.mark.parametrize(("k", "a"), [(2, 1.0), (3, 0.4), (4, 2.0)])
def test_known_subsets_give_every_pixel_exactly_up_to_its_sign(k, a):
    rng, members, x = problem(k)
    y = (a * np.abs(x[members].sum(axis=1))).astype(np.float32)
    out, _ = solve_all(y, None, members, 12, np.ones(90), a, start(rng, 90, 40), steps=400)
    signs = np.sign((out * x).sum(axis=0))
    right = np.abs(signs * out - x).max(axis=0) < 1e-2
    assert right.mean() > 0.9
    np.testing.assert_allclose(
        np.abs(dense(members, 12, a) @ out)[:, right], y[:, right], atol=1e-2
    )


def test_offsets_give_the_signs_as_well():
    rng, members, x = problem()
    c = rng.standard_normal((90, 40)).astype(np.float32)
    y = np.abs(x[members].sum(axis=1) + c).astype(np.float32)
    out, _ = solve_all(y, c, members, 12, np.ones(90), 1.0, start(rng, 90, 40), steps=400)
    assert (np.abs(out - x).max(axis=0) < 1e-2).mean() > 0.9


def test_rows_of_weight_0_keep_their_start_and_do_no_harm():
    rng, members, x = problem(m=120)
    y = np.abs(x[members].sum(axis=1)).astype(np.float32)
    weights = np.ones(120)
    weights[90:] = 0
    y[90:] = 7
    first = start(rng, 120, 40)
    out, v = solve_all(y, None, members, 12, weights, 1.0, first, steps=400)
    np.testing.assert_array_equal(v[90:], first[90:])
    assert (np.abs(np.abs(out) - np.abs(x)).max(axis=0) < 1e-2).mean() > 0.9


def test_the_truth_is_a_fixed_point():
    _, members, x = problem()
    v0 = x[members].sum(axis=1).astype(np.float32)
    out, v = solve_all(np.abs(v0), None, members, 12, np.ones(90), 1.0, v0, steps=50)
    np.testing.assert_allclose(v, v0, atol=1e-2)
    np.testing.assert_allclose(out, x, atol=1e-3)


@pytest.mark.filterwarnings("error")
def test_contradicting_rows_stay_finite():
    rng, members, _ = problem()
    y = (1e15 * rng.random((90, 40))).astype(np.float32)
    out, v = solve_all(y, None, members, 12, np.ones(90), 1.0, start(rng, 90, 40), steps=200)
    assert np.isfinite(out).all()
    assert np.isfinite(v).all()
