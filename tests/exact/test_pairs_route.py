"""Records mixed in pairs come back from any data: all of them, and open values are said."""

import warnings
from itertools import product

import numpy as np
import pytest

import unveil
from unveil.exact import recover_exact
from unveil.exact.columns import solve_columns
from unveil.exact.problem import Problem


def table(rng: np.random.Generator, n: int) -> np.ndarray:
    """Continuous, whole-number and yes/no columns."""
    x = np.column_stack(
        [rng.standard_normal((n, 4)), rng.integers(0, 9, (n, 3)), rng.random((n, 3)) < 0.2]
    )
    return ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_table_of_mixed_columns_comes_back(seed: int) -> None:
    x = table(np.random.default_rng(seed), 60)
    sim = unveil.simulate(unveil.Scheme(2), private=x, m=420, rng=seed)
    recovery = recover_exact(sim.encodings, rng=seed)
    assert len(recovery) == 60
    # One sign per column is free; records are matched by magnitudes.
    match = np.abs(np.abs(recovery.vectors)[:, None, :4] - np.abs(x)[None, :, :4]).sum(2).argmin(1)
    assert len(set(match)) == 60
    error = np.minimum(np.abs(recovery.vectors - x[match]), np.abs(recovery.vectors + x[match]))
    doubt = np.zeros(x.shape, bool) if recovery.doubtful is None else recovery.doubtful
    assert error[~doubt].max() < 1e-3
    assert (error < 1e-3).mean() > 0.98


def test_nothing_is_claimed_of_noise() -> None:
    y = np.abs(np.random.default_rng(0).standard_normal((200, 20))).astype(np.float32)
    assert not recover_exact(unveil.Encodings(y, unveil.Scheme(2)), rng=0).verified.any()


def test_repeats_and_a_record_mixed_with_itself_do_no_harm() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, 12)).astype(np.float32)
    pairs = np.array([rng.choice(40, 2, replace=False) for _ in range(280)])
    pairs = np.vstack([pairs, pairs[:20], [[3, 3], [7, 7]]])
    y = np.abs(x[pairs].sum(axis=1)) / np.float32(np.sqrt(2))
    recovery = recover_exact(unveil.Encodings(y, unveil.Scheme(2)), rng=0)
    assert len(recovery) >= 40
    assert recovery.explained >= 300


def test_open_values_are_those_in_which_solutions_differ() -> None:
    """Against all assignments of small whole numbers to six records."""
    rng = np.random.default_rng(5)
    members = np.array([(a, b) for a in range(6) for b in range(a) if rng.random() < 0.75])
    levels = np.arange(-6, 7)
    grid = np.array(list(product(levels, repeat=6)))
    for seed in range(6):
        x = np.random.default_rng(seed).integers(0, 2, 6) + 1.0
        y = np.abs(x[members].sum(axis=1)).astype(np.float32)[:, None]
        problem = Problem(y, None, 2, np.full(1, 1e-6))
        values, opened = solve_columns(problem, members, 6)
        fits = grid[(np.abs(grid[:, members].sum(axis=2)) == y[:, 0]).all(axis=1)]
        assert np.abs(values[members, 0].sum(axis=1)) - y[:, 0] == pytest.approx(0, abs=1e-5)
        for v in np.flatnonzero(opened[:, 0]):  # shown means that there is another solution
            assert len(np.unique(np.abs(fits[:, v]))) > 1 or len(fits) > 2


def test_encodings_of_one_pair_beside_other_public_vectors_make_no_record() -> None:
    """Three of them say the same sum; any record and the rest of that sum would explain them."""
    scheme = unveil.Scheme(2, k_public=2)
    sim = unveil.simulate(scheme, n_private=30, n_public=200, m=240, d=600, rng=1)
    recovery = recover_exact(sim.encodings, sim.public, rng=1)
    scores = unveil.score(recovery, sim.private)
    assert (len(recovery), scores.exact, scores.wrong) == (30, 30, 0)


@pytest.mark.parametrize("noise", [0.005, 0.02])
def test_small_noise_is_not_taken_for_equations(noise: float) -> None:
    sim = unveil.simulate(unveil.Scheme(2), n_private=20, m=200, d=200, noise=noise, rng=0)
    recovery = recover_exact(sim.encodings, rng=0)
    assert not recovery.verified.any()
    assert len(recovery) == 20
    assert max(recovery.evidence["standard_error"]) < noise


def test_columns_that_are_zero_everywhere_give_no_warning():
    x = np.random.default_rng(0).standard_normal((12, 6)).astype(np.float32)
    x[:, 1:3] = 0
    sim = unveil.simulate(unveil.Scheme(2), private=x, m=90, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recovery = unveil.recover(sim.encodings, rng=0)
    assert unveil.score(recovery, sim.private).exact == 12
