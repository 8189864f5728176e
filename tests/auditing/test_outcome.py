"""What "back" means: values, columns, records, signs, open values, and noise that is nobody."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import unveil
from unveil.auditing.outcome import (
    EXACT,
    NEAR,
    Yardstick,
    assess,
    beyond_guessing,
    disguised,
    distinct,
)
from unveil.records import Recovery


def recovered(vectors, m=40, signed=True, doubtful=None, members=None):
    r = len(vectors)
    return Recovery(
        vectors=np.asarray(vectors, np.float32),
        status=np.full(r, "unresolved", "<U10"),
        signed=signed,
        members=sparse.csr_array((m, r), dtype=bool) if members is None else members,
        residual=np.zeros(r),
        reasons=("",) * r,
        attack="test",
        explanation="",
        doubtful=doubtful,
    )


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 9)).astype(np.float32)
    x[:, 4:] = rng.random((50, 5)) < 0.4
    return x


def yard_of(x, images=False):
    return Yardstick.of(x, 1e-2, images)


def test_everything_back_in_any_order(table):
    order = np.random.default_rng(1).permutation(50)
    outcome = assess(recovered(table[order]), yard_of(table))
    assert (outcome.value == EXACT).all()
    assert (outcome.record == 3).all()
    assert (order[outcome.vector] == np.arange(50)).all()


def test_one_sign_per_column_is_free_only_where_signs_were_hidden(table):
    flipped = table * np.where(np.arange(9) % 2, -1, 1)
    assert (assess(recovered(flipped, signed=False), yard_of(table)).record == 3).all()
    assert not (assess(recovered(flipped), yard_of(table)).record == 3).any()


def test_one_vector_alone_cannot_choose_its_own_signs():
    x = np.random.default_rng(0).standard_normal((30, 20)).astype(np.float32)
    alone = assess(recovered(np.abs(x[:1]), signed=False), yard_of(x))
    assert not (alone.record == 3).any()


def test_open_values_do_not_keep_a_record_from_being_back_but_count_in_their_column(table):
    rng = np.random.default_rng(2)
    guess = table.copy()
    guess[:, 4:] = rng.permuted(table[:, 4:], axis=0)
    doubtful = np.zeros(table.shape, bool)
    doubtful[:, 4:] = True
    outcome = assess(recovered(guess, doubtful=doubtful), yard_of(table))
    assert (outcome.record == 3).all()
    assert (outcome.value[:, :4] == EXACT).all()
    right = (guess[:, 4:] == table[:, 4:]).mean(axis=0)
    assert (outcome.value[:, 4:] == EXACT).mean(axis=0) == pytest.approx(right)
    # The same guesses, claimed: no record is back, four columns are.
    claimed = assess(recovered(guess), yard_of(table))
    assert (claimed.record[(guess != table).any(axis=1)] < 3).all()
    assert ((claimed.value == EXACT).sum(axis=0)[:4] >= 45).all()


def test_a_record_is_in_part_back_where_some_columns_are():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 12)).astype(np.float32)
    half = x.copy()
    half[:, 6:] = rng.standard_normal((40, 6))
    outcome = assess(recovered(half), yard_of(x))
    assert (outcome.record == 1).all()
    assert (outcome.value[:, :6] == EXACT).all()


def test_values_that_are_nearly_back_put_a_record_in_part_back_too():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 12)).astype(np.float32)
    half = x + np.float32(0.05) * x.std(axis=0)
    half[:, 9:] = rng.standard_normal((60, 3))
    outcome = assess(recovered(half), yard_of(x))
    assert not (outcome.value == EXACT).all(axis=1).any()
    assert set(outcome.record) == {1, 2}


@pytest.mark.parametrize("junk", [0, 60])
def test_records_in_other_units_are_recognised(junk):
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((120, 8)) * 10.0 ** np.arange(-4, 4) + 5 * 10.0 ** np.arange(-4, 4)
    raw[:, 7] = rng.random(120) < 0.4
    signs = np.where(np.arange(8) % 3, -1, 1)
    plain = rng.permutation((raw - raw.mean(axis=0)) / raw.std(axis=0) * signs)
    vectors = np.concatenate([plain, rng.standard_normal((junk, 8))]).astype(np.float32)
    outcome = disguised(vectors, yard_of(raw.astype(np.float32)))
    assert (outcome.record == 2).all()
    assert (outcome.value == NEAR).all()
    assert "units" in outcome.disguise


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("binary", [False, True])
def test_noise_is_no_record_in_disguise(seed, binary):
    rng = np.random.default_rng(seed)
    x, noise = rng.standard_normal((2, 120, 8)).astype(np.float32)
    if binary:
        x, noise = (x > 0.3).astype(np.float32), (noise > 0.3).astype(np.float32)
    assert not disguised(noise, yard_of(x)).record.any()
    assert not disguised(rng.permuted(x, axis=0), yard_of(x)).record.any()


def test_approximately_is_a_tenth_of_the_spread(table):
    wide = np.random.default_rng(3).standard_normal((50, 30)).astype(np.float32)
    outcome = assess(recovered(wide + 0.08 * wide.std(axis=0)), yard_of(wide))
    assert (outcome.value == NEAR).all()
    assert (outcome.record == 2).all()


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_nobody(table, seed):
    rng = np.random.default_rng(seed)
    # The right columns, put together at random: each value exists, no record does.
    vectors = rng.permuted(table, axis=0)
    assert (assess(recovered(vectors), yard_of(table)).record < 2).all()
    noise = rng.standard_normal((200, 9))
    assert (assess(recovered(noise, signed=False), yard_of(table)).record == 0).all()


def test_who_is_mixed_tells_records_apart_where_two_columns_do_not():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 2)).astype(np.float32)
    sim = unveil.simulate(unveil.Scheme(2), private=x, m=200, rng=0)
    rows = np.repeat(np.arange(200), 2)
    W = sparse.csr_array((np.ones(400, bool), (rows, sim.selection.private.ravel())), (200, 30))
    close = x + np.float32(0.04)
    alone = assess(recovered(close, m=200), yard_of(x))
    known = assess(recovered(close, m=200, members=W), yard_of(x), W)
    assert (known.vector == np.arange(30)).all()
    assert (alone.vector >= 0).sum() < 30


def test_a_free_scale_is_found(table):
    # Its own factor, and one sign per column as of a mask that all encodings share.
    vectors = 0.3 * table * np.where(np.arange(9) % 2, -1, 1)
    assert (assess(recovered(vectors), yard_of(table), free_scale=True).record == 3).all()


def test_wrong_verified_vectors_are_counted(table):
    vectors = table.copy()
    vectors[3] += 1
    claim = replace(recovered(vectors), status=np.full(50, "verified", "<U10"))
    assert assess(claim, yard_of(table)).wrong == 1


def test_an_image_counts_where_it_looks_like_the_original():
    rng = np.random.default_rng(0)
    x = rng.random((20, 64)).astype(np.float32)
    noisy = x + 0.25 * x.std() * rng.standard_normal(x.shape)
    assert (assess(recovered(noisy), yard_of(x, images=True)).record == 2).all()


def test_guessing_a_column_is_the_fullest_window():
    x = np.array([[0, 0], [0, 1], [0, 2], [1, 3]], np.float32)
    exact, _ = yard_of(x).guesses
    assert exact.tolist() == [0.75, 0.25]
    assert beyond_guessing(np.array([4, 4]), 4, exact, np.ones(2, bool)).tolist() == [False, False]
    many = beyond_guessing(np.array([40, 40]), 40, exact, np.ones(2, bool))
    assert many.tolist() == [True, True]


def test_equal_records_are_one():
    x = np.array([[1, 2], [3, 4], [1, 2], [-0.0, 0], [0, 0]], np.float32)
    first, group = distinct(x)
    assert first.tolist() == [0, 1, 3]
    assert group.tolist() == [0, 1, 0, 2, 2]
