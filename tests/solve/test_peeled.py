"""Every pixel from pairs: exact where they are right, wrong ones dropped, what is out of reach left alone."""

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.solve.peeled import _missed, settle_by_peeling

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
    settled = settle_by_peeling(y, c, 1.0, 2.0, np.arange(200), pairs, np.random.default_rng(1), limit=LIMIT)
    assert settled.solution.solved.all()
    assert not settled.solution.differs.any()
    np.testing.assert_array_equal(settled.rows, np.arange(200))
    got = 2.0 * settled.solution.values
    if public:
        np.testing.assert_allclose(got, x, atol=1e-4)
    else:
        signs = np.sign((got * x).sum(axis=0))
        np.testing.assert_allclose(got * signs, x, atol=1e-4)


def test_wrong_pairs_among_later_ones_are_dropped_and_others_stay():
    _, pairs, total = pairs_and_sums(30, 240, 40, 1)
    wrong = pairs.copy()
    wrong[[5, 9]] = [[0, 1], [2, 3]]
    settled = settle_by_peeling(np.abs(total), None, 1.0, 1.0, np.arange(240), wrong, np.random.default_rng(0), limit=LIMIT)
    assert settled is None or not {5, 9} & set(settled.rows.tolist()) or not settled.solution.solved.any()


@pytest.mark.parametrize("pairs", [[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]], [[0, 1]] * 9])
def test_without_a_core_nothing_is_reached(pairs):
    y = np.abs(np.random.default_rng(0).standard_normal((len(pairs), 30)))
    rows = np.arange(len(pairs))
    assert settle_by_peeling(y, None, 1.0, 1.0, rows, np.array(pairs), np.random.default_rng(0), limit=LIMIT) is None
    none = np.empty((0, 2), np.int64)
    assert settle_by_peeling(y, None, 1.0, 1.0, rows[:0], none, np.random.default_rng(0), limit=LIMIT) is None


def test_missed_is_the_plain_share():
    x, pairs, total = pairs_and_sums(12, 50, 80, 2)
    c = np.random.default_rng(3).standard_normal(total.shape)
    y = np.abs(0.5 * total + c)
    y[3, :20] += 1
    share = _missed(y, c, pairs, x, 0.5)
    assert share[3] >= 0.2
    assert (np.delete(share, 3) == 0).all()
