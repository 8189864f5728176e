"""TextHide: the pool of masks is found, and what is below it comes back."""

from dataclasses import replace

import numpy as np
import pytest

from unveil import Encodings, InputError, Scheme, recover, score, simulate
from unveil.attacks.unmask import _turned, unmask

TEXTHIDE = Scheme(2, weighting="half-normal", signs="masked", masks=4)


def features(n, d, seed=0):
    """Vectors that have something in common, as those of sentences do."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) + 3 * rng.standard_normal(d)).astype(np.float32)


def test_every_record_is_verified_up_to_one_sign_per_pixel():
    sim = simulate(TEXTHIDE, private=features(20, 60), m=600, rng=0)
    recovery = recover(sim.encodings, rng=0)
    scores = score(recovery, sim.private)
    assert (recovery.attack, scores.exact, scores.wrong) == ("unmask", 20, 0)
    assert not recovery.signed
    assert recovery.evidence["masks"] == 4
    assert recovery.explained == 600
    assert "all of one mask" in recovery.reasons[0]


def test_too_few_encodings_of_each_mask_verify_nothing_but_return_all():
    scheme = replace(TEXTHIDE, masks=40)
    sim = simulate(scheme, private=features(30, 80), m=600, rng=0)
    recovery = recover(sim.encodings, attack="unmask", rng=0)
    assert not recovery.verified.any()
    assert (score(recovery, sim.private).matches >= 0).sum() == 30
    assert "no mask has encodings enough" in recovery.reasons[0]


def test_more_records_than_pixels_come_back_unverified():
    sim = simulate(TEXTHIDE, private=features(100, 80), m=2400, rng=0)
    recovery = recover(sim.encodings, attack="unmask", rng=0)
    assert not recovery.verified.any()
    assert len(set(score(recovery, sim.private).matches) - {-1}) == 100
    assert "more records than pixels" in recovery.reasons[0]


def test_public_vectors_give_signs_and_are_left_out():
    scheme = Scheme(1, 1, "half-normal", signs="masked", masks=4)
    vectors = features(120, 80)
    sim = simulate(scheme, private=vectors[:20], public=vectors[20:], m=1500, rng=0)
    recovery = recover(sim.encodings, sim.public, rng=0)
    assert recovery.signed
    assert len(recovery) == 20
    assert (score(recovery, sim.private).matches >= 0).all()


def test_masks_that_are_alike_are_not_two_records():
    # A pool that is not of fair coins: two masks that agree at three of four pixels.
    rng = np.random.default_rng(0)
    sim = simulate(Scheme(2, weighting="half-normal", signs="kept"), 12, m=500, d=60, rng=0)
    which = rng.integers(0, 2, 500)
    masks = np.where(np.arange(60) % 4 == 0, [[1], [-1]], 1)
    taken = Encodings(sim.encodings.values * masks[which], replace(TEXTHIDE, masks=0))
    assert score(recover(taken, rng=0), sim.private).wrong == 0


def test_masks_that_are_not_told_verify_nothing():
    # Few records and masks: as MixUp every record counts once for each mask.
    sim = simulate(TEXTHIDE, private=features(12, 60), m=600, rng=0)
    taken = Encodings(sim.encodings.values, Scheme(2, weighting="unknown", signs="kept"))
    recovery = recover(taken, rng=0)
    assert not recovery.verified.any()
    assert "behind two sign masks" in recovery.reasons[0]


def test_independent_signs_show_no_masks():
    scheme = Scheme(3, weighting="half-normal", signs="random")
    sim = simulate(scheme, private=features(20, 60), m=200, rng=0)
    taken = Encodings(sim.encodings.values, replace(TEXTHIDE, k_private=3))
    recovery = unmask(taken, rng=0)
    assert not len(recovery)
    assert "no masks show" in recovery.explanation


@pytest.mark.parametrize("scheme", [Scheme(2), Scheme(2, signs="masked", masks=4)])
def test_other_schemes_are_refused_in_words(scheme):
    sim = simulate(scheme, 10, m=50, d=30, rng=0)
    with pytest.raises(InputError, match="attack='unmask' is for signs='masked'"):
        unmask(sim.encodings)


def test_signs_are_claimed_where_public_vectors_show_them():
    # Statistics of public vectors put some pixels wrong; the vectors themselves, once found, do not.
    rng = np.random.default_rng(0)
    mean = 2 * rng.standard_normal(60)
    X, P = (mean + rng.standard_normal((count, 60)) for count in (10, 8))
    scheme = Scheme(2, 1, "half-normal", signs="masked", masks=4)
    sim = simulate(scheme, private=X, public=P, m=300, rng=0)
    recovery = recover(sim.encodings, sim.public, rng=0)
    scores = score(recovery, sim.private)
    assert recovery.signed
    assert (len(recovery), scores.exact, scores.wrong) == (10, 10, 0)


def test_masks_without_a_common_record_have_signs_of_their_own():
    rng = np.random.default_rng(2)
    X = (3 * rng.standard_normal(40) + rng.standard_normal((16, 40))).astype(np.float32)
    parts = []
    for client in range(2):
        rows = np.array([rng.choice(8, 2, replace=False) for _ in range(120)]) + 8 * client
        weights = np.abs(rng.standard_normal((120, 2)))
        weights /= weights.sum(axis=1, keepdims=True)
        parts.append(rng.choice([-1, 1], 40) * (weights[:, :, None] * X[rows]).sum(axis=1))
    scheme = replace(TEXTHIDE, masks=2)
    encodings = Encodings(np.vstack(parts).astype(np.float32), scheme, None)
    recovery = recover(encodings, attack="unmask", rng=0)
    assert int(recovery.verified.sum()) == 8
    assert score(recovery, X).wrong == 0


def test_a_record_much_like_a_public_vector_turns_no_pixels():
    # It differs in more than signs, though at faint values it has other signs too.
    rng = np.random.default_rng(0)
    P = features(40, 60)
    P[0, :5] = 1e-3
    near = P[:1] + 0.05 * rng.standard_normal((1, 60))
    near[0, :5] = -2e-2
    assert not _turned(near, P).any()


def test_public_vectors_with_other_signs_turn_those_pixels():
    P = features(40, 60)
    signs = np.where(np.arange(60) % 7 == 0, -1.0, 1.0)
    assert (_turned(P[:6] * signs, P) == (signs < 0)).all()
