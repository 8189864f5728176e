"""Who mixes which copy: from windows to members, copies and images that were missed."""

import numpy as np
from tests.images.test_moved_templates import planted

from unveil.encode.copies import Copies
from unveil.gram.aligned import align
from unveil.gram.moved_windows import MovedWindows
from unveil.images.cropped_memberships import (
    _standing,
    copy_columns,
    copy_memberships,
    missed_clusters,
)

COPIES = Copies((10, 10), 2)


def test_members_and_their_copies_are_found():
    windows, copies, _, pairs, copy, weight = planted()
    alignment = align(windows, 4, True)
    for n in (6, None):
        found = copy_memberships(windows, alignment, copies, 2, n, np.sort(weight.ravel()))
        probability = found.found.probability
        true = np.zeros((240, 6))
        np.put_along_axis(true, pairs, 1, axis=1)
        names = (probability.T @ true).argmax(axis=1)
        assert sorted(names) == list(range(6))
        assert ((probability > 0.5) == true[:, names]).mean() > 0.95
        for column, name in enumerate(names):
            rows = np.flatnonzero((pairs == name).any(axis=1) & (probability[:, column] > 0.5))
            told = copies.steps[copy[rows, (pairs[rows] == name).argmax(axis=1)]]
            seen = copies.steps[found.copy[rows, column]]
            # The image may be found the other way round.
            turned = np.stack([1 - told[:, 0], told[:, 1], 4 - told[:, 2]], axis=1)
            assert max((seen == told).all(axis=1).mean(), (seen == turned).all(axis=1).mean()) > 0.9


def test_images_that_are_not_known_are_looked_for():
    windows, copies, _, pairs, _, _ = planted()
    alignment = align(windows, 4, True)
    known = np.zeros((240, 5), np.float32)
    for j in range(5):
        known[(pairs == j).any(axis=1), j] = 1
    found = missed_clusters(alignment, copies, known, known, most=3, size=40)
    assert len(found) == 1
    assert (pairs[found[0][0]] == 5).any(axis=1).mean() > 0.9


def test_columns_that_stand_out_stay_and_repeats_go():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((300, 4))
    scores[:60, 0] += 12
    scores[60:120, 1] += 8
    scores[:, 2] = scores[:, 1] + 0.01 * rng.standard_normal(300)
    scores[60:120, 2] += 1
    assert _standing(scores, 2, 10).tolist() == [0, 2]
    assert _standing(scores, 2, 1).tolist() == [0]
    assert _standing(scores[:, 3:], 2, 10).tolist() == [0]  # all, where none stands out


def test_nothing_alike_gives_nothing():
    values = np.random.default_rng(0).standard_normal((9, 9, 40, 12)).astype(np.float32)
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    windows = MovedWindows(values, np.ones(12, np.float32))
    law = np.linspace(0.1, 0.5, 50)
    assert copy_memberships(windows, align(windows, 4, False), COPIES, 2, 10, law) is None


def test_values_lie_at_their_copies():
    values = np.array([[0.5, 0], [0, 0.25]], np.float32)
    out = copy_columns(values, np.array([[3, 1], [2, 24]]), COPIES)
    assert out.shape == (2, 50)
    assert out[0, 3] == 0.5
    assert out[1, 49] == 0.25
    assert out.nnz == 2
