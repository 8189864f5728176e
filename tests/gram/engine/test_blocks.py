"""The block task: kernels against plain NumPy twins, blocks against the whole, engines that
travel."""

import pickle

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.gram.engine.blocks import (
    BIN,
    BINS,
    LOWEST,
    OverlapEngine,
    _count,
    _count_shared,
    _survivors,
    _weigh,
    score_rows,
)
from unveil.gram.engine.plan import make_plan
from unveil.gram.levels import folded_levels, normal_scale
from unveil.gram.statistics import feature_rows, pixel_order, public_part


def engine(sim, **options):
    levels, (m, d) = folded_levels(sim.encodings.scheme), sim.encodings.values.shape
    plan = make_plan(levels, m, d, statistic="folded", **{"limit": 10**6, **options})
    return OverlapEngine(sim.encodings.values, sim.encodings.scheme, plan, levels)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("edges", [(40,), (16, 24, 40), (1, 40)])
def test_survivors_equal_the_plain_twin(edges, upper):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 30, 40)).astype(np.float32)
    cuts = np.full(len(edges), 0.5, np.float32)
    r, c, s = _survivors(A[:, : edges[0]] @ B[:, : edges[0]].T, A, B, np.array(edges), cuts, upper)
    sums = [A[:, :e].astype(float) @ B[:, :e].T for e in edges]
    alive = np.logical_and.reduce([partial >= 0.5 for partial in sums])
    rows, columns = np.nonzero(np.triu(alive, 1) if upper else alive)
    np.testing.assert_array_equal(r, rows)
    np.testing.assert_array_equal(c, columns)
    np.testing.assert_allclose(s, sums[-1][rows, columns], rtol=1e-4, atol=1e-4)


def test_survivors_grow_beyond_the_first_allocation():
    A = np.ones((80, 8), np.float32)
    r, c, s = _survivors(A @ A.T, A, A, np.array([8]), np.array([0], np.float32), False)
    assert len(r) == len(c) == len(s) == 6400


def test_shared_public_vectors_equal_set_intersections():
    rng = np.random.default_rng(1)
    left, right = (
        np.sort(np.stack([rng.choice(9, 4, replace=False) for _ in range(20)]), axis=1)
        for _ in range(2)
    )
    r, c = np.divmod(np.arange(400), 20)
    out = np.zeros(400, np.int8)
    _count_shared(left, right, r, c, out)
    assert out.tolist() == [len(set(left[i]) & set(right[j])) for i, j in zip(r, c, strict=True)]


def test_weighing_equals_the_plain_twin():
    levels, d = folded_levels(Scheme(3)), 400
    t = levels.balanced()
    score = np.random.default_rng(0).uniform(-0.1, 0.5, 500).astype(np.float32)
    q, rival, margin = _weigh(
        score, np.zeros(500, np.int8), t, levels.mean, levels.sd, levels.skew, d
    )
    for s, found, other, value in zip(score, q, rival, margin, strict=True):
        u = [
            normal_scale(s, levels.mean[0, v], levels.sd[0, v], levels.skew[0, v], d)
            for v in range(4)
        ]
        density = [-x * x / 2 - np.log(levels.sd[0, v]) for v, x in enumerate(u)]
        level = int((s >= t[0]).sum())
        neighbours = [v for v in (level - 1, level + 1) if 0 <= v <= 3]
        best = max(neighbours, key=lambda v: density[v])
        assert (found, other) == (level, best)
        assert value == pytest.approx(density[level] - density[best], rel=1e-9, abs=1e-9)


def test_the_table_counts_by_overlap_rival_and_margin():
    q, rival, margin = (
        np.array([1, 1, 0], np.int8),
        np.array([0, 2, 1], np.int8),
        np.array([0.1, 1e9, -1e9]),
    )
    table = _count(q, rival, margin, 3)
    assert table.sum() == 3
    assert table[1, 0, int((0.1 - LOWEST) / BIN)] == 1
    assert table[1, 1, BINS - 1] == 1
    assert table[0, 1, 0] == 1


@pytest.mark.parametrize("screen", [None, 100])
@pytest.mark.parametrize("doubt", ["never", "always"])
def test_blocks_together_equal_one_block(screen, doubt):
    sim = simulate(Scheme(2), 15, m=60, d=500, rng=0)
    small, large = (
        engine(sim, limit=limit, screen=screen, doubt=doubt, loss=0.01) for limit in (10**6, 10**9)
    )
    assert small.plan.blocks > 1
    assert large.plan.blocks == 1
    parts = [small.block(i, j) for i, j in small.plan.tasks]
    whole = large.block(0, 0)
    for name in ("rows", "columns", "overlap", "rival"):
        order = np.lexsort(
            (np.concatenate([b.columns for b in parts]), np.concatenate([b.rows for b in parts]))
        )
        np.testing.assert_array_equal(
            np.concatenate([getattr(b, name) for b in parts])[order], getattr(whole, name)
        )
    assert abs(sum(b.table for b in parts).sum() - whole.table.sum()) <= 1
    assert (whole.rows < whole.columns).all()
    assert (whole.overlap > 0).all()


def test_an_engine_travels_without_its_features_and_gives_the_same_block():
    sim = simulate(Scheme(2), 15, m=60, d=500, rng=0)
    here = engine(sim)
    first = here.block(0, 1)
    there = pickle.loads(pickle.dumps(here))
    assert not there._kept
    assert there.block(0, 1).margin.tobytes() == first.margin.tobytes()


def test_features_are_kept_no_longer_than_memory_allows():
    sim = simulate(Scheme(2), 15, m=60, d=500, rng=0)
    tight = engine(sim)
    tight.cache_bytes = 0
    tight._start()
    tight.block(0, 1)
    assert not tight._kept


def test_scores_of_sampled_rows_are_products_of_features():
    sim = simulate(Scheme(2, 2), 10, n_public=8, m=20, d=300, rng=0)
    part = public_part(sim.encodings, sim.selection.public, sim.public)
    rows = np.array([3, 4, 11, 19])
    C, shared = score_rows(sim.encodings.values, rows, "assisted", part)
    F, _ = feature_rows(sim.encodings.values, "assisted", pixel_order(300, 300), part)
    np.testing.assert_allclose(C, F[rows] @ F[rows].T, atol=1e-6)
    sets = [set(s) for s in sim.selection.public[rows].tolist()]
    assert shared.tolist() == [[len(a & b) for b in sets] for a in sets]
