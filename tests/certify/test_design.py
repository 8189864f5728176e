"""The certificate of uniqueness against every other reading of small designs
(`benchmarks/readings.py`)."""

import sys
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from unveil.certify.design import in_doubt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
readings = pytest.importorskip(
    "benchmarks.readings", reason="benchmarks/ is not part of an installed package"
)
basis_rows, compare, dense, design = (
    readings.basis_rows,
    readings.compare,
    readings.dense,
    readings.design,
)
full_rank, never_lost, other_readings = (
    readings.full_rank,
    readings.never_lost,
    readings.other_readings,
)

CELLS = [(4, 2), (5, 2), (6, 2), (7, 2), (5, 3), (6, 3), (7, 3)]


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("n", "k"), CELLS)
def test_no_reading_is_missed_and_few_are_refused(n, k, signed):
    dense_unique = dense_refused = 0
    for seed in range(8):
        m = n + (2 * n + 2) * seed // 7
        done = compare(n, m, k, signed, [n, k, seed])
        if done is None:
            continue
        wrong, unique, refused = done
        assert wrong == 0, (n, m, k, signed, seed)
        if m >= 3 * n - 1:
            dense_unique, dense_refused = dense_unique + unique, dense_refused + refused
    assert dense_refused <= 0.05 * dense_unique


def readings_by_rows(members, n, *, signed):
    """The oracle's oracle: all W' by the subsets of n independent rows, values of x' by solving,
    all other rows by looking."""
    W = dense(members, n)
    k, basis = members.shape[1], basis_rows(W)
    x = np.random.default_rng(1).integers(1, 10**6, n)
    y = W @ x
    subsets = np.array([[i in s for i in range(n)] for s in combinations(range(n), k)], int)
    signs = [(1,) * n] if signed else [s for s in product((1, -1), repeat=n) if s[0] == 1]
    lost = np.zeros(n, bool)
    for choice in product(range(len(subsets)), repeat=n):
        B = subsets[list(choice)]
        det = round(np.linalg.det(B))
        if not det:
            continue
        adjugate = np.rint(np.linalg.inv(B) * det).astype(np.int64)
        for sign in signs:
            z = adjugate @ (np.array(sign) * y[basis])  # det times x'
            sums = set((subsets @ z).tolist())
            if all(v * det in sums or (not signed and -v * det in sums) for v in y.tolist()):
                plus, minus = np.isin(x * det, z), np.isin(-x * det, z)
                lost |= ~(plus if signed or plus.sum() >= minus.sum() else minus)
    return ~lost


@pytest.mark.parametrize(
    ("n", "m", "k", "signed"), [(4, 5, 2, True), (4, 5, 2, False), (4, 6, 2, True), (4, 4, 3, True)]
)
def test_the_oracle_agrees_with_all_subsets_of_rows(n, m, k, signed):
    checked = 0
    for seed in range(6):
        members = design(n, m, k, np.random.default_rng(seed))
        if full_rank(members, n):
            complete, found = other_readings(members, n, signed=signed, more=False)
            assert complete
            assert (never_lost(found, n) == readings_by_rows(members, n, signed=signed)).all()
            checked += 1
    assert checked


# Designs with a known other reading. Each is what one condition is there for: without the condition
# it passes.


def changed(members, T, *, signed):
    """Vectors that the reading W' = D·W·T does not hold; asserts that it is one."""
    n, k = len(T), members.shape[1]
    V = dense(members, n) @ T
    D = np.sign(V.sum(axis=1))
    assert np.allclose(D[:, None] * V, np.rint(D[:, None] * V))
    W = np.rint(D[:, None] * V)
    assert set(np.unique(W)) <= {0, 1}
    assert (W.sum(axis=1) == k).all()
    assert np.linalg.matrix_rank(T) == n
    assert not signed or (D == 1).all()
    unit = (np.abs(T) > 1e-9).sum(axis=1) == 1
    plus, minus = unit & (T.sum(axis=1) > 0), unit & (T.sum(axis=1) < 0)
    return ~(plus if plus.sum() >= minus.sum() else minus)


def complements(n, inside, half):
    """x'_i = Σ_U x / half − x_i on the 2·half vectors U, given as T = x / x'."""
    T = np.eye(n)
    T[np.ix_(inside, inside)] = 1 / half - np.eye(len(inside))
    return T


def drawn(rng, *parts):
    """Rows: `count` times so many of this range and so many of that."""
    rows = []
    for count, picks in parts:
        for _ in range(count):
            rows.append(
                np.sort(
                    np.concatenate([rng.choice(np.arange(*r), c, replace=False) for c, r in picks])
                )
            )
    return np.unique(np.array(rows), axis=0)


def six_of_sixteen():
    return drawn(
        np.random.default_rng(0), (60, [(3, (0, 6)), (1, (6, 16))]), (90, [(4, (6, 16))])
    ), 16


def four_of_fourteen():
    rows = drawn(
        np.random.default_rng(0),
        (1, [(4, (0, 4))]),
        (60, [(2, (0, 4)), (2, (4, 14))]),
        (90, [(4, (4, 14))]),
    )
    return rows, 14


