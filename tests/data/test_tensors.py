"""Tensors and .pt files: read by torch alone, without pickles; a stand-in for torch says how it is
asked."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from unveil.checks import InputError
from unveil.data import load_dataset, load_vectors
from unveil.data.tensors import INSTALL, as_array, read_any_array

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)


class Tensor:
    """What of a tensor is used; one with gradients refuses to be an array before it is detached."""

    def __init__(self, values, *, detached=False, dtype="torch.float32"):
        self.values, self.detached, self.dtype = values, detached, dtype

    def detach(self):
        return Tensor(self.values, detached=True, dtype=self.dtype)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.values, detached=self.detached)

    def numpy(self):
        if not self.detached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module in the place of torch whose `load` gives `torch.content` and notes its arguments."""
    module = ModuleType("torch")

    def load(path, **options):
        module.options = options
        if isinstance(module.content, Exception):
            raise module.content
        return module.content

    module.load = load
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "x.pt").write_bytes(b"PK\x03\x04 as torch writes it")
    return tmp_path / "x.pt"


@pytest.mark.parametrize("content", [Tensor(VALUES), {"x": Tensor(VALUES), "epoch": 3}])
def test_a_file_with_one_tensor_is_an_array(torch: ModuleType, file: Path, content) -> None:
    torch.content = content
    assert np.array_equal(load_vectors(file), VALUES)
    assert torch.options == {"map_location": "cpu", "weights_only": True}
    assert load_dataset(file, rng=np.random.default_rng(0)).source == "x.pt"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"a": Tensor(VALUES), "b": Tensor(VALUES)}, r"2 tensors \(a, b\)"),
        ([1, 2], "holds a list, no tensor"),
        (RuntimeError("Weights only load failed"), "what could run code is never opened"),
    ],
)
def test_other_files_are_refused_in_words(torch: ModuleType, file: Path, content, words) -> None:
    torch.content = content
    with pytest.raises(InputError, match=words):
        read_any_array(file)


def test_without_torch_the_line_that_installs_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError) as error:
        load_vectors(file)
    assert INSTALL in str(error.value)


def test_a_large_file_is_refused_before_it_is_read(torch: ModuleType, file: Path) -> None:
    torch.content = AssertionError("it was read")
    with pytest.raises(InputError, match="more than the"):
        read_any_array(file, limit=10)


def test_tensors_in_memory(torch: ModuleType) -> None:
    assert np.array_equal(as_array(Tensor(VALUES), "x"), VALUES)
    assert np.array_equal(as_array(Tensor(VALUES, dtype="torch.bfloat16"), "x"), VALUES)
    assert np.array_equal(as_array([[1, 2]], "x"), [[1, 2]])
    assert load_dataset(Tensor(VALUES), rng=np.random.default_rng(0)).values.shape == (4, 6)


def test_with_torch_itself(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is no part of the package")
    torch.save(torch.from_numpy(VALUES).requires_grad_(), tmp_path / "x.pt")
    assert np.array_equal(load_vectors(tmp_path / "x.pt"), VALUES)
    torch.save({"run": print}, tmp_path / "y.pt")
    with pytest.raises(InputError, match="never opened"):
        load_vectors(tmp_path / "y.pt")
