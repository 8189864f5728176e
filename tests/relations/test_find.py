"""Relations by hashing are those of brute force: none missed, none by chance, whatever the data,
memory and workers are."""

from itertools import combinations, product

import numpy as np
import pytest

from unveil.parallel import using
from unveil.relations import find
from unveil.relations.find import find_relations, one_order
from unveil.relations.sketch import ROUNDING, WIDTH, sketch

LIMIT = 1 << 28
SIGNS = np.array(list(product((1.0, -1.0), repeat=4)))


def problem(kind, n, m, k, d, seed=0, public=False):
    """(y, c, members) with different subsets, in float32 as encodings have it: divided by √k, and
    multiplied again."""
    rng = np.random.default_rng(seed)
    every = np.array(list(combinations(range(n), k)))
    members = every[rng.permutation(len(every))[:m]]

    def draw(rows):
        if kind == "gaussian":
            return rng.standard_normal((rows, d))
        if kind == "discrete":
            return rng.integers(-3, 6, (rows, d)).astype(np.float64)
        if kind == "steps":
            return rng.integers(-20, 40, (rows, d)).astype(np.float64)
        # Half of the pixels are zero almost everywhere, as in scans; the others take a few positive
        # levels.
        return rng.integers(0, 9, (rows, d)) * (
            rng.random((rows, d)) < np.where(np.arange(d) % 2, 0.2, 0.9)
        )

    x, c = draw(n), draw(m) if public else None
    total = x[members].sum(axis=1) + (0 if c is None else c)
    y = (np.abs(total) / np.sqrt(k)).astype(np.float32) * np.float32(np.sqrt(k))
    return y, None if c is None else c.astype(np.float32), members


def found(y, c, *, limit=LIMIT, enough=2000, seed=0):
    return find_relations(
        sketch(y, c, 0.0, np.random.default_rng(seed)), limit=limit, enough=enough
    )


def sides(quads):
    """{{a, d}, {b, c}} of z_a + z_d = z_b + z_c."""
    return {
        frozenset([frozenset((a, d)), frozenset((b, c))])
        for a, b, c, d in np.asarray(quads).tolist()
    }


def same(result, truth, free):
    """Whether relations are the true ones, {{a, d}, {b, c}} each; without a public part the pairing
    is hidden."""
    if not free:
        return sides(result.quads) == truth
    return {frozenset(q) for q in result.quads.tolist()} == {
        frozenset().union(*pairs) for pairs in truth
    }


def by_brute_force(y, c):
    """Every quadruple, every pairing, all 16 signs, all pixels, in plain NumPy."""
    bound = WIDTH * ROUNDING * y.max(axis=0)
    c = np.zeros(y.shape) if c is None else c
    out = set()
    for q in combinations(range(len(y)), 4):
        signed = SIGNS @ y[list(q)].astype(np.float64).reshape(4, -1)
        for other in (1, 2, 3):
            turn = np.full(4, -1.0)
            turn[[0, other]] = 1.0
            # Σ turn·(s·y − c): the signs s·turn are all signs, too.
            if (np.abs(signed - turn @ c[list(q)]).min(axis=0) <= bound).all():
                rest = [q[i] for i in (1, 2, 3) if i != other]
                out.add(frozenset([frozenset((q[0], q[other])), frozenset(rest)]))
    return out


def by_subsets(members):
    """All S_a + S_d = S_b + S_c as multisets: the relations that hold for all data."""
    sums = {}
    for a, d in combinations(range(len(members)), 2):
        sums.setdefault(tuple(sorted([*members[a], *members[d]])), []).append(frozenset((a, d)))
    return {frozenset(two) for pairs in sums.values() for two in combinations(pairs, 2)}


@pytest.mark.parametrize("kind", ["gaussian", "discrete", "zeros"])
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_relations_are_those_of_brute_force(kind, public, k):
    y, c, members = problem(kind, 7 if k == 2 else 6, 19, k, 45, seed=k, public=public)
    truth = by_brute_force(y, c)
    result = found(y, c)
    assert result.possible
    assert len(truth) > 50
    assert truth >= by_subsets(members)
    assert same(result, truth, c is None)


@pytest.mark.parametrize(("m", "public"), [(79, True), (90, False), (130, False), (130, True)])
def test_every_relation_of_the_subsets_is_found_with_and_without_pivots(m, public):
    """At 124 encodings pairs become too many to be compared with each other. With pivots one
    relation in 64 is cut apart in each of its two pairings (three without a public part): one in
    4,096, so that one of these 3,000 is missing with probability one half where there is a public
    part. The seed is fixed."""
    y, c, members = problem("gaussian", 20, m, 2, 12, seed=1, public=public)
    truth = by_subsets(members)
    assert len(truth) > 400
    assert same(found(y, c), truth, c is None)


@pytest.mark.parametrize(
    ("kind", "public"), [("discrete", False), ("zeros", False), ("steps", False), ("steps", True)]
)
def test_pixels_of_few_levels_lose_no_relation_at_the_borders_of_cells(kind, public, monkeypatch):
    """Differences are often zero up to rounding there, of either sign, and multiples of a step."""
    monkeypatch.setattr(find, "CANDIDATES", 3e5)
    y, c, members = problem(kind, 13, 60, 2, 48, seed=3, public=public)
    result = found(y, c)
    assert result.keys > 60 * 59 // 2
    assert same(result, by_subsets(members), c is None)


