"""Lists that hold their own vectors again, moved: the other reading is made and fits, and is seen;
of other lists nothing is."""

import numpy as np
import pytest

from unveil.certify.moved_list import _Listed, moved
from unveil.solve.model import PublicPart

N, Q, D, ROWS = 8, 12, 60, 80
RNG = np.random.default_rng(0)
P = RNG.standard_normal((Q, D)).astype(np.float32)
T = RNG.standard_normal(D).astype(np.float32)
X = RNG.standard_normal((N, D))


def subsets(n, k, seed):
    return np.array(
        [np.random.default_rng([seed, r]).choice(n, k, replace=False) for r in range(ROWS)]
    )


def sums(x, members, vectors, names):
    return x[members].sum(axis=1) + vectors[names].sum(axis=1)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("k_public", [1, 2])
def test_a_list_with_every_vector_twice_leaves_all_in_doubt(k, k_public):
    listed = np.vstack([P, P + T])
    members, names = subsets(N, k, 0), subsets(Q, k_public, 1)
    other = names.copy()
    other[:, 0] += Q
    np.testing.assert_allclose(
        sums(X - T / k, members, listed, other), sums(X, members, listed, names), atol=1e-5
    )
    for kept in (True, False):
        assert moved(members, N, PublicPart(names, listed, 1.0), kept=kept).all()
        assert not moved(members, N, PublicPart(names, P, 1.0), kept=kept).any()


def test_a_list_with_every_vector_mirrored_is_seen_where_signs_are_hidden():
    listed = np.vstack([P, 2 * T - P])
    members, names = subsets(N, 2, 0), subsets(Q, 1, 1)
    np.testing.assert_allclose(
        np.abs(sums(-X - T, members, listed, names + Q)),
        np.abs(sums(X, members, listed, names)),
        atol=1e-5,
    )
    part = PublicPart(names, listed, 1.0)
    assert moved(members, N, part, kept=False).all()
    assert not moved(members, N, part, kept=True).any()


def test_a_vector_whose_own_public_ones_are_there_twice_is_in_doubt_alone():
    members, names = subsets(N, 2, 0), subsets(Q, 1, 1)
    mine = (members == 3).any(axis=1)
    names[mine] = RNG.choice(4, (mine.sum(), 1))
    listed = np.vstack([P, P[:4] + T])
    assert np.flatnonzero(
        moved(members, N, PublicPart(names, listed, 1.0), kept=False)
    ).tolist() == [3]


def test_one_public_vector_in_all_rows_is_judged_elsewhere():
    members = subsets(N, 2, 0)
    assert not moved(members, N, PublicPart(np.zeros((ROWS, 1), int), P, 1.0), kept=False).any()


def test_no_public_part_and_copies_in_the_list_are_no_doubt():
    members, names = subsets(N, 2, 0), subsets(Q, 1, 1)
    none = PublicPart(np.empty((ROWS, 0), int), P, 1.0)
    assert not moved(members, N, none, kept=False).any()
    assert not moved(members, N, PublicPart(names, np.vstack([P, P]), 1.0), kept=False).any()


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_the_table_of_cells_loses_nobody(far):
    """`lead` against a search for every listed vector; one that lies far off makes cells wide."""
    listed = np.vstack([P, P[:5] + T, P[:1] + far]).astype(np.float32)
    table = _Listed(listed)
    for shift in (table.at[Q] - table.at[0], table.at[3] - table.at[1], np.zeros(2)):
        everyone = np.flatnonzero(table.find(table.at + shift) >= 0)
        np.testing.assert_array_equal(table.lead(shift), everyone)
    assert len(table.lead(table.at[Q] - table.at[0])) >= (5 if not far else 1)
