"""Exact relations, from encodings to records of any distribution."""

import numpy as np
import pytest

import unveil
from unveil.attacks.related import rounding
from unveil.checks import InputError


def table(n, d, seed, levels=None):
    """Records as tables have them: correlated, skewed, some columns with few levels;
    standardised."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / np.sqrt(d))
    if levels:
        x[:, :levels] = rng.integers(0, 6, (n, levels))
    return ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)


def encode(x, m, k, seed):
    rng = np.random.default_rng(seed)
    subsets = np.array([np.sort(rng.choice(len(x), k, replace=False)) for _ in range(m)])
    return subsets, np.abs(x[subsets].sum(axis=1) / np.float32(np.sqrt(k)))


@pytest.mark.parametrize(("n", "m", "k", "d"), [(40, 280, 2, 8), (40, 280, 2, 4), (16, 250, 3, 6)])
def test_a_table_comes_back_with_fewer_columns_than_records(n, m, k, d):
    x = table(n, d, 0)
    subsets, y = encode(x, m, k, 1)
    recovery = unveil.recover(unveil.Encodings(y, unveil.Scheme(k), pixel_rms=None), rng=0)
    scores = unveil.score(recovery, x)
    assert recovery.attack == "relations"
    # A vector of two different encodings has two readings: nobody can tell.
    enough = [len(np.unique(subsets[(subsets == i).any(axis=1)], axis=0)) >= 4 for i in range(n)]
    assert scores.wrong == 0
    assert scores.exact >= sum(enough)


def test_columns_of_few_levels_cost_their_values_not_the_records():
    x = table(40, 14, 2, levels=6)
    _, y = encode(x, 280, 2, 3)
    recovery = unveil.recover(
        unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None), attack="relations", rng=0
    )
    scores = unveil.score(recovery, x)
    assert (scores.exact, scores.wrong) == (40, 0)
    assert recovery.doubtful is None or not recovery.doubtful[:, 6:].any()


def test_a_public_part_is_taken_off_and_gives_the_signs():
    rng = np.random.default_rng(4)
    x = table(30, 200, 4)
    public = rng.standard_normal((60, 200)).astype(np.float32)
    scheme = unveil.Scheme(k_private=2, k_public=1)
    sim = unveil.simulate(scheme, private=x, public=public, m=240, rng=5)
    recovery = unveil.recover(sim.encodings, sim.public, attack="relations", rng=0)
    scores = unveil.score(recovery, x)
    assert recovery.signed
    assert scores.wrong == 0
    # Whether the size of a private pixel must rule out other public labels is the certificate's
    # business: values are right.
    assert len(set(scores.matches[scores.matches >= 0].tolist())) >= 28


def test_rounded_encodings_come_back_up_to_rounding():
    x = table(40, 30, 6)
    _, y = encode(x, 320, 2, 7)
    step = float(y.max()) / 4000
    rounded = (np.round(y / step) * step).astype(np.float32)
    assert rounding(rounded) == pytest.approx(step, rel=1e-3)
    recovery = unveil.recover(
        unveil.Encodings(rounded, unveil.Scheme(2), pixel_rms=None), attack="relations", rng=0
    )
    assert not recovery.verified.any()
    error = np.array([np.abs(np.abs(v) - np.abs(x)).max(axis=1).min() for v in recovery.vectors])
    assert (error < 3 * step).sum() >= 38


@pytest.mark.parametrize("levels", [2, 3])
def test_columns_that_say_too_little_end_in_words(levels):
    rng = np.random.default_rng(8)
    x = rng.integers(0, levels, (40, 6)).astype(np.float32) - 0.37
    _, y = encode(x, 280, 2, 9)
    recovery = unveil.recover(
        unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None), attack="relations", rng=0
    )
    assert not recovery.verified.any()
    assert recovery.explanation


def test_fewer_than_four_different_encodings_are_counted_in_words():
    one = np.abs(np.random.default_rng(0).standard_normal((3, 40)))
    for y in (one[:1], one, np.repeat(one, 50, axis=0)):
        recovery = unveil.recover(
            unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None), attack="relations", rng=0
        )
        assert not len(recovery)
        assert f"{min(len(y), 3)} different encodings" in recovery.explanation


def test_relations_that_tell_nothing_are_not_called_few():
    """All pixels of an encoding are the same: one pixel, in truth, which anything fulfils."""
    y = np.repeat(np.random.default_rng(1).random((120, 1)), 30, axis=1)
    recovery = unveil.recover(
        unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None), attack="relations", rng=0
    )
    assert not recovery.verified.any()
    assert "too few to go by" not in recovery.explanation


def test_one_private_vector_is_refused():
    with pytest.raises(InputError, match="attack='full'"):
        unveil.recover(unveil.Encodings(np.ones((5, 4)), unveil.Scheme(1)), attack="relations")
