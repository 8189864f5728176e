"""How many relations are to be expected, and how many encodings are enough?

Different k-subsets of n vectors, m of them, every choice of m equally probable. Two that share k−t
vectors differ in 2t. Their sum as a multiset has the shared vectors twice and the others once.
Pairs with the same sum share the same vectors and split the other 2t in halves: there are C(2t,
t)/2 of them. A relation is two such pairs, so that there are

    among all subsets    Q = Σ_{t=2…k} C(n, k−t) · C(n−k+t, 2t) · C(C(2t, t)/2, 2)
    among m of N         Q · m(m−1)(m−2)(m−3) / (N(N−1)(N−2)(N−3)),    N = C(n, k)

(for t = 1 there is one pair only) on average, exactly: a relation has four different subsets and
one pairing (a + c = b + d and a + b = c + d give b = c). Where n is large the term t = k, pairs
with nothing in common, outweighs the others; it is m⁴/4 · (C(2k, k)/2 − 1)/N² times the share of
disjoint pairs.

The first relations appear when m⁴ reaches N², at m ~ n^(k/2). A constant number *per encoding*
takes m³ ~ N², or m ~ n^(2k/3).
"""

from __future__ import annotations

from math import comb

PER_ENCODING = 2.0
"""Relations per encoding from which on all vectors come back; `python -m benchmarks.relations
enough` measures it."""


def expected_relations(n: int, m: int, k: int) -> float:
    """Mean number of relations among m different k-subsets of n vectors, drawn at random."""
    N = comb(n, k)
    if m > N:
        raise ValueError(f"m={m}: there are only {N} different subsets of {k} of {n} vectors")
    if m < 4:
        return 0.0
    every = sum(
        comb(n, k - t) * comb(n - k + t, 2 * t) * comb(comb(2 * t, t) // 2, 2)
        for t in range(2, k + 1)
    )
    # Whole numbers up to the last division: for k = 8 they exceed what a float holds exactly.
    return every * (m * (m - 1) * (m - 2) * (m - 3)) / (N * (N - 1) * (N - 2) * (N - 3))


def enough_encodings(n: int, k: int) -> int:
    """The fewest different encodings with `PER_ENCODING` relations each on average; all C(n, k)
    where even they have fewer."""
    low, high = min(4, comb(n, k)), comb(n, k)
    while low < high:
        middle = (low + high) // 2
        if expected_relations(n, middle, k) >= PER_ENCODING * middle:
            high = middle
        else:
            low = middle + 1
    return low
