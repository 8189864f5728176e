"""Pixels from subsets and relations: exact where the data determine them, in doubt wherever another
solution differs."""

from itertools import combinations, product

import numpy as np
import pytest
from tests.relations.test_subspace import matrix
from tests.relations.test_subspace import random_subsets as subsets

from unveil.parallel import using
from unveil.solve.signs.relation_pixels import few_rows, solve_by_relations, undetermined
from unveil.solve.signs.sign_search import sign_system


def relations(members):
    """Every quadruple with S_a + S_d = S_b + S_c."""
    sums = {}
    for pair in combinations(range(len(members)), 2):
        sums.setdefault(tuple(sorted(members[list(pair)].ravel())), []).append(pair)
    quads = {
        tuple(sorted(a + b))
        for pairs in sums.values()
        for a, b in combinations(pairs, 2)
        if not set(a) & set(b)
    }
    return np.array(sorted(quads), np.int64).reshape(-1, 4)


def solved(x, members, c=None, **options):
    y = np.abs(x[members].sum(axis=1) + (0 if c is None else c)).astype(np.float32)
    bound = np.full(x.shape[1], 1e-5)
    return solve_by_relations(
        y, c, members, len(x), relations(members), bound, np.random.default_rng(0), **options
    )


def solutions(y, c, W):
    """Every x (solutions, n) with |Wx + c| = y at one pixel: all signs, each solved, those that fit
    kept."""
    signs = np.array(list(product((1.0, -1.0), repeat=len(y))))
    z = signs * y - c
    x = z @ np.linalg.pinv(W).T
    x = x[np.abs(x @ W.T - z).max(axis=1) < 1e-6]
    return np.unique(np.round(x, 6) + 0.0, axis=0)


@pytest.mark.parametrize(("n", "m", "k"), [(5, 9, 2), (6, 11, 2), (6, 13, 2), (6, 13, 3)])
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_what_differs_between_solutions_is_in_doubt(n, m, k, public, seed):
    """All signs are enumerated. Without a public part solutions are compared up to the common sign
    of a pixel, the one that agrees best with what is called determined."""
    members = subsets(n, m, k, seed)
    W = matrix(members, n)
    assert np.linalg.matrix_rank(W) == n
    rng = np.random.default_rng(seed + 20)
    x = np.column_stack(
        [
            rng.integers(-2, 3, (n, 6)),
            rng.integers(0, 2, (n, 4)),
            np.ones(n),
            np.zeros(n),
            np.eye(n)[:, :2],
            rng.random(n),
        ]
    ).astype(float)
    c = rng.integers(-1, 2, (m, x.shape[1])).astype(np.float32) if public else None
    out = solved(x, members, c)
    y = np.abs(W @ x + (0 if c is None else c))
    assert np.isfinite(out.misfit).all()
    for p in range(x.shape[1]):
        every = solutions(y[:, p], 0.0 if c is None else c[:, p], W)
        sure = ~out.doubtful[:, p]
        mine = out.values[:, p]
        # The answer is a solution.
        assert (np.abs(every - mine).max(axis=1) < 1e-5).any()
        for other in every:
            turns = (1, -1) if c is None else (1,)
            assert min(np.abs(t * other - mine)[sure].max(initial=0) for t in turns) < 1e-5, (
                p,
                mine,
                other,
                sure,
            )


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(("n", "m", "k"), [(15, 80, 2), (12, 120, 3)])
def test_continuous_pixels_are_exact_and_not_in_doubt(n, m, k, public):
    members = subsets(n, m, k, 0)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, 70))
    c = rng.standard_normal((m, 70)).astype(np.float32) if public else None
    out = solved(x, members, c)
    assert not out.doubtful.any()
    assert out.misfit.max() < 1e-5
    turn = 1 if public else np.sign((out.values * x).sum(axis=0))
    np.testing.assert_allclose(turn * out.values, x, atol=1e-5)


