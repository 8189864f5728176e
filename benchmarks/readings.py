"""Every other reading of a small design, by exhaustive search in exact arithmetic: the oracle of
`unveil.certify`.

It knows W' = D·W·T and nothing else: T by its columns, D by the sums of its rows.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
from numba import njit

import unveil
from unveil.certificate import certify


def design(n, m, k, rng):
    """m different rows of k of n vectors, all vectors used if there are rows enough."""
    rows = np.array(list(combinations(range(n), k)))
    return rows[np.sort(rng.choice(len(rows), min(m, len(rows)), replace=False))]


def dense(members, n):
    W = np.zeros((len(members), n), int)
    np.put_along_axis(W, np.asarray(members), 1, axis=1)
    return W


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


def certified(members, n, k, signed, seed, d=60):
    """(n,) what `certify` calls verified of Gaussian vectors mixed by these rows."""
    X = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    scheme = unveil.Scheme(k, 0, "convex", "kept" if signed else "absolute")
    Y = X[members].mean(axis=1)
    encodings = unveil.Encodings(Y if signed else np.abs(Y), scheme, pixel_rms=None)
    return certify(encodings, X, members).verified


def compare(n, m, k, signed, seed):
    """(missed, truly unique vectors, of these refused) of one random design; None without full rank
    or past the search."""
    members = design(n, m, k, np.random.default_rng(seed))
    if not full_rank(members, n):
        return None
    passed = certified(members, n, k, signed, seed)
    complete, found = other_readings(members, n, signed=signed)
    wrong = missed(found, passed)
    if not complete:
        return int(wrong), 0, 0
    unique = never_lost(found, n)
    return int(wrong), int(unique.sum()), int((unique & ~passed).sum())


def columns_with_other_solutions(n, m, k, rng, *, fine=6, odd=10):
    """(members, X, V): X is the truth, V a claim that reproduces all magnitudes, each column of it
    any solution of |W·v| = |W·x|, found by trying all signs at n independent rows. `fine` columns
    in general position, `odd` ones with zeros, ties, few levels, or all of these. None without full
    rank."""
    members = design(n, 4 * m if rng.random() < 0.5 else m, k, rng)
    if len(members) > m:  # two groups, which share k − 1 records
        half = (n + k - 1) // 2
        apart = (members < half).all(axis=1) | (members >= half - k + 1).all(axis=1)
        members = members[apart]
    W = dense(members, n)
    if np.linalg.matrix_rank(W) < n:
        return None
    X = rng.standard_normal((n, fine + odd))
    for p in range(fine, fine + odd):
        kind = p % 5
        some = rng.random(n) < rng.choice([0.15, 0.4, 0.8])
        if kind == 0:
            X[some, p] = 0
        elif kind == 1:
            X[some, p] = X[rng.integers(n), p]
        elif kind == 2:
            X[:, p] = rng.integers(-1, 2, n)
        elif kind == 3:
            X[some, p] = rng.choice([-1.0, 0.0, 1.0], int(some.sum()))
        else:
            X[some, p] *= 0
            X[rng.random(n) < 0.4, p] = 0.7
    basis = basis_rows(W)
    back = np.linalg.inv(W[basis])
    signs = np.array(list(product((-1.0, 1.0), repeat=n)))
    V = X.copy()
    for p in range(X.shape[1]):
        y = np.abs(W @ X[:, p])
        found = (signs * y[basis]) @ back.T
        fits = found[(np.abs(np.abs(found @ W.T) - y) < 1e-9).all(axis=1)]
        V[:, p] = fits[rng.integers(len(fits))]
    return members, X.astype(np.float32), V.astype(np.float32)