def test_the_order_of_a_relation_with_a_public_part_has_its_signs():
    y, c, members = problem("gaussian", 9, 30, 2, 12, seed=5, public=True)
    W = np.zeros((30, 9))
    np.put_along_axis(W, members, 1, axis=1)
    quads = found(y, c).quads
    assert len(quads)
    np.testing.assert_array_equal(
        W[quads[:, 0]] - W[quads[:, 1]] - W[quads[:, 2]] + W[quads[:, 3]], 0
    )


def test_the_ways_to_write_a_relation_become_one():
    both = [((7, 2), (5, 3)), ((5, 3), (7, 2))]
    ways = [
        (one[i], two[j], two[1 - j], one[1 - i])
        for one, two in both
        for i in (0, 1)
        for j in (0, 1)
    ]
    assert len(set(ways)) == 8
    np.testing.assert_array_equal(one_order(np.array(ways)), np.tile([2, 3, 5, 7], (8, 1)))


@pytest.mark.parametrize(
    ("kind", "public"), [("gaussian", False), ("gaussian", True), ("steps", False)]
)
def test_little_memory_and_more_workers_find_the_same(kind, public):
    y, c, _ = problem(kind, 40, 320, 2, 12 if kind == "gaussian" else 48, seed=2, public=public)
    calls = []
    view = sketch(y, c, 0.0, np.random.default_rng(0))
    with using(workers=1):
        one = find_relations(
            view, limit=LIMIT, enough=2000, progress=lambda *call: calls.append(call)
        )
        small = find_relations(view, limit=1, enough=2000)
    with using(workers=2):
        two = find_relations(view, limit=LIMIT, enough=2000)
    np.testing.assert_array_equal(one.quads, two.quads)
    np.testing.assert_array_equal(one.quads, small.quads)
    assert len(one) > 2000
    assert calls[-1][0] == "relations"
    assert calls[-1][1] == calls[-1][2]


@pytest.mark.parametrize("public", [False, True])
def test_a_search_that_ends_early_does_not_depend_on_workers(public):
    y, c, members = problem("gaussian", 26, 320, 2, 12, seed=2, public=public)
    view = sketch(y, c, 0.0, np.random.default_rng(0))
    quads = []
    for workers in (1, 2, 2, 3):
        with using(workers=workers):
            quads.append(find_relations(view, limit=LIMIT, enough=3).quads)
        np.testing.assert_array_equal(quads[-1], quads[0])
    assert 3 * 320 / 3 <= len(quads[0]) < len(by_subsets(members))


def test_no_relation_is_found_where_there_is_none():
    """Disjoint subsets, and independent encodings. A false relation in one of 160,000 runs."""
    rng = np.random.default_rng(0)
    for d in (4, 40):
        result = found(np.abs(rng.standard_normal((70, d))).astype(np.float32), None)
        assert result.possible
        assert len(result) == 0
    levels = found(np.abs(rng.integers(-4, 5, (60, 60))).astype(np.float32), None)
    assert len(levels) == 0


def test_encodings_without_a_pixel_that_says_anything_have_no_relation():
    """Four constant encodings: no pixel is left, and with so few to compare none is asked for."""
    same = sketch(np.ones((4, 3), np.float32), None, 0.0, np.random.default_rng(0))
    assert len(find_relations(same, limit=LIMIT, luck=-20.0)) == 0


def test_a_relation_needs_all_pixels():
    y, _, members = problem("gaussian", 9, 24, 2, 30, seed=4)
    y[5, 17] += 0.01
    truth = {pairs for pairs in by_subsets(members) if 5 not in frozenset().union(*pairs)}
    assert 0 < len(truth) < len(by_subsets(members))
    assert same(found(y, None), truth, True)


def test_zero_encodings_and_copies_are_relations_like_others():
    """Two pairs of equal encodings have the difference zero in common."""
    y, _, _ = problem("gaussian", 9, 20, 2, 12, seed=6)
    for extra in (np.zeros((1, 12)), y[:2]):
        more = np.concatenate([y, extra]).astype(np.float32)
        assert same(found(more, None), by_brute_force(more, None), True)
    assert frozenset((0, 1, 20, 21)) in {frozenset(q) for q in found(more, None).quads.tolist()}


@pytest.mark.parametrize("m", range(4))
def test_fewer_than_four_encodings_have_no_relation(m):
    result = found(np.random.default_rng(0).random((m, 5)).astype(np.float32), None)
    assert len(result) == 0
    assert not result.possible
    assert result.quads.shape == (0, 4)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_pixels_make_no_relation_possible(value):
    result = found(np.full((50, 20), value, np.float32), None)
    assert not result.possible
    assert len(result) == 0


def test_a_few_binary_pixels_make_no_relation_possible():
    result = found(np.random.default_rng(0).integers(0, 2, (60, 6)).astype(np.float32), None)
    assert not result.possible
