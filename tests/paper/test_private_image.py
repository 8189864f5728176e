"""LearnPrivateImage end to end on small instances: what is verified is true, and nothing is
returned in silence."""

from itertools import combinations

import numpy as np
import pytest

from unveil import (
    Encodings,
    Scheme,
    find_all_florals,
    gram_extract,
    learn_private_image,
    score,
    simulate,
)
from unveil.checks import InputError
from unveil.encode import encode
from unveil.encodings import Selection
from unveil.paper.floral import read_floral

# Instances small enough for seconds; each was seen to hold a floral that other encodings confirm.
EASY = [
    (Scheme(2), {"n_private": 20, "m": 120, "d": 3072}),
    (Scheme(2, weighting="convex"), {"n_private": 20, "m": 120, "d": 3072}),
    (Scheme(2, signs="random"), {"n_private": 20, "m": 120, "d": 3072}),
    (Scheme(3), {"n_private": 9, "m": 250, "d": 8192}),
    (Scheme(2, 1), {"n_private": 15, "n_public": 20, "m": 100, "d": 12_288}),
    (Scheme(2, 2, "paper"), {"n_private": 12, "n_public": 20, "m": 150, "d": 16_384}),
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("scheme", "sizes"), EASY)
def test_small_instances_give_k_plus_two_exact_vectors(scheme, sizes, seed):
    sim = simulate(scheme, rng=seed, **sizes)
    recovery = learn_private_image(sim.encodings, sim.public)
    scores = score(recovery, sim.private)
    assert scores.wrong == 0
    assert scores.exact == scheme.k_private + 2, recovery.explanation
    assert recovery.signed == (scheme.k_public > 0)
    assert recovery.status.tolist() == ["verified"] * (scheme.k_private + 2)
    # Members: exactly the encodings whose selection holds the vector.
    for column, match in enumerate(scores.matches):
        truth = (sim.selection.private == match).any(axis=1)
        np.testing.assert_array_equal(recovery.members.toarray()[:, column], truth)
    assert (recovery.residual < 1e-4).all()
    assert set(recovery.seconds) == {
        "learn public", "overlaps", "floral search", "solve", "growth", "certificate"
    }  # fmt: skip
    assert recovery.evidence["equations"] > recovery.evidence["unknowns"]
    assert len(recovery.reasons) == len(recovery)


def test_the_only_floral_is_solved_whichever_of_its_two_labellings_comes_first():
    rng = np.random.default_rng(0)
    private = rng.standard_normal((12, 3072)).astype(np.float32)
    # All pairs of 0..3, and two further encodings for each that share it alone: one floral, two
    # labellings.
    pairs = np.array(
        [
            *combinations(range(4), 2),
            *((i, 4 + i) for i in range(4)),
            *((i, 8 + i) for i in range(4)),
        ]
    )
    swapped = 0
    for _ in range(6):
        chosen = pairs[rng.permutation(len(pairs))]
        selection = Selection(chosen, np.empty((len(chosen), 0), np.int64))
        encodings = Encodings(encode(private, None, selection, Scheme(2)), Scheme(2))
        overlaps = gram_extract(encodings)
        (floral,) = find_all_florals(overlaps)
        swapped += read_floral(overlaps, floral).subsets == 0
        # Six of 14 encodings are explained: right, and not to be verified.
        recovery = learn_private_image(encodings)
        assert not recovery.verified.any()
        size = np.abs(private[:4])
        nearest = [int(np.abs(size - np.abs(x)).max(axis=1).argmin()) for x in recovery.vectors]
        assert sorted(nearest) == [0, 1, 2, 3]
        np.testing.assert_allclose(np.abs(recovery.vectors), size[nearest], atol=1e-4)
    assert 0 < swapped < 6


def test_what_is_verified_is_never_wrong_at_any_number_of_pixels():
    # From hopeless to comfortable: overlaps are full of errors at the left end.
    verified = 0
    for d in (64, 200, 500, 1000, 2000):
        for seed in range(3):
            sim = simulate(Scheme(2), 15, m=100, d=d, rng=seed)
            scores = score(learn_private_image(sim.encodings), sim.private)
            assert scores.wrong == 0
            verified += scores.exact
    assert verified >= 16


