"""What may be verified when weights are unknown: the ambiguities, each made on purpose, and the
honest case beside them."""

from dataclasses import replace

import numpy as np
import pytest

from unveil import Encodings, Scheme
from unveil.certify.unequal_certificate import FEWEST, _core, _undetermined, certify_unequal
from unveil.records import AMBIGUOUS, UNRESOLVED
from unveil.solve.pixels.pixels import PixelSolution
from unveil.solve.weights.unequal import mixed
from unveil.solve.weights.unequal_pixels import WeightedSolution


def solved(members, n, d=300, law=None, seed=0):
    """A perfect solution for the given subsets, and its encodings."""
    rng = np.random.default_rng(seed)
    members = np.asarray(members, dtype=np.int64)
    x = rng.standard_normal((n, d))
    weights = np.abs(rng.standard_normal(members.shape)) if law is None else law(rng, members.shape)
    weights /= weights.sum(axis=1, keepdims=True)
    m = len(members)
    pixels = PixelSolution(
        x, np.zeros(d), np.ones(d, bool), np.zeros(n, np.int64), np.zeros(n, np.int64)
    )
    y = np.abs(mixed(x, members, weights))
    scheme = Scheme(members.shape[1], weighting="half-normal")
    return Encodings(y, scheme), WeightedSolution(
        np.arange(m), members, weights, pixels, np.zeros(m)
    )


def pairs(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n, 2, replace=False) for _ in range(m)])


def test_an_honest_solution_is_verified():
    status, reasons = certify_unequal(*solved(pairs(12, 200), 12))
    assert (status == "verified").all()
    assert "reproduced at all 300 pixels" in reasons[0]


def test_a_vector_that_never_occurs_without_another_is_ambiguous():
    """b' = b + t·a explains the encodings of {a, b} with other weights."""
    members = np.vstack([pairs(12, 200), np.tile([0, 12], (20, 1))])
    encodings, solution = solved(members, 13)
    status, reasons = certify_unequal(encodings, solution)
    assert status[12] == AMBIGUOUS
    assert "do not determine it" in reasons[12]
    assert (status[:12] == "verified").all()
    # The other solution, to show that the doubt is not idle: the same encodings, weights that sum
    # to 1.
    x, W = solution.pixels.values.copy(), solution.weights.copy()
    rows, t = slice(200, None), 0.1
    x[12] = (1 - t) * x[12] + t * x[0]
    W[rows, 1] /= 1 - t
    W[rows, 0] -= t * W[rows, 1]
    np.testing.assert_allclose(W.sum(axis=1), 1)
    np.testing.assert_allclose(
        np.abs(mixed(x, members, W)),
        np.abs(mixed(solution.pixels.values, members, solution.weights)),
    )


def test_the_rank_condition_is_the_null_space_of_all_changes():
    """Against the definition: all M with the zeros of W kept in WM and row sums 0, as one linear
    system."""
    compared = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = 6
        members = pairs(n, int(rng.integers(6, 14)), seed)
        weights = rng.uniform(0.2, 1, members.shape)
        W = np.zeros((len(members), n))
        np.put_along_axis(W, members, weights, axis=1)
        equations = [
            np.kron(W[i], np.eye(n)[a]) for i in range(len(W)) for a in range(n) if W[i, a] == 0
        ]
        equations += [np.kron(W[i], np.ones(n)) for i in range(len(W))]
        _, values, vectors = np.linalg.svd(np.array(equations))
        if ((values > 1e-9) & (values < 5e-3)).any():
            continue  # nearly undetermined: where the line is drawn is another question
        null = vectors[np.count_nonzero(values > 1e-9) :].reshape(-1, n, n)
        touched = (np.abs(null) > 1e-9).any(axis=(0, 2))  # x_b changes by −(MX)_b
        np.testing.assert_array_equal(_undetermined(members, weights, n), touched)
        compared += 1 + bool(touched.any())
    assert compared >= 14


