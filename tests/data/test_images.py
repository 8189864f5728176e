"""Folders of images as vectors."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unveil.checks import InputError
from unveil.data import load_vectors
from unveil.engine.blocks import using


def test_pixels_run_from_minus_one_to_one_in_order_of_names(tmp_path: Path) -> None:
    for name, value in (("b", 255), ("a", 0), ("c", 51)):
        Image.new("L", (3, 2), value).save(tmp_path / f"{name}.png")
    (tmp_path / "notes.txt").write_text("not an image")
    vectors = load_vectors(tmp_path)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, np.outer([-1, 1, -0.6], np.ones(6)))


@pytest.mark.parametrize(
    ("mode", "width"),
    [("1", 4), ("L", 4), ("LA", 4), ("P", 12), ("RGB", 12), ("RGBA", 12), ("CMYK", 12)],
)
def test_every_mode_becomes_grey_or_colour(mode: str, width: int, tmp_path: Path) -> None:
    suffix = "tif" if mode == "CMYK" else "png"
    Image.new(mode, (2, 2)).save(tmp_path / f"a.{suffix}")
    vectors = load_vectors(tmp_path)
    assert vectors.shape == (1, width)
    assert np.abs(vectors).max() <= 1


def test_sixteen_bits_keep_their_shades_or_are_refused(tmp_path: Path) -> None:
    ramp = np.linspace(0, 65535, 16).astype(np.uint16).reshape(4, 4)
    Image.fromarray(ramp).save(tmp_path / "a.png")
    try:
        vectors = load_vectors(tmp_path)
    except InputError:
        return
    assert np.allclose(vectors, np.linspace(-1, 1, 16), atol=0.01)


def test_sizes_must_agree(tmp_path: Path) -> None:
    Image.new("L", (3, 2)).save(tmp_path / "a.png")
    Image.new("L", (2, 3)).save(tmp_path / "b.png")
    with pytest.raises(InputError, match=r"b\.png is .*one size"):
        load_vectors(tmp_path)


def test_large_images_are_refused_by_their_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files, large images: nothing is unpacked before the sum of all is known."""
    for name in "abcd":
        Image.new("L", (3000, 3000)).save(tmp_path / f"{name}.png")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 100_000
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda *_: pytest.fail("unpacked"))
    with using(memory_limit=100 << 20), pytest.raises(InputError) as caught:
        load_vectors(tmp_path)
    for words in (
        "4 images of 9,000,000 values",
        "240.3 MiB",
        "100.0 MiB",
        "make the images smaller",
        "memory_limit",
    ):
        assert words in str(caught.value)


def test_a_large_image_among_small_ones_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("L", (3, 2)).save(tmp_path / "a.png")
    Image.new("L", (3000, 3000)).save(tmp_path / "b.png")
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(InputError, match=r"b\.png is \(3000, 3000\), a\.png is \(2, 3\)"):
        load_vectors(tmp_path)


def test_what_pillow_calls_a_bomb_is_said_in_our_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("1", (20_000, 10_000)).save(tmp_path / "a.png")
    with pytest.raises(
        InputError, match=r"a\.png would unpack to more than 179 megapixels.*make it smaller"
    ):
        load_vectors(tmp_path)
    Image.new("1", (30, 20)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 400)  # Pillow warns from here on, and no more
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_vectors(tmp_path).shape == (1, 600)


@pytest.mark.parametrize("kind", ["a named pipe", "a device", "a folder", "back to itself"])
def test_what_is_no_file_is_named_and_never_waited_for(kind: str, tmp_path: Path) -> None:
    Image.new("L", (3, 2)).save(tmp_path / "a.png")
    other = tmp_path / "b.png"
    {
        "a named pipe": lambda: os.mkfifo(other),
        "a device": lambda: other.symlink_to("/dev/zero"),
        "a folder": other.mkdir,
        "back to itself": lambda: other.symlink_to("b.png"),
    }[kind]()
    with pytest.raises(InputError, match=rf"b\.png is .*{kind}|b\.png \(a link .*{kind}"):
        load_vectors(tmp_path)


def test_formats_that_run_programs_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%EndComments\nshowpage\n%%EOF\n"
    )
    with pytest.raises(InputError, match="not a readable image"):
        load_vectors(tmp_path)


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "tif", "bmp", "webp"])
def test_damage_anywhere_is_told_in_one_sentence(suffix: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    file = tmp_path / f"a.{suffix}"
    Image.fromarray(noise).save(file)
    content, rng = file.read_bytes(), np.random.default_rng(1)
    for _ in range(60):
        changed = bytearray(content)
        changed[int(rng.integers(len(content)))] = int(rng.integers(256))
        file.write_bytes(changed)
        with suppress(InputError):
            load_vectors(tmp_path)


def test_a_folder_without_images_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no images in .*, it is empty"):
        load_vectors(tmp_path)
    (tmp_path / "cats").mkdir()
    with pytest.raises(InputError, match=r"but folders \(cats\): give one of them"):
        load_vectors(tmp_path)
    (tmp_path / "a.pt").touch()
    with pytest.raises(InputError, match=r"but \.pt files: .*one file with all records"):
        load_vectors(tmp_path)
