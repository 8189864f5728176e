"""Outcomes record by record: against the truth, whatever the attack believes, and never by the luck
of free signs."""

import numpy as np
import pytest
from scipy import sparse

from unveil.auditing.risks import ALMOST, EXACT, NOT, assess
from unveil.records import Recovery


def recovery(vectors, status="verified", signed=False):
    r = len(vectors)
    statuses = np.full(r, status, dtype="<U10")
    members = sparse.csr_array((3, r), dtype=bool)
    return Recovery(
        vectors.astype(np.float32),
        statuses,
        signed,
        members,
        np.zeros(r),
        ("",) * r,
        "full",
        "",
        {},
        {},
    )


@pytest.fixture
def truth():
    return np.random.default_rng(0).standard_normal((12, 200)).astype(np.float32)


@pytest.mark.parametrize("status", ["verified", "ambiguous", "unresolved"])
def test_exact_is_exact_whatever_the_attack_believes(truth, status):
    flips = np.random.default_rng(1).choice([-1, 1], 200)
    risks = assess(recovery(truth[[3, 5, 7, 1]] * flips, status), truth)
    assert np.flatnonzero(risks.outcome == EXACT).tolist() == [1, 3, 5, 7]
    assert (risks.outcome[[0, 2, 4]] == NOT).all()
    assert risks.which[5] == 1
    assert risks.wrong == 0
    np.testing.assert_allclose(risks.vectors[0], truth[3], atol=1e-6)
    assert np.isnan(risks.error[0])


def test_noise_makes_it_approximate_and_more_noise_nothing(truth):
    noise = np.random.default_rng(2).standard_normal((6, 200))
    for size, outcome in ((0.2, ALMOST), (1.0, NOT)):
        risks = assess(recovery(truth[:6] + size * noise, "unresolved", signed=True), truth)
        assert (risks.outcome[:6] == outcome).all()


def test_a_wrong_verified_vector_is_counted(truth):
    vectors = truth[:5].copy()
    vectors[2, 17] += 0.5
    risks = assess(recovery(vectors), truth)
    assert risks.wrong == 1
    assert risks.outcome[2] == ALMOST
    assert risks.error[2] == pytest.approx(0.5, abs=1e-3)


def test_what_all_records_have_in_common_is_no_leak(truth):
    """The mean of all records correlates by 0.99 with each of them, and says nothing of any."""
    records = truth + 10 * np.random.default_rng(3).standard_normal(200).astype(np.float32)
    mean = records.mean(axis=0)
    assert np.corrcoef(mean, records[0])[0, 1] > 0.97
    risks = assess(recovery(np.tile(mean, (5, 1)), signed=True), records)
    assert risks.recovered == 0


def test_free_signs_cannot_be_used_by_the_vector_they_would_flatter():
    """Binary records have equal magnitudes: with signs of its own choice a vector of ones would
    equal any record."""
    records = np.random.default_rng(0).choice([-1, 1], (10, 300)).astype(np.float32)
    for count in (1, 4):
        risks = assess(recovery(np.ones((count, 300)), "ambiguous"), records)
        assert risks.recovered == 0


def test_a_vector_counts_for_one_record_only(truth):
    records = truth.copy()
    records[1] = records[0] + 1e-1 * np.random.default_rng(4).standard_normal(200).astype(
        np.float32
    )
    risks = assess(recovery(records[[0, 4, 5, 6]]), records)
    assert risks.outcome[0] == EXACT
    assert risks.outcome[1] == NOT


def test_few_pixels_are_never_approximate(truth):
    few = truth[:, :10]
    assert (assess(recovery(few[:5] + 0.05, signed=True), few).outcome < EXACT).all()
    assert not (assess(recovery(few[:5] + 0.05, signed=True), few).outcome == ALMOST).any()


def test_nothing_recovered(truth):
    risks = assess(recovery(np.empty((0, 200))), truth)
    assert risks.recovered == 0
    assert (risks.which == -1).all()


def test_tolerance_is_relative_to_the_data(truth):
    vectors = 100 * truth[:6]
    vectors[:, 0] += 0.5
    assert (assess(recovery(vectors), 100 * truth).outcome[:6] == EXACT).all()
    assert (
        assess(recovery(vectors), 100 * truth, relative_tolerance=1e-3).outcome[:6] == ALMOST
    ).all()


def test_wrong_signs_in_a_flat_background_do_not_hide_a_picture():
    rng = np.random.default_rng(3)
    truth = np.full((8, 400), -1, np.float32)
    for row in truth:
        row[rng.choice(300, 60, replace=False)] = rng.uniform(0, 1, 60)
    found = truth.copy()
    found[:, 300:340] = 1  # where all records are −1 their common sign is anyone's guess
    risks = assess(recovery(found, "unresolved", signed=True), truth)
    assert (risks.outcome == ALMOST).all()
    assert (risks.correlation < 0.9).all()
    blank = np.full_like(truth, -1)
    assert (assess(recovery(blank, "unresolved", signed=True), truth).outcome == NOT).all()


def test_equal_records_are_back_together(truth):
    twice = np.vstack([truth, truth])
    risks = assess(recovery(truth[:5]), twice)
    assert np.flatnonzero(risks.outcome == EXACT).tolist() == [*range(5), *range(12, 17)]


def test_a_common_scale_is_free_where_weights_are_unknown(truth):
    flips = np.random.default_rng(1).choice([-1, 1], 200)
    found = recovery(0.37 * truth[:6] * flips, signed=True)
    assert assess(found, truth).recovered == 0
    assert (assess(found, truth, free_scale=True).outcome[:6] == EXACT).all()


def test_control_is_what_other_records_and_public_ones_give(truth):
    assert assess(recovery(truth[:6], signed=True), truth).control == 0
    near = truth.copy()
    near[6:] = near[:6] + np.random.default_rng(2).normal(0, 0.1, (6, 200))
    # Who is back exactly is guessed by none that is like it; who is back nearly, or not, is.
    assert assess(recovery(near[:6], signed=True), near).control == 0.5
    about = near + np.random.default_rng(3).normal(0, 0.1, near.shape).astype(np.float32)
    assert assess(recovery(about, signed=True), near).control == 1
    assert assess(recovery(near, signed=True), near).control == 0
    public = truth[::2] + np.float32(1e-4)
    assert assess(recovery(truth[:6], signed=True), truth, public=public).control == 0.5


def test_single_values_are_counted(truth):
    half = truth.copy()
    half[:, 100:] = np.random.default_rng(5).standard_normal((12, 100))
    risks = assess(recovery(half, signed=True), truth)
    assert risks.recovered == 0
    assert 0.4 < risks.values < 0.6
    assert risks.guessed_values < 0.05


def test_few_values_count_where_most_are_right_and_no_other_record_has_them(truth):
    few = truth[:, :10].copy()
    found = few[:5].copy()
    found[:, 0] += 1
    assert (assess(recovery(found, signed=True), few).outcome[:5] == ALMOST).all()
    found[:, :4] += 1
    assert (assess(recovery(found, signed=True), few).outcome[:5] == NOT).all()


def test_an_offset_common_to_all_widens_no_bound(truth):
    far = (truth + 1000).astype(np.float32)
    off = far + 0.1 * np.random.default_rng(3).standard_normal(far.shape).astype(np.float32)
    assert EXACT not in assess(recovery(off, signed=True), far).outcome
    assert (assess(recovery(far, signed=True), far).outcome == EXACT).all()
