"""The user's own arrays, tensors and labels from files; what comes with the package."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from unveil.checks import InputError
from unveil.data import gaussian_vectors, load_vectors, read_labels
from unveil.data.arrays import INSTALL, in_units_of, load_shaped, read_any_array
from unveil.data.bundled import fashion_mnist

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize("shape", [(5, 12), (5, 3, 4), (5, 2, 2, 3)])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8", "?"])
def test_images_are_flattened_and_values_kept(shape, dtype, tmp_path):
    array = np.arange(60).reshape(shape).astype(dtype)
    np.save(tmp_path / "a.npy", np.asfortranarray(array))
    vectors, found = load_shaped(tmp_path / "a.npy")
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    assert np.array_equal(vectors, array.reshape(5, 12))
    assert found == (shape[1:] if len(shape) > 2 else None)


@pytest.mark.parametrize(
    ("array", "cure"),
    [
        (np.ones(6), "(items, pixels)"),
        (np.ones((0, 6)), "empty"),
        (np.ones((0, 4, 4)), "empty"),
        (np.array([[1.0, np.nan]]), "row 0, pixel 1"),
        (np.array([[1e39]]), "float32"),
        (np.ones((2, 2), complex), "real numbers"),
        (np.full((2, 2), "a"), "real numbers"),
        (np.zeros((2, 2), "f4,f4"), "real numbers"),
    ],
    ids=str,
)
def test_refusals_name_the_cure(array, cure, tmp_path):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(InputError) as caught:
        load_vectors(tmp_path / "a.npy", "private")
    assert cure in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_beside_encodings_of_small_numbers_are_brought_to_their_units():
    small = np.array([[0.1, 0.9]], np.float32)
    values, word = in_units_of(small, np.array([[0, 255], [51, 102]], np.float32), "like")
    np.testing.assert_allclose(values, [[-1, 1], [-0.6, -0.2]], atol=1e-6)
    assert word.startswith("like holds bytes from 0 to 255")
    for encodings, vectors in [
        ([[90.0, 200.0]], [[0, 255]]),  # of bytes themselves
        ([[0.1, 0.9]], [[0, 3]]),  # a few levels
        ([[0.1, 0.9]], [[0.5, 200]]),  # no whole numbers
        ([[0.1, 0.9]], [[0, 999]]),  # beyond a byte
    ]:
        given = np.array(vectors, np.float32)
        assert in_units_of(np.array(encodings, np.float32), given, "like") == (given, "")


class Tensor:
    """What of a tensor is used; one with gradients refuses to be an array before it is detached."""

    dtype = "torch.float32"

    def __init__(self, values, detached=False):
        self.values, self.detached = values, detached

    def detach(self):
        return Tensor(self.values, True)

    def cpu(self):
        return self

    def numpy(self):
        if not self.detached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.values


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (Tensor(VALUES), ""),
        ({"x": Tensor(VALUES), "epoch": 3}, ""),
        ({"a": Tensor(VALUES), "b": Tensor(VALUES)}, r"2 tensors \(a, b\)"),
        ([1, 2], r"holds 0 tensors \(list\)"),
        (RuntimeError("Weights only load failed"), "what could run code is never opened"),
    ],
)
def test_a_file_of_torch_is_read_by_torch_without_pickles(content, words, tmp_path, monkeypatch):
    torch, file = ModuleType("torch"), tmp_path / "x.pt"
    file.write_bytes(b"PK\x03\x04 as torch writes it")
    asked = {}

    def load(path, **options):
        asked.update(options)
        if isinstance(content, Exception):
            raise content
        return content

    torch.load = load
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(InputError, match="more than the"):
        read_any_array(file, limit=10)
    assert not asked
    if words:
        with pytest.raises(InputError, match=words):
            read_any_array(file)
    else:
        assert np.array_equal(load_vectors(file), VALUES)
    assert asked == {"map_location": "cpu", "weights_only": True}
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError) as error:
        load_vectors(file)
    assert INSTALL in str(error.value)


def test_with_torch_itself(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is no part of the package")
    torch.save(torch.from_numpy(VALUES).requires_grad_(), tmp_path / "x.pt")
    assert np.array_equal(load_vectors(tmp_path / "x.pt"), VALUES)
    torch.save({"run": print}, tmp_path / "y.pt")
    with pytest.raises(InputError, match="never opened"):
        load_vectors(tmp_path / "y.pt")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("label\nsick\nwell\nsick\n\n", [0, 1, 0]),
        (np.array([[7], [3], [7]]), [1, 0, 1]),
        (np.array([0.0, 2.0]), [0, 1]),
        (np.zeros((3, 2)), r"shape \(3, 2\): labels are one per record"),
        (np.array([0.5, 1.0]), "fractions"),
        (np.array([4, 4]), "one class only"),
        ("class\n", "is empty"),
    ],
    ids=str,
)
def test_labels(content, expected, tmp_path):
    path = tmp_path / ("a.txt" if isinstance(content, str) else "a.npy")
    if isinstance(content, str):
        path.write_text(content)
    else:
        np.save(path, content)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            read_labels(path)
    else:
        assert read_labels(path).tolist() == expected


def test_what_comes_with_the_package():
    images, classes = fashion_mnist()
    assert images.shape == (240, 28, 28)
    assert sorted(classes.count(name) for name in set(classes)) == [24] * 10
    vectors = gaussian_vectors(40, 5000, np.random.default_rng(0))
    assert stats.kstest(vectors.ravel(), "norm").pvalue > 1e-3
    # An off-diagonal entry is N(0, 1/d): six standard deviations.
    assert np.abs(vectors @ vectors.T / 5000 - np.eye(40)).max() < 6 * np.sqrt(2 / 5000)
