"""Values of a pixel that coincidences leave open are told, by comparison with all solutions there
are."""

from itertools import product

import numpy as np
import pytest

from unveil.certify.open_values import design_relations, few_levels, open_values
from unveil.solve.model import PublicPart

RNG = np.random.default_rng(0)


def subsets(n, k, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([np.sort(rng.choice(n, k, replace=False)) for _ in range(m)])


def other_solutions(members, x, c=None):
    """Which values of x (n,) differ, beyond one sign for all, in some solution of |Wx + c| = y: all
    signs are tried."""
    n = len(x)
    W = np.zeros((len(members), n))
    np.put_along_axis(W, members, 1, axis=1)
    y = W @ x + (0 if c is None else c)
    basis = []
    for r in range(len(W)):
        if np.linalg.matrix_rank(W[[*basis, r]]) > len(basis):
            basis.append(r)
    out = np.zeros(n, bool)
    for sign in product((1, -1), repeat=n):
        z = np.linalg.solve(W[basis], sign * y[basis] - (0 if c is None else c[basis]))
        if np.abs(np.abs(W @ z + (0 if c is None else c)) - np.abs(y)).max() < 1e-9:
            apart = np.abs(z - x) > 1e-6
            mirrored = np.abs(z + x) > 1e-6
            out |= apart if c is not None or apart.sum() <= mirrored.sum() else mirrored
    return out


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("levels", [2, 3, 0])
def test_every_value_with_another_solution_is_open(k, levels):
    """Discrete pixels, continuous ones, and continuous ones with a zero."""
    n = 8
    members = np.unique(subsets(n, k, 26), axis=0)
    X = (
        RNG.standard_normal((n, 30))
        if not levels
        else RNG.choice(np.linspace(-1, 1, levels), (n, 30))
    )
    X[0, :10] = 0
    found = open_values(members, X, None, np.zeros(30))
    true = np.stack([other_solutions(members, x) for x in X.T], axis=1)
    assert not (true & ~found).any()
    assert levels or found.mean() < 0.2


def test_two_groups_that_meet_in_a_zero_have_signs_of_their_own():
    members = np.vstack([subsets(7, 2, 40), subsets(7, 2, 40, 1) + 6])
    X = RNG.standard_normal((13, 50))
    X[6, 3] = 0
    found = open_values(members, X, None, np.zeros(50))
    assert np.flatnonzero(found.any(axis=0)).tolist() == [3]
    assert found[:, 3].sum() == 6
    assert not found[6, 3]


def test_a_public_part_ties_all_of_them_together():
    members = np.vstack([subsets(7, 2, 40), subsets(7, 2, 40, 1) + 6])
    X, P = RNG.standard_normal((13, 50)), RNG.standard_normal((5, 50)).astype(np.float32)
    X[6, 3] = 0
    names = RNG.integers(0, 5, (80, 1))
    part, twice = PublicPart(names, P, 0.7), PublicPart(np.vstack([names, names]), P, 0.7)
    assert not open_values(members, X, part, np.zeros(50)).any()
    assert not open_values(np.vstack([members, members]), X, twice, np.zeros(50)).any()
    P[:, 3] = 0
    assert open_values(members, X, part, np.zeros(50))[:, 3].sum() >= 12


def test_levels_are_told_from_continuous_values():
    members = np.unique(subsets(30, 2, 90), axis=0)
    X = RNG.standard_normal((30, 200))
    X[:, :3] = RNG.choice([-1, 1], (30, 3))
    flagged = few_levels(members, X, None, np.full(200, 1e-5))
    assert np.flatnonzero(flagged).tolist() == [0, 1, 2]


def test_relations_of_the_design_hold_for_all_vectors():
    members = np.unique(subsets(9, 3, 60), axis=0)
    X = RNG.standard_normal((9, 1))
    quads = design_relations(members, 9)
    assert len(quads) > 50
    z = X[members].sum(axis=1)[:, 0][quads]
    np.testing.assert_allclose(z[:, 0] + z[:, 1], z[:, 2] + z[:, 3], atol=1e-12)
