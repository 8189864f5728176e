"""All pixels from known subsets: exact and unique where they are determined, and `differs` where
they are not."""

import numpy as np
import pytest

from unveil.solve.affine_rrr import Range
from unveil.solve.pixels import pixels
from unveil.solve.pixels.pixels import _polish, _same_signs, _ties, solve_pixels


def problem(members, n, d=60, seed=0, a=0.5):
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x, (a * np.abs(x[members].sum(axis=1))).astype(np.float32), a


def complete(n):
    return np.array([(i, j) for i in range(n) for j in range(i)])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_well_connected_instance_is_solved_and_unique(k):
    rng = np.random.default_rng(k)
    members = rng.permuted(np.tile(np.arange(15), (110, 1)), axis=1)[:, :k]
    x, y, a = problem(members, 15)
    out = solve_pixels(y, None, members, 15, a, rng)
    assert out.solved.all()
    assert (out.differs == 0).all()
    assert (out.group == 0).all()
    assert out.misfit.max() < 1e-5
    np.testing.assert_allclose(np.sign((out.values * x).sum(axis=0)) * out.values, x, atol=1e-4)


def test_blocks_and_progress_change_nothing_but_the_random_starts(monkeypatch):
    members = complete(9)
    x, y, a = problem(members, 9)
    calls = []
    monkeypatch.setattr(pixels, "BLOCK", 25)
    draw = np.random.default_rng(0)
    out = solve_pixels(y, None, members, 9, a, draw, progress=lambda *c: calls.append(c))
    # Blocks of 25, 25 and 10 pixels, in whatever order they end.
    assert len(calls) == 3
    assert calls[-1] == ("pixels", 60, 60)
    assert sorted(np.diff([0, *(done for _, done, _ in calls)])) == [10, 25, 25]
    np.testing.assert_allclose(np.abs(out.values), np.abs(x), atol=1e-4)


def test_an_even_cycle_hanging_on_one_vector_is_found_by_differs():
    """A 4-cycle 0, 8, 9, 10 touching the rest in 0 only: x8 = −x0 ± y, x10 = −x0 ± y, and x9 closes
    the cycle in two ways."""
    members = np.vstack([complete(8), [[0, 8], [8, 9], [9, 10], [10, 0]]])
    _, y, a = problem(members, 11, d=80)
    out = solve_pixels(y, None, members, 11, a, np.random.default_rng(0))
    assert out.solved.mean() > 0.95
    assert (out.differs[:8] == 0).all()
    assert (out.differs[8:] > 0).any()


def test_a_vector_used_once_is_found_by_differs():
    members = np.vstack([complete(8), [[0, 8]]])
    _, y, a = problem(members, 9, d=80)
    out = solve_pixels(y, None, members, 9, a, np.random.default_rng(0))
    assert out.solved.all()
    assert out.differs[8] > 70  # its other value fits at every pixel
    assert (out.differs[:8] == 0).all()


def test_separate_groups_have_signs_of_their_own_and_that_is_no_difference():
    members = np.vstack([complete(7), 7 + complete(6)])
    x, y, a = problem(members, 13)
    out = solve_pixels(y, None, members, 13, a, np.random.default_rng(0))
    assert out.solved.all()
    assert (out.differs == 0).all()
    np.testing.assert_array_equal(out.group == out.group[0], np.arange(13) < 7)
    for rows in (slice(0, 7), slice(7, 13)):
        np.testing.assert_allclose(
            np.sign((out.values[rows] * x[rows]).sum(axis=0)) * out.values[rows], x[rows], atol=1e-4
        )


def test_offsets_fix_the_signs():
    members = complete(8)
    x, _, a = problem(members, 8)
    c = np.random.default_rng(5).standard_normal((len(members), 60)).astype(np.float32)
    y = np.abs(a * x[members].sum(axis=1) + c).astype(np.float32)
    out = solve_pixels(y, c, members, 8, a, np.random.default_rng(0))
    assert out.solved.all()
    np.testing.assert_allclose(out.values, x, atol=1e-4)


