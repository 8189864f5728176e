"""All columns of few vectors, against trying all of them."""

from itertools import combinations

import numpy as np
import pytest

from unveil.certify import small as uniqueness_small
from unveil.certify.small import _spare, small_design


def design(n, m, k, seed):
    rows = np.array(list(combinations(range(n), k)))
    return rows[np.sort(np.random.default_rng(seed).choice(len(rows), m, replace=False))]


def dense(members, n):
    W = np.zeros((len(members), n))
    np.put_along_axis(W, members, 1, axis=1)
    return W


def test_possible_columns_are_those_of_some_light_basis():
    rng = np.random.default_rng(0)
    for _ in range(20):
        columns = rng.choice([-1.0, 1.0, 2.0], (9, 3)) * np.eye(3)[
            rng.integers(0, 3, 9)
        ] + rng.choice([0.0, 0.0, 5.0], (9, 1))
        weight = np.sort(rng.integers(1, 6, 9))
        total = int(weight[:4].sum())
        true = np.zeros(9, bool)
        for c in combinations(range(9), 3):
            if np.linalg.matrix_rank(columns[list(c)]) == 3 and weight[list(c)].sum() <= total:
                true[list(c)] = True
        assert ((_spare(columns, weight, total) >= 0) == true).all()


@pytest.mark.parametrize("limit", ["WORK", "CELLS", "NODES"])
def test_too_much_work_is_doubt(limit, monkeypatch):
    members = design(8, 24, 3, 1) if limit == "NODES" else design(6, 14, 2, 0)
    whole = small_design(members, members.max() + 1, signed=False)
    monkeypatch.setattr(uniqueness_small, limit, 0)
    assert not (small_design(members, members.max() + 1, signed=False) & ~whole).any()
    if limit != "NODES":
        assert not small_design(members, members.max() + 1, signed=False).any()


def test_many_vectors_are_not_looked_at():
    assert not small_design(design(41, 200, 2, 0), 41, signed=True).any()


@pytest.mark.parametrize("k", [2, 3])
def test_signs_that_are_too_heavy_would_have_changed_nothing(k, monkeypatch):
    designs = [design(7, 14 + seed, k, seed) for seed in range(4)]
    designs = [rows for rows in designs if np.linalg.matrix_rank(dense(rows, 7)) == 7]
    quick = [small_design(rows, 7, signed=False) for rows in designs]
    monkeypatch.setattr(uniqueness_small, "_light_enough", lambda starts, C, W: starts)
    assert len(designs) >= 2
    assert [small_design(rows, 7, signed=False).tolist() for rows in designs] == [
        one.tolist() for one in quick
    ]


@pytest.mark.parametrize(("k", "n", "seed"), [(3, 30, 0), (4, 40, 0)])
def test_three_rows_per_vector_settle_hidden_signs_where_no_core_is_found(k, n, seed):
    rng = np.random.default_rng([7, k, n, seed])
    rows = np.array([rng.choice(n, k, replace=False) for _ in range(3 * n)])
    assert small_design(np.unique(np.sort(rows, axis=1), axis=0), n, signed=False).all()
