"""The certificate of uniqueness against every other reading of small designs, by exhaustive search
in exact arithmetic."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from numba import njit

from unveil.certify.design import in_doubt


def design(n, m, k, rng):
    """m different rows of k of n vectors, all vectors used if there are rows enough."""
    rows = np.array(list(combinations(range(n), k)))
    return rows[np.sort(rng.choice(len(rows), min(m, len(rows)), replace=False))]


def dense(members, n):
    W = np.zeros((len(members), n), int)
    np.put_along_axis(W, np.asarray(members), 1, axis=1)
    return W


# The oracle. It knows W' = D·W·T and nothing else: T by its columns, D by the sums of its rows.


def inverse(B):
    """Of an invertible integer matrix, in fractions."""
    n = len(B)
    A = [
        [Fraction(int(v)) for v in row] + [Fraction(int(i == j)) for j in range(n)]
        for i, row in enumerate(B)
    ]
    for c in range(n):
        p = next(r for r in range(c, n) if A[r][c])
        A[c], A[p] = A[p], A[c]
        A[c] = [v / A[c][c] for v in A[c]]
        for r in range(n):
            if r != c and A[r][c]:
                A[r] = [v - A[r][c] * w for v, w in zip(A[r], A[c], strict=True)]
    return [row[n:] for row in A]


def basis_rows(W):
    chosen = []
    for r in range(len(W)):
        if np.linalg.matrix_rank(W[[*chosen, r]]) > len(chosen):
            chosen.append(r)
    return chosen


def images(W, basis, values):
    """t, W t for all t whose values at the basis rows are among `values`, and at all others too."""
    scale = 1
    inv = inverse(W[basis])
    for row in inv:
        for v in row:
            scale = np.lcm(scale, v.denominator)
    whole = np.array([[int(v * int(scale)) for v in row] for row in inv])
    choices = np.array(list(product(values, repeat=len(basis))))
    t = choices @ whole.T
    wt = t @ W.T
    fits = np.isin(wt, [v * scale for v in values]).all(axis=1)
    return t[fits], wt[fits] // scale, int(scale)


def other_readings(members, n, *, signed, more=True, most=60_000):
    """(whether the search came to its end, all pairs (rows of T that are +1 once, rows that are −1
    once) of readings). more: readings of up to 2n vectors count, not of n alone."""
    W = dense(members, n)
    k, basis = members.shape[1], basis_rows(W)
    assert len(basis) == n
    found = []
    # D·W·T has k ones per row, so W·(T1) = kD1: D is the image of some vector, as the columns are.
    signs = (
        [np.ones(len(W), int)] if signed else [D for D in images(W, basis, (-1, 1))[1] if D[0] == 1]
    )
    for D in signs:
        t, wt, scale = images(W * D[:, None], basis, (0, 1))
        keep = wt.any(axis=1)
        codes, steps = search(t[keep], wt[keep], k, scale, 2 * n if more else n, most)
        most -= steps
        found += [
            (code >> np.arange(n) & 1 == 1, code >> (np.arange(n) + n) & 1 == 1) for code in codes
        ]
    return most > 0, found


@njit
def search(t, wt, k, scale, deep, most):
    """All choices of the columns wt (columns, rows), n to `deep`, with k ones in every row, and T
    of rank n: which rows of T are units.

    Depth first, at the row with the fewest columns left. A column may be taken again; one that was
    tried is closed to its later siblings and below.
    """
    count, m = wt.shape
    n = t.shape[1]
    need = np.full(m, k)
    closed = np.full(count, -1)
    chosen = np.full(deep + 1, -1)
    row = np.full(deep + 1, -1)
    at = np.zeros(deep + 1, np.int64)
    codes = set()
    codes.add(-1)
    depth, steps, fresh = 0, 0, True
    while steps < most:
        steps += 1
        if fresh:
            fresh = False
            row[depth] = -1
            if need.max() == 0:
                if depth >= n:
                    code = 0
                    for i in range(n):
                        single, value = 0, 0
                        for c in range(depth):
                            if t[chosen[c], i] != 0:
                                single += 1
                                value = t[chosen[c], i]
                        if single == 1 and value == scale:
                            code |= 1 << i
                        if single == 1 and value == -scale:
                            code |= 1 << (n + i)
                    if code not in codes and spans(t[chosen[:depth]]):
                        codes.add(code)
            elif depth < deep and need.max() <= deep - depth:
                fewest = count + 1
                for r in range(m):
                    if need[r] > 0:
                        options = 0
                        for c in range(count):
                            if wt[c, r] and closed[c] < 0 and (wt[c] <= need).all():
                                options += 1
                        if options < fewest:
                            fewest = options
                            row[depth] = r
                if fewest == 0:
                    row[depth] = -1
            at[depth] = 0
        elif row[depth] >= 0:
            closed[at[depth] - 1] = depth  # back from below
        c = at[depth]
        if row[depth] >= 0:
            while c < count and not (wt[c, row[depth]] and closed[c] < 0 and (wt[c] <= need).all()):
                c += 1
        else:
            c = count
        if c < count:
            at[depth] = c + 1
            chosen[depth] = c
            need -= wt[c]
            depth += 1
            fresh = True
        else:
            for j in range(count):
                if closed[j] == depth:
                    closed[j] = -1
            depth -= 1
            if depth < 0:
                break
            need += wt[chosen[depth]]
    codes.remove(-1)
    return codes, steps


@njit
def spans(T):
    """Whether the rows of T have full rank, modulo 2³¹ − 1."""
    p = 2147483647
    A = T % p
    rows, n = A.shape
    for s in range(n):
        r = s
        while r < rows and A[r, s] == 0:
            r += 1
        if r == rows:
            return False
        for c in range(n):
            A[r, c], A[s, c] = A[s, c], A[r, c]
        power, inverse, exponent = A[s, s], 1, p - 2
        while exponent:
            if exponent & 1:
                inverse = inverse * power % p
            power = power * power % p
            exponent >>= 1
        for r in range(s + 1, rows):
            f = A[r, s] * inverse % p
            for c in range(n):
                A[r, c] = (A[r, c] - f * A[s, c]) % p
    return True


def never_lost(found, n):
    """Vectors in every reading up to one sign: for each reading the larger of the two sets
    counts."""
    out = np.ones(n, bool)
    for plus, minus in found:
        out &= plus if (plus & out).sum() >= (minus & out).sum() else minus
    return out


def missed(found, passed):
    """Whether a reading has not all that passed, with one sign."""
    return any((passed & ~plus).any() and (passed & ~minus).any() for plus, minus in found)


def full_rank(members, n):
    return np.linalg.matrix_rank(dense(members, n)) == n


def compare(n, m, k, signed, seed):
    """(missed, truly unique vectors, of these refused) of one random design; None without full rank
    or past the search."""
    members = design(n, m, k, np.random.default_rng(seed))
    result = in_doubt(members, n, signed=signed)
    if not full_rank(members, n):
        assert result.doubt.all() or len(np.unique(members)) < n
        return None
    complete, found = other_readings(members, n, signed=signed)
    wrong = missed(found, ~result.doubt)
    if not complete:
        return int(wrong), 0, 0
    unique = never_lost(found, n)
    return int(wrong), int(unique.sum()), int((unique & result.doubt).sum())


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
    "heavy": ("unveil.certify.core.whole_columns_heavy", lambda rows, n, *_: np.ones(n, bool)),
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
