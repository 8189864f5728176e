"""Kept results: read back under their own name only."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from unveil.kept import keep_arrays, keep_json, kept_arrays, kept_json, name_of


def test_what_was_kept_comes_back_under_its_name_only(tmp_path: Path) -> None:
    keep_arrays(tmp_path / "a.npz", "one", {"x": np.arange(3)})
    keep_json(tmp_path / "a.json", "one", {"x": 3})
    found = kept_arrays(tmp_path / "a.npz", "one")
    assert found is not None
    assert list(found) == ["x"]
    assert found["x"].tolist() == [0, 1, 2]
    assert kept_json(tmp_path / "a.json", "one") == {"x": 3}
    for name in ("a.npz", "a.json"):
        shutil.copy(tmp_path / name, tmp_path / f"b{name[1:]}")
    assert kept_arrays(tmp_path / "b.npz", "two") is None
    assert kept_json(tmp_path / "b.json", "two") is None


def test_what_is_not_there_or_damaged_is_none(tmp_path: Path) -> None:
    keep_arrays(tmp_path / "a.npz", "one", {"x": np.arange(30)})
    keep_json(tmp_path / "a.json", "one", {"x": 3})
    assert kept_arrays(tmp_path / "no.npz", "one") is None
    assert kept_json(tmp_path / "no.json", "one") is None
    whole = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path, content in whole.items():
        for length in range(0, len(content) - 1, 7):
            path.write_bytes(content[:length])
            assert (kept_arrays if path.suffix == ".npz" else kept_json)(path, "one") is None
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    assert kept_arrays(tmp_path / "a.npz", "one") is None
    (tmp_path / "a.json").write_text('{"kept as": "one", "facts": 3}')
    assert kept_json(tmp_path / "a.json", "one") is None


def test_everything_counts_for_the_name() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    other = array.copy()
    other[2, 3] += 1e-6
    names = {
        name_of({"a": 1}, array),
        name_of({"a": 2}, array),
        name_of({"a": "1"}, array),
        name_of({"a": 1}, other),
        name_of({"a": 1}, array.reshape(4, 3)),
        name_of({"a": 1}, array.view(np.int32)),
        name_of({"a": 1}, array, None),
        name_of({"a": 1}, None, array),
        name_of({"a": 1}, array[:2], array[2:]),
        name_of({"a": 1}, array[:1], array[1:]),
        name_of({"a": 1}),
    }
    assert len(names) == 11
    assert name_of({"b": 2, "a": 1}, np.asfortranarray(array)) == name_of({"a": 1, "b": 2}, array)
