"""The user's own arrays as vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unveil.data import load_vectors
from unveil.records import InputError


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
