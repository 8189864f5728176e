"""One floral, judged: verified when nothing speaks against it, and every doubt with its own status
and sentence."""

import numpy as np
import pytest

from unveil import Encodings, Overlaps, Scheme, Supports, simulate
from unveil.encode import encode, selection_matrix
from unveil.encodings import Selection
from unveil.paper.floral import find_all_florals, floral_labels, read_floral, swap_reading
from unveil.paper.private_image import solve_sign_system
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED, Floral
from unveil.solve.floral.solve_floral import judge_floral

D = 1500


def instance(
    k=2,
    k_public=0,
    *,
    n=None,
    others=150,
    repeats=3,
    seed=0,
    d=D,
    sunflower=False,
    weighting="equal",
):
    """Encodings whose first t rows are a floral, then `repeats` of those, then `others`; overlaps
    are the exact ones."""
    n = n or 2 * k + 4
    rng = np.random.default_rng([seed, k, n])
    scheme = Scheme(k, k_public, weighting)
    labels = floral_labels(k)
    first = labels
    if sunflower:
        first = np.array(
            [[*range(k + 2, 2 * k), *sorted(set(range(k + 2)) - set(s))] for s in labels.tolist()]
        )
    chosen = [
        first,
        first[:repeats],
        np.array([rng.choice(n, k, replace=False) for _ in range(others)]).reshape(-1, k),
    ]
    private_chosen = np.sort(np.vstack(chosen), axis=1)
    m = len(private_chosen)
    public_chosen = np.sort(
        [rng.choice(9, k_public, replace=False) for _ in range(m)], axis=1
    ).reshape(m, k_public)
    selection = Selection(private_chosen.astype(np.int64), public_chosen.astype(np.int64))
    private = rng.standard_normal((n, d)).astype(np.float32)
    public = rng.standard_normal((9, d)).astype(np.float32) if k_public else None
    values = encode(private, public, selection, scheme)
    W = selection_matrix(selection.private, n)
    overlaps = Overlaps.from_array(np.rint((W @ W.T).toarray()).astype(int), k)
    return Encodings(values, scheme), private, public, selection, overlaps


def solve(encodings, public, selection, overlaps, floral=None):
    k = encodings.scheme.k_private
    floral = floral or Floral(np.arange(len(floral_labels(k))), floral_labels(k))
    supports = Supports(selection.public, np.ones(encodings.m), "known")
    scheme, c = encodings.scheme, None
    if public is not None:
        c = scheme.public_weight * public[selection.public[floral.rows]].sum(axis=1)
    y = encodings.magnitudes(floral.rows)
    signs = solve_sign_system(y, floral.incidence, scheme.private_weight, c)
    reading = read_floral(overlaps, floral)
    return judge_floral(encodings, public, supports, overlaps, floral, reading, signs)


def changed(encodings, rows, pixels, by):
    values = encodings.values.copy()
    values[rows, pixels] += np.float32(by)
    return Encodings(values, encodings.scheme, encodings.pixel_rms)


def error(solution, private):
    """Largest pixel error to the true vectors, one sign per pixel free unless signed."""
    truth = private[: len(solution.signs.values)]
    keep = np.abs(solution.signs.values - truth).max(axis=0)
    return (
        keep
        if solution.signed
        else np.minimum(keep, np.abs(solution.signs.values + truth).max(axis=0))
    ).max()


@pytest.mark.parametrize("weighting", ["equal", "paper", "convex"])
@pytest.mark.parametrize(("k", "k_public"), [(2, 0), (2, 2), (3, 0), (3, 1), (4, 0), (5, 0)])
def test_without_any_doubt_the_solution_is_verified_and_true(k, k_public, weighting):
    encodings, private, public, selection, overlaps = instance(k, k_public, weighting=weighting)
    solution = solve(encodings, public, selection, overlaps)
    assert (solution.status, solution.signed) == (VERIFIED, k_public > 0), solution.reason
    assert error(solution, private) < 1e-3
    assert solution.votes[0] > 0 == solution.votes[1]
    assert solution.nats > 10
    inside = (selection.private < k + 2).all(axis=1)
    assert solution.reproduced == inside.sum()
    names = np.array([[name in s for name in range(k + 2)] for s in selection.private.tolist()])
    np.testing.assert_array_equal(solution.members, names)


