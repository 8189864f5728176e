"""Blocks against their definition: the largest sets that stay connected without any one vector."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from unveil.certify.blocks import _blocks, largest_block


def joined_without(members, among, without):
    """Whether these vectors are connected by rows when one is taken away."""
    names = [v for v in among if v != without]
    place = {v: i for i, v in enumerate(names)}
    pairs = [
        (place[a], place[b])
        for row in members
        for a, b in combinations(row, 2)
        if a in place and b in place
    ]
    a, b = (np.array([p[i] for p in pairs], int) for i in (0, 1))
    graph = coo_array((np.ones(len(pairs)), (a, b)), shape=(len(names),) * 2)
    return connected_components(graph, directed=False)[0] <= 1


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_blocks_are_what_no_vector_holds_together_and_no_more(k, seed):
    rng = np.random.default_rng(seed)
    n = 9
    members = np.array([rng.choice(n, k, replace=False) for _ in range(int(rng.integers(4, 12)))])
    found = _blocks(members, n)
    for block in found:
        assert all(joined_without(members, block, v) for v in [None, *block])
    # Every two vectors of a row are in one block, and two blocks share one vector at most.
    for row in members:
        for a, b in combinations(row, 2):
            assert sum(a in block and b in block for block in found) == 1
    # No two that share a vector could be one.
    for one, other in combinations(found, 2):
        shared = one & other
        assert len(shared) <= 1
        if shared:
            assert not joined_without(members, one | other, *shared)


def test_the_largest_block_of_two_triangles_with_a_tail():
    members = np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4], [2, 4], [3, 5], [4, 5], [5, 6]])
    np.testing.assert_array_equal(np.flatnonzero(largest_block(members, 8)), [2, 3, 4, 5])


def test_no_rows_are_no_block():
    assert not largest_block(np.empty((0, 2), np.int64), 4).any()
