"""Starts from the pair matrix: greedy growth against a plain twin, and the promises about what is
returned."""

import numpy as np
import pytest

from unveil.encode import simulate
from unveil.records import Scheme
from unveil.supports.folded.screen import pixel_weights, screen
from unveil.supports.folded.starts import start_supports
from unveil.supports.folded.survey import survey_public


def plain(y, P, pool, k, count, most_shared):
    z = pixel_weights(y[None])[0].astype(np.float64)
    G = P[pool].astype(np.float64)
    M = (G * z) @ G.T
    grown = []
    for i in range(len(pool)):
        S = [i]
        while len(S) < k:
            gain = np.diag(M) + 2 * M[S].sum(axis=0)
            gain[S] = -np.inf
            S.append(int(gain.argmax()))
        grown.append((M[np.ix_(S, S)].sum(), S))
    out = []
    for _, S in sorted(grown, key=lambda g: -g[0]):
        if all(len(set(S) & set(T)) <= most_shared for T in out):
            out.append(S)
    return [set(pool[S].tolist()) for S in out[:count]]


@pytest.mark.parametrize(("k", "most_shared"), [(1, 0), (2, 1), (3, 1), (4, 2), (6, 5)])
def test_starts_equal_the_plain_twin(k, most_shared):
    sim = simulate(Scheme(2, k), 10, n_public=80, m=12, d=400, rng=k)
    Y, P = np.abs(sim.encodings.values), sim.public
    pool = screen(Y, survey_public(P, 64), 30)
    starts = start_supports(Y, P, pool, k, 5, most_shared, 1 << 30)
    for t in range(12):
        expected = plain(Y[t], P, pool[t], k, 5, most_shared)
        found = [set(S.tolist()) for S in starts[t] if S[0] >= 0]
        assert found == expected


def test_where_there_are_fewer_the_rest_is_minus_one_and_blocks_do_not_matter():
    sim = simulate(Scheme(2, 3), 10, n_public=5, m=6, d=200, rng=0)
    Y, P = np.abs(sim.encodings.values), sim.public
    pool = screen(Y, survey_public(P, 64), 5)
    starts = start_supports(Y, P, pool, 3, 20, 0, 1 << 30)
    assert (starts[:, 0] >= 0).all()
    assert (starts[:, -1] == -1).all()
    np.testing.assert_array_equal(start_supports(Y, P, pool, 3, 20, 0, 1), starts)