@pytest.mark.parametrize("k", [2, 3])
def test_doubt_1_one_corrupt_pixel_is_unresolved(k):
    encodings, _, public, selection, overlaps = instance(k)
    solution = solve(changed(encodings, 2, 77, 0.05), public, selection, overlaps)
    assert solution.status == UNRESOLVED
    assert f"misses the encodings at 1 of {D} pixels" in solution.reason


def test_doubt_1_wrong_labels_are_unresolved():
    encodings, _, public, selection, overlaps = instance(3)
    order = np.arange(10)
    order[[0, 5]] = 5, 0
    floral = Floral(order, floral_labels(3))
    assert solve(encodings, public, selection, overlaps, floral).status == UNRESOLVED


def test_doubt_2_further_encodings_of_the_same_vectors_that_are_not_reproduced_are_unresolved():
    encodings, _, public, selection, overlaps = instance(2, n=30, others=150, repeats=3)
    inside = np.flatnonzero((selection.private < 4).all(axis=1))
    further = inside[inside >= 6]
    assert len(further) >= 3
    solution = solve(changed(encodings, further, 5, 0.5), public, selection, overlaps)
    assert solution.status == UNRESOLVED
    assert f"misses {len(further)} further encodings" in solution.reason
    # They are not called members either.
    assert not solution.members[further].any()


def test_doubt_3_a_pixel_with_two_solutions_is_ambiguous():
    encodings, private, public, selection, overlaps = instance(2)
    private[:, 40] = 0.9
    encodings = Encodings(encode(private, None, selection, encodings.scheme), encodings.scheme)
    solution = solve(encodings, public, selection, overlaps)
    assert solution.status == AMBIGUOUS
    assert f"other values fit as well at 1 of {D} pixels" in solution.reason


@pytest.mark.parametrize("k", range(2, 6))
def test_doubt_4_without_other_encodings_the_family_stays_open(k):
    encodings, _, public, selection, overlaps = instance(k, others=0)
    solution = solve(encodings, public, selection, overlaps)
    assert solution.status == AMBIGUOUS
    assert (
        "two families of subsets fit" in solution.reason
        or "n_private = 2·k_private" in solution.reason
    )


def test_doubt_4_with_n_equal_to_2k_nothing_can_tell_and_it_says_so():
    encodings, _, public, selection, overlaps = instance(2, n=4, others=1500, d=200)
    solution = solve(encodings, public, selection, overlaps)
    assert solution.status == AMBIGUOUS
    assert "n_private = 2·k_private" in solution.reason


@pytest.mark.parametrize("k_public", [0, 2])
def test_the_swapped_labelling_is_never_verified(k_public):
    for seed in range(5):
        encodings, _, public, selection, overlaps = instance(2, k_public, seed=seed)
        floral = swap_reading(Floral(np.arange(6), floral_labels(2)))
        solution = solve(encodings, public, selection, overlaps, floral)
        assert solution.status == AMBIGUOUS
        # Its equations hold all the same: only other encodings speak against it.
        assert solution.signs.settled.all()
        assert solution.votes[0] < solution.votes[1]
        assert solution.nats < -10


@pytest.mark.parametrize("k", [3, 4, 5])
def test_a_sunflower_is_never_verified(k):
    encodings, _, public, selection, overlaps = instance(k, sunflower=True)
    solution = solve(encodings, public, selection, overlaps)
    assert solution.status == AMBIGUOUS
    assert solution.signs.settled.all()
    assert solution.nats < 0


