"""Signs of a pixel: what is called fixed is the same in every solution, by enumeration of all
signs."""

from itertools import combinations, product

import numpy as np
import pytest
from tests.solve.signs.test_relation_pixels import relations

from unveil.solve.signs.sign_search import search_signs, sign_system

KINDS = ["gaussian", "levels", "binary", "constant", "zero", "one-hot", "signed constant"]


def pixel(kind, n, rng):
    if kind == "gaussian":
        return rng.standard_normal(n)
    if kind == "levels":
        return rng.integers(-2, 3, n).astype(float)
    if kind == "binary":
        return rng.integers(0, 2, n).astype(float)
    if kind == "one-hot":
        return np.eye(n)[rng.integers(n)]
    if kind == "signed constant":
        return rng.choice([-1.0, 1.0], n)
    return np.full(n, float(kind == "constant"))


def problem(n, m, k, seed):
    """(members, W, x (n, pixels)), two pixels of each kind."""
    rng = np.random.default_rng(seed)
    every = np.array(list(combinations(range(n), k)))
    members = every[rng.permutation(len(every))[:m]]
    W = np.zeros((m, n))
    np.put_along_axis(W, members, 1, axis=1)
    return members, W, np.column_stack([pixel(kind, n, rng) for kind in KINDS * 2])


def by_enumeration(system, hi, lo, bound):
    """All choices (solutions, rows) that fulfil every relation, rows with one value only at +1."""
    options = [(1,) if abs(h - w) <= bound else (1, -1) for h, w in zip(hi, lo, strict=True)]
    choices = np.array(list(product(*options)), np.int8)
    z = np.where(choices > 0, hi, lo)
    residual = np.abs(np.einsum("sqi,qi->sq", z[:, system.quads], system.signs)).max(
        axis=1, initial=0
    )
    return choices[residual <= bound]


@pytest.mark.parametrize(("n", "m", "k"), [(6, 12, 2), (6, 8, 2), (6, 13, 3), (9, 11, 2)])
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_fixed_rows_are_those_that_are_the_same_in_all_solutions(n, m, k, public, seed):
    members, W, x = problem(n, m, k, seed)
    rng = np.random.default_rng(seed + 50)
    c = rng.integers(-2, 3, (m, x.shape[1])) * 1.0 if public else np.zeros((m, x.shape[1]))
    y = np.abs(W @ x + c)
    hi, lo, bound = y - c, -y - c, np.full(x.shape[1], 1e-9)
    system = sign_system(relations(members), members, rng)
    solver = np.linalg.pinv(W)
    choice, fixed = search_signs(system, hi, lo, bound, not public, solver, members)
    truly = told = 0
    for p in range(x.shape[1]):
        every = by_enumeration(system, hi[:, p], lo[:, p], 1e-9)
        assert len(every)
        assert (every == choice[:, p]).all(axis=1).any(), "no solution"
        moves = np.abs(hi[:, p] - lo[:, p]) > 1e-9
        if not public and moves.any():
            # All signs can be turned: as they are for one of the rows called fixed.
            anchor = np.flatnonzero(moves & fixed[:, p])[0]
            every = every[every[:, anchor] == choice[anchor, p]]
        constant = (every == every[0]).all(axis=0)
        assert not (fixed[:, p] & ~constant).any()
        truly, told = truly + constant.sum(), told + fixed[:, p].sum()
    # So few rows need no more steps than there are: queries answer everything.
    assert told == truly


def test_of_several_solutions_the_one_of_least_energy_is_returned():
    """A constant pixel: c/2 everywhere has the least Σx² of all solutions."""
    members = np.array(list(combinations(range(6), 2)))
    W = np.zeros((15, 6))
    np.put_along_axis(W, members, 1, axis=1)
    system = sign_system(relations(members), members, np.random.default_rng(0))
    hi = np.ones((15, 1))
    solver = np.linalg.pinv(W)
    choice, fixed = search_signs(system, hi, -hi, np.full(1, 1e-9), True, solver, members)
    x = solver @ choice[:, 0]
    np.testing.assert_allclose(np.abs(x), 0.5)
    assert len(set(np.sign(x))) == 1
    assert not fixed.all()


