"""Relations against a search of all quadruples: none is missed but by the borders of cells, none is false."""

from itertools import combinations

import numpy as np
import pytest

from unveil.relations.find_many import find_many
from unveil.relations.sketch import sketch


def encodings(n, m, d, seed, levels=None, offsets=False):
    """(y, c, different pairs): |x_u + x_v + c|; levels: 8-bit values or the like."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) if levels is None else rng.integers(0, levels, (n, d)) / (levels / 2) - 1
    pairs = np.array(list(combinations(range(n), 2)))[rng.permutation(n * (n - 1) // 2)[:m]]
    c = rng.standard_normal((m, d)).astype(np.float32) if offsets else None
    total = x[pairs].sum(axis=1).astype(np.float32)
    return np.abs(total if c is None else total + c), c, pairs


def cycles(pairs):
    """All sets of four rows that are a 4-cycle: S₁ + S₃ = S₂ + S₄ as multisets, by trying every two disjoint pairs of rows."""
    sums = {}
    for a, b in combinations(range(len(pairs)), 2):
        sums.setdefault(tuple(sorted([*pairs[a], *pairs[b]])), []).append((a, b))
    out = set()
    for same in sums.values():
        out |= {tuple(sorted(p + q)) for p, q in combinations(same, 2) if len({*p, *q}) == 4}
    return out


@pytest.mark.parametrize(("levels", "offsets"), [(None, False), (256, False), (None, True)])
def test_all_relations_and_no_others(levels, offsets):
    y, c, pairs = encodings(30, 200, 30, 0, levels, offsets)
    found = find_many(sketch(y, c, 0.0, np.random.default_rng(1)), limit=1 << 28)
    got = {tuple(sorted(q)) for q in found.quads.tolist()}
    true = cycles(pairs)
    assert got <= true
    assert len(got) >= 0.97 * len(true)


def test_small_memory_gives_the_same():
    y, c, _ = encodings(40, 300, 20, 2, 256)
    view = sketch(y, c, 0.0, np.random.default_rng(1))
    a, b = (find_many(view, limit=limit).quads for limit in (1 << 30, 1 << 20))
    np.testing.assert_array_equal(a, b)


def test_the_search_ends_with_enough():
    y, c, _ = encodings(30, 300, 20, 3)
    view = sketch(y, c, 0.0, np.random.default_rng(1))
    few, all_ = find_many(view, limit=1 << 20, enough=0.5), find_many(view, limit=1 << 20)
    assert 0 < len(few) < len(all_)
    assert {*map(tuple, few.quads.tolist())} <= {*map(tuple, all_.quads.tolist())}


def test_pixels_that_say_too_little():
    y = np.random.default_rng(0).integers(0, 2, (50, 6)).astype(np.float32)
    assert not find_many(sketch(y, None, 0.0, np.random.default_rng(1)), limit=1 << 28).possible
