"""Folders of images as vectors."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from unveil.data import load_image_folder, load_vectors
from unveil.records import InputError

Image = pytest.importorskip("PIL.Image")


def test_pixels_run_from_minus_one_to_one_in_order_of_names(tmp_path: Path) -> None:
    for name, value in (("b", 255), ("a", 0), ("c", 51)):
        Image.new("L", (3, 2), value).save(tmp_path / f"{name}.png")
    (tmp_path / "notes.txt").write_text("not an image")
    vectors = load_image_folder(tmp_path)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, np.outer([-1, 1, -0.6], np.ones(6)))


def test_colour_is_height_width_channel(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    Image.fromarray(pixels).save(tmp_path / "a.PNG")
    assert np.allclose(load_vectors(tmp_path), pixels.reshape(1, -1) / 127.5 - 1)


@pytest.mark.parametrize(("mode", "width"), [("1", 4), ("L", 4), ("LA", 4), ("P", 12), ("RGB", 12), ("RGBA", 12), ("CMYK", 12)])
def test_every_mode_becomes_grey_or_colour(mode: str, width: int, tmp_path: Path) -> None:
    suffix = "tif" if mode == "CMYK" else "png"
    Image.new(mode, (2, 2)).save(tmp_path / f"a.{suffix}")
    vectors = load_image_folder(tmp_path)
    assert vectors.shape == (1, width)
    assert np.abs(vectors).max() <= 1


def test_sixteen_bits_keep_their_shades_or_are_refused(tmp_path: Path) -> None:
    ramp = np.linspace(0, 65535, 16).astype(np.uint16).reshape(4, 4)
    Image.fromarray(ramp).save(tmp_path / "a.png")
    try:
        vectors = load_image_folder(tmp_path)
    except InputError:
        return
    assert np.allclose(vectors, np.linspace(-1, 1, 16), atol=0.01)


def test_no_images(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="no images"):
            load_image_folder(folder)


def test_sizes_must_agree(tmp_path: Path) -> None:
    Image.new("L", (3, 2)).save(tmp_path / "a.png")
    Image.new("L", (2, 3)).save(tmp_path / "b.png")
    with pytest.raises(InputError, match=r"b\.png is .*one size"):
        load_image_folder(tmp_path)


@pytest.mark.parametrize("keep", [0, 20, 60])
def test_damaged_images(keep: int, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes()[:keep])
    with pytest.raises(InputError, match=r"a\.png is not a readable image"):
        load_image_folder(tmp_path)


def test_without_pillow_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("L", (3, 2)).save(tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install 'unveil\[images\]'"):
        load_image_folder(tmp_path)
