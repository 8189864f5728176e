"""The route of few relations: 8-bit images of one's own, all vectors exactly, and in words where it
does not apply."""

import numpy as np

from unveil.attacks.few_relations import solve_few
from unveil.parallel import Stopwatch
from unveil.relations.find import find_relations
from unveil.relations.sketch import ROUNDING, WIDTH, sketch


def run(n, m, d, seed, share=1.0):
    rng = np.random.default_rng(seed)
    smooth = np.cumsum(
        rng.integers(-9, 10, (n, d)), axis=1
    )  # neighbouring pixels are alike, as in images
    x = (np.clip(smooth + 128, 0, 255) / 127.5 - 1).astype(np.float32)
    u, v = np.triu_indices(n, 1)
    pairs = np.column_stack([u, v])[rng.permutation(len(u))[:m]]
    y = np.abs(x[pairs].sum(axis=1))
    bound = (WIDTH * ROUNDING * np.maximum(y.max(axis=0), 1e-30)).astype(np.float64)
    view = sketch(y, None, 0.0, rng)
    quads = find_relations(view, limit=1 << 28).quads
    quads = quads[rng.random(len(quads)) < share]
    return x, pairs, y, solve_few(y, view, quads, bound, rng, Stopwatch(), limit=1 << 30)


def test_all_vectors_of_images_from_some_of_the_relations():
    x, pairs, _, solved = run(120, 840, 400, 0, share=0.6)
    assert (solved.members >= 0).all()
    values, sure = solved.solution.values, ~solved.solution.doubtful
    assert values.shape == x.shape
    assert sure.mean() > 0.97
    # Names: the vector that all encodings of a name have in common.
    for name in range(len(values)):
        rows = (solved.members == name).any(axis=1)
        common = np.flatnonzero(np.bincount(pairs[rows].ravel(), minlength=len(x)) == rows.sum())
        assert len(common) == 1
        here = sure[name]
        np.testing.assert_allclose(
            np.abs(values[name, here]), np.abs(x[common[0], here]), atol=1e-4
        )


def test_nothing_where_there_are_more_vectors_than_pixels():
    assert run(120, 840, 100, 1)[-1] is None
