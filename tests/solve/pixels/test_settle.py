"""Every pixel from a start on a few: names, rows that say something, and what comes of a start that
is partly wrong."""

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.solve.pixels.settle import settle


def start(k, n=12, m=90, d=120, seed=0):
    sim = simulate(Scheme(k), n, m=m, d=d, rng=seed)
    return sim, sim.encodings.magnitudes() * np.float32(np.sqrt(k)), sim.selection.private.copy()


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("k", [2, 3])
def test_wrong_rows_are_dropped_and_come_back_with_the_right_subset(k):
    sim, y, members = start(k, m=240)
    members[0] = np.arange(k)
    out = settle(y, None, np.arange(240), members, sim.private[:, :30], np.random.default_rng(0))
    assert out is not None
    np.testing.assert_array_equal(np.sort(out.rows), np.arange(240))
    found = np.sort(out.members[np.argsort(out.rows)], axis=1)
    np.testing.assert_array_equal(found, sim.selection.private)
    assert out.solution.solved.all()
    assert not out.singles
    assert not len(out.repeats[0])


def test_vectors_left_out_of_the_start_are_added_however_they_are_paired():
    sim, y, members = start(2, n=14, m=140)
    rows = np.flatnonzero(
        (members < 11).all(axis=1)
    )  # three vectors unknown, pairs of two of them too
    out = settle(y, None, rows, members[rows], sim.private[:11], np.random.default_rng(0))
    assert out is not None
    assert len(out.solution.values) == 14
    np.testing.assert_array_equal(np.sort(out.rows), np.arange(140))


def test_an_alias_of_known_vectors_does_not_stand_in_their_way():
    """Two encodings that use x_3 twice look like encodings of 2·x_3 − x_5 and x_5."""
    sim, y, members = start(3, n=12, m=120, d=200)
    X = sim.private.astype(float)
    more = np.abs([2 * X[3] + X[1], 2 * X[3] + X[2]]).astype(np.float32)
    rows, theirs = np.arange(122), np.vstack([members, [[12, 5, 1], [12, 5, 2]]])
    x = np.vstack([X, 2 * X[3] - X[5]])[:, :60].astype(np.float32)
    out = settle(np.vstack([y, more]), None, rows, theirs, x, np.random.default_rng(0))
    assert out is not None
    assert len(out.solution.values) == 12
    np.testing.assert_array_equal(np.sort(out.rows), np.arange(120))
    np.testing.assert_array_equal(out.repeats[0], [120, 121])
    np.testing.assert_array_equal(np.sort(out.repeats[1], axis=1), [[1, 3, 3], [2, 3, 3]])


def test_encodings_of_one_vector_twice_do_not_come_back_as_a_new_vector_again_and_again():
    """Two encodings that use x_0 twice agree on the vector they miss: it is x_0, which is known."""
    sim, y, members = start(3, n=12, m=120, d=200)
    X = sim.private.astype(float)
    more = np.abs([2 * X[0] + X[1], 2 * X[0] + X[6]]).astype(np.float32)
    for rounds in (5, 6):
        out = settle(
            np.vstack([y, more]),
            None,
            np.arange(120),
            members,
            X[:, :60].astype(np.float32),
            rng(),
            rounds=rounds,
        )
        assert out is not None
        assert len(out.solution.values) == 12
        np.testing.assert_array_equal(out.repeats[0], [120, 121])


def test_nothing_holds_when_all_subsets_are_wrong():
    sim, y, members = start(2)
    members = np.random.default_rng(1).permuted(members, axis=0)
    out = settle(y, None, np.arange(90), members, sim.private[:, :30], np.random.default_rng(0))
    assert out is None or not out.solution.solved.all()
