"""Encodings left over: found by exact matching, new vectors where three agree, and nothing that
only looks like it."""

from itertools import combinations

import numpy as np
import pytest

from unveil.solve.grow.exact_growth import Growth

BOUND = 1e-5


def subsets(n, m, k, seed=0):
    every = np.array(list(combinations(range(n), k)))
    return every[np.random.default_rng(seed).permutation(len(every))[:m]]


def growth(x, members, known, c=None, doubtful=None, names=None):
    """Rows `known` are explained by the vectors `names` (those of the known rows, by default); the
    others are left over."""
    y = np.abs(x[members].sum(axis=1) + (0 if c is None else c)).astype(np.float32)
    names = np.unique(members[known]) if names is None else names
    start = np.full(members.shape, -1, np.int64)
    start[known] = np.searchsorted(names, members[known])
    doubt = np.zeros((len(names), x.shape[1]), bool) if doubtful is None else doubtful[names]
    return Growth(y, c, start, x[names].copy(), doubt, np.full(x.shape[1], BOUND)), names


def agrees(grown, x, members, rows=slice(None)):
    """Whether the vectors of the given rows, as sets of values, are the true ones."""
    for got, true in zip(grown.members[rows], members[rows], strict=True):
        if (got < 0).any():
            return False
        have, want = grown.values[got], x[true]
        if not all((np.abs(have - w).max(axis=1) < 1e-4).any() for w in want):
            return False
    return True


def vectors(kind, n, d, seed):
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((n, d))
        if kind == "gaussian"
        else rng.integers(-9, 20, (n, d)).astype(float)
    )


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", ["gaussian", "levels"])
@pytest.mark.parametrize("public", [False, True])
def test_sums_of_known_vectors_are_found(k, kind, public):
    members, x = subsets(10, 40, k), vectors(kind, 10, 30, 0)
    c = vectors(kind, 40, 30, 1).astype(np.float32) if public else None
    grown, names = growth(x, members, np.arange(20), c, names=np.arange(10))
    grown.run(np.arange(30))
    assert agrees(grown, x, members)
    assert len(grown.values) == len(names)


@pytest.mark.parametrize("seed", range(4))
def test_a_new_vector_of_three_encodings_is_found_where_pixels_take_few_values(seed):
    """At two pixels of four levels many partners give the missing vector the same values."""
    x = np.random.default_rng(seed).integers(-1, 3, (41, 40)) + 0.3
    members = np.vstack([subsets(40, 150, 2, seed), [(3, 40), (8, 40), (20, 40)]])
    grown, _ = growth(x, members, np.arange(150), names=np.arange(40))
    grown.run(np.arange(40))
    assert agrees(grown, x, members)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", ["gaussian", "levels"])
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_new_vectors_that_three_encodings_and_more_miss_are_found_one_after_the_other(
    k, kind, public, seed
):
    """Vectors 10, 11 and 12 are unknown. Values that are zero, of either sign after rounding, are
    in one cell."""
    rng = np.random.default_rng(seed)
    members = np.vstack(
        [
            subsets(10, 25, k, seed),
            *([*rng.permutation(10)[: k - 1], v] for v in (10, 11, 12) for _ in range(5)),
        ]
    )
    x = vectors(kind, 13, 30, seed)
    if kind == "levels":
        x[10, :] *= rng.random(30) < 0.3
    c = vectors(kind, len(members), 30, seed + 9).astype(np.float32) if public else None
    grown, _ = growth(x, members, np.arange(25), c, names=np.arange(10))
    grown.run(np.arange(30))
    different = [
        len(np.unique(members[(members == v).any(axis=1)], axis=0)) >= 4 for v in (10, 11, 12)
    ]
    rows = [i for i in range(len(members)) if all(different[v - 10] for v in members[i] if v >= 10)]
    assert agrees(grown, x, members, rows)


@pytest.mark.parametrize("seed", range(5))
def test_an_alias_of_a_vector_is_not_preferred_to_it(seed):
    """{v, 0, b} for many b, and {v, 1, 2}: v + x_0 − x_c fits all rows but the last, and there are
    many c."""
    members = np.vstack([subsets(10, 60, 3, seed), *([10, 0, b] for b in (1, 2, 3, 4)), [10, 1, 2]])
    x = vectors("gaussian", 11, 30, seed)
    grown, _ = growth(x, members, np.arange(60), names=np.arange(10))
    grown.run(np.arange(30))
    assert agrees(grown, x, members)
    assert len(grown.values) == 11


