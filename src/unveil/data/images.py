"""Folders of images as vectors, read by Pillow: every file the same size, pixels scaled from 0..255
to −1..1 as InstaHide does."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.data.tables import chosen_rows
from unveil.engine.blocks import must_fit
from unveil.engine.files import must_be_file

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
"""What is tried, whatever the suffix says: Pillow would hand other formats, such as PostScript, to
programs outside."""
HALF_RANGE = 127.5
"""Half of the range of a byte: value / 127.5 − 1 is from −1 to 1."""
WHOLE = 16.0
"""Whole numbers from 0 to 255 of which one is above this are bytes."""


def are_bytes(pixels: NDArray[Any]) -> bool:
    """Whether these are bytes of images: whole numbers up to 255, of which one is so large that no
    pixel from −1 to 1, and none with a mean and a standard deviation, could be it."""
    low, high = float(pixels.min()), float(pixels.max())
    return low >= 0 and WHOLE < high <= 2 * HALF_RANGE and bool((pixels == np.round(pixels)).all())


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
    refused before they are unpacked: an image says in its first bytes how large it is.
    """
    # 1. Which files. Drawn before anything is opened: a sample costs no more than itself.
    folder = Path(folder)
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [path for path in there if path.suffix.lower() in SUFFIXES]
    if not files:
        raise InputError(_no_images(folder, there))
    rows = chosen_rows(len(files), folder.name, sample, most, rng)
    files = [files[i] for i in np.arange(len(files))[rows]]
    # 2. How large they are, from their headers: all of them before any pixels. A value is a byte
    # and a float32; one of the image that is being decoded takes 8 bytes in Pillow and NumPy.
    shape = _shape(files[0])
    size = math.prod(shape)
    what = f"{folder.name}, {len(files):,} images of {size:,} values,"
    cure = "make the images smaller, take a sample of them"
    must_fit(5 * size * len(files) + 8 * size, what, limit, cure)
    for file in files[1:]:
        if (other := _shape(file)) != shape:
            raise InputError(
                f"{file.name} is {other}, {files[0].name} is {shape}: bring all images to one "
                "size and mode"
            )
    # 3. Their pixels.
    pixels = np.empty((len(files), size), np.uint8)
    for i, file in enumerate(files):
        with _opened(file) as image:
            pixels[i] = np.asarray(image.convert("L" if len(shape) == 2 else "RGB")).ravel()
    return pixels, tuple(file.name for file in files), shape


def _no_images(folder: Path, there: list[Path]) -> str:
    """What is there instead tells what was meant: one file with all records, or a folder further
    down."""
    kinds = sorted({path.suffix.lower() for path in there if path.is_file() and path.suffix})
    folders = [path.name for path in there if path.is_dir()]
    wanted = f"a folder that holds {', '.join(SUFFIXES[:3])} or similar files"
    what, cure = "it is empty", wanted
    if kinds:
        what = f"but {', '.join(kinds[:4])} files"
        cure = f"{wanted}, or one file with all records (.npy, .npz, .pt, .csv)"
    elif folders:
        what = f"but folders ({', '.join(folders[:3])})"
        cure = "one of them, or put all images into one folder"
    return f"no images in {folder}{'' if kinds or folders else ','} {what}: give {cure}"


def _shape(file: Path) -> tuple[int, ...]:
    """(height, width) of a grey image, (height, width, 3) of any other; nothing is unpacked."""
    with _opened(file) as image:
        # Deeper pixels would be cut to bytes without a word.
        if image.mode.startswith(("I", "F")):
            raise InputError(f"{file.name} has more than 8 bits per pixel: convert it to 8 bits")
        grey = image.mode in ("1", "L", "LA")
        return (image.height, image.width) if grey else (image.height, image.width, 3)


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """The image, for its header or its pixels; whatever Pillow says of it, in our words."""
    from PIL import Image

    must_be_file(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is too large for us, `limit` says
            with Image.open(file, formats=FORMATS) as image:
                yield image
    except (InputError, MemoryError, PermissionError):
        raise
    except Image.DecompressionBombError:
        most = 2e-6 * (Image.MAX_IMAGE_PIXELS or 0)
        raise InputError(
            f"{file.name} would unpack to more than {most:.0f} megapixels, the most Pillow "
            "opens: make it smaller"
        ) from None
    except Exception:  # decoders of damaged files fail in many ways
        raise InputError(f"{file.name} is not a readable image: repair or remove it") from None
