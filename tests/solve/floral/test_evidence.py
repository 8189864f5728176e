"""Evidence for a reading: its sign under both truths."""

import numpy as np
import pytest

from unveil.solve.floral.evidence import PIXELS, Evidence, gather_evidence


def witnesses(k, family, d=1500, rows=12, seed=0, with_offsets=False, weight=None):
    """Solution x of a floral under "subsets", and encodings that share one vector with the truth of
    the given family."""
    rng = np.random.default_rng(seed)
    weight = weight or 1 / np.sqrt(k)
    if family == "subsets":
        x = rng.standard_normal((k + 2, d))
        known = x
    else:
        petals, core = rng.standard_normal((k + 2, d)), rng.standard_normal((k - 2, d))
        x = (core.sum(axis=0) + petals.sum(axis=0)) / k - petals
        known = petals
    c = rng.standard_normal((rows, d)) if with_offsets else None
    y, tau = np.empty((rows, d), np.float32), np.empty((rows, k + 2))
    for row in range(rows):
        name = rng.integers(k + 2)
        mixed = weight * (known[name] + rng.standard_normal((k - 1, d)).sum(axis=0))
        y[row] = np.abs(mixed + (0 if c is None else c[row]))
        one = np.eye(k + 2)[name]
        tau[row] = one if family == "subsets" else 1 / k - one
    return y, tau, x, weight, c


@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("k", range(2, 7))
def test_the_evidence_is_positive_when_subsets_are_the_truth_and_negative_when_a_sunflower_is(
    k, with_offsets
):
    for family, sign in (("subsets", 1), ("sunflower", -1)):
        nats = gather_evidence(*witnesses(k, family, d=4000, with_offsets=with_offsets)).reading
        assert nats.shape == (12,)
        # One of k vectors is known: the fewer the share, the fewer the nats of a single encoding.
        assert (sign * nats > 0).all() or k > 4
        assert sign * nats.sum() > 10


@pytest.mark.parametrize("k", [2, 3, 4])
def test_overlaps_that_suggest_the_wrong_names_do_not_turn_the_evidence(k):
    # tau of the other family: the pixels, not the overlaps, decide.
    for family, other, sign in (("subsets", "sunflower", 1), ("sunflower", "subsets", -1)):
        y, _, x, weight, c = witnesses(k, family)
        wrong = witnesses(k, other)[1]
        assert sign * gather_evidence(y, wrong, x, weight, c).reading.sum() > 10


@pytest.mark.parametrize("k", [2, 3, 4])
def test_strangers_say_next_to_nothing_about_the_reading(k):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((k + 2, 1500))
    y = np.abs(rng.standard_normal((20, 1500))).astype(np.float32)
    evidence = gather_evidence(y, np.zeros((20, k + 2)), x, 1 / np.sqrt(k))
    # Both families allow an encoding that shares nothing; another candidate beats it by chance
    # only, by a few nats.
    assert np.abs(evidence.reading).max() < 5
    assert not evidence.contradicts(k)


@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("k", range(2, 7))
def test_encodings_of_these_vectors_gain_from_free_coefficients_by_chance_only(k, with_offsets):
    evidence = gather_evidence(*witnesses(k, "subsets", rows=40, with_offsets=with_offsets))
    assert not evidence.contradicts(k)
    # A free fit is at least about as good as the best whole one (EM stops after a fixed number of
    # steps).
    assert evidence.excess.min() > -1
    # ½χ² with k+3 degrees of freedom has mean (k+3)/2.
    assert 0.3 < evidence.excess.mean() / ((k + 3) / 2) < 1.5


@pytest.mark.parametrize("k", range(2, 7))
def test_encodings_with_fractions_of_these_vectors_contradict_them(k):
    # Other encodings hold half of every vector: not what the scheme makes.
    _, _, x, weight, _ = witnesses(k, "subsets")
    half = np.full((40, k + 2), 0.5)
    rest = np.sqrt(k - (k + 2) / 4) * np.random.default_rng(3).standard_normal((40, 1500))
    evidence = gather_evidence(
        np.abs(weight * (half @ x + rest)).astype(np.float32), half, x, weight
    )
    assert evidence.contradicts(k)


def test_the_bound_of_chance_is_where_the_docstring_puts_it():
    # 10 encodings, k = 2: mean 25; 1.2·25 + 6·5 + 10 = 70 nats in all.
    assert not Evidence(np.zeros(10), np.full(10, 6.9)).contradicts(2)
    assert Evidence(np.zeros(10), np.full(10, 7.1)).contradicts(2)


def test_evidence_grows_with_pixels_up_to_the_limit_and_not_beyond():
    y, tau, x, weight, _ = witnesses(2, "subsets", d=PIXELS + 500, rows=3)
    few, many, all_of_them = (
        gather_evidence(y[:, :p], tau, x[:, :p], weight).reading.sum() for p in (300, PIXELS, None)
    )
    assert 0 < few < many
    assert all_of_them == many


def test_no_encodings_give_no_evidence():
    evidence = gather_evidence(np.empty((0, 9), np.float32), np.empty((0, 4)), np.ones((4, 9)), 0.7)
    assert evidence.reading.shape == (0,)
    assert not evidence.contradicts(2)