@pytest.mark.parametrize(
    "partners", [[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)], [(0, 1), (1, 2), (2, 3), (3, 0)]]
)
def test_encodings_that_can_be_read_in_another_way_make_no_vector(partners):
    """Where all share partner 0, v + x_0 − x_c fits as well as v. Where there are four partners in
    all, −(v + x_0 + … + x_3) does, each encoding with the other two."""
    members = np.vstack([subsets(10, 60, 3), *([10, a, b] for a, b in partners)])
    x = vectors("gaussian", 11, 30, 0)
    grown, _ = growth(x, members, np.arange(60), names=np.arange(10))
    assert not grown.by_new(np.arange(24), 3)
    assert (grown.members[60:] < 0).all()


def test_two_encodings_are_not_three():
    members = np.vstack([subsets(10, 30, 2), [10, 0], [10, 1]])
    x = vectors("gaussian", 11, 30, 0)
    grown, _ = growth(x, members, np.arange(30), names=np.arange(10))
    assert not grown.by_new(np.arange(24), 3)


def test_an_encoding_of_something_else_stays_unexplained():
    members = subsets(10, 30, 2)
    x = vectors("gaussian", 10, 30, 0)
    grown, _ = growth(x, members, np.arange(25))
    grown.y[25:] = np.abs(np.random.default_rng(1).standard_normal((5, 30)))
    grown.run(np.arange(30))
    assert (grown.members[25:] < 0).all()
    np.testing.assert_array_equal(np.sort(grown.members[:25], axis=1), members[:25])


def test_a_match_at_the_telling_pixels_must_hold_at_the_others():
    """At the two telling pixels, of two levels each, a row of another vector looks like one of
    known vectors."""
    members = np.array([*combinations(range(4), 2), (0, 4)])
    x = vectors("gaussian", 5, 12, 0)
    x[:4, :2] = np.eye(4)[:, :2] + 2 * np.eye(4)[:, 2:]
    x[4, :2] = x[1, :2]
    grown, _ = growth(x, members, np.arange(6))
    grown.run(np.arange(2))
    assert (grown.members[6] < 0).all()


def test_vectors_under_two_names_get_one_and_rows_that_hold_it_twice_are_left_over():
    members, x = subsets(10, 35, 2), vectors("gaussian", 10, 20, 0)
    x = np.vstack([x, x[3]])
    named = members.copy()
    rows = np.flatnonzero((members == 3).any(axis=1))
    named[rows[::2]] = np.where(members[rows[::2]] == 3, 10, members[rows[::2]])
    grown, _ = growth(x, named, np.arange(35))
    grown.merge(np.arange(20))
    assert len(grown.values) == 10
    assert agrees(grown, x, members)
    twice = np.vstack([named, [3, 10]])
    grown, _ = growth(x, twice, np.arange(36))
    grown.merge(np.arange(20))
    np.testing.assert_array_equal((grown.members < 0).all(axis=1), np.arange(36) == 35)


def test_vectors_that_differ_at_any_pixel_keep_their_names():
    """They are equal at the one telling pixel that nobody is in doubt about."""
    members, x = subsets(10, 35, 2), vectors("gaussian", 10, 20, 0)
    x[:, 0] = np.arange(10) % 2
    doubtful = np.zeros((10, 20), bool)
    doubtful[4, 1:] = True
    grown, _ = growth(x, members, np.arange(35), doubtful=doubtful)
    grown.merge(np.arange(20))
    assert len(grown.values) == 10
    np.testing.assert_array_equal(grown.members, np.sort(members, axis=1))


def test_a_new_value_is_in_doubt_where_another_one_fits_as_well():
    """At pixel 3 the partners are equal: v and −v − 2p fit. At pixel 4 one partner of three is in
    doubt, at 5 two of them."""
    members = np.vstack([subsets(10, 40, 2), [10, 0], [10, 1], [10, 2]])
    x = vectors("gaussian", 11, 30, 0)
    x[:3, 3] = 0.7
    doubtful = np.zeros((11, 30), bool)
    doubtful[0, 4] = doubtful[0, 5] = doubtful[1, 5] = True
    grown, _ = growth(x, members, np.arange(40), doubtful=doubtful, names=np.arange(10))
    grown.run(np.arange(6, 30))
    assert len(grown.values) == 11
    assert grown.doubtful[10, 3]
    assert grown.doubtful[10, 5]
    sure = ~grown.doubtful[10]
    assert sure[6:].all()
    np.testing.assert_allclose(grown.values[10][sure], x[10][sure], atol=1e-4)


def test_everything_known_nothing_known_and_no_telling_pixel_change_nothing():
    members, x = subsets(10, 30, 2), vectors("gaussian", 10, 20, 0)
    for known, telling in (
        (np.arange(30), np.arange(20)),
        (np.arange(20), np.arange(0)),
        (np.arange(20), np.arange(1)),
    ):
        grown, _ = growth(x, members, known, names=np.arange(10))
        before = grown.members.copy()
        grown.run(telling)
        np.testing.assert_array_equal(np.sort(grown.members, axis=1), np.sort(before, axis=1))
