"""The flattest certificates against linear programs, and the cores they prove against every other
reading of small designs."""

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from unveil.certify import core as choice
from unveil.certify import design as certificate
from unveil.certify import flattest as module
from unveil.certify.design import in_doubt
from unveil.certify.flattest import Work, flattest, is_certificate, light_columns, weighed
from unveil.certify.heavy import SLACK, even_weights

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
readings = pytest.importorskip(
    "benchmarks.readings", reason="benchmarks/ is not part of an installed package"
)


def drawn(n, m, k, seed):
    rng = np.random.default_rng([n, m, k, seed])
    members = np.unique(np.sort(np.argsort(rng.random((m, n)), axis=1)[:, :k], axis=1), axis=0)
    return members, readings.dense(members, n).astype(float)


def least_height(W, weight, i):
    """min max |v|/ω over the rows without i, by linear programming."""
    mine, others = W[:, i] > 0, np.arange(W.shape[1]) != i
    A = (W[~mine] * weight[~mine][:, None])[:, others]
    p = len(A)
    found = linprog(
        np.r_[np.zeros(p), 1],
        A_ub=np.block([[np.eye(p), -np.ones((p, 1))], [-np.eye(p), -np.ones((p, 1))]]),
        b_ub=np.zeros(2 * p),
        A_eq=np.c_[A.T, np.zeros(len(A.T))],
        b_eq=-(weight[mine] @ W[mine])[others],
        bounds=[(None, None)] * p + [(0, None)],
    )
    return found.fun


def test_what_is_flat_enough_and_what_is_not_agrees_with_linear_programs():
    decided = [0, 0]
    for k, seed in ((4, 0), (6, 1)):
        members, W = drawn(40, 84, k, seed)
        weight = even_weights(members, 40)
        for i in range(40):
            v, z = flattest(W, weight, i, Work(1e12))
            best = least_height(W, weight, i)
            if is_certificate(W, weight, i, v, 1e-6):
                decided[0] += 1
                assert best <= 1 - SLACK + 1e-9
            elif best > 1.02:
                # No v is flat: a little of z makes e_i lighter.
                unit = np.arange(40) == i
                t = unit + 1e-3 * z / np.abs(W @ z).max()
                assert weight @ np.abs(W @ t) < weight @ np.abs(W @ unit)
                decided[1] += 1
            else:
                assert best > 1 - SLACK - 0.02
    assert min(decided) > 5


def test_a_certificate_is_refused_where_one_condition_is_broken():
    members, W = drawn(40, 120, 4, 0)
    weight = even_weights(members, 40)
    v = flattest(W, weight, 3, Work(1e12))[0]
    mine = W[:, 3] > 0
    assert is_certificate(W, weight, 3, v, 1e-6)
    assert not is_certificate(W, weight, 4, v, 1e-6)
    # It fulfils the equations and is too large in one row: moved along a null vector of Wᵀ.
    free = np.linalg.svd(W[~mine].T)[2][-1]
    moved = v.copy()
    moved[~mine] += free / np.abs(free).max() * 3
    assert np.linalg.norm(W.T @ (moved - v)) < 1e-9
    assert not is_certificate(W, weight, 3, moved, 1e-6)
    # It does not fulfil them.
    short = v.copy()
    short[np.flatnonzero(~mine)[0]] *= 0.5
    assert not is_certificate(W, weight, 3, short, 1e-6)
    # Less on a row of i.
    less = v.copy()
    less[mine] *= 0.999
    assert not is_certificate(W, weight, 3, less, 1.0)
    assert not is_certificate(W, weight, 3, v * np.nan, 1e-6)


def test_weights_cure_what_even_ones_do_not():
    members, W = drawn(60, 120, 4, 0)
    inside = choice._thinned(members, 60, np.ones(60, bool))
    rows, names = choice.local_rows(members, inside)
    W = W[inside[members].all(axis=1)][:, inside]
    assert light_columns(rows, len(names), W, even_weights(rows, len(names)), Work(1e12))
    assert choice._flat_core(members, inside).sum() >= 50


def test_two_vectors_that_are_almost_always_together_do_not_stay_together():
    """0 and 1 share 30 rows and have few without the other: e_0 − e_1 is lighter than both, with
    all weights that are tried."""
    members, _ = drawn(40, 200, 4, 0)
    rng = np.random.default_rng(0)
    other = members[members.min(axis=1) > 1]
    alone = [
        members[(members == i).any(axis=1) & (members != 1 - i).all(axis=1)][:4] for i in (0, 1)
    ]
    both = [[0, 1, *(rng.choice(38, 2, replace=False) + 2)] for _ in range(30)]
    members = np.unique(np.sort(np.concatenate([other, *alone, both]), axis=1), axis=0)
    found = weighed(members, 40, Work(1e12))
    assert not found.proved
    assert found.blamed in (0, 1)


