"""What comes from outside is as asked for, or one sentence says how to make it so."""

import numpy as np
import pytest

from unveil.checks import InputError, as_vectors, is_count, row_blocks


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (np.ones(4), "2-D array"),
        (np.ones((2, 2, 2)), "flatten images first"),
        (np.ones((0, 4)), "is empty"),
        (np.ones((4, 0)), "is empty"),
        (np.ones((2, 2), dtype=complex), "give real numbers"),
        (np.array([["a", "b"]]), "give real numbers"),
        (np.array([[None, 1]]), "give real numbers"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "row 1, pixel 1 is NaN"),
        (np.array([[np.inf, 2.0]]), "row 0, pixel 0"),
        (np.array([[1.0, 1e300]]), "row 0, pixel 1 is NaN, infinite or beyond float32"),
        (np.array([[1e25, 1.0]]), r"the largest value is 1e\+25, too far from 1"),
        (np.array([[1e-40, 0.0]]), "the largest value is 1e-40, too far from 1"),
    ],
)
def test_bad_vectors_are_refused_with_their_place_and_the_cure(values, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        as_vectors(values, "encodings")
    assert str(caught.value).startswith("encodings")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float64, bool])
def test_every_real_dtype_becomes_float32_in_c_order(dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    out = as_vectors(np.asfortranarray(values), "x")
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, values.astype(np.float32))


def test_a_bad_value_in_a_later_block_is_reported_with_its_own_row(monkeypatch):
    monkeypatch.setattr("unveil.checks.row_blocks", lambda array: row_blocks(array, numbers=8))
    values = np.ones((10, 4), np.float32)
    values[7, 2] = np.nan
    with pytest.raises(InputError, match="row 7, pixel 2"):
        as_vectors(values, "x")


def test_row_blocks_cover_every_row_once():
    array = np.arange(35).reshape(7, 5)
    for numbers in (1, 5, 11, 35, 1000):
        blocks = list(row_blocks(array, numbers))
        assert [start for start, _ in blocks] == list(
            np.cumsum([0] + [len(b) for _, b in blocks])[:-1]
        )
        np.testing.assert_array_equal(np.concatenate([b for _, b in blocks]), array)
        assert max(b.size for _, b in blocks) <= max(numbers, 5)


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, np.float64(2)])
def test_a_count_is_a_whole_number(value):
    assert not is_count(value)
    assert is_count(np.int8(3), 3)
    assert not is_count(2, 3)


def test_masked_numbers_are_noticed():
    masked = np.ma.array([[1.0, 2.0]], mask=[[False, True]])
    with pytest.raises(InputError, match="row 0, pixel 1 is NaN"):
        as_vectors(masked, "x")
