"""Folders of images as vectors: every file the same size, pixels scaled from 0..255 to −1..1 as
InstaHide does."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError, as_vectors
from unveil.files import must_be_file
from unveil.parallel import must_fit

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
"""What is tried, whatever the suffix says: Pillow would hand other formats, such as PostScript, to
programs outside."""
HALF_RANGE = 127.5
"""Half of the range of a byte: value / 127.5 − 1 is from −1 to 1."""
MEGA = 1e6
"""Pixels of a megapixel."""
PER_VALUE, PER_DECODED = 5, 8
"""Bytes of memory: a value as byte and as float32; a value of the one image that is being decoded,
in Pillow and in NumPy."""


def load_image_folder(folder: str | Path, *, limit: int | None = None) -> NDArray[np.float32]:
    """The images of a folder, in order of their names, one row each: (n, height·width·channels) in
    [−1, 1]."""
    pixels, _, _ = read_image_folder(folder, limit=limit)
    return as_vectors(scaled(pixels), "images")


def scaled(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """From 0..255 to −1..1, with no more than one copy."""
    values = pixels.astype(np.float32)
    # In place, and in single precision throughout: a folder may fill half of the memory.
    values /= np.float32(HALF_RANGE)
    values -= np.float32(1)
    return values


def read_image_folder(
    folder: str | Path,
    *,
    sample: int | None = None,
    most: int | None = None,
    limit: int | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[NDArray[np.uint8], tuple[str, ...], tuple[int, ...]]:
    """Bytes (n, height·width·channels), file names, and (height, width[, 3]); a random `sample` of
    the files, or all.

    More than `most` files, or `limit` bytes with the float32 they become (None: memory_limit), are
    refused before they are
    unpacked: an image says in its first bytes how large it is.
    """
    # 1. Which files.
    folder = Path(folder)
    files = (
        sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES)
        if folder.is_dir()
        else []
    )
    if not files:
        raise InputError(_no_images(folder))
    # Drawn by file, before anything is opened: a sample of a large folder costs no more than
    # itself.
    if sample is not None and sample < len(files):
        assert rng is not None
        files = [files[i] for i in np.sort(rng.choice(len(files), sample, replace=False))]
    elif most is not None and len(files) > most:
        raise InputError(
            f"{folder.name} has {len(files):,} images, {most:,} are the most that can be "
            "audited at once: "
            "audit a random part with sample="
        )
    # 2. How large they are, from their headers.
    shape = _shape(files[0])
    size = math.prod(shape)
    needed = PER_VALUE * size * len(files) + PER_DECODED * size
    what = f"{folder.name}, {len(files):,} images of {size:,} values,"
    must_fit(needed, what, limit, "make the images smaller, take a sample of them")
    # All headers before any pixels: the last file of the wrong size is told at once.
    for file in files[1:]:
        if (other := _shape(file)) != shape:
            raise InputError(
                f"{file.name} is {other}, {files[0].name} is {shape}: bring all images to one "
                "size and mode"
            )
    # 3. Their pixels.
    rows = np.empty((len(files), size), np.uint8)
    for i, file in enumerate(files):
        with _opened(file) as image:
            rows[i] = np.asarray(
                image.convert("L" if len(shape) == 2 else "RGB"), dtype=np.uint8
            ).ravel()
    return rows, tuple(file.name for file in files), shape


def _no_images(folder: Path) -> str:
    """What is there instead, and what to do about it."""
    wanted = f"a folder that holds {', '.join(SUFFIXES[:3])} or similar files"
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    # What is there instead tells what was meant: one file with all records, or a folder further
    # down.
    kinds = sorted({p.suffix.lower() for p in there if p.is_file() and p.suffix})
    if kinds:
        return (
            f"no images in {folder} but {', '.join(kinds[:4])} files: give {wanted}, or one file "
            "with all records (.npy, .npz, .pt, .csv)"
        )
    folders = [p.name for p in there if p.is_dir()]
    if folders:
        return (
            f"no images in {folder} but folders ({', '.join(folders[:3])}): give one of them, or "
            "put all images into one folder"
        )
    return f"no images in {folder}, it is empty: give {wanted}"


def _shape(file: Path) -> tuple[int, ...]:
    """(height, width) of a grey image, (height, width, 3) of any other; nothing is unpacked."""
    with _opened(file) as image:
        # Deeper pixels would be cut to bytes without a word.
        if image.mode.startswith(("I", "F")):
            raise InputError(
                f"{file.name} has more than 8 bits per pixel: convert it to 8 bits, or pass an "
                "array"
            )
        grey = image.mode in ("1", "L", "LA")
        return (image.height, image.width) if grey else (image.height, image.width, 3)


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """The image, for its header or its pixels; whatever Pillow says of it, in our words."""
    try:
        from PIL import Image
    except ImportError:
        raise InputError("reading images needs Pillow: pip install 'unveil[images]'") from None
    must_be_file(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is too large for us, `limit` says
            with Image.open(file, formats=FORMATS) as image:
                yield image
    except (InputError, MemoryError, PermissionError):
        raise
    except Image.DecompressionBombError:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0) / MEGA
        raise InputError(
            f"{file.name} would unpack to more than {most:.0f} megapixels, the most Pillow "
            "opens: make it smaller"
        ) from None
    except Exception:  # decoders of damaged files fail in many ways
        raise InputError(f"{file.name} is not a readable image: repair or remove it") from None
