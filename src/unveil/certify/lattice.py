"""Which fractions can the columns of another reading have? Exact, over all primes at once. See
`docs/certificate.md`, step 2.

Another reading is W' = D·W·T. A column t of T has W t in integers. All such t are a lattice, whose
dual is the lattice of the rows of W: t_i − t_j is an integer for every t if and only if e_i − e_j
is an integer combination of rows. That is an equivalence of vectors, and `alike` returns its
classes. On one class with a row inside it every t is a/k + integers, one a.

  1. Rows that differ in one vector make the two vectors alike. This is repeated with classes in
  place of vectors.
  2. If classes are left: the group Z^n / rows has an order that divides every n×n minor. The
  greatest common divisor g of a few
     minors is k: then all are alike. Else only prime powers of g matter, and the kernel of W modulo
     each is computed.

Minors come from determinants modulo 31-bit primes, as many as Hadamard's bound asks for: O(n³)
each.
"""

from __future__ import annotations

from functools import cache
from math import gcd, log2

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

Index = NDArray[np.int64]

LARGEST = 600
"""Classes up to which minors are computed: a minor of this size takes some seconds."""

MINORS = 6
"""Random minors that are tried. Two have a common factor beyond k with probability about 0.4, six
with less than 0.02."""

PRIMES = 60
"""Moduli of a determinant: enough for Hadamard's bound at `LARGEST`."""

WORD = 2**62
"""The largest modulus: whole numbers of 63 bits hold what is left of a division by it."""

TRIAL = 10_000
"""Primes by which g is divided. A larger factor common to six minors has not been seen; it would
leave everything in doubt."""


