"""Memberships by similarities and by parity, values, leftovers and noise, on small instances."""

from __future__ import annotations

import time
from itertools import combinations, product

import numpy as np
import pytest

from unveil.exact import Means, by_overlaps
from unveil.exact.leftovers import complete
from unveil.exact.noise import fit_noisy
from unveil.exact.overlaps import draw_members, similarity
from unveil.exact.parity import members_by_parity, recover_by_parity
from unveil.exact.problem import Claim, Problem
from unveil.exact.similarities import recover_by_similarity
from unveil.exact.values import evidence, open_values, solve_values


def draw(n, k, m, d, seed, *, public=0.0, noise=0.0, x=None):
    """(problem, records, members) of random subsets."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)).astype(np.float32) if x is None else x
    members = np.array([np.sort(rng.choice(len(x), k, replace=False)) for _ in range(m)])
    z = x[members].sum(axis=1)
    c = None
    if public:
        c = (public * rng.standard_normal(z.shape)).astype(np.float32)
        z = z + c
    z = z + noise * np.sqrt(k) * rng.standard_normal(z.shape)
    y = np.abs(z).astype(np.float32)
    largest = y.max(axis=0) if c is None else np.maximum(y.max(axis=0), np.abs(c).max(axis=0))
    return Problem(y, c, k, 4 * k * largest.astype(np.float64) * 2.0**-24), x, members


def right(claim, x, *, signed=False):
    """How many records came back, up to a sign per column, and how many vectors are none."""
    if not len(claim.vectors):
        return 0, 0
    a, b = claim.vectors.astype(float), x.astype(float)
    match = (
        (np.abs(np.abs(a)[:, None] - np.abs(b)) * ~claim.open[:, None]).mean(axis=2).argmin(axis=1)
    )
    turn = np.ones(a.shape[1]) if signed else np.where((a * b[match]).sum(axis=0) < 0, -1.0, 1.0)
    good = ((np.abs(a * turn - b[match]) < 1e-2) | claim.open).all(axis=1)
    return len(set(match[good].tolist())), int((~good).sum())


def reproduces(problem, claim):
    """Whether every explained row holds at all values that are not open."""
    rows = np.flatnonzero((claim.members >= 0).all(axis=1))
    members = claim.members[rows]
    total = claim.vectors[members].sum(axis=1, dtype=np.float64)
    total = total if problem.c is None else total + problem.c[rows]
    clear = ~claim.open[members].any(axis=1)
    miss = np.abs(np.abs(total) - problem.y[rows])
    return bool((miss <= 64 * problem.step)[clear].mean() > 0.999)


@pytest.mark.parametrize(
    ("k", "n", "m", "d", "public"),
    [
        (3, 30, 210, 300, 0.0),
        (4, 30, 210, 500, 0.0),
        (3, 40, 100, 800, 0.0),
        (3, 30, 150, 300, 1.5),
    ],
)
def test_generic_records_of_any_k(k, n, m, d, public):
    problem, x, members = draw(n, k, m, d, 3, public=public)
    claim = recover_by_similarity(problem, rng=np.random.default_rng(0))
    used = (np.bincount(members.ravel(), minlength=n) > 2).sum()
    found, wrong = right(claim, x, signed=bool(public))
    assert found >= used
    assert wrong == 0
    assert reproduces(problem, claim)


def test_one_record_beside_a_public_part():
    problem, x, _ = draw(20, 1, 120, 200, 1, public=1.4)
    claim = recover_by_similarity(problem, rng=np.random.default_rng(0))
    assert right(claim, x, signed=True)[1] == 0
    assert claim.explained == 1.0


def test_number_of_records_and_noise_from_moments():
    for k, noise in ((2, 0.0), (2, 0.4), (3, 0.0)):
        problem, _, _ = draw(60, k, 420, 800, 7, noise=noise)
        y = problem.y / np.sqrt(np.mean(problem.y**2, axis=0) / k)
        similar = similarity(y, k, rng=np.random.default_rng(0))
        assert abs(similar.n - 60) <= 12
        assert abs(similar.noise - noise) <= 0.21


def test_heat_bath_finds_the_memberships():
    problem, _, members = draw(30, 3, 210, 600, 5)
    rng = np.random.default_rng(1)
    y = problem.y / np.sqrt(np.mean(problem.y**2, axis=0) / 3)
    found, sure = draw_members(similarity(y, 3, rng=rng), 3, 30, rng)
    assert found.shape == (210, 3)
    assert ((sure >= 0) & (sure <= 1)).all()
    W = np.zeros((210, 30), int)
    np.put_along_axis(W, members, 1, axis=1)
    V = np.zeros((210, int(found.max()) + 1), int)
    np.put_along_axis(V, found, 1, axis=1)
    # A first guess: chance has 0.6 of the pairs right.
    assert ((W @ W.T) == (V @ V.T)).mean() > 0.9


def test_nothing_is_claimed_of_pure_noise():
    rng = np.random.default_rng(0)
    y = np.abs(rng.standard_normal((200, 400))).astype(np.float32)
    problem = Problem(y, None, 2, np.full(400, 1e-6))
    assert recover_by_similarity(problem, rng=rng, attempts=1).explained < 0.1
    assert fit_noisy(problem, rng=rng).explained == 0.0


def all_solutions(problem, members, n, column):
    """Oracle: every x with |Wx + c| = y at a column, by all choices of signs."""
    W = np.zeros((problem.m, n))
    np.put_along_axis(W, members, 1.0, axis=1)
    c = 0.0 if problem.c is None else problem.c[:, column].astype(float)
    found = []
    for signs in product((-1.0, 1.0), repeat=problem.m):
        target = np.array(signs) * problem.y[:, column] - c
        x, *_ = np.linalg.lstsq(W, target, rcond=None)
        if np.abs(W @ x - target).max() < 1e-4:
            found.append(x)
    return np.array(found)


def test_values_and_open_ones_against_all_choices_of_signs():
    """Few levels: what is not open has one value in all solutions, up to the sign of the column."""
    rng = np.random.default_rng(2)
    x = rng.integers(1, 4, (4, 6)).astype(np.float32)
    x[:, :3] += rng.standard_normal((4, 3)).astype(np.float32)
    pairs = np.array([*combinations(range(4), 2), (0, 1), (2, 3)])
    y = np.abs(x[pairs].sum(axis=1)).astype(np.float32)
    problem = Problem(y, None, 2, np.full(6, 1e-6))
    claim = solve_values(problem, pairs, rng=rng)
    assert reproduces(problem, claim)
    for p in range(6):
        solutions = all_solutions(problem, pairs, 4, p)
        assert len(solutions)
        distance = np.minimum(
            np.abs(solutions - claim.vectors[:, p]).max(axis=1),
            np.abs(solutions + claim.vectors[:, p]).max(axis=1),
        )
        assert distance.min() < 1e-3 or claim.open[:, p].all()


def test_open_values_are_those_with_another_value():
    """All partners of record 0 hold the same value at column 0, none do at column 1."""
    x = np.array([[1.0, 1.0], [2.0, 0.3], [2.0, -1.1], [2.0, 2.7], [0.7, 0.4]])
    members = np.array([(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (1, 2)])
    y = np.abs(x[members].sum(axis=1)).astype(np.float32)
    problem = Problem(y, None, 2, np.full(2, 1e-7))
    mask = open_values(problem, members, x, np.full(2, 1e-5))
    assert mask[0, 0]
    assert not mask[0, 1]


def test_rows_with_a_record_of_their_own_are_no_evidence():
    members = np.array([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    assert evidence(members).tolist() == [True, True, True, False, False]


def test_wrong_rows_are_left_out_of_the_values():
    problem, x, members = draw(30, 3, 240, 80, 11)
    told = members.copy()
    told[:5] = [(0, 1, 2)] * 5
    claim = solve_values(problem, told, rng=np.random.default_rng(0))
    assert right(claim, x) == (30, 0)
    wrong = np.flatnonzero((members[:5] != told[:5]).any(axis=1))
    assert (claim.members[wrong] == -1).all()


@pytest.mark.parametrize("k", [2, 3, 4])
def test_leftovers_find_known_and_new_records(k):
    """Two records and a tenth of the memberships are taken away, and come back."""
    problem, x, members = draw(24, k, 24 * 7, 60, k)
    told = np.where((members >= 22).any(axis=1)[:, None], -1, members)
    told[::10] = -1
    claim = Claim(x[:22].copy(), told, np.zeros((22, 60), bool))
    found = complete(problem, claim, rng=np.random.default_rng(0))
    assert right(found, x) == (24, 0)
    assert found.explained > 0.98
    assert reproduces(problem, found)


@pytest.mark.parametrize(("k", "n", "m"), [(2, 24, 200), (3, 14, 180), (4, 12, 220)])
def test_parity_reads_memberships_off_relations(k, n, m):
    """All true relations of distinct subsets, and nothing else, give the memberships."""
    rng = np.random.default_rng(k)
    subsets = np.array(list(combinations(range(n), k)))
    members = subsets[np.sort(rng.permutation(len(subsets))[:m])]
    sums: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for a, b in combinations(range(len(members)), 2):
        key = tuple(np.sort(np.append(members[a], members[b])))
        sums.setdefault(key, []).append((a, b))
    quads = np.array([p[0] + q for p in sums.values() for q in p[1:]])
    found = members_by_parity(quads, len(members), k, rng)
    assert found is not None
    known = (found >= 0).all(axis=1)
    assert known.mean() > 0.9
    share = np.array([[len(set(a) & set(b)) for b in members[known]] for a in members[known]])
    also = np.array([[len(set(a) & set(b)) for b in found[known]] for a in found[known]])
    assert np.array_equal(share, also)


def test_parity_needs_neither_columns_nor_statistics():
    """Fewer columns than records, of a skewed law."""
    rng = np.random.default_rng(0)
    x = (rng.exponential(1, (25, 10)) ** 1.5 - 1.0).astype(np.float32)
    problem, _, _ = draw(25, 3, 450, 10, 4, x=x)
    claim = recover_by_parity(problem, rng=rng)
    assert right(claim, x) == (25, 0)


def test_many_encodings_by_cliques():
    problem, x, _ = draw(300, 2, 2100, 800, 2)
    claim = by_overlaps(problem, Means(np.random.default_rng(0), np.inf, None, None))
    found, wrong = right(claim, x)
    assert found == 300
    assert wrong == 0


def test_noise():
    problem, x, members = draw(40, 2, 280, 400, 6, noise=0.2)
    fit = fit_noisy(problem, rng=np.random.default_rng(0))
    assert fit.explained > 0.95
    assert abs(fit.noise / np.sqrt(2) - 0.2) < 0.03
    a, b = fit.vectors.astype(float), x.astype(float)
    match = np.abs(np.abs(a)[:, None] - np.abs(b)).mean(axis=2).argmin(axis=1)
    turn = np.where((a * b[match]).sum(axis=0) < 0, -1.0, 1.0)
    rms = np.sqrt(np.mean((a * turn - b[match]) ** 2, axis=1))
    assert (rms <= 0.2).mean() > 0.9
    assert 0.5 < np.median(fit.error) / np.median(rms) < 1.5
    told = fit_noisy(problem, members=members, rng=np.random.default_rng(0))
    assert told.explained > 0.95


def test_a_deadline_in_the_past_returns_at_once():
    problem, _, _ = draw(40, 3, 280, 300, 6)
    start = time.monotonic()
    claim = recover_by_similarity(problem, rng=np.random.default_rng(0), deadline=start)
    assert time.monotonic() - start < 10
    assert claim.members.shape == (280, 3)


def test_the_same_seed_gives_the_same_bytes():
    problem, _, _ = draw(20, 3, 140, 200, 9)
    one, two = (recover_by_similarity(problem, rng=np.random.default_rng(4)) for _ in range(2))
    assert one.vectors.tobytes() == two.vectors.tobytes()
    assert np.array_equal(one.members, two.members)