def test_few_encodings_or_partners_are_not_enough():
    members = np.vstack([pairs(12, 200), [[12, j] for j in range(FEWEST - 1)]])
    status, reasons = certify_unequal(*solved(members, 13))
    assert status[12] == AMBIGUOUS
    assert f"fewer than {FEWEST}" in reasons[12]
    assert (status[:12] == "verified").all()


def test_the_core_counts_different_subsets_of_well_supported_vectors():
    members = np.array([(i, j) for i in range(7) for j in range(i)])
    more = np.vstack([members, members[:5], [[7, 0], [7, 1], [7, 2], [8, 7], [8, 0]]])
    np.testing.assert_array_equal(_core(more, 9), [6] * 7 + [0, 0])


def test_faint_members_are_no_evidence():
    encodings, solution = solved(np.vstack([pairs(12, 200), [[12, j] for j in range(12)]]), 13)
    faint = solution.weights.copy()
    faint[200:, 0], faint[200:, 1] = 1e-4, 1 - 1e-4
    assert certify_unequal(encodings, solution)[0][12] == "verified"
    assert certify_unequal(encodings, replace(solution, weights=faint))[0][12] == AMBIGUOUS


@pytest.mark.parametrize(
    ("law", "word"),
    [
        (lambda _, shape: np.ones(shape), "half-normal law"),
        (lambda rng, shape: 1 + 0.1 * rng.random(shape), "half-normal law"),
    ],
)
def test_weights_of_another_law_verify_nothing(law, word):
    status, reasons = certify_unequal(*solved(pairs(12, 200), 12, law=law))
    assert (status == AMBIGUOUS).all()
    assert word in reasons[0]


def test_every_other_doubt_has_its_reason():
    encodings, solution = solved(pairs(12, 200), 12)

    def reason(**changes):
        pixels = {
            name: changes.pop(name)
            for name in ("solved", "differs", "group", "values")
            if name in changes
        }
        changed = replace(solution, **changes, pixels=replace(solution.pixels, **pixels))
        status, reasons = certify_unequal(encodings, changed)
        return status, reasons

    status, reasons = reason(solved=np.arange(300) > 0)
    assert (status == UNRESOLVED).all()
    assert "1 of 300 pixels" in reasons[0]
    one = np.arange(12) == 3
    assert "another value fits" in reason(differs=one.astype(np.int64))[1][3]
    assert "sign per pixel is their own" in reason(group=one.astype(np.int64))[1][3]
    status, reasons = reason(spread=np.where(np.arange(200) == 7, 0.1, 0))
    assert set(np.flatnonzero(status == AMBIGUOUS)) == set(solution.members[7])
    assert "weights of an encoding" in reasons[solution.members[7, 0]]
    alias = solution.pixels.values.copy()
    alias[3] = (alias[4] + alias[5]) / np.sqrt(2)
    status, reasons = reason(values=alias)
    assert (status[3:6] == AMBIGUOUS).all()
    assert "scale is in doubt" in reason(values=1.1 * solution.pixels.values)[1][0]
    assert (
        "only 90 of 200"
        in reason(
            rows=solution.rows[:90],
            members=solution.members[:90],
            weights=solution.weights[:90],
            spread=np.zeros(90),
        )[1][0]
    )


def test_fewer_pixels_than_vectors_verify_nothing():
    status, reasons = certify_unequal(*solved(pairs(30, 500), 30, d=25))
    assert (status == AMBIGUOUS).all()
    assert "25 pixels for 30 vectors" in reasons[0]


def threes(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n, 3, replace=False) for _ in range(m)])


def test_three_members_are_verified_by_the_theorem():
    status, _ = certify_unequal(*solved(threes(12, 300), 12))
    assert (status == "verified").all()


def test_three_members_of_few_encodings_are_not():
    status, reasons = certify_unequal(*solved(threes(12, 20), 12))
    assert (status == AMBIGUOUS).all()
    assert reasons[0]
