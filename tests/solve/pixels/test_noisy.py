"""Pixels under noise: close to least squares with the truth, and rows with a wrong subset put
right."""

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.solve.pixels.noisy import solve_noisy


def noisy_data(k, offsets, n=20, m=200, d=80, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    sim = simulate(Scheme(k), n, m=m, d=d, rng=seed)
    members = sim.selection.private
    c = rng.standard_normal((m, d)).astype(np.float32) if offsets else None
    mix = (
        sim.private[members].sum(axis=1)
        + (0 if c is None else c)
        + noise * rng.standard_normal((m, d))
    )
    return rng, sim.private.astype(float), members, c, mix


def least_squares(members, n, mix, c):
    W = np.zeros((len(members), n))
    np.put_along_axis(W, members, 1, axis=1)
    return np.linalg.lstsq(W, mix - (0 if c is None else c), rcond=None)[0]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("offsets", [False, True])
def test_close_to_least_squares_with_true_subsets_and_signs(k, offsets):
    rng, X, members, c, mix = noisy_data(k, offsets)
    y = np.abs(mix).astype(np.float32)
    out = solve_noisy(y, c, np.arange(200), members, 20, 0.05, rng)
    assert out is not None
    V = out.values if offsets else out.values * np.sign((out.values * X).sum(axis=0))
    error, least = (
        np.sqrt(np.mean((Z - X) ** 2, axis=1)) for Z in (V, least_squares(members, 20, mix, c))
    )
    assert (error < 1.2 * least).all()
    assert out.noise == pytest.approx(0.05, rel=0.1)
    np.testing.assert_allclose(out.error, least, rtol=0.5)
    assert out.determined.all()


def test_a_wrong_subset_is_put_right():
    rng, _, members, _, mix = noisy_data(2, False)
    start = members.copy()
    start[:3] = [[0, 1], [2, 3], [4, 5]]
    out = solve_noisy(np.abs(mix).astype(np.float32), None, np.arange(200), start, 20, 0.05, rng)
    assert out is not None
    assert len(out.rows) >= 199
    np.testing.assert_array_equal(np.sort(out.members, axis=1), members[out.rows])


def test_two_columns_of_one_vector_become_one():
    rng, X, members, _, mix = noisy_data(2, False, m=300)
    halves = members.copy()
    halves[150:][halves[150:] == 7] = 20  # vector 7 under another name in half of its encodings
    out = solve_noisy(np.abs(mix).astype(np.float32), None, np.arange(300), halves, 21, 0.05, rng)
    assert out is not None
    assert len(out.values) == 20
    V = out.values * np.sign((out.values * X).sum(axis=0))
    error, least = (
        np.sqrt(np.mean((Z - X) ** 2, axis=1)) for Z in (V, least_squares(members, 20, mix, None))
    )
    assert (error < 1.2 * least).all()


def test_rows_that_fit_nothing_give_nothing():
    rng, _, members, _, mix = noisy_data(2, False)
    y = np.abs(rng.standard_normal(mix.shape)).astype(np.float32)
    out = solve_noisy(y, None, np.arange(200), rng.permuted(members, axis=0), 20, 0.05, rng)
    assert out is None or len(out.rows) < 100 or out.noise > 0.3


def test_a_vector_its_rows_do_not_determine_is_said_to_be_so():
    rng, _, members, _, mix = noisy_data(2, False)
    y = np.vstack([np.abs(mix), np.abs(rng.standard_normal((1, 80)))]).astype(np.float32)
    out = solve_noisy(
        y[:200], None, np.arange(200), np.where(members == 19, 20, members), 21, 0.05, rng, rounds=1
    )
    assert out is not None
    np.testing.assert_array_equal(out.determined, np.arange(21) != 19)


def test_values_that_others_fit_as_well_are_counted():
    """Two triangles, each with signs of its own, against all pairs of six vectors, which have one
    solution only."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 60))
    every = np.array([(i, j) for i in range(6) for j in range(i)])
    apart = every[(every < 3).sum(axis=1) != 1]
    for members, low, high in ((every, 0.0, 0.05), (apart, 0.15, 1.0)):
        z = x[members].sum(axis=1) + 0.01 * rng.standard_normal((len(members), 60))
        rows = np.arange(len(members))
        y = np.abs(z).astype(np.float32)
        solved = solve_noisy(y, None, rows, members, 6, 0.01, np.random.default_rng(1), start=x)
        assert solved is not None
        assert low <= np.median(solved.open_share) <= high


def test_fewer_columns_than_members_give_nothing():
    y = np.ones((6, 40), np.float32)
    members = np.zeros((6, 4), np.int64)
    assert solve_noisy(y, None, np.arange(6), members, 3, 0.1, np.random.default_rng(0)) is None
