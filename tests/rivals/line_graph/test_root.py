"""Pairs from overlaps: roots come back up to names, what is not unique is called so, and wrong
overlaps are outvoted."""

from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from unveil.checks import InputError
from unveil.records import Overlaps
from unveil.rivals.line_graph.root import contradictions, line_graph_root


def overlaps_of(pairs):
    pairs = np.asarray(pairs)
    W = np.zeros((len(pairs), pairs.max() + 1), int)
    np.put_along_axis(W, pairs, 1, axis=1)
    return W @ W.T


def rooted(M, **options):
    return line_graph_root(Overlaps.from_array(M, 2), **options)


def stars(pairs):
    """The pairs, up to names: the rows of every vertex that has more than one."""
    rows = [
        frozenset(np.flatnonzero((np.asarray(pairs) == v).any(axis=1)).tolist())
        for v in np.unique(pairs)
    ]
    return {r for r in rows if len(r) > 1}


def random_pairs(n, m, seed):
    rng = np.random.default_rng(seed)
    return np.sort(rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2], axis=1)


@pytest.mark.parametrize(("n", "m"), [(12, 40), (40, 60), (60, 300), (200, 150)])
@pytest.mark.parametrize("seed", range(3))
def test_the_overlaps_of_the_root_are_those_given_and_unique_pairs_are_the_true_ones(n, m, seed):
    """Duplicates, components and lone encodings as chance has them."""
    pairs = random_pairs(n, m, seed)
    M = overlaps_of(pairs)
    found = rooted(M)
    np.testing.assert_array_equal(found.rows, np.arange(m))
    np.testing.assert_array_equal(overlaps_of(found.members), M)
    assert not found.broken
    assert not found.contradicted.any()
    assert found.components == nx.number_connected_components(nx.Graph(M > 0))
    assert found.n == len(np.unique(found.members))
    sure = found.unique
    assert stars(found.members[sure]) == stars(pairs[sure])


def assignments(M):
    """All ways to give pairs to rows, up to names, by brute force: a row at a time, every pair of
    known and new vertices."""
    ways = {()}
    for row in range(len(M)):
        more = set()
        for way in ways:
            used = max((v for pair in way for v in pair), default=-1) + 1
            for pair in combinations(range(used + 2), 2):
                new = [v for v in pair if v >= used]
                if new and new[0] != used:
                    continue
                if all(len(set(pair) & set(way[j])) == M[row, j] for j in range(row)):
                    more.add((*way, pair))
        ways = more
    return len({frozenset(stars(way)) for way in ways})


def connected_roots():
    return [
        g
        for g in nx.graph_atlas_g()
        if 1 <= g.number_of_edges() <= 7 and len(g) <= 6 and nx.is_connected(g)
    ]


def test_unique_is_what_brute_force_finds_on_all_small_roots():
    """Whitney's exceptions, and no others: K3 and K1,3, and the three that have a triangle and four
    vertices."""
    exceptions = []
    for g in connected_roots():
        M = overlaps_of(np.sort(list(g.edges), axis=1))
        found = rooted(M)
        count = assignments(M)
        assert found.unique.all() == (count == 1), g.edges
        assert found.unique.any() == (count == 1)
        if count > 1:
            exceptions.append((len(g), g.number_of_edges()))
            assert count == 2
    assert sorted(exceptions) == [(3, 3), (4, 3), (4, 4), (4, 5), (4, 6)]


def test_copies_of_a_pair_change_nothing_and_are_ambiguous_where_the_pair_is():
    pairs = np.array(
        [
            [0, 1],
            [1, 2],
            [0, 2],
            [0, 1],
            [3, 4],
            [3, 4],
            [5, 6],
            [6, 7],
            [7, 8],
            [8, 9],
            [9, 5],
            [5, 6],
        ]
    )
    found = rooted(overlaps_of(pairs))
    np.testing.assert_array_equal(found.unique, [False] * 4 + [True] * 8)
    assert stars(found.members[4:]) == stars(pairs[4:])
    np.testing.assert_array_equal(found.members[0], found.members[3])


def test_a_component_that_is_no_line_graph_is_named_and_the_others_come_out():
    M = 2 * np.eye(9, dtype=int)
    for i, j in [(0, 1), (0, 2), (0, 3), (4, 5), (5, 6), (6, 7)]:
        M[i, j] = M[j, i] = 1
    found = rooted(M, mend=False)
    np.testing.assert_array_equal(found.rows, [4, 5, 6, 7, 8])
    (broken,) = found.broken
    np.testing.assert_array_equal(broken.rows, [0, 1, 2, 3])
    np.testing.assert_array_equal(broken.place, [0, 1, 2, 3])
    assert broken.why == "encoding 0 overlaps with 1, 2, 3, which do not overlap with each other"


