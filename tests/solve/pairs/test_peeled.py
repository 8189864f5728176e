"""Every pixel from pairs: exact where they are right, no pixel where one is wrong, what is out of
reach left alone."""

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.solve.pairs.peeled import solve_by_peeling

LIMIT = 1 << 30


def pairs_and_sums(n, m, d, seed):
    sim = simulate(Scheme(2), n, m=m, d=d, rng=seed)
    pairs = sim.selection.private
    return sim.private.astype(np.float64), pairs, sim.private[pairs].sum(axis=1)


@pytest.mark.parametrize("public", [False, True])
def test_true_pairs_give_every_pixel(public):
    x, pairs, total = pairs_and_sums(30, 200, 40, 0)
    c = np.random.default_rng(0).standard_normal(total.shape).astype(np.float32) if public else None
    y = np.abs(total + (0 if c is None else c))
    settled = solve_by_peeling(
        y, c, 1.0, 2.0, np.arange(200), pairs, np.random.default_rng(1), limit=LIMIT
    )
    assert settled.solution.solved.all()
    assert not settled.solution.differs.any()
    np.testing.assert_array_equal(settled.rows, np.arange(200))
    got = 2.0 * settled.solution.values
    if public:
        np.testing.assert_allclose(got, x, atol=1e-4)
    else:
        signs = np.sign((got * x).sum(axis=0))
        np.testing.assert_allclose(got * signs, x, atol=1e-4)


def test_with_a_wrong_pair_no_pixel_is_solved():
    _, pairs, total = pairs_and_sums(30, 240, 40, 1)
    wrong = pairs.copy()
    wrong[5] = [0, 1]
    assert not np.array_equal(wrong, pairs)
    settled = solve_by_peeling(
        np.abs(total), None, 1.0, 1.0, np.arange(240), wrong, np.random.default_rng(0), limit=LIMIT
    )
    assert not settled.solution.solved.any()


def test_what_no_plan_reaches_is_left_over():
    """A vector that one encoding uses comes back as such; a triangle on its own does not come
    back."""
    x, pairs, total = pairs_and_sums(30, 200, 600, 4)
    rng = np.random.default_rng(0)
    more = rng.standard_normal((4, 600))
    far = [more[0] + more[1], more[1] + more[2], more[2] + more[0], x[0] + more[3]]
    pairs = np.vstack([pairs, [[30, 31], [31, 32], [30, 32], [0, 33]]])
    y = np.abs(np.vstack([total, far]))
    settled = solve_by_peeling(y, None, 1.0, 1.0, np.arange(204), pairs, rng, limit=LIMIT)
    np.testing.assert_array_equal(settled.rows, np.arange(200))
    assert settled.solution.solved.all()
    assert [single.row for single in settled.singles] == [203]


@pytest.mark.parametrize("pairs", [[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]], [[0, 1]] * 9])
def test_without_a_core_nothing_is_reached(pairs):
    y = np.abs(np.random.default_rng(0).standard_normal((len(pairs), 30)))
    rows = np.arange(len(pairs))
    assert (
        solve_by_peeling(
            y, None, 1.0, 1.0, rows, np.array(pairs), np.random.default_rng(0), limit=LIMIT
        )
        is None
    )
    none = np.empty((0, 2), np.int64)
    assert (
        solve_by_peeling(y, None, 1.0, 1.0, rows[:0], none, np.random.default_rng(0), limit=LIMIT)
        is None
    )
