"""The user's own arrays as vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unveil.checks import InputError
from unveil.data import load_vectors
from unveil.data.arrays import in_units_of, load_shaped


@pytest.mark.parametrize("shape", [(5, 12), (5, 3, 4), (5, 2, 2, 3)])
@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8", "?"])
def test_images_are_flattened_and_values_kept(
    shape: tuple[int, ...], dtype: str, tmp_path: Path
) -> None:
    array = np.arange(60).reshape(shape).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    vectors = load_vectors(tmp_path / "a.npy")
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    assert np.array_equal(vectors, array.reshape(5, 12))


def test_fortran_order_is_no_trap(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    np.save(tmp_path / "a.npy", array)
    assert np.array_equal(load_vectors(tmp_path / "a.npy"), array)


def test_npz_with_one_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", anything=np.ones((2, 3)))
    assert load_vectors(str(tmp_path / "a.npz")).shape == (2, 3)


def test_a_folder_is_a_folder_of_images(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no images"):
        load_vectors(tmp_path)


@pytest.mark.parametrize(
    ("array", "cure"),
    [
        (np.float32(3), "(items, pixels)"),
        (np.ones(6), "(items, pixels)"),
        (np.ones((0, 6)), "empty"),
        (np.ones((6, 0)), "empty"),
        (np.ones((0, 4, 4)), "empty"),
        (np.array([[1.0, np.nan]]), "row 0, pixel 1"),
        (np.array([[1.0], [-np.inf]]), "row 1, pixel 0"),
        (np.array([[1e39]]), "float32"),
        (np.ones((2, 2), complex), "real numbers"),
        (np.full((2, 2), "a"), "real numbers"),
        (np.zeros((2, 2), "M8[s]"), "real numbers"),
        (np.zeros((2, 2), "f4,f4"), "real numbers"),
    ],
    ids=str,
)
def test_refusals_name_the_cure(array: np.ndarray, cure: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(InputError) as caught:
        load_vectors(tmp_path / "a.npy", "private")
    assert cure in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="check the path"):
        load_vectors(tmp_path / "nowhere.npy")


def test_bytes_beside_encodings_of_small_numbers_are_brought_to_their_units():
    encodings = np.array([[0.1, 0.9]], np.float32)
    bytes_of = np.array([[0, 255], [51, 102]], np.float32)
    values, word = in_units_of(encodings, bytes_of, "like")
    np.testing.assert_allclose(values, [[-1, 1], [-0.6, -0.2]], atol=1e-6)
    assert word.startswith("like holds bytes from 0 to 255")


@pytest.mark.parametrize(
    ("encodings", "vectors"),
    [
        ([[90.0, 200.0]], [[0, 255]]),  # of bytes themselves
        ([[0.1, 0.9]], [[0, 3]]),  # a few levels
        ([[0.1, 0.9]], [[0.5, 200]]),  # no whole numbers
        ([[0.1, 0.9]], [[-4, 200]]),  # below zero
        ([[0.1, 0.9]], [[0, 999]]),  # beyond a byte
    ],
)
def test_what_may_be_in_its_own_units_stays(encodings, vectors):
    given = np.array(vectors, np.float32)
    values, word = in_units_of(np.array(encodings, np.float32), given, "like")
    assert word == ""
    assert values is given


def test_an_array_of_images_tells_its_shape(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2, 4, 3), np.float32))
    values, shape = load_shaped(tmp_path / "a.npy")
    assert (values.shape, shape) == ((3, 24), (2, 4, 3))
