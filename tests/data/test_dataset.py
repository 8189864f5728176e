"""Private records for an audit: the same content from every form of file, standardised and
named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unveil.data import load_dataset
from unveil.records import InputError


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_features_are_standardised_and_turned_back(tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal((50, 6)) * [1, 1e-6, 1e6, 3, 1, 0] + [
        0,
        0,
        5,
        -2,
        1e4,
        7,
    ]
    np.savetxt(tmp_path / "t.csv", values, delimiter=",")
    data = load_dataset(tmp_path / "t.csv", rng=rng())
    assert data.kind == "features"
    np.testing.assert_allclose(data.values[:, :5].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(data.values[:, :4].std(axis=0), 1, atol=1e-4)
    assert not data.values[:, 5].any()  # constant
    np.testing.assert_allclose(data.restore(data.values), values, rtol=2e-5, atol=1e-9)


def test_bytes_are_images_and_other_arrays_stay(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    np.save(tmp_path / "a.npy", images)
    data = load_dataset(tmp_path / "a.npy", rng=rng())
    assert (data.kind, data.image_shape) == ("images", (4, 3))
    np.testing.assert_allclose(data.values, images.reshape(5, 12) / 127.5 - 1, atol=1e-6)
    np.testing.assert_allclose(data.restore(data.values), images.reshape(5, 12), atol=1e-4)
    floats = load_dataset(images.astype(np.float32), rng=rng())
    assert (floats.kind, floats.image_shape) == ("array", (4, 3))
    assert np.array_equal(floats.values, images.reshape(5, 12))
    assert floats.names[2] == "row 2"


def test_an_image_folder_keeps_its_file_names(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name in ("b", "a", "c"):
        image.new("RGB", (3, 2), (10, 20, 30)).save(tmp_path / f"{name}.png")
    data = load_dataset(tmp_path, rng=rng())
    assert data.names == ("a.png", "b.png", "c.png")
    assert data.image_shape == (2, 3, 3)
    assert len(load_dataset(tmp_path, sample=2, rng=rng()).names) == 2
    with pytest.raises(InputError, match="sample="):
        load_dataset(tmp_path, most=2, rng=rng())
    with pytest.raises(InputError, match="memory_limit"):
        load_dataset(tmp_path, limit=50, rng=rng())


def test_the_bundled_sets() -> None:
    data = load_dataset("fashion-mnist", n=20, rng=rng())
    assert data.values.shape == (20, 784)
    assert data.image_shape == (28, 28)
    assert np.abs(data.values).max() <= 1
    assert "MIT" in data.source
    assert len(load_dataset("fashion-mnist", rng=rng()).names) == 240
    assert load_dataset(None, n=9, d=7, rng=rng()).values.shape == (9, 7)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: load_dataset(p / "no.npy", rng=rng()), "check the path"),
        (lambda p: load_dataset(np.zeros(5), rng=rng()), r"\(items, pixels\)"),
        (lambda p: load_dataset(np.zeros((5, 3)), n=4, rng=rng()), "sample=4"),
        (lambda p: load_dataset(np.zeros((5, 3)), d=4, rng=rng()), "leave it out"),
        (lambda p: load_dataset("fashion-mnist", n=500, rng=rng()), "240 images"),
        (lambda p: load_dataset(np.zeros((9, 3)), most=5, rng=rng()), "sample="),
        (lambda p: load_dataset(np.zeros((9, 3)), sample=1, rng=rng()), "at least two"),
        (lambda p: load_dataset("gaussian", n=0, rng=rng()), "positive"),
    ],
)
def test_what_cannot_be_audited_says_why(call, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        call(tmp_path)


def test_constant_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,2\n" * 5)
    with pytest.raises(InputError, match="constant"):
        load_dataset(tmp_path / "t.csv", rng=rng())
