"""Where clusters come to rest: the steps written out, and pairs that others hold or repeat."""

import numpy as np
from tests.images.test_clusters import planted, rng

from unveil.images.clusters import _neighbours
from unveil.images.settling import HELD, LEAST, ROUNDS, STANDS_OUT, repeats, settle


def settled(C, pairs, size=50, have=(), block=None, k=None):
    """The cluster of each pair, None where there is none, `HELD` where it is in one of `have`."""
    m = len(C)
    graph = _neighbours(C, 0.05, rng())
    member = np.zeros((m, len(have)), bool)
    for c, cluster in enumerate(have):
        member[cluster, c] = True
    found, counts = np.zeros((len(pairs), size), np.int64), np.zeros(len(pairs), np.int64)
    settle(
        C, graph.indptr, graph.indices, np.array(pairs), member, member.sum(axis=0),
        np.zeros(m, np.int64) if block is None else block, m if k is None else k, found, counts,
    )  # fmt: skip
    return [
        HELD if count == HELD else row[:count].tolist() or None
        for row, count in zip(found, counts, strict=True)
    ]


def test_a_pair_that_nothing_stands_out_with_is_no_cluster():
    C, _ = planted(blocks=1, each=LEAST - 2)
    assert settled(C, [(0, 1)]) == [None]


def test_a_cluster_comes_to_rest_as_step_by_step_and_may_be_held_or_repeated():
    C, truth = planted()
    groups = sorted(sorted(group) for group in truth)
    a, b = groups[0][:2]
    graph = _neighbours(C, 0.05, rng()).toarray() > 0
    cluster = np.union1d([a, b], np.flatnonzero(graph[a] & graph[b]))
    for _ in range(ROUNDS):
        score = (C[cluster].sum(axis=0) - np.where(np.isin(np.arange(200), cluster), 1, 0)) / len(
            cluster
        )
        centre = np.median(score)
        z = (score - centre) / (1.4826 * np.median(np.abs(score - centre)))
        cluster = np.argsort(-z)[: (z > STANDS_OUT).sum()]
    assert settled(C, [(a, b)]) == [cluster.tolist()]
    other = groups[1][0], groups[0][2]
    assert settled(C, [(a, b), other], have=[groups[0]])[0] == HELD
    # A pair of a cluster of which another part is known ends in it.
    assert settled(C, [(a, b)], have=[groups[0][2:]]) == [None]
    # Of a block no more than k.
    block = np.where(np.isin(np.arange(200), groups[0][:6]), 0, 1 + np.arange(200))
    (of_block,) = settled(C, [(a, b)], block=block, k=2)
    assert sum(i in groups[0][:6] for i in of_block) == 2


def test_a_cluster_repeats_one_that_has_most_of_it():
    member = np.zeros((20, 1), bool)
    member[:10] = True
    sizes = np.array([10])
    assert repeats(np.arange(5, 13), member, sizes)  # five of eight
    assert not repeats(np.arange(8, 16), member, sizes)  # two of eight
