"""Folders of images as vectors: every file the same size, pixels scaled from 0..255 to −1..1 as InstaHide does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.records import InputError, as_vectors

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


def load_image_folder(folder: str | Path) -> NDArray[np.float32]:
    """The images of a folder, in order of their names, one row each: (n, height·width·channels) in [−1, 1]."""
    pixels, _, _ = read_image_folder(folder)
    return as_vectors(pixels.astype(np.float32) / np.float32(127.5) - np.float32(1), "images")


def read_image_folder(
    folder: str | Path,
    *,
    sample: int | None = None,
    most: int | None = None,
    limit: int | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[NDArray[np.uint8], tuple[str, ...], tuple[int, ...]]:
    """Bytes (n, height·width·channels), file names, and (height, width[, 3]); a random `sample` of the files, or all.

    More than `most` files, or `limit` bytes as float32, are refused before they are read.
    """
    folder = Path(folder)
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES) if folder.is_dir() else []
    if not files:
        raise InputError(f"no images in {folder}: give a folder that holds {', '.join(SUFFIXES[:3])} or similar files")
    if sample is not None and sample < len(files):
        assert rng is not None
        files = [files[i] for i in np.sort(rng.choice(len(files), sample, replace=False))]
    elif most is not None and len(files) > most:
        raise InputError(
            f"{folder.name} has {len(files):,} images, {most:,} are the most that can be audited at once: "
            "audit a random part with --sample"
        )
    first = _pixels(files[0])
    if limit is not None and 4 * first.size * len(files) > limit:
        raise InputError(
            f"{folder.name} has {len(files):,} images of {first.size:,} pixels, more than the memory limit: "
            "raise memory_limit, or take a sample"
        )
    rows = np.empty((len(files), first.size), np.uint8)
    for i, file in enumerate(files):
        pixels = _pixels(file)
        if pixels.shape != first.shape:
            raise InputError(
                f"{file.name} is {pixels.shape}, {files[0].name} is {first.shape}: bring all images to one size and mode"
            )
        rows[i] = pixels.ravel()
    return rows, tuple(file.name for file in files), first.shape


def _pixels(file: Path) -> NDArray[np.uint8]:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError("reading images needs Pillow: pip install 'unveil[images]'") from None
    try:
        with Image.open(file) as image:
            if image.mode.startswith(("I", "F")):
                raise InputError(f"{file.name} has more than 8 bits per pixel: convert it to 8 bits, or pass an array")
            grey = image.mode in ("1", "L", "LA")
            return np.asarray(image.convert("L" if grey else "RGB"), dtype=np.uint8)
    except InputError:
        raise
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise InputError(f"{file.name} is not a readable image: repair or remove it") from None
