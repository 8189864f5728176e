"""The loop between subsets and pixels, on instances it must lock on to, and the judgements it makes
on the way."""

import numpy as np
import pytest
from tests.solve.subsets.test_descent import data

from unveil import Scheme, simulate
from unveil.factor.all_vectors import Factorisation
from unveil.solve.model import residual
from unveil.solve.subsets.feedback import (
    _exact,
    _first_members,
    _merge_copies,
    _pixel_weights,
    feedback,
)


def factorisation(W, scores):
    return Factorisation(W, scores, np.ones(len(W)))


def test_a_row_is_exact_when_it_fits_and_all_its_columns_are_used_elsewhere():
    _, x, members, y, _ = data(2, m=40)
    assert _exact(residual(y, None, x, members), members, 8)[0].all()
    wrong = y.copy()
    wrong[0] += 1
    np.testing.assert_array_equal(
        _exact(residual(wrong, None, x, members), members, 8)[0], np.arange(40) > 0
    )
    lone = np.vstack([members[:1] * 0 + [8, 0], members[1:]])
    more = np.vstack([x, -x[:1] + y[:1]])  # a column of its own fits whatever the row is
    assert not _exact(residual(y, None, more, lone), lone, 9)[0][0]


def test_near_copies_are_merged_into_the_one_with_more_support():
    x = np.random.default_rng(0).standard_normal((5, 50)).astype(np.float32)
    x[3] = x[1] + 0.1
    sound = np.ones(5, bool)
    members = _merge_copies(x, np.array([[0, 1], [3, 2], [4, 1]]), np.array([9, 2, 9, 7, 9]), sound)
    np.testing.assert_array_equal(members, [[0, 3], [3, 2], [4, 3]])
    np.testing.assert_array_equal(sound, [True, False, True, True, True])


def test_the_first_members_are_those_of_the_factorisation_weighted_by_margin():
    W = np.array([[1.0, 1, 0, 0], [0, 1, 1, 0]])
    scores = np.array([[1.0, 0.9, 0.1, 0], [0.5, 0.55, 0.6, 0.52]])
    members, weights = _first_members(factorisation(W, scores), 2, 6)
    np.testing.assert_array_equal(np.sort(members, axis=1), [[0, 1], [1, 2]])
    assert weights[0] > weights[1] > 0


@pytest.mark.parametrize("k", [2, 3])
def test_a_start_with_a_third_of_the_rows_wrong_ends_with_the_right_rows_exact(k):
    n, m = 15, 120
    sim = simulate(Scheme(k), n, m=m, d=200, rng=k)
    rng = np.random.default_rng(0)
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    broken = rng.permutation(m)[: m // 3]
    W[broken] = W[rng.permutation(broken)]
    scores = W + 0.1 * rng.standard_normal(W.shape)
    out = feedback(
        sim.encodings.magnitudes() * np.float32(np.sqrt(k)), k, factorisation(W, scores), n + 3, rng
    )
    # A row can be caught by a column of its own, which fits it whatever it is; such a row is not
    # called exact.
    assert out.exact.sum() >= m - 1
    alike = np.abs(out.x) @ np.abs(sim.private).T / (np.linalg.norm(out.x, axis=1) + 1e-9)[:, None]
    names = (alike / np.linalg.norm(sim.private, axis=1)).argmax(axis=1)
    found = np.sort(names[out.members], axis=1)
    np.testing.assert_array_equal(found[out.exact], sim.selection.private[out.exact])


def test_columns_the_factorisation_missed_are_added():
    n, m = 15, 150
    sim = simulate(Scheme(2), n, m=m, d=300, rng=3)
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    scores = W[:, :-2]  # two vectors are unknown
    start = scores.copy()
    for row in np.flatnonzero(start.sum(axis=1) < 2):
        start[row, np.flatnonzero(start[row] == 0)[: int(2 - start[row].sum())]] = 1
    calls = []
    out = feedback(
        sim.encodings.magnitudes() * np.float32(np.sqrt(2)),
        2,
        factorisation(start, scores),
        n + 3,
        np.random.default_rng(0),
        progress=lambda *call: calls.append(call),
    )
    assert out.exact.all()
    assert calls[-1] == ("feedback", m, m)
    assert len(calls) == out.rounds


def test_the_noise_is_measured_and_right_rows_stand_out_of_it():
    _, x, members, y, _ = data(2, m=60, p=200, noise=0.07, seed=1)
    members[:6] = members[[1, 2, 3, 4, 5, 0]]
    exact, noise = _exact(residual(y, None, x, members), members, 8)
    right = (np.abs(np.abs(x[members].sum(axis=1)) - y).mean(axis=1)) < 0.2
    assert 30 < right.sum() < 60
    np.testing.assert_array_equal(exact, right)
    assert noise == pytest.approx(0.07, rel=0.15)


def test_a_public_part_is_carried_through():
    n, m, k = 15, 120, 2
    sim = simulate(Scheme(k), n, m=m, d=200, rng=5)
    rng = np.random.default_rng(0)
    offsets = rng.standard_normal((m, 200)).astype(np.float32)
    y = np.abs(sim.private[sim.selection.private].sum(axis=1) + offsets)
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    broken = rng.permutation(m)[: m // 4]
    W[broken] = W[rng.permutation(broken)]
    out = feedback(
        y, k, factorisation(W, W + 0.1 * rng.standard_normal(W.shape)), n + 3, rng, offsets=offsets
    )
    assert out.exact.all()
    # Signs are determined: every vector is a column, not just up to a sign per pixel.
    # Not every pixel is solved here, only enough of them to know the subsets.
    distance = np.median(np.abs(out.x[:, None, :] - sim.private[None, :, :]), axis=2)
    assert distance.min(axis=0).max() < 0.05


def test_without_a_row_to_trust_all_pixels_count_alike():
    assert _pixel_weights(np.empty((0, 5), np.float32)).tolist() == [1.0] * 5