def test_copies_that_contradict_each_other_are_named():
    pairs = [[0, 1], [0, 1], [1, 2], [2, 3], [3, 4]]
    M = overlaps_of(pairs)
    M[1, 2] = M[2, 1] = 0
    (broken,) = rooted(M).broken
    assert set(broken.place.tolist()) == {0, 1, 2}
    assert "are read as one pair" in broken.why


@pytest.mark.parametrize(
    ("n", "m", "wrong", "missed"), [(60, 420, 1, 0.0), (60, 420, 100, 0.01), (60, 420, 800, 0.05)]
)
@pytest.mark.parametrize("seed", range(3))
def test_wrong_overlaps_are_outvoted(n, m, wrong, missed, seed):
    pairs, rng = random_pairs(n, m, seed), np.random.default_rng(seed)
    M = overlaps_of(pairs)
    i, j = np.nonzero(np.triu(M, 1))
    drop = rng.random(len(i)) < missed
    M[i[drop], j[drop]] = M[j[drop], i[drop]] = 0
    i, j = np.array([p for p in rng.integers(0, m, (3 * wrong, 2)) if M[*p] == 0][:wrong]).T
    M[i, j] = M[j, i] = 1
    found = rooted(M)
    assert len(found.broken) == 1
    truth = stars(pairs)
    right = [star for star in stars(found.members) if star in truth]
    assert len(right) >= len(truth) - (0 if missed < 0.05 else 3)
    assert found.contradicted.sum() >= 2


def test_contradictions_are_the_entries_in_which_overlaps_differ():
    rng = np.random.default_rng(0)
    M, pairs = overlaps_of(random_pairs(15, 50, 0)), random_pairs(15, 50, 1)
    np.fill_diagonal(M, 0)
    theirs = overlaps_of(pairs)
    np.fill_diagonal(theirs, 0)
    got = contradictions(Overlaps.from_array(M, 2).matrix, pairs)
    np.testing.assert_array_equal(got, (theirs != M).sum(axis=1))
    pairs[rng.permutation(50)[:10]] = -1
    some = pairs[:, 0] >= 0
    got = contradictions(Overlaps.from_array(M, 2).matrix, pairs)
    np.testing.assert_array_equal(got[some], (theirs != M)[np.ix_(some, some)].sum(axis=1))


def test_entries_that_are_probably_wrong_do_not_take_part():
    pairs = random_pairs(20, 80, 5)
    exact = Overlaps.from_array(overlaps_of(pairs), 2)
    M = exact.toarray()
    M[M == 0] = 1
    noisy = Overlaps.from_array(M, 2).matrix
    confidence = np.where((exact.toarray() > 0)[noisy.nonzero()], 0.9, 0.3).astype(np.float32)
    assert stars(line_graph_root(Overlaps(noisy, 2, 0.0, confidence)).members) == stars(pairs)


def test_nothing_is_refused_but_what_cannot_be_pairs():
    for M in (
        2 * np.eye(1, dtype=int),
        np.full((5, 5), 2),
        np.ones((5, 5), int),
        np.zeros((4, 4), int),
    ):
        found = rooted(M)
        assert len(found.rows) == len(M)
        assert not found.contradicted.any()
    with pytest.raises(
        InputError, match="k_private=3: overlaps are a line graph for k_private=2 only"
    ):
        line_graph_root(Overlaps.from_array(np.eye(3, dtype=int), 3))
    with pytest.raises(InputError, match="overlaps below 0 or above 2"):
        rooted(np.full((3, 3), 3))


@pytest.mark.parametrize("seed", range(20))
def test_any_symmetric_matrix_gives_pairs_with_honest_counts(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 25))
    M = np.triu(rng.choice(3, (m, m), p=rng.dirichlet(np.ones(3))), 1)
    M += M.T
    found = rooted(M)
    theirs = overlaps_of(found.members)
    np.fill_diagonal(theirs, 0)
    np.testing.assert_array_equal(found.rows, np.arange(m))
    assert (found.members[:, 0] != found.members[:, 1]).all()
    np.testing.assert_array_equal(found.contradicted, (theirs != M).sum(axis=1))
    touched = np.zeros(m, bool)
    for broken in found.broken:
        touched[broken.rows] = True
    assert not found.contradicted[~touched].any()
    for i, j in product(np.flatnonzero(~touched), repeat=2):
        assert i == j or theirs[i, j] == M[i, j]
