"""The short feedback: subsets that are nearly all right become all right, three vectors and more
per encoding."""

import numpy as np
import pytest

from unveil.solve.pairs.short_feedback import short_feedback


def problem(k, n=40, m=400, d=150, seed=0, extra=()):
    rng = np.random.default_rng(seed)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k]
    members = np.vstack([members, np.array(extra, int).reshape(-1, k)])
    x = rng.standard_normal((int(members.max()) + 1, d))
    return rng, members, np.abs(x[members].sum(axis=1)).astype(np.float32)


@pytest.mark.parametrize("k", [3, 4])
def test_wrong_and_incomplete_rows_are_corrected(k):
    rng, members, y = problem(k)
    start = members.copy()
    rows = rng.permutation(400)[:60]
    start[rows[::2], 0] = (start[rows[::2], 0] + 7) % 40
    start[rows[1::2], -1] = -1
    out = short_feedback(y, start, 40, rng)
    assert out.exact.all()
    np.testing.assert_array_equal(np.sort(out.members, axis=1), np.sort(members, axis=1))


def test_rows_of_a_vector_without_a_column_are_left_or_get_one():
    rng, members, y = problem(3, extra=[(0, 1, 40), (2, 3, 40), (4, 5, 40), (6, 7, 40)])
    start = members.copy()
    start[400:, 2] = -1
    out = short_feedback(y, start, 40, rng)
    assert out.exact[:400].all()
    right = out.members[400:][out.exact[400:]]
    assert len(np.unique(right[:, 2])) <= 1 if len(right) else True
    assert len(out.x) >= out.members[out.exact].max() + 1


def test_two_columns_of_one_vector_become_one():
    rng, members, y = problem(3, seed=1)
    split = members.copy()
    split[:200][members[:200] == 5] = 40
    out = short_feedback(y, split, 41, rng)
    assert out.exact.all()
    assert len(np.unique(out.members)) == 40


def test_noise_is_not_explained():
    rng, members, y = problem(3)
    out = short_feedback(rng.permuted(y, axis=0), members, 40, rng)
    assert not out.exact.any()