def alike(members: Index, n: int, rng: np.random.Generator) -> Index:
    """Class of each vector: e_i − e_j is an integer combination of the rows for i, j of one class.
    W has full column rank."""
    group = _merged(members, n)
    count = int(group.max()) + 1
    if count == 1 or count > LARGEST:
        return group
    k = members.shape[1]
    W = np.zeros((len(members), count), np.int64)
    np.add.at(W, (np.repeat(np.arange(len(members)), k), group[members].ravel()), 1)
    W = np.unique(W, axis=0)
    g = 0
    for _ in range(MINORS):
        g = gcd(g, _minor(W, k, rng))
        if g == k:
            return np.zeros(n, np.int64)
    powers, rest = _factors(g)
    # Coordinates must fit into 63 bits; else nothing more is said to be alike, which is doubt.
    if rest > 1 or g == 0 or any(p**e > WORD for p, e in powers):
        return group
    keys = [np.zeros((count, 1), np.int64)] + [kernel_modulo(W, p, e) for p, e in powers]
    merged = np.unique(np.concatenate(keys, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    return np.asarray(merged[group], dtype=np.int64)


def _merged(members: Index, n: int) -> Index:
    """Step 1: rows that agree but for one member, as multisets of classes, join the classes of that
    member."""
    k = members.shape[1]
    group = np.arange(n)
    while True:
        # A class that grew makes more rows agree: until none does.
        rows = np.sort(group[members], axis=1)
        left, out = [], []
        for j in range(k):
            left.append(np.delete(rows, j, axis=1))
            out.append(rows[:, j])
        rest, last = np.concatenate(left), np.concatenate(out)
        order = np.lexsort(rest.T)
        same = (rest[order[1:]] == rest[order[:-1]]).all(axis=1)
        a, b = last[order[1:]][same], last[order[:-1]][same]
        joins = sparse.coo_array((np.ones(len(a), np.int8), (a, b)), shape=(n, n))
        merged = connected_components(joins, directed=False)[1].astype(np.int64)[group]
        new = np.unique(merged, return_inverse=True)[1].reshape(-1)
        if (a == b).all():
            return np.asarray(new, dtype=np.int64)
        group = new


def _minor(W: Index, k: int, rng: np.random.Generator) -> int:
    """|det| of as many random rows as there are columns, independent if such are found; 0 if
    not."""
    n = W.shape[1]
    primes = _primes()
    chosen = _independent(W[rng.permutation(len(W))], primes[0])
    if len(chosen) < n:
        return 0
    # Hadamard: rows of squared length at most k². The sign costs one bit more.
    bits = 0.5 * float(np.log2((chosen.astype(float) ** 2).sum(axis=1)).sum()) + 2
    # The determinant modulo enough primes, put together by the Chinese remainder theorem: exact.
    value, modulus = 0, 1
    needed = int(bits / log2(primes[-1])) + 1
    if needed > len(primes):
        return 0
    for p in primes[:needed]:
        r = int(_determinant(chosen.copy(), p))
        value += modulus * ((r - value) * pow(modulus, -1, p) % p)
        modulus *= p
    return min(value, modulus - value)


@cache
def _primes() -> list[int]:
    """The largest primes below 2³¹: products of two residues fit into 63 bits. `PRIMES` of
    them."""
    out: list[int] = []
    candidate = 2**31 - 1
    while len(out) < PRIMES:
        # Fermat's test first, since it is cheap and most candidates fail it.
        if all(pow(a, candidate - 1, candidate) == 1 for a in (2, 3, 5, 7)) and _is_prime(
            candidate
        ):
            out.append(candidate)
        candidate -= 2
    return out


def _is_prime(value: int) -> bool:
    """Miller–Rabin with the bases that decide every number below 3·10⁹."""
    odd, twos = value - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7):
        x = pow(base, odd, value)
        if x in (1, value - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % value
            if x == value - 1:
                break
        else:
            return False
    return True


def _factors(g: int) -> tuple[list[tuple[int, int]], int]:
    """(primes below `TRIAL` with their exponents, what is left of g)."""
    out = []
    for p in range(2, TRIAL):
        if g and g % p == 0:
            e = 0
            while g % p == 0:
                g, e = g // p, e + 1
            out.append((p, e))
    return out, g


def kernel_modulo(W: Index, p: int, e: int) -> Index:
    """Generators, as columns, of all N with W·N ≡ 0 modulo p^e.

    Elimination with the entry of least valuation as pivot, so that every division goes through. Row
    s then reads p^v·(N_s + Σ u·N_later) ≡ 0, and N_s is known up to multiples of p^(e−v): one
    generator for each v > 0.
    """
    q = p**e
    A = (W % q).astype(object)
    m, n = A.shape
    columns = list(range(n))
    valuations: list[int] = []
    for s in range(n):
        # 1. The entry of least valuation becomes the pivot.
        best, where = e, None
        for v in range(e):
            hit = (
                np.argwhere(A[s:, s:] % p ** (v + 1) != 0) if s < m else np.zeros((0, 2), np.int64)
            )
            if len(hit):
                best, where = v, (s + int(hit[0, 0]), s + int(hit[0, 1]))
                break
        valuations.append(best)
        if where is None:
            continue
        A[[s, where[0]]] = A[[where[0], s]]
        A[:, [s, where[1]]] = A[:, [where[1], s]]
        columns[s], columns[where[1]] = columns[where[1]], columns[s]
        # 2. Made a power of p, it divides all entries below it.
        unit = pow(int(A[s, s]) // p**best, -1, q)
        A[s] = A[s] * unit % q
        factor = A[s + 1 :, s] // p**best
        A[s + 1 :] = (A[s + 1 :] - factor[:, None] * A[s]) % q
    # 3. One generator for each pivot that is no unit, by back substitution; then columns as they
    # were.
    out = []
    for s in range(n):
        if valuations[s] == 0:
            continue
        N = np.zeros(n, object)
        N[s] = p ** (e - valuations[s])
        for r in range(s - 1, -1, -1):
            if valuations[r] < e:
                N[r] = (
                    -sum(int(A[r, c]) // p ** valuations[r] * N[c] for c in range(r + 1, s + 1)) % q
                )
        back = np.zeros(n, object)
        back[columns] = N
        out.append(back)
    return np.array(out, dtype=object).T.astype(np.int64) if out else np.zeros((n, 0), np.int64)


@njit(cache=True, nogil=True)
def _power(a: int, b: int, p: int) -> int:
    """a^b modulo p; a^(p−2) is the inverse of a."""
    out = 1
    while b:
        if b & 1:
            out = out * a % p
        a = a * a % p
        b >>= 1
    return out


@njit(cache=True, nogil=True)
def _independent(W: Index, p: int) -> Index:
    """The first rows that are independent modulo p, at most as many as columns."""
    m, n = W.shape
    basis = np.zeros((n, n), np.int64)
    pivot = np.zeros(n, np.int64)
    taken = np.zeros(n, np.int64)
    rank = 0
    for r in range(m):
        row = W[r] % p
        for b in range(rank):
            f = row[pivot[b]]
            if f:
                for c in range(n):
                    row[c] = (row[c] - f * basis[b, c]) % p
        for c in range(n):
            if row[c]:
                inverse = _power(row[c], p - 2, p)
                for c2 in range(n):
                    basis[rank, c2] = row[c2] * inverse % p
                pivot[rank] = c
                taken[rank] = r
                rank += 1
                break
        if rank == n:
            break
    return W[taken[:rank]]


@njit(cache=True, nogil=True)
def _determinant(A: Index, p: int) -> int:
    """Of A modulo p, by elimination in place."""
    n = len(A)
    out = 1
    for s in range(n):
        r = s
        while r < n and A[r, s] % p == 0:
            r += 1
        if r == n:
            return 0
        if r != s:
            for c in range(n):
                A[r, c], A[s, c] = A[s, c], A[r, c]
            out = -out
        out = out * (A[s, s] % p) % p
        inverse = _power(A[s, s] % p, p - 2, p)
        for r in range(s + 1, n):
            f = A[r, s] % p * inverse % p
            if f:
                for c in range(s, n):
                    A[r, c] = (A[r, c] - f * A[s, c]) % p
    return out % p
