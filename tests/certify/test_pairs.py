"""Paths in the double cover, against linear programs and the definition."""

from itertools import combinations, product

import numpy as np

from unveil.certify.pairs import disjoint_odd_walks, heavy_pairs, odd_components


def graph(n, m, rng):
    edges = np.array(list(combinations(range(n), 2)))
    return edges[rng.choice(len(edges), m, replace=False)]


def test_heavy_is_what_it_says():
    """Every integer t with entries −2 .. 2, tried one by one."""
    n, heavy, light = 6, 0, 0
    grid = np.array(list(product(range(-2, 3), repeat=n)))
    for seed in range(30):
        edges = graph(n, 8 + seed % 8, np.random.default_rng(seed))
        if not odd_components(edges, n)[1].all() or odd_components(edges, n)[0].max():
            continue
        found = heavy_pairs(edges, n, np.ones(n, bool))
        size = np.abs(grid[:, edges[:, 0]] + grid[:, edges[:, 1]])
        weight = np.where((size <= 1).all(axis=1), size.sum(axis=1), 10**6)
        degree = np.bincount(edges.ravel(), minlength=n)
        for i in range(n):
            others = (grid[:, i] != 0) & (np.abs(grid).sum(axis=1) > 1)
            lightest = weight[others].min()
            if found[i]:
                assert lightest > degree[i]
            heavy, light = heavy + found[i], light + (not found[i] and lightest <= degree[i])
    assert heavy > 20
    assert light > 20


def test_odd_walks_are_disjoint():
    triangles = np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4], [2, 4], [4, 5]])
    assert disjoint_odd_walks(triangles, 6, 9) == 2
    assert disjoint_odd_walks(triangles, 6, 1) == 1
    square = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    assert disjoint_odd_walks(square, 4, 9) == 0
    assert not odd_components(square, 4)[1].any()
