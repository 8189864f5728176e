"""Rows predicted by vectors made without them: right members beat chance, others do not."""

import numpy as np

from unveil import Scheme, simulate
from unveil.solve.pixels.left_out import beyond_chance


def noisy(k=2, noise=0.5, n=20, m=240, d=150, seed=0):
    rng = np.random.default_rng(seed)
    sim = simulate(Scheme(k), n, m=m, d=d, rng=seed)
    members = sim.selection.private
    mix = sim.private[members].sum(axis=1) + noise * rng.standard_normal((m, d))
    return sim.private.astype(float), members, np.abs(mix).astype(np.float32)


def test_true_subsets_beat_chance_and_those_of_noise_do_not():
    _, members, y = noisy()
    rng = np.random.default_rng(3)
    assert beyond_chance(y, members, 20, 0.5, rng) > 1000
    shuffled = rng.permutation(members)
    assert beyond_chance(y, shuffled, 20, 0.5, rng) < 0
    pure = np.abs(rng.standard_normal(y.shape)).astype(np.float32) * np.float32(1.5)
    assert beyond_chance(pure, members, 20, 0.5, rng) < 0


def test_constant_pixels_are_chance():
    """They are predicted to the last digit, and by their mean as well."""
    _, members, _ = noisy()
    rng = np.random.default_rng(4)
    flat = 2 + 0.1 * rng.standard_normal((240, 150)).astype(np.float32)
    assert beyond_chance(flat, members, 20, 0.1, rng) < 0
