"""The public part where signs were kept: taken off, and found again where it was misread."""

import numpy as np

from unveil import Scheme, simulate
from unveil.attacks.mixup_public import Mixed, public_again
from unveil.parallel import Stopwatch
from unveil.solve.linear import fit_linear

LIMIT = 1 << 28


def instance():
    scheme = Scheme(2, 1, signs="kept")
    return simulate(scheme, 12, n_public=20, m=90, d=80, rng=0)


def test_without_its_public_part_an_encoding_is_a_sum_of_private_vectors():
    sim = instance()
    mixed = Mixed.of(sim.encodings, sim.public, LIMIT, Stopwatch(), None)
    np.testing.assert_array_equal(mixed.names, sim.selection.public)
    total = sim.private[sim.selection.private].sum(axis=1)
    np.testing.assert_allclose(mixed.private_part(), total, atol=1e-4)
    # Without public vectors all is private.
    bare = Mixed.of(sim.encodings, None, LIMIT, Stopwatch(), None)
    assert bare.private_part() is bare.y


def test_names_that_were_misread_are_found_again():
    sim = instance()
    right = Mixed.of(sim.encodings, sim.public, LIMIT, Stopwatch(), None)
    names = right.names.copy()
    names[:6] = (names[:6] + 1) % 20
    misread = Mixed(right.y, names, right.public, right.weight)
    trusted = np.arange(90) >= 6
    fit = fit_linear(misread.private_part(), sim.selection.private, trusted)
    assert len(fit.rows) == 84
    again, better = public_again(misread, fit, LIMIT, None)
    np.testing.assert_array_equal(again.names, right.names)
    assert len(better.rows) == 90