def all_of(n, k):
    return np.array(list(combinations(range(n), k))), n


def pendant(k, rng_seed=0):
    """Forty vectors well mixed, and number 40 in two rows."""
    rng = np.random.default_rng(rng_seed)
    rows = drawn(rng, (320, [(k, (0, 40))]))
    return rows, rng


def test_six_vectors_met_in_none_or_three():
    members, n = six_of_sixteen()
    lost = changed(members, complements(n, np.arange(6), 3), signed=True)
    result = in_doubt(members, n, signed=True)
    assert lost.sum() == 6
    assert result.doubt[lost].all()
    assert not result.doubt[~lost].any()


def test_four_vectors_met_in_none_two_or_four():
    members, n = four_of_fourteen()
    lost = changed(members, complements(n, np.arange(4), 2), signed=True)
    result = in_doubt(members, n, signed=True)
    assert result.doubt[lost].all()
    assert not result.doubt[~lost].any()


def test_twice_as_many_vectors_as_are_mixed():
    members, n = all_of(8, 4)
    assert changed(members, complements(n, np.arange(8), 4), signed=True).all()
    assert in_doubt(members, n, signed=True).doubt.all()


def test_one_vector_more_than_twice_as_many_and_hidden_signs():
    """x'_j = x_j − c, c = Σ_(j ≠ i) x_j / k, x'_i = x_i + (k−1)c: rows without i become their
    complements, with sign −1."""
    members, n = all_of(7, 3)
    S = np.eye(7)
    S[:6, :6] -= 1 / 3
    S[6, :6] = 2 / 3
    assert changed(members, np.linalg.inv(S), signed=False).any()
    assert in_doubt(members, n, signed=False).doubt.all()
    assert not in_doubt(members, n, signed=True).doubt.any()


def test_two_rows_and_hidden_signs():
    """The mirror: x'_40 = −(x_40 + x_0 + x_1), rows {40, 0} and {40, 1} change places."""
    members, _ = pendant(2)
    members = np.concatenate([members, [[0, 40], [1, 40]]])
    S = np.eye(41)
    S[40] = 0
    S[40, [0, 1, 40]] = -1
    lost = changed(members, np.linalg.inv(S), signed=False)
    assert lost.tolist() == [False] * 40 + [True]
    result = in_doubt(members, 41, signed=False)
    assert (result.doubt == lost).all()
    assert "only 2 others" in result.reasons[40]
    assert not in_doubt(members, 41, signed=True).doubt.any()


def test_a_member_that_all_rows_share():
    """x'_40 = x_40 + x_0 − x_9: in rows {40, 0, ...} number 9 takes the place of 0."""
    members, _ = pendant(3)
    members = np.concatenate([members, [[0, 1, 40], [0, 2, 40], [0, 3, 40]]])
    S = np.eye(41)
    S[40, [0, 9]] = 1, -1
    lost = changed(members, np.linalg.inv(S), signed=True)
    for signed in (True, False):
        result = in_doubt(members, 41, signed=signed)
        assert (result.doubt == lost).all()
        assert "also hold vector 0" in result.reasons[40]


def glued():
    """14 vectors in pairs of all kinds, and a bipartite part on number 0 alone: its rows may change
    sign together."""
    rng = np.random.default_rng(3)
    left, right = np.arange(14, 20), np.arange(20, 31)
    pairs = [[0, b] for b in right] + [
        [a, b] for a in left for b in rng.choice(right, 7, replace=False)
    ]
    return np.sort(np.concatenate([all_of(14, 2)[0], pairs]), axis=1), 31


def test_a_part_whose_rows_may_change_sign_together():
    members, n = glued()
    S = np.eye(n)  # rows of the part become −(x_a + x_b): x'_b = −x_b − 2x_0, x'_a = −x_a + 2x_0
    S[14:, 14:] *= -1
    S[20:, 0], S[14:20, 0] = -2, 2
    lost = changed(members, np.linalg.inv(S), signed=False)
    assert lost.tolist() == [False] * 14 + [True] * 17
    assert (in_doubt(members, n, signed=False).doubt == lost).all()


@pytest.mark.parametrize("signed", [True, False])
def test_a_reading_with_one_vector_more(signed):
    """Two halves of h vectors, all pairs but one: that pair, as one vector, makes a reading of
    2h − 1 vectors, the only one, and not one of them is true."""
    for h in (4, 5):
        rows = np.array([(a, h + b) for a in range(h) for b in range(h) if a or b])
        rows[rows == h] = 0
        rows[rows > h] -= 1
        assert in_doubt(rows, 2 * h - 1, signed=signed).doubt.all()
    complete, found = other_readings(np.sort(rows), 9, signed=True, more=False)
    assert complete
    assert never_lost(found, 9).all()


