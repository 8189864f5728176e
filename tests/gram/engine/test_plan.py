"""Plans: one pass where screening does not pay, losses as stated, blocks under the limit, words."""

import numpy as np
import pytest

from unveil import InputError, Scheme
from unveil.gram.engine.plan import LARGEST_BLOCK, LOSS, level_thresholds, log_odds, make_plan
from unveil.gram.levels import folded_levels, lattice
from unveil.gram.psi import psi


def plan(k=2, m=10_000, d=3072, **options):
    return make_plan(
        folded_levels(Scheme(k)), m, d, statistic="folded", z=lattice(Scheme(k)), **options
    )


def test_many_encodings_of_two_vectors_are_screened():
    made = plan(occupancy=0.004)
    assert made.edges[0] < 3072 / 2
    assert made.edges[-1] == 3072
    assert len(made.cuts) == len(made.edges)
    assert (np.diff(made.edges) > 0).all()
    assert made.loss == LOSS
    assert "screen on" in str(made)


@pytest.mark.parametrize(
    "options",
    [{"m": 500}, {"k": 4, "d": 1024}, {"occupancy": 0.6}, {"rounding": "paper"}, {"d": 100}],
    ids=str,
)
def test_one_pass_where_screening_does_not_pay(options):
    made = plan(**options)
    assert made.edges == (made.d,)
    assert made.loss == 0
    assert "one pass" in str(made)


@pytest.mark.parametrize("loss", [0.1, 1e-3, 1e-6])
def test_pairs_with_overlap_one_are_lost_as_rarely_as_stated(loss):
    made, levels = plan(loss=loss, screen=512), folded_levels(Scheme(2))
    lost = [
        float(levels.of_part(e / made.d).below(cut * made.d / e, 0, 1, e))
        for e, cut in zip(made.edges[:-1], made.cuts[:-1], strict=True)
    ]
    assert sum(lost) <= 1.1 * loss
    assert lost[0] > 0.1 * loss


def test_a_looser_screen_costs_less_and_a_tighter_one_more():
    work = [plan(occupancy=0.004, loss=loss).work for loss in (1e-2, 1e-4, 1e-6, 1e-8)]
    assert work == sorted(work)


@pytest.mark.parametrize("loss", [0, 0.5, -1, 2])
def test_a_loss_that_is_no_small_fraction_is_refused(loss):
    with pytest.raises(InputError, match="fraction of overlapping pairs"):
        plan(loss=loss)


@pytest.mark.parametrize("limit", [1, 10**5, 10**7, 10**9, 10**12])
def test_blocks_fit_the_limit_and_cover_every_pair_once(limit):
    made = plan(m=50, limit=limit)
    assert made.block == 1 or 4 * made.bytes_per_task <= limit
    assert made.block <= LARGEST_BLOCK
    assert sorted(made.tasks) == [(i, j) for i in range(made.blocks) for j in range(i, made.blocks)]


def test_thresholds_are_balanced_or_the_papers():
    levels, z = folded_levels(Scheme(3)), lattice(Scheme(3))
    t = level_thresholds(levels, "balanced")[0]
    np.testing.assert_allclose(
        (t - levels.mean[0, :-1]) / levels.sd[0, :-1], (levels.mean[0, 1:] - t) / levels.sd[0, 1:]
    )
    np.testing.assert_allclose(level_thresholds(levels, "paper", z)[0], psi([1 / 6, 1 / 2, 5 / 6]))


def test_doubts_are_settled_as_far_as_they_are_affordable():
    assert plan(doubt="never").doubt == 0
    assert plan(doubt="affordable", occupancy=0.004).doubt == 14
    assert plan(k=3, d=1024, m=60_000, doubt="affordable").doubt < 14
    assert plan(k=3, d=1024, m=60_000, doubt="always").doubt == 14
    made = plan(doubt="always", occupancy=0.004)
    levels = folded_levels(Scheme(2))
    assert made.cuts[-1] < made.thresholds[0][0]
    assert log_odds(levels, np.array(made.cuts[-1]), 0, 0, made.d) == pytest.approx(-14, abs=0.5)


def test_expected_errors_fall_with_pixels():
    errors = [plan(d=d).expected_errors for d in (500, 1000, 2000, 4000)]
    assert errors == sorted(errors, reverse=True)
