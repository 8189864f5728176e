"""Private records for an audit: the same content from every form of file, standardised and
named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unveil.checks import InputError
from unveil.data import load_dataset


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
    from PIL import Image as image

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


@pytest.mark.parametrize("values", [np.zeros((0, 6), np.float32), np.zeros((0, 4, 4), np.uint8)])
def test_no_records_at_all_are_told(values, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InputError, match="holds no values: give at least two records"):
        load_dataset(tmp_path / "a.npy", rng=rng())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,c\n", "a header and no records"),
        ("a,b,c\n1,2,3\n", "one record only: an audit mixes records"),
        ("1,2,3\n", "one record only"),
        ("bob,1,2\n", "one record only"),
    ],
)
def test_short_tables_are_named_for_what_they_are(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        load_dataset(tmp_path / "t.csv", rng=rng())


def test_a_table_as_it_is_and_the_names_of_its_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,pay\n30,1000\n40,1500\n55,900\n")
    plain = load_dataset(tmp_path / "t.csv", as_they_are=True, rng=rng())
    assert plain.values.tolist() == [[30, 1000], [40, 1500], [55, 900]]
    assert plain.facts()["encoded as"] == "values as they are"
    assert plain.columns == ("age", "pay")
    usual = load_dataset(tmp_path / "t.csv", rng=rng())
    assert usual.columns == ("age", "pay")
    assert "standardised" in usual.facts()["encoded as"]


def test_a_shape_makes_rows_images() -> None:
    values = np.random.default_rng(0).standard_normal((4, 12))
    assert load_dataset(values, shape=(2, 2, 3), rng=rng()).image_shape == (2, 2, 3)
    with pytest.raises(InputError, match="the product must be"):
        load_dataset(values, shape=(2, 2), rng=rng())
    with pytest.raises(InputError, match="leave it out for gaussian"):
        load_dataset("gaussian", shape=(28, 28), rng=rng())


def test_values_that_one_far_value_merges_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    draw = rng()
    frame = pandas.DataFrame({"age": draw.integers(18, 90, 50), "weight": draw.normal(75, 9, 50)})
    assert "merge" not in load_dataset(frame, rng=draw).facts()["encoded as"]
    frame.loc[3, "weight"] = 7.5e9
    assert "clip these: weight" in load_dataset(frame, rng=draw).facts()["encoded as"]
