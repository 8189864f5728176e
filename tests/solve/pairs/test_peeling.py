"""Peeling: every pixel exact where plans reach, and a doubt counted wherever another value fits."""

import numpy as np
import pytest

from unveil.parallel import using
from unveil.solve.pairs.pair_graph import pair_graph
from unveil.solve.pairs.peeling import TIE, _follow, _run, _ties, _worst, peel, sums
from unveil.solve.pairs.plans import plans_of, reachable
from unveil.solve.pixels.pixels import solve_pixels


def random_pairs(n, m, seed=0):
    return np.random.default_rng(seed).permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]


def complete(n):
    return np.array([(i, j) for i in range(n) for j in range(i)])


def problem(members, n, d=80, seed=0, a=0.5, offsets=False):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)).astype(np.float32)
    c = rng.standard_normal((len(members), d)).astype(np.float32) if offsets else None
    total = a * x[members].sum(axis=1, dtype=np.float64) + (0 if c is None else c)
    return x, np.abs(total).astype(np.float32), c, a


@pytest.mark.parametrize(("n", "m"), [(30, 210), (200, 1000)])
@pytest.mark.parametrize("offsets", [False, True])
def test_every_pixel_is_exact(n, m, offsets):
    members = random_pairs(n, m)
    rng = np.random.default_rng(1)
    reached = reachable(members, n, rng)
    members = members[reached[members].all(axis=1)]
    used, names = np.unique(members, return_inverse=True)
    members = names.reshape(-1, 2)
    assert len(used) >= n - 1
    x, y, c, a = problem(members, len(used), offsets=offsets)
    out = peel(y, c, members, len(used), a, rng)
    assert out.solved.all()
    assert (out.differs == 0).all()
    assert out.misfit.max() < 1e-6
    signs = np.ones(80) if offsets else np.sign((out.values * x).sum(axis=0))
    np.testing.assert_allclose(signs * out.values, x, atol=1e-5)


def test_it_agrees_with_the_affine_iteration():
    members = random_pairs(20, 150)
    _, y, _, a = problem(members, 20, d=40)
    one, two = (f(y, None, members, 20, a, np.random.default_rng(0)) for f in (peel, solve_pixels))
    assert one.solved.all()
    assert two.solved.all()
    np.testing.assert_allclose(
        np.sign((one.values * two.values).sum(axis=0)) * one.values, two.values, atol=1e-4
    )


def test_the_result_does_not_depend_on_blocks_or_threads():
    members = random_pairs(40, 300)
    _, y, _, a = problem(members, 40)
    calls = []
    told = {"block": 7, "progress": lambda *c: calls.append(c)}
    with using(workers=1):
        one = peel(y, None, members, 40, a, np.random.default_rng(3))
    with using(workers=2):
        two = peel(y, None, members, 40, a, np.random.default_rng(3), **told)
    np.testing.assert_array_equal(one.values, two.values)
    assert calls[-1] == ("pixels", 80, 80)


def test_vectors_that_encodings_do_not_determine_are_not_reachable():
    """Used once; on an even cycle that touches the rest in one vector; in another component."""
    members = np.vstack(
        [complete(7), [[0, 7]], [[1, 8], [8, 9], [9, 10], [10, 1]], 11 + complete(4)]
    )
    np.testing.assert_array_equal(
        reachable(members, 15, np.random.default_rng(0)), np.arange(15) < 7
    )
    _, y, _, a = problem(members, 15, d=20)
    assert not peel(y, None, members, 15, a, np.random.default_rng(0)).solved.any()


def test_a_wrong_pair_is_not_solved():
    members = complete(8)
    _, y, _, a = problem(members, 8, d=20)
    members[0] = 7, 6
    assert not peel(y, None, members, 8, a, np.random.default_rng(0)).solved.any()


def test_one_wrong_value_leaves_its_pixel_unsolved():
    members = random_pairs(30, 210)
    _, y, _, a = problem(members, 30)
    y[5, 11] += 0.01
    np.testing.assert_array_equal(
        peel(y, None, members, 30, a, np.random.default_rng(0)).solved, np.arange(80) != 11
    )