@pytest.mark.parametrize(("k", "n"), [(2, 4), (3, 6)])
def test_n_equal_to_2k_is_ambiguous_and_never_verified(k, n):
    for seed in range(2):
        sim = simulate(Scheme(k), n, m=60, d=6000, rng=seed)
        recovery = learn_private_image(sim.encodings)
        assert not recovery.verified.any()
        if len(recovery):
            assert set(recovery.status.tolist()) == {"ambiguous"}


def test_random_signs_carry_the_same_information_as_absolute_values():
    absolute, random = (
        learn_private_image(simulate(Scheme(2, signs=signs), 20, m=120, d=3072, rng=3).encodings)
        for signs in ("absolute", "random")
    )
    np.testing.assert_array_equal(absolute.vectors, random.vectors)
    assert absolute.explanation == random.explanation


def test_the_users_own_vectors_are_recovered_when_their_scale_is_unknown():
    rng = np.random.default_rng(0)
    private = 40 * rng.standard_normal((20, 3072))
    sim = simulate(Scheme(2), m=120, private=private, rng=0)
    scores = score(learn_private_image(sim.encodings), private, tolerance=0.4)
    assert (scores.exact, scores.wrong) == (4, 0)


def test_a_wrong_belief_about_pixel_sizes_is_ambiguous():
    sim = simulate(Scheme(2), 15, m=60, d=2000, rng=0)
    recovery = learn_private_image(Encodings(2 * sim.encodings.values, Scheme(2)))
    assert set(recovery.status.tolist()) == {"ambiguous"}
    assert "scale" in recovery.explanation


def test_the_attack_is_deterministic_and_the_memory_limit_does_not_change_it():
    sim = simulate(Scheme(2), 20, m=120, d=3072, rng=1)
    first, second = (
        learn_private_image(sim.encodings, rng=0),
        learn_private_image(sim.encodings, memory_limit=1_000_000),
    )
    np.testing.assert_array_equal(first.vectors, second.vectors)
    assert first.evidence == second.evidence


def test_noise_beyond_the_tolerance_is_never_verified():
    sim = simulate(Scheme(2), 15, m=60, d=2000, noise=0.05, rng=0)
    recovery = learn_private_image(sim.encodings)
    assert not recovery.verified.any()


def test_too_few_encodings_give_an_empty_recovery_that_says_how_many_are_needed():
    sim = simulate(Scheme(2), 100, m=60, d=3072, rng=0)
    recovery = learn_private_image(sim.encodings)
    assert len(recovery) == 0
    assert recovery.members.shape == (60, 0)
    assert "no floral submatrix among 60 encodings of about" in recovery.explanation
    assert "encodings on" in recovery.explanation
    assert score(recovery, sim.private).missing == 100


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [
        np.ones((1, 5)),
        np.zeros((30, 50)),
        np.ones((30, 50)),
        np.eye(30),
        np.tile(np.random.default_rng(0).standard_normal(400), (30, 1)),
        np.random.default_rng(0).standard_normal((30, 1)),
        np.random.default_rng(0).standard_normal((30, 400)),
    ],
)
def test_encodings_that_hold_no_floral_give_an_explanation_not_an_exception(values):
    for k in (2, 3, 4):
        recovery = learn_private_image(Encodings(values, Scheme(k)))
        assert not recovery.verified.any()
        assert "floral" in recovery.explanation or len(recovery)


def test_bad_input_is_refused_in_one_sentence():
    ones = np.ones((4, 6))
    for k in (0, 1):
        with pytest.raises(InputError, match=f"k_private={k}: the floral attack needs"):
            learn_private_image(Encodings(ones, Scheme(k, 2)), ones)
    with pytest.raises(InputError, match="no public vectors"):
        learn_private_image(Encodings(ones, Scheme(2, 2)))
    with pytest.raises(InputError, match="5 pixels, encodings 6"):
        learn_private_image(Encodings(ones, Scheme(2, 2)), np.ones((4, 5)))
    with pytest.raises(InputError, match="memory_limit"):
        learn_private_image(Encodings(ones, Scheme(2)), memory_limit=-5)


def test_every_stage_reports_progress():
    sim = simulate(Scheme(2, 1), 15, n_public=20, m=100, d=2000, rng=0)
    seen = set()
    learn_private_image(
        sim.encodings, sim.public, progress=lambda stage, done, total: seen.add(stage)
    )
    assert {"learn public", "overlaps"} <= seen
