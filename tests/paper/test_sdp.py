"""The SDP of LearnPublic: against Clarabel, and against what every feasible point promises."""

from itertools import combinations

import numpy as np
import pytest

from unveil.encode import simulate
from unveil.paper.learn_public import moment_matrix, solve_sdp
from unveil.scheme import Scheme


def symmetric(n, seed):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return (A + A.T) / 2


def moment(n_public, k_public, d, seed):
    sim = simulate(Scheme(2, k_public), 10, n_public=n_public, m=1, d=d, rng=seed)
    return moment_matrix(sim.encodings.values[0], sim.public), sim.selection.public[0]


def assert_feasible(Z, k):
    np.testing.assert_allclose(Z, Z.T, atol=1e-12)
    assert np.trace(Z) == pytest.approx(1, abs=1e-9)
    assert np.linalg.eigvalsh(Z)[0] > -1e-9
    assert np.abs(Z).sum() <= k + 1e-9


def sparse_top(M, k):
    """The best vvᵀ with v a unit vector on k coordinates: feasible, since ‖v‖₁² ≤ k."""
    return max(
        np.linalg.eigvalsh(M[np.ix_(s, s)])[-1] for s in map(list, combinations(range(len(M)), k))
    )


def clarabel_value(M, k):
    """max ⟨Z, M⟩ by Clarabel: the upper triangle of Z (off-diagonal times √2) and bounds U ≥ |Z|,
    column by column."""
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    n = len(M)
    pairs = [(i, j) for j in range(n) for i in range(j + 1)]
    size = len(pairs)
    root = np.array([1.0 if i == j else np.sqrt(2) for i, j in pairs])
    times = root**2  # how often |Z_ij| counts in the sum over all entries
    q = np.concatenate([-root * np.array([M[p] for p in pairs]), np.zeros(size)])
    trace = np.array([float(i == j) for i, j in pairs])
    eye, none = sparse.eye_array(size), sparse.csr_array((size, size))
    entry = sparse.diags_array(1 / root)
    A = sparse.vstack(
        [
            sparse.csr_array(np.concatenate([trace, np.zeros(size)])[None]),
            sparse.csr_array(np.concatenate([np.zeros(size), times])[None]),
            sparse.hstack([entry, -eye]),
            sparse.hstack([-entry, -eye]),
            sparse.hstack([-eye, none]),
        ]
    ).tocsc()
    b = np.concatenate([[1.0, k], np.zeros(3 * size)])
    cones = [
        clarabel.ZeroConeT(1),
        clarabel.NonnegativeConeT(1 + 2 * size),
        clarabel.PSDTriangleConeT(n),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((2 * size, 2 * size)), q, sparse.csc_matrix(A), b, cones, settings
    )
    return -solution.solve().obj_val


@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 3), (8, 2), (10, 4), (7, 7)])
def test_random_programs_agree_with_clarabel(n, k):
    M = symmetric(n, 10 * n + k)
    best, solution = clarabel_value(M, k), solve_sdp(M, k)
    assert solution.value == pytest.approx(best, abs=1e-3)
    assert solution.value <= best + 1e-5
    assert solution.bound >= best - 1e-5


@pytest.mark.parametrize(("n", "k", "d"), [(8, 2, 400), (10, 3, 1500)])
def test_programs_of_real_moment_matrices_agree_with_clarabel(n, k, d):
    M, _ = moment(n, k, d, seed=n)
    best, solution = clarabel_value(M, k), solve_sdp(M, k)
    assert solution.value == pytest.approx(best, abs=1e-3)
    assert solution.bound >= best - 1e-5


@pytest.mark.parametrize(("n", "k"), [(5, 2), (9, 3), (12, 4), (20, 2)])
@pytest.mark.parametrize("steps", [1, 10, 50, 2000])
def test_the_answer_is_feasible_and_its_certificate_bounds_every_sparse_vector_at_any_step(
    n, k, steps
):
    M = symmetric(n, n * k)
    solution = solve_sdp(M, k, max_steps=steps)
    assert_feasible(solution.matrix, k)
    assert solution.steps <= steps
    assert solution.value == pytest.approx(np.vdot(solution.matrix, M), abs=1e-9)
    assert solution.value <= solution.bound + 1e-9
    assert sparse_top(M, k) <= solution.bound + 1e-9
    if steps == 2000:
        assert solution.bound - solution.value <= 1e-4 * max(np.abs(M).max(), abs(solution.value))


def test_a_tighter_tolerance_closes_the_gap():
    M = symmetric(8, 3)
    for tolerance in (1e-2, 1e-4, 1e-6):
        solution = solve_sdp(M, 3, gap=tolerance, max_steps=20_000)
        assert solution.bound - solution.value <= tolerance * max(
            np.abs(M).max(), abs(solution.value)
        )


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_answer_scales_with_the_matrix(scale):
    M = symmetric(7, 5)
    one, scaled = solve_sdp(M, 3), solve_sdp(scale * M, 3)
    assert scaled.value == pytest.approx(scale * one.value, rel=1e-9)
    np.testing.assert_allclose(scaled.matrix, one.matrix, atol=1e-9)


def test_a_zero_matrix_has_value_and_bound_zero():
    solution = solve_sdp(np.zeros((6, 6)), 2)
    assert_feasible(solution.matrix, 2)
    assert solution.value == 0
    assert solution.bound == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n", [1, 4, 9])
def test_with_k_equal_to_n_the_program_is_the_top_eigenvalue(n):
    M = symmetric(n, n)
    solution = solve_sdp(M, n)
    assert_feasible(solution.matrix, n)
    assert solution.value == pytest.approx(np.linalg.eigvalsh(M)[-1], abs=1e-3)


def test_with_k_of_one_the_program_is_the_largest_diagonal_entry():
    M = symmetric(8, 0)
    solution = solve_sdp(M, 1)
    assert_feasible(solution.matrix, 1)
    assert solution.value == pytest.approx(M.diagonal().max(), abs=1e-3)


def test_the_bound_holds_for_k_of_one():
    M = symmetric(8, 0)
    assert solve_sdp(M, 1).bound >= M.diagonal().max() - 1e-9
