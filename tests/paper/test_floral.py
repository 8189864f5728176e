"""FindFloralSubmatrix: complete against brute force over both families of sets, and never a false
floral."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from unveil import Overlaps, find_all_florals, find_floral_submatrix, is_floral
from unveil.checks import InputError
from unveil.paper.floral import floral_labels, iter_florals

EVERY_K = range(2, 7)


def gram(sets):
    """|S ∩ S'| of all pairs."""
    W = np.zeros((len(sets), 1 + max(map(max, sets))), dtype=int)
    for row, s in zip(W, sets, strict=True):
        row[list(s)] = 1
    return W @ W.T


def overlaps_of(sets, k):
    return Overlaps.from_array(gram(sets), k)


def floral_matrix(k):
    return gram(floral_labels(k).tolist())


def brute_force(sets, k, n):
    """Rows of every floral among distinct sets, as frozensets: all k-subsets of k+2 vectors, and
    sunflowers."""
    row = {frozenset(s): i for i, s in enumerate(sets)}
    found = []

    def note(wanted):
        if all(w in row for w in wanted):
            found.append(frozenset(row[w] for w in wanted))

    for names in combinations(range(n), k + 2):
        note([frozenset(s) for s in combinations(names, k)])
    if k > 2:  # for k = 2 the core is empty and both families are the same six pairs
        for core in combinations(range(n), k - 2):
            for petals in combinations(set(range(n)) - set(core), k + 2):
                note([frozenset(core) | frozenset(pair) for pair in combinations(petals, 2)])
    return found


def assert_floral(matrix, floral, k):
    """The definition: distinct rows, labels all k-subsets of k+2 names, M[j, j'] = |F(j) ∩
    F(j')|."""
    assert len(set(floral.rows.tolist())) == len(floral.rows) == comb(k + 2, 2)
    assert {tuple(label) for label in floral.labels.tolist()} == set(combinations(range(k + 2), k))
    np.testing.assert_array_equal(
        matrix[np.ix_(floral.rows, floral.rows)], gram(floral.labels.tolist())
    )


@pytest.mark.parametrize("k", range(2, 12))
def test_the_labels_are_all_k_subsets_each_once(k):
    labels = [tuple(label) for label in floral_labels(k).tolist()]
    assert len(labels) == comb(k + 2, k)
    assert sorted(labels) == list(combinations(range(k + 2), k))


@pytest.mark.parametrize(
    ("k", "n", "density"),
    [
        *((2, 9, 1.0), (2, 9, 0.85), (2, 9, 0.7), (2, 5, 0.9), (2, 4, 1.0)),
        *((3, 9, 1.0), (3, 9, 0.9), (3, 8, 0.8), (3, 7, 0.85), (3, 5, 1.0), (3, 6, 0.9)),
        *((4, 9, 1.0), (4, 9, 0.95), (4, 9, 0.85), (4, 8, 0.9), (4, 7, 0.95), (4, 6, 1.0)),
    ],
)
def test_every_floral_of_either_family_is_found_once_and_no_other(k, n, density):
    rng = np.random.default_rng(100 * k + n)
    for _ in range(1 if density == 1 else 4):
        every = list(combinations(range(n), k))
        sets = [every[i] for i in rng.permutation(len(every))[: round(density * len(every))]]
        M = gram(sets)
        found = find_all_florals(Overlaps.from_array(M, k))
        for floral in found:
            assert_floral(M, floral, k)
        rows = [frozenset(floral.rows.tolist()) for floral in found]
        assert len(rows) == len(set(rows))
        assert set(rows) == set(brute_force(sets, k, n))


def test_brute_force_is_no_empty_promise():
    # Complete systems: C(n, k+2) and C(n, k−2)·C(n−k+2, k+2) of the two families.
    every = list(combinations(range(9), 3))
    assert len(brute_force(every, 3, 9)) == comb(9, 5) + 9 * comb(8, 5)
    rng = np.random.default_rng(308)
    some = [list(combinations(range(8), 3))[i] for i in rng.permutation(56)[:45]]
    assert brute_force(some, 3, 8)