@pytest.mark.parametrize("public", [False, True])
def test_a_pixel_that_nothing_fits_has_no_choice(public):
    members, W, x = problem(6, 14, 2, 0)
    y = np.abs(W @ x)
    y[3, 0] += 0.1
    system = sign_system(relations(members), members, np.random.default_rng(0))
    choice, fixed = search_signs(
        system, y, -y, np.full(x.shape[1], 1e-9), not public, np.linalg.pinv(W), members
    )
    assert not choice[:, 0].any()
    assert not fixed[:, 0].any()
    assert choice[:, 1:].all()


def test_without_search_only_pixels_that_are_forced_get_signs_and_they_are_the_same():
    members, W, x = problem(8, 24, 2, 1)
    y = np.abs(W @ x)
    system = sign_system(relations(members), members, np.random.default_rng(0))
    solver, bound = np.linalg.pinv(W), np.full(x.shape[1], 1e-9)
    light, sure = search_signs(system, y, -y, bound, True, solver, members, deep=False)
    deep, fixed = search_signs(system, y, -y, bound, True, solver, members)
    done = light.any(axis=0)
    assert done[0]
    assert not done.all()
    np.testing.assert_array_equal(light[:, done], deep[:, done])
    assert sure[:, done].all()
    assert fixed[:, done].all()
    assert not light[:, ~done].any()


@pytest.mark.parametrize("k", [2, 3])
def test_a_system_has_the_relations_that_subsets_confirm_with_their_signs(k):
    members, W, _ = problem(7, 20, k, 2)
    true = relations(members)
    wrong = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    wrong = np.array([q for q in wrong if not (true == q).all(axis=1).any()])
    shuffled = np.random.default_rng(1).permuted(np.concatenate([true, wrong]), axis=1)
    system = sign_system(shuffled, members, np.random.default_rng(0), per_row=10_000)
    assert {frozenset(q) for q in system.quads.tolist()} == {frozenset(q) for q in true.tolist()}
    np.testing.assert_array_equal(np.einsum("qi,qin->qn", system.signs, W[system.quads]), 0)
    for row in range(20):
        mine = system.using[system.start[row] : system.start[row + 1]]
        np.testing.assert_array_equal(
            np.sort(mine), np.flatnonzero((system.quads == row).any(axis=1))
        )
    few = sign_system(true, members, np.random.default_rng(0), per_row=1)
    assert len(few.quads) == min(20, len(system.quads))


@pytest.mark.parametrize("share", [0.1, 0.4, 0.49, 0.51, 0.7, 1.2])
def test_encodings_that_are_almost_zero_contradict_nothing(share):
    """Their two values differ by no more than what counts as zero, so that they take hi. Two of one
    sign have a relation, and two of the other sign, so that hi is wrong for two whichever sign the
    pixel has: their relations must still hold."""
    members, bound = np.array(list(combinations(range(8), 2))), 1e-6
    W = np.zeros((28, 8))
    np.put_along_axis(W, members, 1, axis=1)
    x = np.random.default_rng(0).standard_normal((8, 1))
    x[1::2] = -x[::2] + share * bound * np.array([[-1], [-1], [1], [1]])
    z = W @ x
    y = np.abs(z)
    system = sign_system(relations(members), members, np.random.default_rng(0))
    choice, fixed = search_signs(system, y, -y, np.full(1, bound), True, np.linalg.pinv(W), members)
    assert choice.all()
    big = y[:, 0] > 2 * bound
    assert big.sum() == 24
    np.testing.assert_array_equal(choice[big, 0] * choice[1, 0], np.sign(z[big, 0] * z[1, 0]))
    assert fixed[big].all() or share > 0.5


def test_no_relations_leave_every_sign_open():
    members = np.array([[0, 1], [2, 3], [4, 5]])
    system = sign_system(np.empty((0, 4), np.int64), members, np.random.default_rng(0))
    W = np.zeros((3, 6))
    np.put_along_axis(W, members, 1, axis=1)
    choice, fixed = search_signs(
        system,
        np.ones((3, 1)),
        -np.ones((3, 1)),
        np.full(1, 1e-9),
        True,
        np.linalg.pinv(W),
        members,
    )
    assert choice.all()
    assert fixed.sum() == 1
