"""The flow: exactly k images per encoding, capacities kept, and no assignment scores more."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from unveil.checks import InputError
from unveil.rivals.cliques.flow import assign


def total(scores, members):
    return np.take_along_axis(scores, members, axis=1).sum()


def brute_force(scores, k, room):
    """The best of all assignments there are; None: none keeps to the room."""
    m, n = scores.shape
    best = None
    for choice in product(combinations(range(n), k), repeat=m):
        members = np.array(choice)
        if (np.bincount(members.ravel(), minlength=n) <= room).all():
            best = total(scores, members) if best is None else max(best, total(scores, members))
    return best


def by_milp(scores, k, room):
    m, n = scores.shape
    rows = sparse.kron(sparse.eye_array(m), np.ones((1, n)))
    columns = sparse.kron(np.ones((1, m)), sparse.eye_array(n))
    found = milp(
        -scores.ravel(),
        constraints=[
            LinearConstraint(rows.tocsr(), k, k),
            LinearConstraint(columns.tocsr(), -np.inf, room),
        ],
        bounds=Bounds(0, 1),
        integrality=np.ones(m * n),
    )
    return -found.fun


@pytest.mark.parametrize("seed", range(40))
def test_tiny_instances_against_all_assignments(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    k = int(rng.integers(1, min(n, 3) + 1))
    scores = rng.standard_normal((m, n)) if seed % 2 else rng.integers(0, 3, (m, n)).astype(float)
    room = rng.integers(0, m + 1, n)
    best = brute_force(scores, k, room)
    if best is None:
        with pytest.raises(InputError, match="raise the capacity"):
            assign(scores, k, room)
        return
    members = assign(scores, k, room)
    assert (np.bincount(members.ravel(), minlength=n) <= room).all()
    assert total(scores, members) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_larger_instances_against_an_integer_program(k):
    rng = np.random.default_rng(k)
    m, n = 120, 15
    liked = 1.5 * rng.random(n)  # so that much has to be passed on, through several images
    scores = rng.standard_normal((m, n)) + liked
    room = rng.multinomial(k * m, np.full(n, 1 / n)) + (k == 2)
    members = assign(scores, k, room)
    assert (np.bincount(members.ravel(), minlength=n) <= room).all()
    assert (np.diff(members, axis=1) > 0).all()
    assert total(scores, members) == pytest.approx(by_milp(scores, k, room), abs=1e-8)


def test_without_capacities_everyone_takes_the_best():
    scores = np.random.default_rng(0).standard_normal((50, 8))
    members = assign(scores, 3)
    np.testing.assert_array_equal(members, np.sort(np.argsort(-scores, axis=1)[:, :3], axis=1))
    np.testing.assert_array_equal(members, assign(scores, 3, 50))


def test_capacities_repair_what_the_best_score_gets_wrong():
    """In the released pairing every image occurs equally often: known room leaves fewer places for
    errors."""
    rng = np.random.default_rng(1)
    truth = np.sort(
        np.concatenate(
            [np.stack([np.roll(np.arange(20), s), np.arange(20)], axis=1) for s in range(1, 11)]
        ),
        axis=1,
    )
    scores = np.zeros((200, 20))
    np.put_along_axis(scores, truth, 1.0, axis=1)
    scores += 0.5 * rng.standard_normal(scores.shape)
    free, bound = ((assign(scores, 2, room) == truth).mean() for room in (None, 20))
    assert bound > free


def test_more_images_than_there_are_cannot_be_asked_for():
    with pytest.raises(InputError, match="ask for 1 to 3"):
        assign(np.zeros((2, 3)), 4)