def test_work_is_bounded_and_a_vector_in_all_rows_is_no_crash():
    members, _ = drawn(60, 120, 6, 0)
    assert not weighed(members, 60, Work(0.0)).proved
    everywhere = np.array([[0, *pair] for pair in combinations(range(1, 8), 2)])
    assert not weighed(everywhere, 8, Work(1e12)).proved


@pytest.fixture
def flat_only(monkeypatch):
    """Neither the shortest v nor the enumeration of columns: all is left to the flattest."""

    def none(members, n, weight, floor, repeats):
        return np.zeros(n, bool), np.zeros(len(members))

    for place in (choice, module):
        monkeypatch.setattr(place, "whole_columns_heavy", none)
    monkeypatch.setattr(certificate, "SMALL", 0)


def wrong_designs(signed):
    """Small designs of which something is certain though another reading has it not."""
    wrong = 0
    for n, k in ((7, 3), (8, 4)):
        for seed in range(8):
            m = int(n * (1.3 + 0.3 * seed))
            members = readings.design(n, m, k, np.random.default_rng([n, k, seed]))
            if readings.full_rank(members, n):
                passed = ~in_doubt(members, n, signed=signed).doubt
                if passed.any():
                    found = readings.other_readings(members, n, signed=signed, most=30_000)[1]
                    wrong += readings.missed(found, passed)
    return wrong


@pytest.mark.usefixtures("flat_only")
@pytest.mark.parametrize("signed", [True, False])
def test_no_other_reading_is_missed(signed):
    assert wrong_designs(signed) == 0


@pytest.mark.usefixtures("flat_only")
def test_without_its_conditions_readings_would_be_missed(monkeypatch):
    """First without heavy fractions, then without certificates too."""
    monkeypatch.setattr(module, "lightest_fraction", lambda W, weight, k, g, enough: (np.inf, g))
    fractions = wrong_designs(False)
    monkeypatch.setattr(module, "is_certificate", lambda *arguments: True)
    assert 0 < fractions < wrong_designs(False)


@pytest.mark.usefixtures("flat_only")
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("n", "k", "m"), [(12, 3, 60), (14, 3, 56), (16, 3, 64), (20, 4, 60)])
def test_what_is_proved_is_what_enumeration_of_all_columns_proves(n, k, m, signed, monkeypatch):
    certain = 0
    for seed in range(4):
        members, _ = drawn(n, m, k, seed)
        passed = ~in_doubt(members, n, signed=signed).doubt
        with monkeypatch.context() as patch:
            patch.setattr(certificate, "SMALL", 40)
            patch.setattr(certificate, "core", lambda rows, n, among, repeats: np.zeros(n, bool))
            assert not (passed & in_doubt(members, n, signed=signed).doubt).any(), seed
        certain += passed.sum()
    assert certain >= n


def structured():
    """Designs with other readings that are known for it."""
    n, triples = 8, np.array(list(combinations(range(8), 3)))
    yield "six met in 0 or 3", np.array([r for r in triples if (r < 6).sum() in (0, 3)]), n
    fours = np.array(list(combinations(range(8), 4)))
    yield "four met in 0, 2, 4", fours[(fours < 4).sum(axis=1) % 2 == 0], n
    yield "complements fit", np.array(list(combinations(range(6), 3))), 6
    yield "one in all rows", np.array([[0, *p] for p in combinations(range(1, 7), 2)]), 7
    yield "cyclic", np.sort([[i, (i + 1) % 7, (i + 3) % 7] for i in range(7)], axis=1), 7
    yield (
        "cyclic, two differences",
        np.sort(
            [[i, (i + a) % 7, (i + b) % 7] for i in range(7) for a, b in ((1, 3), (1, 2))], axis=1
        ),
        7,
    )
    yield (
        "two blocks",
        np.array([r for r in combinations(range(8), 3) if max(r) < 5 or min(r) > 2])[::2],
        8,
    )
    yield "together", np.array([r for r in triples if ((r == 0) | (r == 1)).sum() != 1]), n


@pytest.mark.usefixtures("flat_only")
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("name", "members", "n"), list(structured()), ids=lambda v: str(v)[:12])
def test_structured_designs_fool_nothing(name, members, n, signed):
    passed = ~in_doubt(members, n, signed=signed, own_rows=True).doubt
    if passed.any():
        assert readings.full_rank(members, n), name
        found = readings.other_readings(members, n, signed=signed)[1]
        assert not readings.missed(found, passed), name


def test_two_encodings_per_vector():
    """The frontier: n = 100, m = 2n, at least 95 % of the vectors that are used twice."""
    for k in (4, 6):
        members, W = drawn(100, 200, k, 5)
        twice = W.sum(axis=0) >= 2
        doubt = in_doubt(members, 100, signed=False, own_rows=True).doubt
        assert (~doubt & twice).sum() >= 0.95 * twice.sum()