def test_a_tie_at_one_pixel_is_a_doubt():
    """Vector 8 has two encodings; at pixel 3 its neighbours have equal values, so that both signs
    fit both encodings."""
    members = np.vstack([complete(8), [[0, 8], [1, 8]]])
    x, _, _, a = problem(members, 9)
    x[1, 3] = x[0, 3]
    y = a * np.abs(x[members].sum(axis=1, dtype=np.float64)).astype(np.float32)
    out = peel(y.astype(np.float32), None, members, 9, a, np.random.default_rng(0))
    assert out.solved.all()
    np.testing.assert_array_equal(out.differs, np.arange(9) == 8)


def test_a_tie_along_an_ear_is_a_doubt_about_all_of_it():
    """8 and 9 hang between 0 and 1: with x_0 = −x_1 at a pixel, all sums along the ear can change
    their signs together."""
    members = np.vstack([complete(8), [[0, 8], [8, 9], [9, 1]]])
    x, _, _, a = problem(members, 10)
    x[1, 3] = -x[0, 3]
    y = (a * np.abs(x[members].sum(axis=1, dtype=np.float64))).astype(np.float32)
    out = peel(y, None, members, 10, a, np.random.default_rng(0))
    assert out.solved.all()
    np.testing.assert_array_equal(out.differs > 0, np.arange(10) >= 8)


def test_of_two_equal_values_plans_take_either():
    """All pixels of vector 8 are tied, so that two plans must differ in about half of those where
    they lean differently."""
    members = np.vstack([complete(8), [[0, 8], [1, 8]]])
    x, _, _, a = problem(members, 9)
    x[1] = x[0]
    y = (a * np.abs(x[members].sum(axis=1, dtype=np.float64))).astype(np.float32)
    graph, (hi, lo) = pair_graph(members, 9), sums(y, None, a)
    found = [
        _follow(graph, plan, hi, lo, 1.0)[0]
        for plan in plans_of(graph, np.random.default_rng(0), 12)
    ]
    assert (
        len(
            {
                np.round(np.abs(one[8] + one[0]) * np.sign((one[8] + one[0]) * one[0]), 3).tobytes()
                for one in found
            }
        )
        > 1
    )


def test_kernels_are_their_plain_formulas():
    rng = np.random.default_rng(0)
    members = random_pairs(12, 60)
    x, y, _, a = problem(members, 12, d=9)
    hi, lo = sums(y, None, a)
    x64 = x + 1e-3 * rng.standard_normal(x.shape)
    total = x64[members].sum(axis=1)
    plain = np.minimum(np.abs(total - hi), np.abs(total - lo)).max(axis=0)
    np.testing.assert_allclose(_worst(members, hi, lo, x64), plain, rtol=1e-12)
    graph = pair_graph(members, 12)
    v, first = 4, graph.indptr[4]
    near, rows = graph.neighbour[first : first + 3], graph.row[first : first + 3]
    out = x.astype(np.float64)
    _run(np.array([v]), np.array([0, 3]), near, rows, np.zeros(1), 0, 1, hi, lo, out, 0.1)
    np.testing.assert_allclose(out[v], x[v], atol=1e-6)
    differs = np.zeros((9, 12), bool)
    _ties(
        graph.indptr, graph.neighbour, graph.row, hi, lo, x.astype(np.float64), TIE, 1e-2, differs
    )
    for p in range(9):
        for u in range(12):
            s = slice(graph.indptr[u], graph.indptr[u + 1])
            near, rows = graph.neighbour[s], graph.row[s]
            other = (lo if abs(x[u, p] + x[near[0], p] - hi[rows[0], p]) < 1e-5 else hi)[
                rows[0], p
            ] - x[near[0], p]
            fit = np.minimum(
                np.abs(other + x[near, p] - hi[rows, p]), np.abs(other + x[near, p] - lo[rows, p])
            )
            assert differs[p, u] == (fit.max() <= TIE and abs(other - x[u, p]) > 1e-2)
