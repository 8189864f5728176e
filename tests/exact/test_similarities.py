"""Encodings of three and more records, or of noise: everything that was mixed comes back, and only
that."""

from __future__ import annotations

import time
from itertools import combinations, product

import numpy as np
import pytest

import unveil
from unveil.exact import Means, by_overlaps, recover_exact
from unveil.exact.leftovers import complete
from unveil.exact.noise import explain
from unveil.exact.parity import members_by_parity, recover_by_parity
from unveil.exact.problem import Claim, Problem, as_problem
from unveil.exact.similarities import recover_by_similarity
from unveil.exact.values import solve_values


def draw(n, k, m, d, seed, *, noise=0.0, x=None):
    """(problem, records, members) of random subsets."""
    scheme = unveil.Scheme(k)
    sim = unveil.simulate(scheme, n, private=x, m=m, d=d, noise=noise, rng=seed)
    return as_problem(sim.encodings), sim.private, sim.selection.private


def right(claim, x):
    """How many records came back, up to a sign per column, and how many vectors are none."""
    a, b = claim.vectors.astype(float), x.astype(float)
    match = (
        (np.abs(np.abs(a)[:, None] - np.abs(b)) * ~claim.open[:, None]).mean(axis=2).argmin(axis=1)
    )
    turn = np.where((a * b[match]).sum(axis=0) < 0, -1.0, 1.0)
    good = ((np.abs(a * turn - b[match]) < 1e-2) | claim.open).all(axis=1)
    return len(set(match[good].tolist())), int((~good).sum())


@pytest.mark.parametrize(
    ("k", "k_public", "n", "m", "d"),
    [
        (3, 0, 30, 210, 300),
        (4, 0, 30, 210, 500),
        (3, 0, 40, 100, 800),
        (3, 2, 30, 150, 400),
        (1, 2, 20, 120, 200),
    ],
)
def test_generic_records_of_any_k(k, k_public, n, m, d):
    scheme = unveil.Scheme(k, k_public)
    sim = unveil.simulate(scheme, n, n_public=60 if k_public else 0, m=m, d=d, rng=3)
    supports = sim.selection.public if k_public else None
    recovery = recover_exact(sim.encodings, sim.public, supports=supports, rng=0)
    scores = unveil.score(recovery, sim.private)
    used = (np.bincount(sim.selection.private.ravel(), minlength=n) > 2).sum()
    assert scores.exact >= used
    assert scores.wrong == 0


@pytest.mark.parametrize("noise", [0.2, 0.4])
def test_noise(noise):
    sim = unveil.simulate(unveil.Scheme(2), 40, m=280, d=400, noise=noise, rng=6)
    recovery = recover_exact(sim.encodings, rng=0)
    assert recovery.explained > 0.95 * 280
    assert not recovery.verified.any()
    assert abs(recovery.evidence["noise"] - noise) < 0.2 * noise
    a, b = recovery.vectors.astype(float), sim.private.astype(float)
    match = np.abs(np.abs(a)[:, None] - np.abs(b)).mean(axis=2).argmin(axis=1)
    turn = np.where((a * b[match]).sum(axis=0) < 0, -1.0, 1.0)
    rms = np.sqrt(np.mean((a * turn - b[match]) ** 2, axis=1))
    assert (rms <= noise).mean() > 0.9
    assert 0.5 < np.median(recovery.evidence["standard_error"]) / np.median(rms) < 1.5


def test_wrong_members_do_not_pass_for_noise():
    """Half of the rows with the members of others: what they leave differs from row to row."""
    problem, _, members = draw(40, 2, 280, 400, 6)
    wrong = members.copy()
    wrong[::2] = np.roll(wrong[::2], 1, axis=0)
    assert explain(problem, wrong, rng=np.random.default_rng(0)).explained == 0.0


def all_solutions(y, members, n):
    """Oracle: every x with |Wx| = y at a column, by all choices of signs."""
    W = np.zeros((len(y), n))
    np.put_along_axis(W, members, 1.0, axis=1)
    found = []
    for signs in product((-1.0, 1.0), repeat=len(y)):
        target = np.array(signs) * y
        x, *_ = np.linalg.lstsq(W, target, rcond=None)
        if np.abs(W @ x - target).max() < 1e-4:
            found.append(x)
    return np.array(found)


@pytest.mark.parametrize("k", [2, 3])
def test_values_and_open_ones_against_all_choices_of_signs(k):
    """Few levels: what is not open has one value in all solutions, up to the sign of the column."""
    rng = np.random.default_rng(2)
    x = rng.integers(1, 4, (k + 2, 6)).astype(np.float32)
    x[:, :3] += rng.standard_normal((k + 2, 3)).astype(np.float32)
    members = np.array([*combinations(range(k + 2), k), tuple(range(k))])
    y = np.abs(x[members].sum(axis=1)).astype(np.float32)
    claim = solve_values(Problem(y, None, k, np.full(6, 1e-6)), members, rng=rng)
    for p in range(6):
        solutions = all_solutions(y[:, p], members, k + 2)
        distance = np.minimum(
            np.abs(solutions - claim.vectors[:, p]).max(axis=1),
            np.abs(solutions + claim.vectors[:, p]).max(axis=1),
        )
        assert distance.min() < 1e-3 or claim.open[:, p].all()


def test_wrong_rows_are_left_out_of_the_values():
    problem, x, members = draw(30, 3, 240, 80, 11)
    told = members.copy()
    told[:5] = [(0, 1, 2)] * 5
    claim = solve_values(problem, told, rng=np.random.default_rng(0))
    assert right(claim, x) == (30, 0)
    wrong = np.flatnonzero((np.sort(members[:5], axis=1) != told[:5]).any(axis=1))
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
    problem, x, _ = draw(25, 3, 450, 10, 4, x=x)
    claim = recover_by_parity(problem, rng=rng)
    assert right(claim, x) == (25, 0)


def test_many_encodings_by_cliques():
    problem, x, _ = draw(300, 2, 2100, 800, 2)
    claim = by_overlaps(problem, Means(np.random.default_rng(0), np.inf, None, None))
    assert right(claim, x) == (300, 0)


def test_a_deadline_in_the_past_returns_at_once():
    problem, _, _ = draw(40, 3, 280, 300, 6)
    start = time.monotonic()
    claim = recover_by_similarity(problem, rng=np.random.default_rng(0), deadline=start)
    assert time.monotonic() - start < 10
    assert claim.members.shape == (280, 3)


def test_the_same_seed_gives_the_same_bytes():
    sim = unveil.simulate(unveil.Scheme(3), 20, m=140, d=200, rng=9)
    one, two = (recover_exact(sim.encodings, rng=4) for _ in range(2))
    assert one.vectors.tobytes() == two.vectors.tobytes()
    assert (one.members != two.members).nnz == 0