@pytest.mark.parametrize("k", EVERY_K)
def test_a_shuffled_floral_among_strangers_is_found(k):
    rng = np.random.default_rng(k)
    planted = [tuple(s) for s in combinations(range(k + 2), k)]
    # Strangers share up to k − 1 vectors with the floral.
    strangers = [
        tuple(rng.choice(np.arange(3, 3 * k + 4), k, replace=False).tolist()) for _ in range(60)
    ]
    sets = planted + strangers
    order = rng.permutation(len(sets))
    sets = [sets[i] for i in order]
    found = find_all_florals(overlaps_of(sets, k))
    for floral in found:
        assert_floral(gram(sets), floral, k)
    assert {frozenset(s) for s in planted} in [
        {frozenset(sets[r]) for r in floral.rows} for floral in found
    ]


@pytest.mark.parametrize("k", EVERY_K)
def test_repeated_encodings_are_tolerated_and_represented_by_the_first(k):
    rng = np.random.default_rng(k)
    sets = [tuple(s) for s in combinations(range(k + 2), k)]
    repeated = [s for s in sets for _ in range(3)]
    repeated = [repeated[i] for i in rng.permutation(len(repeated))]
    found = find_all_florals(overlaps_of(repeated, k))
    assert len(found) == 1
    assert_floral(gram(repeated), found[0], k)
    assert set(found[0].rows.tolist()) == {repeated.index(s) for s in sets}


@pytest.mark.parametrize("k", EVERY_K)
def test_a_floral_with_any_set_missing_is_none(k):
    sets = [tuple(s) for s in combinations(range(k + 2), k)]
    for missing in range(len(sets)):
        others = sets[:missing] + sets[missing + 1 :] + sets[: 1 if missing else 0]
        assert find_floral_submatrix(overlaps_of(others, k)) is None


@pytest.mark.parametrize("k", EVERY_K)
def test_near_florals_with_one_entry_changed_are_none(k):
    rng = np.random.default_rng(k)
    H = floral_matrix(k)
    pairs = list(combinations(range(len(H)), 2))
    if len(pairs) > 100:
        pairs = [pairs[i] for i in rng.choice(len(pairs), 100, replace=False)]
    order = rng.permutation(len(H))
    for a, b in pairs:
        for change in (-1, 1, 2, -k):
            near = H.copy()
            near[a, b] += change
            near[b, a] = near[a, b]
            near = near[np.ix_(order, order)]
            assert find_floral_submatrix(Overlaps.from_array(near, k)) is None
            assert not is_floral(near)
    for a in range(len(H)):
        near = H.copy()
        near[a, a] -= 1
        assert not is_floral(near)


def random_matrix(rng, k, m):
    """Symmetric, of one of four kinds: anything; k−2 and k−1 only; mostly k−1; true overlaps with
    errors."""
    kind = rng.integers(4)
    if kind == 0:
        M = rng.integers(-k, 2 * k + 1, size=(m, m))
    elif kind == 1:
        M = rng.choice([k - 2, k - 1], p=[0.3, 0.7], size=(m, m))
    elif kind == 2:
        M = rng.choice([k - 3, k - 2, k - 1, k], p=[0.05, 0.2, 0.7, 0.05], size=(m, m))
    else:
        sets = [rng.choice(k + 3, k, replace=False).tolist() for _ in range(m)]
        M = gram(sets) + rng.choice([0, 0, 0, 0, 0, 0, 0, 1, -1], size=(m, m))
    M = np.triu(M, 1)
    M = M + M.T
    np.fill_diagonal(M, k if rng.random() < 0.8 else rng.integers(0, k + 2, size=m))
    return M


@pytest.mark.parametrize("k", EVERY_K)
def test_random_symmetric_matrices_never_give_a_false_floral_or_an_exception(k):
    # 200 for each k: 1,000 in all.
    rng = np.random.default_rng(k)
    true = 0
    for _ in range(200):
        m = int(rng.integers(1, 45))
        M = random_matrix(rng, k, m)
        for floral in find_all_florals(Overlaps.from_array(M, k), limit=20):
            assert_floral(M, floral, k)
            true += 1
        if m in (1, 6, 10, 15, 21, 28):
            is_floral(M)
    # Octahedra do turn up by chance for k = 2: there the check has something to check.
    assert (true > 100) or k > 2