def test_a_wrong_subset_is_not_solved():
    members = complete(8)
    _, y, a = problem(members, 8, d=20)
    members[0] = members[5]
    assert not solve_pixels(y, None, members, 8, a, np.random.default_rng(0)).solved.any()


def test_each_group_takes_the_signs_of_the_first_solve():
    rng = np.random.default_rng(0)
    first = rng.standard_normal((6, 30))
    group = np.array([0, 1, 0, 1, 2, 2])
    flips = np.where(rng.random((3, 30)) < 0.5, -1, 1)
    np.testing.assert_array_equal(_same_signs(first, first * flips[group], group, 1e-6), first)


def test_a_large_vector_that_differs_does_not_choose_the_sign_of_the_others():
    first = np.array([[0.1], [0.2], [-0.1], [9.0]])
    second = np.array([[0.1], [0.2], [-0.1], [-8.0]])
    np.testing.assert_array_equal(_same_signs(first, -second, np.zeros(4, np.int64), 1e-6), second)


def test_polishing_is_exact_with_the_right_signs():
    members = complete(8)
    x, y, a = problem(members, 8)
    rough = (x + 1e-3 * np.random.default_rng(0).standard_normal(x.shape)).astype(np.float32)
    keep = (np.abs(x[members].sum(axis=1)) > 0.02).all(axis=0)
    out, miss = _polish(y, None, rough, Range(members, 8, np.ones(len(members)), a))
    np.testing.assert_allclose(out[:, keep], x[:, keep], atol=1e-6)
    assert miss[keep].max() < 1e-6


@pytest.mark.parametrize(("gap", "flagged"), [(0.0, True), (5e-5, False)])
def test_a_value_that_fits_by_chance_is_not_taken_for_the_only_one(
    gap: float, flagged: bool
) -> None:
    """Vector 0 is in two rows, whose partners are (nearly) equal at every fourth pixel: −a ± y then
    fits both."""
    rng = np.random.default_rng(5)
    n, d = 12, 64
    pairs = [(i, j) for i in range(1, n) for j in range(i + 1, n) if rng.random() < 0.8]
    members = np.array([(0, 1), (0, 2), *pairs])
    x = rng.standard_normal((n, d))
    x[1, ::4] = x[2, ::4] + gap
    y = np.abs(x[members].sum(axis=1)).astype(np.float32)
    solution = solve_pixels(y, None, members, n, 1.0, np.random.default_rng(0))
    signs = np.sign((solution.values * x)[1:].sum(axis=0))
    wrong = np.abs(solution.values[0] * signs - x[0]) > 1e-2
    assert solution.solved.all()
    assert (solution.differs[0] >= 16) == flagged
    assert solution.differs[0] >= wrong.sum()
    assert not solution.differs[3:].any()


def test_a_row_of_weight_zero_says_nothing_of_a_vector():
    """Two rows, the first without weight: the second alone always fits the other value; and none at
    all fit anything."""
    x = np.random.default_rng(0).standard_normal((4, 30))
    members = np.array([[0, 1], [0, 2], [1, 2], [1, 3]])
    weights = np.array([[0.0, 1.0], [0.4, 0.6], [0.5, 0.5], [1.0, 0.0]])
    y = np.abs((weights[:, :, None] * x[members]).sum(axis=1)).astype(np.float32)
    found = _ties(y, None, x, members, weights, np.full(30, 1e-6), 1e-9)
    assert found[0].all()
    assert not found[1].any()
    assert found[3].all()


def test_few_encodings_per_vector_leave_no_pixel_unsolved():
    """Eleven of 600 pixels need more starts than all others; without them no vector could be
    verified."""
    rng = np.random.default_rng(10)
    n, m, d = 24, 60, 600
    members = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    x = rng.standard_normal((n, d))
    y = np.abs(x[members].sum(axis=1)).astype(np.float32)
    solution = solve_pixels(y, None, members, n, 1.0, np.random.default_rng(0))
    assert solution.solved.all()
