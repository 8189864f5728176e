"""The sign system against brute force over all 2^t patterns, and what it says when the equations do
not decide."""

from itertools import product

import numpy as np
import pytest

from unveil.paper.floral import floral_labels, swap_reading
from unveil.paper.private_image import solve_sign_system
from unveil.records import Floral

BLOCK = 1024


def incidence(k):
    labels = floral_labels(k)
    return Floral(np.arange(len(labels)), labels).incidence


def encode(k, x, weight, offsets=None):
    return np.abs(weight * incidence(k) @ x + (0 if offsets is None else offsets)).astype(
        np.float32
    )


def draw(k, d, seed, with_offsets):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((k + 2, d))
    return x, rng.standard_normal((len(floral_labels(k)), d)) if with_offsets else None


def brute_force(y, A, c):
    """For one pixel: the least-squares solution of every sign pattern; the values of those that fit
    all equations."""
    signs = np.array(list(product((1.0, -1.0), repeat=len(y))))
    X = (signs * y - c) @ np.linalg.pinv(A).T
    misfit = np.sqrt(np.mean((np.abs(X @ A.T + c) - y) ** 2, axis=1))
    return X[misfit < 1e-5], misfit.min()


def same_up_to_sign(a, b):
    return np.minimum(np.abs(a - b).max(axis=0), np.abs(a + b).max(axis=0))


@pytest.mark.parametrize("weight", [1.0, 0.5, 1 / 3])
@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_the_solution_is_the_one_brute_force_finds(k, with_offsets, weight):
    x, c = draw(k, 12, k, with_offsets)
    y = encode(k, x, weight, c)
    solution = solve_sign_system(y, incidence(k), weight, c)
    assert solution.settled.all()
    for pixel in range(12):
        offset = np.zeros(len(y)) if c is None else c[:, pixel]
        fitting, least = brute_force(y[:, pixel].astype(np.float64), weight * incidence(k), offset)
        found = solution.values[:, pixel]
        assert solution.misfit[pixel] <= least + 1e-6
        # Generic pixels have one solution, with its mirror image when no public part fixes the
        # sign.
        for other in fitting:
            distance = np.abs(other - found).max()
            assert (distance if with_offsets else min(distance, np.abs(other + found).max())) < 1e-4


@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("k", range(2, 7))
def test_the_truth_is_recovered_at_every_pixel(k, with_offsets):
    d = BLOCK + 100 if k < 5 else 300
    weight = 1 / np.sqrt(k + 2)
    x, c = draw(k, d, k, with_offsets)
    solution = solve_sign_system(encode(k, x, weight, c), incidence(k), weight, c)
    error = (
        np.abs(solution.values - x).max(axis=0)
        if with_offsets
        else same_up_to_sign(solution.values, x)
    )
    assert error.max() < 1e-4
    assert solution.fits.all()
    assert solution.settled.all()
    assert solution.noise < 1e-6
    assert (solution.misfit < 1e-5).all()
    assert (solution.rival > solution.misfit).all()


def test_relative_signs_are_kept_not_thrown_away():
    x, _ = draw(2, 200, 0, False)
    values = solve_sign_system(encode(2, x, 1.0), incidence(2), 1.0).values
    np.testing.assert_allclose(values[0] * values[1:], x[0] * x[1:], atol=1e-4)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_pixels_are_solved_one_by_one(k):
    x, c = draw(k, 60, 1, True)
    y = encode(k, x, 0.4, c)
    order = np.random.default_rng(0).permutation(60)
    whole, permuted = (
        solve_sign_system(y[:, p], incidence(k), 0.4, c[:, p]) for p in (slice(None), order)
    )
    np.testing.assert_allclose(permuted.values, whole.values[:, order], atol=1e-9)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_values_scale_with_the_encodings(scale):
    x, _ = draw(3, 80, 2, False)
    y = encode(3, x, 0.5)
    one, scaled = (
        solve_sign_system(y, incidence(3), 0.5),
        solve_sign_system(np.float32(scale) * y, incidence(3), 0.5),
    )
    assert same_up_to_sign(scaled.values / scale, one.values).max() < 1e-4
    np.testing.assert_array_equal(scaled.settled, one.settled)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_near_zero_and_zero_pixels_are_solved(k):
    x, _ = draw(k, 50, 3, False)
    x[:, 10] = 0
    x[:, 11] *= 1e-4
    x[0, 12] = 0
    x[1, 13] = -x[0, 13]
    solution = solve_sign_system(encode(k, x, 0.5), incidence(k), 0.5)
    assert same_up_to_sign(solution.values, x).max() < 1e-4
    assert solution.fits.all()