def test_overlaps_that_vote_for_the_wrong_family_are_overruled_by_the_pixels():
    # Swapped labels with overlaps doctored to vote for them: every single-name encoding claims the
    # complement's pattern.
    encodings, _, public, selection, overlaps = instance(2)
    M = overlaps.toarray()
    one = np.flatnonzero((selection.private < 4).sum(axis=1) == 1)
    pairs = {tuple(s): i for i, s in enumerate(floral_labels(2).tolist())}
    opposite = [pairs[tuple(sorted({0, 1, 2, 3} - set(s)))] for s in floral_labels(2).tolist()]
    M[one[:, None], np.arange(6)] = M[one[:, None], opposite]
    M[:6, one] = M[one, :6].T
    doctored = Overlaps.from_array(M, 2)
    floral = swap_reading(Floral(np.arange(6), floral_labels(2)))
    solution = solve(encodings, public, selection, doctored, floral)
    assert solution.votes[0] > solution.votes[1]
    assert solution.status == AMBIGUOUS
    assert "two families of subsets fit" in solution.reason
    assert solution.nats < 0


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.25, 3.0])
def test_doubt_of_scale_encodings_of_another_size_than_weights_and_pixels_say_are_ambiguous(factor):
    encodings, _, public, selection, overlaps = instance(2)
    scaled = Encodings(np.float32(factor) * encodings.values, encodings.scheme)
    solution = solve(scaled, public, selection, overlaps)
    assert solution.status == AMBIGUOUS
    assert "scale" in solution.reason
    # Saying what size pixels have, or that it is unknown, takes the doubt away.
    for pixel_rms in (factor, None):
        told = Encodings(scaled.values, scaled.scheme, pixel_rms)
        assert solve(told, public, selection, overlaps).status == VERIFIED


def test_the_wrong_weighting_without_public_vectors_is_ambiguous_not_verified():
    encodings, _, public, selection, overlaps = instance(2, weighting="convex")
    claimed = Encodings(encodings.values, Scheme(2, weighting="equal"))
    assert solve(claimed, public, selection, overlaps).status == AMBIGUOUS


def test_the_wrong_weighting_with_public_vectors_is_unresolved():
    encodings, _, public, selection, overlaps = instance(2, 2, weighting="paper")
    claimed = Encodings(encodings.values, Scheme(2, 2, weighting="equal"))
    assert solve(claimed, public, selection, overlaps).status == UNRESOLVED


def test_the_wrong_k_is_never_verified():
    # Triples {c, a, b} with the same c are pairs of x + c/2 to someone who believes in k = 2.
    encodings, _, public, selection, overlaps = instance(3, n=8, others=200, sunflower=True)
    M = np.clip(overlaps.toarray() - 1, 0, 2)
    believed = Overlaps.from_array(M, 2)
    florals = find_all_florals(believed, limit=5)
    assert florals
    for weighting in ("equal", "convex"):
        claimed = Encodings(encodings.values, Scheme(2, weighting=weighting), None)
        for floral in florals:
            for labelled in (floral, swap_reading(floral)):
                assert solve(claimed, public, selection, believed, labelled).status != VERIFIED


def test_rank_puts_verified_above_ambiguous_above_unresolved():
    encodings, _, public, selection, overlaps = instance(2)
    verified = solve(encodings, public, selection, overlaps)
    ambiguous = solve(
        Encodings(3 * encodings.values, encodings.scheme), public, selection, overlaps
    )
    unresolved = solve(changed(encodings, 2, 77, 0.05), public, selection, overlaps)
    assert verified.rank > ambiguous.rank > unresolved.rank


def test_encodings_with_random_signs_are_judged_alike():
    encodings, private, public, selection, overlaps = instance(2)
    coins = np.random.default_rng(0).choice(np.float32([-1, 1]), size=encodings.values.shape)
    signed = Encodings(coins * encodings.values, Scheme(2, signs="random"))
    solution = solve(signed, public, selection, overlaps)
    assert solution.status == VERIFIED
    assert error(solution, private) < 1e-3


def test_gaussian_instances_of_simulate_are_what_this_file_builds_by_hand():
    sim = simulate(Scheme(2), 12, m=100, d=D, rng=0)
    W = selection_matrix(sim.selection.private, 12)
    overlaps = Overlaps.from_array(np.rint((W @ W.T).toarray()).astype(int), 2)
    floral = find_all_florals(overlaps, limit=1)[0]
    statuses = {
        solve(sim.encodings, None, sim.selection, overlaps, f).status
        for f in (floral, swap_reading(floral))
    }
    assert statuses == {VERIFIED, AMBIGUOUS}
