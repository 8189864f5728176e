"""Choices that relations force are those that all solutions share, by trying every choice."""

from itertools import product

import numpy as np
import pytest

from unveil.solve.signs.sign_choices import allowed_choices, complete_choices, forced_choices
from unveil.solve.signs.sign_search import sign_system


def problem(levels, seed):
    """(system, hi (rows, 1), bound): a pixel of pairs among five records, values from few levels or
    none."""
    rng = np.random.default_rng(seed)
    members = np.array([(i, j) for i in range(5) for j in range(i)])
    x = rng.standard_normal(5) if levels is None else rng.choice(levels, 5)
    quads = np.array(
        [q for q in np.ndindex(10, 10, 10, 10) if len(set(q)) == 4 and list(q) == sorted(q)]
    )
    system = sign_system(quads, members, rng, 1000)
    return system, np.abs(x[members].sum(axis=1))[:, None], 1e-9


def solutions(system, y):
    """Every choice of signs that fulfils all relations; the sign of row 0 is +."""
    out = []
    for signs in product((1, -1), repeat=len(y) - 1):
        z = np.array([1, *signs]) * y[:, 0]
        if (np.abs((system.signs * z[system.quads]).sum(axis=1)) < 1e-9).all():
            out.append((1, *signs))
    return np.array(out)


@pytest.mark.parametrize("levels", [None, (1.0, 2.0), (-1.0, 1.0, 3.0)])
@pytest.mark.parametrize("seed", range(3))
def test_forced_choices_hold_in_every_solution_and_a_complete_one_is_a_solution(levels, seed):
    system, y, bound = problem(levels, seed)
    rows = len(y)
    nothing = np.abs(2 * y[:, 0]) <= bound
    if nothing[0]:
        pytest.skip("row 0 has no sign here")
    allowed = np.empty(len(system.quads), np.int32)
    allowed_choices(system.quads, system.signs, y, -y, 0, bound, nothing, allowed)
    value, trail = np.zeros(rows, np.int8), np.empty(rows + 1, np.int64)
    size = forced_choices(
        system.quads, system.start, system.using, allowed, nothing, True, 0, value, trail
    )
    every = solutions(system, y)
    assert len(every)
    for r in np.flatnonzero(value):
        assert nothing[r] or set(every[:, r]) == {value[r]}
    stack, tried = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int8)
    first = np.ones(rows, np.int8)
    size = complete_choices(
        system.quads,
        system.start,
        system.using,
        allowed,
        value,
        trail,
        size,
        first,
        1000,
        stack,
        tried,
    )
    assert size >= 0
    z = np.where(value < 0, -y[:, 0], y[:, 0])
    assert np.abs((system.signs * z[system.quads]).sum(axis=1)).max() < 1e-9