def test_null_vectors():
    members = np.concatenate([all_of(9, 2)[0], [[9, 10], [10, 11], [11, 12], [9, 12]]])
    strict = in_doubt(members, 13, signed=True)
    assert strict.doubt.all()
    assert "do not determine" in strict.reasons[9]
    assert "saved" in strict.reasons[0]
    own = in_doubt(members, 13, signed=True, own_rows=True)
    assert own.doubt.tolist() == [False] * 9 + [True] * 4


def test_used_once_never_and_twice_the_same_row():
    members, _ = pendant(2)
    members = np.concatenate([members, members[:5], [[3, 40]], [[7, 7]]])
    result = in_doubt(members, 42, signed=True)
    assert result.doubt.tolist() == [False] * 40 + [True] * 2
    assert result.reasons[40] == "appears in one encoding only"
    assert result.reasons[41] == "no encoding uses it"


@pytest.mark.parametrize("k", [2, 3])
def test_rows_may_hold_a_vector_twice(k):
    members, _ = pendant(k)
    for signed in (True, False):
        assert not in_doubt(members, 40, signed=signed, repeats=True).doubt.any()


def test_one_vector_per_row():
    members = np.array([[0], [1], [2]])
    assert not in_doubt(members, 3, signed=True).doubt.any()
    assert in_doubt(members, 3, signed=False).doubt.all()


def test_public_vectors_that_may_change_places():
    members, rng = pendant(2)
    members = np.concatenate([members, [[0, 40], [1, 40], [2, 40], [3, 40]]])
    public = np.sort(np.array([rng.choice(30, 2, replace=False) for _ in members]), axis=1)
    public[-4:] = [[5, 11], [5, 12], [5, 13], [5, 14]]  # x'_40 = x_40 + w(P_5 − P_29)
    assert in_doubt(members, 41, signed=True, public=public).doubt.tolist() == [False] * 40 + [True]
    public[-1] = [4, 14]
    for signed in (True, False):
        assert not in_doubt(members, 41, signed=signed, public=public).doubt.any()


def twisted():
    """Three vectors on number 0, three on number 1, all pairs between them: x_a + x_0 − x_1 and x_b
    − x_0 + x_1 fit as well."""
    a, b = np.arange(40, 43), np.arange(43, 46)
    pairs = [[0, i] for i in a] + [[1, j] for j in b] + [[i, j] for i in a for j in b]
    S = np.eye(46)
    S[a, 0], S[a, 1], S[b, 0], S[b, 1] = 1, -1, -1, 1
    return np.concatenate([pendant(2)[0], pairs]), np.linalg.inv(S)


def test_a_part_that_hangs_on_two_vectors():
    members, T = twisted()
    for signed in (True, False):
        assert (
            in_doubt(members, 46, signed=signed).doubt == changed(members, T, signed=True)
        ).all()


MUTATIONS = {
    "classes": ("unveil.certify.design.alike", lambda members, n, rng: np.zeros(n, int)),
    "fractions": ("unveil.certify.core.fractions_heavy", lambda *_: True),
    "halves": ("unveil.certify.core.disjoint_odd_walks", lambda rows, n, enough: enough),
    "heavy pairs": ("unveil.certify.core.heavy_pairs", lambda rows, n, chosen: chosen),
    "heavy": (
        "unveil.certify.core.whole_columns_heavy",
        lambda rows, n, *_: (np.ones(n, bool), np.zeros(len(rows))),
    ),
    "rank": ("unveil.certify.design._touched", lambda members, n, free: np.zeros(n, bool)),
    "shared": ("unveil.certify.design._in_all", lambda new, others, rows_of, n: np.zeros(n, bool)),
}


def broken(name):
    """Whether some vector passes that another reading does not hold."""
    if name == "classes":
        rng = np.random.default_rng(0)
        members, n = drawn(rng, (60, [(2, (0, 4)), (1, (4, 60))]), (500, [(3, (4, 60))])), 60
        lost = changed(members, complements(n, np.arange(4), 2), signed=True)
        return (lost & ~in_doubt(members, n, signed=True).doubt).any()
    if name in ("fractions", "halves"):
        k = 2 if name == "halves" else 3
        return not in_doubt(*all_of(2 * k, k), signed=True).doubt.all()
    if name == "rank":
        members = np.concatenate([all_of(9, 2)[0], [[9, 10], [10, 11], [11, 12], [9, 12]]])
        return not in_doubt(members, 13, signed=True).doubt.all()
    if name == "shared":
        members = np.concatenate([pendant(3)[0], [[0, 1, 40], [0, 2, 40], [0, 3, 40]]])
        return not in_doubt(members, 41, signed=True).doubt[40]
    if name == "heavy":
        members = np.concatenate([pendant(3)[0], [[0, 1, 40], [0, 2, 40], [0, 3, 40]]])
        return not in_doubt(members, 41, signed=True).doubt[40]
    members, T = twisted()
    return (changed(members, T, signed=True) & ~in_doubt(members, 46, signed=True).doubt).any()


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_every_condition_is_needed(name, monkeypatch):
    assert not broken(name)
    monkeypatch.setattr(*MUTATIONS[name])
    assert broken(name)
