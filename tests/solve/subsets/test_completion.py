"""What is left once the rest is solved: known vectors after all, vectors two encodings share, and
nothing from copies."""

import numpy as np
import pytest

from unveil.solve.subsets.completion import complete, once_only, with_repeats


def setting(k, n=10, d=300, seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.standard_normal((n, d)), rng.standard_normal(d)


def magnitudes(*rows):
    return np.abs(np.array(rows)).astype(np.float32)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_vector_used_by_two_encodings_comes_back(k):
    rng, x, missing = setting(k)
    one, two = np.arange(k - 1), np.arange(k - 1) + 5
    y = magnitudes(x[one].sum(axis=0) + missing, x[two].sum(axis=0) + missing)
    rows, members, new = complete(y, None, x, k, np.arange(2), 1e-3, rng)
    assert new == 1
    order = np.argsort(rows)
    np.testing.assert_array_equal(np.sort(members[order], axis=1), [[*one, 10], [*two, 10]])


@pytest.mark.parametrize("k", [2, 3])
def test_copies_of_one_encoding_prove_nothing(k):
    rng, x, missing = setting(k)
    row = x[: k - 1].sum(axis=0) + missing
    rows, members, new = complete(magnitudes(row, row, row), None, x, k, np.arange(3), 1e-3, rng)
    assert (len(rows), len(members), new) == (0, 0, 0)


def test_encodings_that_share_nothing_stay_unexplained():
    rng, x, missing = setting(2)
    other = rng.standard_normal(300)
    rows, _, new = complete(
        magnitudes(x[0] + missing, x[1] + other), None, x, 2, np.arange(2), 1e-3, rng
    )
    assert (len(rows), new) == (0, 0)


@pytest.mark.parametrize("k", [2, 3])
def test_encodings_of_known_vectors_are_explained_by_them(k):
    rng, x, _ = setting(k)
    truth = np.array([np.sort(rng.choice(10, k, replace=False)) for _ in range(6)])
    y = magnitudes(*x[truth].sum(axis=1))
    rows, members, new = complete(
        np.vstack([np.zeros_like(y), y]), None, x, k, np.arange(6, 12), 1e-3, rng
    )
    assert new == 0
    np.testing.assert_array_equal(rows, np.arange(6, 12))
    np.testing.assert_array_equal(np.sort(members, axis=1), truth)


def test_two_missing_vectors_get_two_columns():
    rng, x, missing = setting(2)
    other = rng.standard_normal(300)
    y = magnitudes(x[0] + missing, x[1] + other, x[2] + missing, x[3] + other, x[4] + missing)
    rows, members, new = complete(y, None, x, 2, np.arange(5), 1e-3, rng)
    assert new == 2
    np.testing.assert_array_equal(
        members[np.argsort(rows)], [[0, 10], [1, 11], [2, 10], [3, 11], [4, 10]]
    )


def test_a_single_encoding_left_is_left():
    rng, x, missing = setting(2)
    rows, members, new = complete(magnitudes(x[0] + missing), None, x, 2, np.arange(1), 1e-3, rng)
    assert (len(rows), new) == (0, 0)
    assert members.shape == (0, 2)


@pytest.mark.parametrize("k", [2, 3])
def test_a_public_part_ties_the_signs_of_the_missing_vector(k):
    rng, x, missing = setting(k)
    c = rng.standard_normal((2, 300)).astype(np.float32)
    one, two = np.arange(k - 1), np.arange(k - 1) + 5
    y = magnitudes(x[one].sum(axis=0) + missing + c[0], x[two].sum(axis=0) + missing + c[1])
    rows, members, new = complete(y, c, x, k, np.arange(2), 1e-3, rng)
    assert new == 1
    np.testing.assert_array_equal(
        np.sort(members[np.argsort(rows)], axis=1), [[*one, 10], [*two, 10]]
    )


@pytest.mark.parametrize(
    ("k", "members"), [(2, [4, 4]), (3, [2, 7, 7]), (3, [5, 5, 5]), (4, [1, 3, 3, 8])]
)
def test_a_vector_used_twice_in_one_encoding_is_seen(k, members):
    _, x, missing = setting(k)
    y = magnitudes(x[members].sum(axis=0), x[:k].sum(axis=0) + 0.5 * missing)
    rows, found = with_repeats(y, None, x, k, np.arange(2), 1e-3)
    np.testing.assert_array_equal(rows, [0])
    np.testing.assert_array_equal(np.sort(found, axis=1), [members])


@pytest.mark.parametrize("k", [2, 3])
def test_a_vector_of_one_encoding_is_named_with_its_partners(k):
    rng, x, missing = setting(k)
    partners = [3, 6][: k - 1]
    y = magnitudes(x[partners].sum(axis=0) + missing, np.sqrt(k) * rng.standard_normal(300))
    singles = once_only(y, None, x, k, np.arange(2))
    assert [single.row for single in singles] == [0]  # the other one has no known vector in it
    np.testing.assert_array_equal(np.sort(singles[0].partners), partners)
    # The mean of the two possible values: right on average, and closer to the vector than zero is.
    assert np.corrcoef(singles[0].value, missing)[0, 1] > 0.5