def test_an_instance_of_zeros_only_is_zero():
    solution = solve_sign_system(np.zeros((6, 5), np.float32), incidence(2), 0.5)
    assert (solution.values == 0).all()
    assert solution.fits.all()


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_all_equal_pixels_are_unsettled(k):
    # Where all k+2 vectors are equal, all encodings are, and (2k−1, −1, …, −1) encodes alike.
    x, _ = draw(k, 40, 4, False)
    x[:, 7] = 0.8
    y = encode(k, x, 0.5)
    other = -x.copy()
    other[0, 7] = 0.8 * (2 * k - 1)
    np.testing.assert_allclose(encode(k, other, 0.5)[:, 7], y[:, 7], rtol=1e-6)
    solution = solve_sign_system(y, incidence(k), 0.5)
    assert solution.fits.all()
    assert np.flatnonzero(~solution.settled).tolist() == [7]


def test_a_second_solution_at_one_pixel_is_seen_where_brute_force_sees_it():
    # Small whole numbers collide often: settled exactly where brute force finds one solution (up to
    # sign).
    rng = np.random.default_rng(5)
    x = rng.integers(-2, 3, size=(4, 150)).astype(np.float64)
    y = encode(2, x, 1.0)
    solution = solve_sign_system(y, incidence(2), 1.0)
    assert solution.fits.all()
    several = 0
    for pixel in range(150):
        fitting, _ = brute_force(y[:, pixel].astype(np.float64), incidence(2), np.zeros(6))
        distinct = {max(tuple(np.rint(2 * f) + 0.0), tuple(np.rint(-2 * f) + 0.0)) for f in fitting}
        assert solution.settled[pixel] == (len(distinct) == 1)
        several += len(distinct) > 1
    assert 10 < several < 140


@pytest.mark.parametrize("k", [3, 4])
def test_wrong_labels_give_a_misfit(k):
    x, _ = draw(k, 60, 6, False)
    y = encode(k, x, 0.5)
    y[[0, 5]] = y[[5, 0]]
    solution = solve_sign_system(y, incidence(k), 0.5)
    assert not solution.fits.any()
    assert not solution.settled.any()
    assert solution.noise > 1e-3


def test_for_k_of_two_the_swapped_labels_fit_without_a_public_part_and_not_with_one():
    x, c = draw(2, 60, 7, True)
    labels = floral_labels(2)
    swapped = swap_reading(Floral(np.arange(6), labels)).incidence
    alone = solve_sign_system(encode(2, x, 0.5), swapped, 0.5)
    assert alone.settled.all()
    # The orthogonal image of the truth: x'_i = Σx/2 − x_i.
    assert same_up_to_sign(alone.values, x.sum(axis=0) / 2 - x).max() < 1e-4
    with_public = solve_sign_system(encode(2, x, 0.5, c), swapped, 0.5, c)
    np.testing.assert_allclose(with_public.values, x.sum(axis=0) / 2 - x, atol=1e-4)


def test_one_corrupt_pixel_does_not_fit_and_the_others_do():
    x, _ = draw(3, 100, 8, False)
    y = encode(3, x, 0.5)
    y[4, 33] += 0.1
    solution = solve_sign_system(y, incidence(3), 0.5)
    assert np.flatnonzero(~solution.fits).tolist() == [33]
    assert np.flatnonzero(~solution.settled).tolist() == [33]


def test_noise_is_measured_and_beyond_the_tolerance_nothing_counts_as_holding():
    x, _ = draw(3, 400, 9, False)
    rng = np.random.default_rng(0)
    for noise, holds in ((1e-5, True), (1e-2, False)):
        y = np.abs(encode(3, x, 0.5) + noise * rng.standard_normal((10, 400))).astype(np.float32)
        solution = solve_sign_system(y, incidence(3), 0.5)
        assert noise / 5 < solution.noise < 2 * noise
        assert solution.fits.all() == holds
        assert solution.fits.any() == holds
    assert solve_sign_system(y, incidence(3), 0.5, tolerance=0.1).fits.mean() > 0.9
