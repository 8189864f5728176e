"""Overlaps as attacks read them: given ones as they are, with the public part beside them; else
measured."""

import numpy as np
import pytest

import unveil
from unveil.attacks.overlaps import read_overlaps
from unveil.parallel import Stopwatch


def read(sim, given=None):
    return read_overlaps(
        sim.encodings, sim.public, given, Stopwatch(), memory_limit=None, progress=None
    )


@pytest.mark.parametrize("k_public", [0, 2])
def test_they_are_those_of_gram_extract_with_the_supports_of_learn_public(k_public):
    sim = unveil.simulate(
        unveil.Scheme(2, k_public), 12, n_public=30 if k_public else 0, m=60, d=1500, rng=0
    )
    M, supports = read(sim)
    W = np.zeros((60, 12), np.int64)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    np.testing.assert_array_equal(M.toarray(), W @ W.T)
    assert (supports is None) == (k_public == 0)
    if supports is not None:
        np.testing.assert_array_equal(supports.indices, sim.selection.public)


def test_given_ones_are_taken_and_must_fit():
    sim = unveil.simulate(unveil.Scheme(2), 12, m=60, d=50, rng=0)
    given = unveil.Overlaps.from_array(2 * np.eye(60, dtype=np.int64), 2)
    assert read(sim, given)[0] is given
    with pytest.raises(unveil.InputError, match="are not those of these"):
        read(sim, unveil.Overlaps.from_array(np.eye(5, dtype=np.int64), 2))
