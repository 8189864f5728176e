"""Relations up to noise between given pairs: true ones are found, others are not, and what says too
little is told."""

from itertools import combinations

import numpy as np

from unveil.relations.among import compare, find_among
from unveil.relations.sketch import sketch

NOISE = 0.02


def problem(seed, n=10, m=40, d=60):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    every = np.array(list(combinations(range(n), 2)))
    members = every[rng.permutation(len(every))[:m]]
    y = np.abs(x[members].sum(axis=1) + NOISE * rng.standard_normal((m, d))).astype(np.float32)
    return y, members


def cycles(members):
    sums = {}
    for a, b in combinations(range(len(members)), 2):
        sums.setdefault(tuple(sorted([*members[a], *members[b]])), []).append((a, b))
    return {
        tuple(sorted(p + q))
        for pairs in sums.values()
        for p, q in combinations(pairs, 2)
        if len({*p, *q}) == 4
    }


def test_all_cycles_are_found_up_to_noise_and_nothing_else():
    """Sixty pixels of noise 0.02 say some 150 nats; four deviations short of the mean is once in
    30,000 relations."""
    y, members = problem(0)
    pairs = np.array(list(combinations(range(len(y)), 2)))
    found = find_among(sketch(y, None, NOISE, np.random.default_rng(1), 60), pairs)
    got, true = {tuple(q) for q in found.quads.tolist()}, cycles(members)
    assert len(true) > 100
    assert got <= true
    assert len(got) >= 0.99 * len(true)


def test_few_noisy_pixels_say_too_little():
    y, _ = problem(0, d=4)
    pairs = np.array(list(combinations(range(len(y)), 2)))
    assert not find_among(sketch(y, None, 0.3, np.random.default_rng(1)), pairs).possible


def test_signed_differences_are_compared_as_they_are():
    """Two options are signed: a pair does not meet another one that has the negative of its
    difference."""
    rng = np.random.default_rng(2)
    a = rng.uniform(5, 500, (40, 2)).astype(np.float32)
    differences = np.stack([a, a[:, ::-1], -a])
    pairs = np.array([[0, 10], [1, 11], [2, 12]])
    quads = compare(differences, pairs, np.full(40, 4.0), 100)
    assert quads.tolist() == [[0, 10, 1, 11]]
