"""Folders of images as vectors: every file the same size, pixels scaled from 0..255 to −1..1 as InstaHide does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.records import InputError, as_vectors

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


def load_image_folder(folder: str | Path) -> NDArray[np.float32]:
    """The images of a folder, in order of their names, one row each: (n, height·width·channels) in [−1, 1]."""
    folder = Path(folder)
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES) if folder.is_dir() else []
    if not files:
        raise InputError(f"no images in {folder}: give a folder that holds {', '.join(SUFFIXES[:3])} or similar files")
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError("reading images needs Pillow: pip install 'unveil[images]'") from None

    rows: list[NDArray[np.float32]] = []
    shape: tuple[int, ...] = ()
    for file in files:
        try:
            with Image.open(file) as image:
                if image.mode.startswith(("I", "F")):
                    raise InputError(f"{file.name} has more than 8 bits per pixel: convert it to 8 bits, or pass an array")
                grey = image.mode in ("1", "L", "LA")
                pixels = np.asarray(image.convert("L" if grey else "RGB"), dtype=np.float32)
        except InputError:
            raise
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
            raise InputError(f"{file.name} is not a readable image: repair or remove it") from None
        if shape and pixels.shape != shape:
            raise InputError(
                f"{file.name} is {pixels.shape}, {files[0].name} is {shape}: bring all images to one size and mode"
            )
        shape = pixels.shape
        rows.append(pixels.ravel() / np.float32(127.5) - np.float32(1))
    return as_vectors(np.stack(rows), "images")
