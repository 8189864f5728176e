"""Plans: every vertex once, each after its anchors; different cores first."""

import numpy as np

from unveil.solve.pairs.pair_graph import pair_graph
from unveil.solve.pairs.plans import different_first, plans_of


def random_pairs(n, m, seed=0):
    return np.random.default_rng(seed).permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]


def complete(n):
    return np.array([(i, j) for i in range(n) for j in range(i)])


def test_plans_from_different_cores_solve_the_same_vertices_in_another_order():
    graph = pair_graph(random_pairs(40, 280), 40)
    plans = list(plans_of(graph, np.random.default_rng(0), 4))
    assert len(plans) == 4
    assert len({plan.order.tobytes() for plan in plans}) == 4
    for plan in plans:
        assert plan.known.all()
        core = plan.core.vertices
        inside = [v for ear in plan.ears for v in ear.vertices[1:-1]]
        assert sorted([*core, *inside, *plan.order]) == list(range(40))
        rank = np.full(40, 99)
        rank[plan.order] = np.arange(len(plan.order))
        for o in range(len(plan.order)):
            anchors = plan.anchor[plan.start[o] : plan.start[o + 1]]
            assert len(anchors) >= 2
            assert all(rank[b] < o or rank[b] == 99 for b in anchors)


def test_plans_from_cores_of_the_same_vertices_come_last():
    plans = list(plans_of(pair_graph(complete(6), 6), np.random.default_rng(0), 20))
    names = [frozenset(plan.core.vertices.tolist()) for plan in different_first(plans)]
    distinct = len(set(names))
    assert 1 < distinct < len(names)
    assert len(set(names[:distinct])) == distinct
