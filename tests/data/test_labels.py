"""Labels from every form of file, as numbers from 0 on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unveil.checks import InputError
from unveil.data.labels import read_labels


def test_words_and_numbers_become_classes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label\nsick\nwell\nsick\n\n")
    assert read_labels(tmp_path / "a.csv").tolist() == [0, 1, 0]
    np.save(tmp_path / "a.npy", np.array([[7], [3], [7]]))
    assert read_labels(tmp_path / "a.npy").tolist() == [1, 0, 1]
    np.save(tmp_path / "f.npy", np.array([0.0, 2.0]))
    assert read_labels(tmp_path / "f.npy").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros((3, 2)), r"shape \(3, 2\): labels are one per record"),
        (np.array([0.5, 1.0]), "fractions"),
        (np.array([4, 4]), "one class only"),
    ],
)
def test_what_are_no_labels_is_told(values, words: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InputError, match=words):
        read_labels(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("content", "words"), [(b"class\n", "is empty"), (b"\xff\xfe\x00", "UTF-8")]
)
def test_text_that_holds_none(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_labels(tmp_path / "a.txt")
