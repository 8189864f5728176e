"""First florals against brute force, and against the search."""

from itertools import combinations

import numpy as np
import pytest
from experiments.paper.first_florals import first_m, has_subsets, has_sunflower, search_finds

import unveil
from unveil.encode import draw_selection


def subsets(k, n, m, seed):
    rng = np.random.default_rng(seed)
    return draw_selection(unveil.Scheme(k), n, 0, m, rng, rng).private


def brute_subsets(drawn, n):
    k, there = drawn.shape[1], {tuple(row) for row in drawn.tolist()}
    return any(all(s in there for s in combinations(U, k)) for U in combinations(range(n), k + 2))


def brute_sunflower(drawn, n):
    k, there = drawn.shape[1], {tuple(row) for row in drawn.tolist()}
    for core in combinations(range(n), k - 2):
        others = [i for i in range(n) if i not in core]
        for U in combinations(others, k + 2):
            if all(tuple(sorted((*core, *pair))) in there for pair in combinations(U, 2)):
                return True
    return False


@pytest.mark.parametrize(
    ("k", "n", "sizes"), [(2, 12, (20, 30, 40, 60)), (3, 9, (45, 60, 75, 100))]
)
def test_existence_is_that_of_brute_force(k, n, sizes):
    seen = set()
    for seed in range(12):
        for m in sizes:
            drawn = subsets(k, n, m, seed)
            expected = brute_subsets(drawn, n), brute_sunflower(drawn, n)
            assert (has_subsets(drawn, n), has_sunflower(drawn, n)) == expected
            seen.add(expected)
    assert {answer[0] for answer in seen} == {answer[1] for answer in seen} == {True, False}


@pytest.mark.parametrize(("k", "n"), [(2, 30), (3, 12)])
def test_the_search_finds_one_from_the_first_on_and_none_before(k, n):
    for seed in range(4):
        drawn = subsets(k, n, 3000, seed)
        first = min(
            first_m(drawn, lambda s, f=family: f(s, n), 50)
            for family in (has_subsets, has_sunflower)
        )
        assert search_finds(drawn[: first - 1], n) == "nothing"
        assert search_finds(drawn[:first], n) in ("subsets", "sunflower")


def test_the_first_m_is_the_smallest():
    rows = np.arange(100)[:, None]
    for goal in (1, 2, 37, 100):
        assert first_m(rows, lambda some, g=goal: len(some) >= g, 8) == goal
    assert first_m(rows, lambda some: False, 8) is None


def test_a_sunflower_is_told_from_subsets():
    pairs = np.array([(0, a, b) for a, b in combinations(range(1, 6), 2)])
    assert has_sunflower(pairs, 8)
    assert not has_subsets(pairs, 8)
    assert search_finds(pairs, 8) == "sunflower"
    triples = np.array(list(combinations(range(5), 3)))
    assert has_subsets(triples, 8)
    assert not has_sunflower(triples, 8)
    assert search_finds(triples, 8) == "subsets"


def test_other_k_are_refused():
    with pytest.raises(unveil.InputError, match="2 and 3"):
        has_subsets(np.array([[0, 1, 2, 3]]), 9)