def test_random_matrices_for_k_of_two_give_exactly_the_induced_octahedra():
    rng = np.random.default_rng(0)
    total = 0
    for _ in range(40):
        m = int(rng.integers(8, 13))
        M = np.triu(rng.choice([-1, 0, 1, 3], p=[0.02, 0.2, 0.76, 0.02], size=(m, m)), 1)
        M = M + M.T + 2 * np.eye(m, dtype=int)
        octahedra = set()
        for rows in combinations(range(m), 6):
            H = M[np.ix_(rows, rows)]
            zero = (H == 0).sum(axis=1)
            if (zero == 1).all() and ((H == 0) | (H == 1) | np.eye(6, dtype=bool)).all():
                octahedra.add(frozenset(rows))
        found = [frozenset(f.rows.tolist()) for f in find_all_florals(Overlaps.from_array(M, 2))]
        assert len(found) == len(set(found))
        assert set(found) == octahedra
        total += len(octahedra)
    assert total > 20


@pytest.mark.parametrize("k", [2, 3, 4])
def test_systems_without_a_floral_give_none(k):
    # Disjoint sets; a sunflower with too few petals; a chain.
    for sets in (
        [tuple(range(i * k, i * k + k)) for i in range(40)],
        [(*range(k - 1), k - 1 + i) for i in range(40)],
        [tuple(range(i, i + k)) for i in range(40)],
    ):
        assert find_all_florals(overlaps_of(sets, k)) == []


@pytest.mark.parametrize("k", range(2, 10))
def test_a_floral_matrix_in_any_order_is_floral(k):
    H = floral_matrix(k)
    order = np.random.default_rng(k).permutation(len(H))
    assert is_floral(H)
    assert is_floral(H[np.ix_(order, order)])
    assert is_floral(H.astype(np.float64))


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((0, 0)),
        np.zeros(6),
        np.zeros((6, 5)),
        np.zeros((6, 6)),
        np.full((6, 6), np.nan),
        floral_matrix(2) + 0.5,
        floral_matrix(2)[:5, :5],
        floral_matrix(3)[:9, :9],
        floral_matrix(3) + 1,
        2 * floral_matrix(2),
        -floral_matrix(2),
        np.triu(floral_matrix(2)),
        np.ones((1, 1)),
        np.array(
            [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        ),  # k = 1: all pairs of three names are no floral
        7,
    ],
)
def test_other_shapes_sizes_and_numbers_are_not_floral(matrix):
    assert is_floral(matrix) is False


def test_the_limit_is_kept_and_the_order_is_that_of_the_smallest_rows():
    overlaps = overlaps_of(list(combinations(range(8), 2)), 2)
    every = find_all_florals(overlaps)
    assert len(every) == comb(8, 4)
    smallest = [int(floral.rows.min()) for floral in every]
    assert smallest == sorted(smallest)
    for limit in (0, 1, 7, 1000):
        some = find_all_florals(overlaps, limit=limit)
        assert [f.rows.tolist() for f in some] == [f.rows.tolist() for f in every[:limit]]
    assert find_floral_submatrix(overlaps).rows.tolist() == every[0].rows.tolist()


def test_more_florals_than_fit_the_first_room_are_all_found():
    # C(14, 4) = 1,001 florals; the first row alone is the smallest of more than the 256 that fit at
    # first.
    found = find_all_florals(overlaps_of(list(combinations(range(14), 2)), 2))
    assert len({frozenset(f.rows.tolist()) for f in found}) == len(found) == comb(14, 4)


def test_the_search_reports_progress_to_the_end():
    seen = []
    list(
        iter_florals(
            overlaps_of([(2 * i, 2 * i + 1) for i in range(100)], 2),
            progress=lambda *s: seen.append(s),
        )
    )
    assert seen[-1] == ("floral search", 100, 100)


def test_florals_do_not_share_their_labels():
    first, second = find_all_florals(overlaps_of(list(combinations(range(5), 2)), 2), limit=2)
    first.labels[:] = -1
    assert second.labels.min() == 0


def test_k_of_one_is_refused():
    with pytest.raises(InputError, match="k_private=1"):
        find_floral_submatrix(Overlaps.from_array(np.eye(6, dtype=int), 1))
