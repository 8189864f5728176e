"""Columns among white noise: which are sure, which are free, and which two images share."""

import numpy as np
import pytest
from scipy import sparse

from unveil.images.prior import smooth_prior
from unveil.images.reweigh import Weighing
from unveil.images.white_columns import certainty, free_columns, split_columns

SHAPE = (12, 12)


def test_a_column_is_sure_where_its_weights_are_known_and_as_many_as_others():
    weights = np.array([[0.2, 0.2, 0.2, 0], [0.2, 0.2, 0.2, 0.1]], np.float32)
    squares = weights**2
    squares[:, 1] *= 2
    first = np.zeros((2, 2))
    found = Weighing(
        sparse.csr_array(weights), sparse.csr_array(squares), first.astype(int), first, first[:, 0]
    )
    assert certainty(found) == pytest.approx([1, 0.5, 1, 0.25], rel=1e-5)


@pytest.fixture
def shared():
    """Six images, of which the first column has two; the last column has no member."""
    rng = np.random.default_rng(0)
    prior = smooth_prior(SHAPE)
    n, m = 6, 240
    images = np.clip(prior.draw(n, rng), -1, 1).astype(np.float32)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    weights = rng.uniform(0.2, 0.4, (m, 2)).astype(np.float32)
    A = np.zeros((m, n), np.float32)
    np.put_along_axis(A, members, weights, axis=1)
    noise = np.full(m, 0.02, np.float32)
    signed = A @ images + np.sqrt(0.02) * rng.standard_normal((m, 144)).astype(np.float32)
    named = np.where(members == 5, 0, members)
    believed = A.copy()
    believed[:, 0] += believed[:, 5]
    believed[:, 5] = 0
    columns = images.copy()
    columns[0] = (images[0] + images[5]) / 2
    columns[5] = 0
    weighing = Weighing(
        sparse.csr_array(believed),
        sparse.csr_array(believed**2),
        named,
        weights,
        np.ones(m, np.float32),
    )
    return signed - believed @ columns, noise, columns, weighing, prior, members


def test_two_images_in_one_column_are_told_apart(shared):
    left, noise, columns, weighing, prior, members = shared
    (split,) = split_columns(left, noise, columns, weighing, prior)
    assert (split.column, split.free) == (0, 5)
    of_five = (members[split.rows] == 5).any(axis=1) & ~(members[split.rows] == 0).any(axis=1)
    of_first = (members[split.rows] == 0).any(axis=1) & ~(members[split.rows] == 5).any(axis=1)
    # Which of the two has more rows is chance: one of them goes.
    assert max(of_five.sum(), of_first.sum()) > 0.8 * len(split.rows)


def test_a_repeat_is_free_and_so_is_what_stands_for_nothing(shared):
    _, _, columns, weighing, prior, _ = shared
    even = np.ones(6)
    assert free_columns(columns, weighing, prior, even) == [5]
    twice = columns.copy()
    twice[4] = -0.5 * columns[3]
    assert set(free_columns(twice, weighing, prior, even)) == {4, 5}


def test_nothing_is_split_where_every_column_has_its_rows(shared):
    left, noise, columns, weighing, prior, members = shared
    even = Weighing(weighing.weights, weighing.squares, members, weighing.best, weighing.misfit)
    assert split_columns(left, noise, columns, even, prior) == []
