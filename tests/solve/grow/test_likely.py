"""Subsets under loud noise: put right, merged, and held against chance."""

import numpy as np
import pytest
from tests.solve.pixels.test_left_out import noisy

from unveil.solve.grow.likely import backed, likely_subsets


@pytest.mark.parametrize("k", [2, 3])
def test_wrong_rows_are_put_right(k):
    _, members, y = noisy(k)
    rng = np.random.default_rng(1)
    start = members.copy()
    for i in range(40):
        start[i] = rng.choice(20, k, replace=False)
    out = likely_subsets(y, start, 20, 0.6, rng)
    assert out is not None
    assert out.explained.all()
    np.testing.assert_array_equal(np.sort(out.members, axis=1), np.sort(members, axis=1))
    assert out.noise == pytest.approx(0.5, rel=0.15)


def test_two_columns_of_one_vector_become_one():
    _, members, y = noisy()
    start = members.copy()
    start[120:][start[120:] == 7] = 20
    out = likely_subsets(y, start, 21, 0.5, np.random.default_rng(1))
    assert out is not None
    assert out.n == 20
    assert out.explained.all()


def test_a_row_with_an_unknown_member_is_not_explained():
    x, members, y = noisy()
    rng = np.random.default_rng(2)
    stranger = x[members[0, 0]] + rng.standard_normal(150) + 0.5 * rng.standard_normal(150)
    y = np.vstack([y, np.abs(stranger)[None]]).astype(np.float32)
    theirs = np.vstack([members, members[:1]])
    said = backed(y, x, theirs, 0.5)
    assert said[:-1].all()
    assert not said[-1]