@pytest.mark.parametrize("public", [False, True])
def test_very_many_pixels_are_solved_from_a_few_rows_as_from_all(monkeypatch, public):
    """Pixels of few levels, and one that an encoding contradicts, are left to the search."""
    members = subsets(12, 60, 2, 0)
    rng = np.random.default_rng(6)
    x = np.column_stack([rng.standard_normal((12, 30)), rng.integers(-1, 2, (12, 10))])
    c = rng.standard_normal((60, 40)).astype(np.float32) if public else None
    y = np.abs(x[members].sum(axis=1) + (0 if c is None else c)).astype(np.float32)
    y[5, 7] += 0.01
    one, other = (
        solve_by_relations(
            y, c, members, 12, relations(members), np.full(40, 1e-5), np.random.default_rng(0)
        )
        for wide in (1 << 14, 10)
        if monkeypatch.setattr("unveil.solve.signs.relation_pixels.WIDE", wide) is None
    )
    np.testing.assert_array_equal(one.doubtful, other.doubtful)
    np.testing.assert_array_equal(~np.isfinite(other.misfit), np.arange(40) == 7)
    turn = np.where((one.values * other.values).sum(axis=0) < 0, -1, 1)
    sure = ~one.doubtful
    np.testing.assert_allclose((turn * one.values)[sure], other.values[sure], atol=1e-5)


def test_a_few_rows_determine_every_vector_or_none_are_given():
    members = subsets(12, 60, 2, 0)
    rng = np.random.default_rng(0)
    W = matrix(members, 12)
    rows, joining = few_rows(W, sign_system(relations(members), members, rng))
    assert np.linalg.matrix_rank(W[rows]) == 12
    assert len(rows) <= 24
    assert set(joining.ravel()) == set(range(len(rows)))
    # Two halves that no encoding joins: no rows that hang together determine both.
    apart = np.vstack([subsets(6, 14, 2, 0), subsets(6, 14, 2, 1) + 6])
    system = sign_system(relations(apart), apart, rng)
    assert not len(few_rows(matrix(apart, 12), system)[0])


def test_a_constant_pixel_is_a_constant_in_doubt_and_costs_no_other_pixel():
    members = subsets(12, 60, 2, 0)
    x = np.random.default_rng(2).standard_normal((12, 20))
    x[:, 5], x[:, 6] = 3.0, 0.0
    out = solved(x, members)
    np.testing.assert_allclose(np.abs(out.values[:, 5]), 3.0, atol=1e-5)
    assert out.doubtful[:, 5].all()
    assert not np.delete(out.doubtful, 5, axis=1).any()


def test_a_pixel_that_no_signs_fit_is_in_doubt_for_all():
    members = subsets(10, 40, 2, 0)
    x = np.random.default_rng(3).standard_normal((10, 12))
    y = np.abs(x[members].sum(axis=1)).astype(np.float32)
    y[4, 7] += 0.01
    out = solve_by_relations(
        y, None, members, 10, relations(members), np.full(12, 1e-5), np.random.default_rng(0)
    )
    np.testing.assert_array_equal(~np.isfinite(out.misfit), np.arange(12) == 7)
    np.testing.assert_array_equal(out.doubtful, np.tile(np.arange(12) == 7, (10, 1)))
    assert np.isfinite(out.values).all()


def test_vectors_that_the_subsets_do_not_determine_are_in_doubt_at_every_pixel():
    """0 … 5 meet in all pairs; 6 and 7, 8 and 9 are an even cycle of their own."""
    members = np.array([*combinations(range(6), 2), (6, 7), (7, 8), (8, 9), (9, 6)])
    x = np.random.default_rng(4).standard_normal((10, 9))
    out = solved(x, members)
    assert out.doubtful[6:].all()
    W = matrix(members, 10)
    np.testing.assert_array_equal(
        undetermined(W, members, np.ones(len(W), bool)), np.arange(10) >= 6
    )


def test_undetermined_are_those_that_another_solution_of_the_fixed_rows_moves():
    """For pairs: those that hang together with no odd cycle of fixed rows."""
    members = np.array([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (5, 6), (6, 7)])
    W = matrix(members, 8)
    np.testing.assert_array_equal(undetermined(W, members, np.arange(7) != 4), np.arange(8) >= 4)
    assert undetermined(W, members, np.arange(7) != 0).all()
    assert undetermined(W, members, np.zeros(7, bool)).all()


def test_workers_do_not_change_the_result():
    members = subsets(12, 60, 2, 0)
    x = np.random.default_rng(5).integers(-2, 3, (12, 90)).astype(float)
    results, calls = [], []
    for workers in (1, 2):
        with using(workers=workers):
            results.append(solved(x, members, progress=lambda *call: calls.append(call)))
    np.testing.assert_array_equal(results[0].values, results[1].values)
    np.testing.assert_array_equal(results[0].doubtful, results[1].doubtful)
    assert calls[-1] == ("pixels", 90, 90)
