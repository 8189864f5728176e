"""Guesses at subsets where signs were kept: several, the true one among them."""

import numpy as np

from unveil import Overlaps, Scheme, simulate
from unveil.attacks.mixup_subsets import subset_guesses
from unveil.parallel import Stopwatch


def same(members, truth):
    """Whether the guess is the truth under other names: equal overlaps."""
    if (members < 0).any():
        return False
    one, two = (
        (m[:, None, :, None] == m[None, :, None, :]).sum(axis=(2, 3)) for m in (members, truth)
    )
    return np.array_equal(one, two)


def guesses(sim, given=None, limit=1 << 30):
    y = sim.encodings.values.astype(np.float64) / sim.encodings.scheme.private_weight
    return list(subset_guesses(y, 2, given, limit, Stopwatch(), None))


def test_of_few_vectors_the_true_subsets_are_among_the_guesses():
    sim = simulate(Scheme(2, signs="kept"), 15, m=80, d=100, rng=0)
    found = guesses(sim)
    assert [members.shape for members in found] == 4 * [(80, 2)]
    assert any(same(members, sim.selection.private) for members in found)


def test_overlaps_that_are_given_are_used_and_little_memory_leaves_the_first_guess():
    sim = simulate(Scheme(2, signs="kept"), 60, m=420, d=4, rng=0)
    truth = sim.selection.private
    M = (truth[:, None, :, None] == truth[None, :, None, :]).sum(axis=(2, 3))
    found = guesses(sim, Overlaps.from_array(M, 2), limit=1000)
    assert len(found) == 1
    assert same(found[0], truth)
