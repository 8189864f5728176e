"""Templates of moved images: products against loops, and whose copies they find."""

import numpy as np
import pytest

from unveil.encode.copies import Copies
from unveil.gram.moved_windows import MovedWindows
from unveil.images.moved_templates import _grid, _products, score_copies, template

COPIES = Copies((20, 20), 2, True)


def planted(n=6, m=240, r=16, strength=1.5, seed=0, flips=True):
    """Windows as if they were: those of the copies of two images, with any sign, in noise."""
    rng = np.random.default_rng(seed)
    copies = Copies((20, 20), 2, flips)
    wide = rng.standard_normal((n, 17, 17, r))  # windows of the padded images
    wide /= np.linalg.norm(wide, axis=-1, keepdims=True)
    parity = np.where(np.arange(r) % 3, 1, -1).astype(np.float32)
    pairs = np.stack([rng.choice(n, 2, replace=False) for _ in range(m)])
    copy = rng.integers(0, copies.count, (m, 2))
    weight = rng.uniform(0.6, 1.0, (m, 2))
    values = rng.standard_normal((13, 13, m, r)) / np.sqrt(r)
    for i in range(m):
        for j, t, w in zip(pairs[i], copy[i], weight[i], strict=True):
            mirrored, down, across = copies.steps[t]
            cut = wide[j, down : down + 13, across : across + 13]
            cut = cut[:, ::-1] * parity if mirrored else cut
            values[:, :, i] += strength * w * cut * rng.choice([-1, 1], (13, 13, 1))
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    return MovedWindows(values.astype(np.float32), parity), copies, wide, pairs, copy, weight


def test_a_template_is_the_window_that_members_share():
    windows, copies, wide, pairs, copy, _ = planted()
    rows = np.flatnonzero((pairs == 2).any(axis=1))
    at = copy[rows, (pairs[rows] == 2).argmax(axis=1)]
    T = template(windows, copies, rows, at, np.ones(len(rows), np.float32))
    for t, (y, x) in zip(T, _grid(windows, copies), strict=True):
        assert np.abs(t @ wide[2, y, x]) > 0.9 * np.linalg.norm(t) > 0
    # What is shared by chance tells next to nothing.
    rng = np.random.default_rng(0)
    other = template(
        windows, copies, rows, rng.integers(0, copies.count, len(rows)), np.ones(len(rows))
    )
    assert (other**2).sum() < 0.3 * (T**2).sum()
    assert not template(windows, copies, rows[:2], at[:2], np.ones(2)).any()


def test_products_against_the_loop():
    windows, copies, *_ = planted(m=12, r=5)
    grid = _grid(windows, copies)
    T = np.random.default_rng(1).standard_normal((2, len(grid), 5)).astype(np.float32)
    total, told, squares = _products(windows, copies, T, slice(4, 12))
    for t in (0, 7, 24, 30, 49):
        mirrored, down, across = copies.steps[t]
        sums, tells, twice = np.zeros((8, 2)), np.zeros(2), np.zeros(2)
        for q, (y, x) in enumerate(grid):
            if 0 <= y - down < 13 and 0 <= x - across < 13:
                u = windows.at(y - down, x - across, bool(mirrored))[4:]
                sums += (u @ T[:, q].T) ** 2
                tells += (T[:, q] ** 2).sum(axis=1)
                twice += (T[:, q] ** 2).sum(axis=1) ** 2
        np.testing.assert_allclose(total[:, :, t], sums, rtol=1e-4)
        np.testing.assert_allclose(told[:, t], tells, rtol=1e-5)
        np.testing.assert_allclose(squares[:, t], twice, rtol=1e-5)


@pytest.mark.parametrize("flips", [False, True])
def test_members_score_highest_at_their_copies(flips):
    windows, copies, _, pairs, copy, _ = planted(flips=flips)
    expected, place = np.zeros((240, 6), np.float32), np.zeros((240, 6), np.int64)
    np.put_along_axis(place, pairs, copy, axis=1)
    half = np.random.default_rng(2).random((240, 2)) < 0.5
    np.put_along_axis(expected, pairs, half.astype(np.float32), axis=1)
    scores, best = score_copies(windows, copies, expected, place)
    true = np.zeros((240, 6), bool)
    np.put_along_axis(true, pairs, True, axis=1)
    assert (scores[true] > np.quantile(scores[~true], 0.99)).mean() > 0.9
    assert (best[true] == place[true]).mean() > 0.95
    # Members that made the template score no better than those that did not.
    assert scores[expected > 0].mean() < 1.1 * scores[true & (expected == 0)].mean()
