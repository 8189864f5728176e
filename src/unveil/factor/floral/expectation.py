"""How many florals to expect (`lem:setsystemexist`): the paper's first moment, without its
asymptotics.

Of n private vectors any k+2 give a floral when all t = (k+2)(k+1)/2 of their k-subsets were drawn
among C(n,k). How many of the t are there after each draw is a Markov chain with t+1 states; its
m-th power is exact and free of cancellation. Only the "subsets" reading counts here
(`factor.floral.reading`): the other one cannot be solved for k ≥ 3.
"""

from __future__ import annotations

from math import comb

import numpy as np

from unveil.records import Overlaps


def expected_florals(n_private: int, k_private: int, m: int) -> float:
    """Expected number of (k+2)-sets of private vectors all of whose k-subsets are among m random
    encodings."""
    n, k = n_private, k_private
    subsets = comb(n, k)
    if n < k + 2:
        return 0.0
    t = comb(k + 2, 2)
    new = (t - np.arange(t + 1)) / subsets
    chain = np.diag(1 - new) + np.diag(new[:-1], 1)
    return float(comb(n, k + 2)) * float(np.linalg.matrix_power(chain, m)[0, t])


def encodings_needed(n_private: int, k_private: int) -> int:
    """The smallest m at which one floral is expected, about n^(k − 2/(k+1)) in the paper's
    asymptotics.

    With n = k+2 there can be one only; then the m at which it is there nine times in ten.
    """
    if n_private < k_private + 2:
        raise ValueError("a floral needs at least k_private + 2 private vectors")
    goal = 1.0 if n_private > k_private + 2 else 0.9
    low, high = 1, 2
    while expected_florals(n_private, k_private, high) < goal:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle)
            if expected_florals(n_private, k_private, middle) >= goal
            else (middle, high)
        )
    return high


def estimate_n_private(overlaps: Overlaps) -> float:
    """n from the mean overlap of two different encodings, k²/n; infinite when nothing overlaps."""
    m, k = overlaps.m, overlaps.k_private
    mean = (float(overlaps.matrix.sum(dtype=np.int64)) - m * k) / max(1, m * (m - 1))
    return k * k / mean if mean > 0 else float("inf")
