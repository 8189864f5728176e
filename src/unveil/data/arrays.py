"""The user's own vectors and labels from a file or a folder, told apart by what is there.

.npy, .npz     as they are, never a pickle, never more than the memory limit
.pt, .pth      one tensor, read by torch itself with weights_only=True, which runs nothing
.csv, …        a table (`data.tables`)
a folder       images (`data.images`)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import TABLES, InputError, as_array, as_vectors, flat, listed
from unveil.data.images import are_bytes, read_image_folder, scaled
from unveil.data.tables import read_table
from unveil.engine.blocks import must_fit
from unveil.engine.files import must_be_file, must_fit_as_vectors, read_array

INSTALL = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


def load_vectors(
    path: str | Path, name: str = "vectors", *, limit: int | None = None
) -> NDArray[np.float32]:
    """(items, pixels) from `path`; arrays of images (n, h, w) or (n, h, w, c) are flattened,
    integers stay as they are.

    limit: bytes of memory they may take; None: memory_limit.
    """
    return load_shaped(path, name, limit=limit)[0]


def load_shaped(
    path: str | Path, name: str = "vectors", *, limit: int | None = None
) -> tuple[NDArray[np.float32], tuple[int, ...] | None]:
    """The same as `load_vectors`, and the shape of an item where a file says that they are images,
    or a folder has them."""
    path = Path(path)
    # A suffix decides, not the content: what a file is called is what its owner takes it for.
    if path.is_dir():
        pixels, _, sizes = read_image_folder(path, limit=limit)
        return as_vectors(scaled(pixels), "images"), sizes
    if path.suffix.lower() in TABLES:
        return as_vectors(read_table(path, limit=limit).to_numpy(), path.name), None
    array = read_any_array(path, limit=limit)
    must_fit_as_vectors(array, path.name, limit)
    return as_items(array, name)


def as_items(
    array: NDArray[Any], name: str, *, channels: int = 4
) -> tuple[NDArray[np.float32], tuple[int, ...] | None]:
    """(items, values), and the shape of an item that is an image; channels: the most one has, a
    last axis of more is no colour."""
    if array.ndim < 2:
        raise InputError(f"an array of shape {array.shape}: {name} need (items, pixels)")
    shape = array.shape[1:]
    return as_vectors(flat(array), name), shape if is_image(shape, channels) else None


def is_image(shape: tuple[int, ...], channels: int = 4) -> bool:
    """Whether an item of this shape is an image."""
    return len(shape) == 2 or (len(shape) == 3 and shape[2] <= channels)


def in_units_of(
    encodings: NDArray[np.float32], vectors: NDArray[np.float32], name: str, *, pixel: float = 4.0
) -> tuple[NDArray[np.float32], str]:
    """`vectors` in the units of `encodings`, and a sentence where that was not so before: bytes of
    images beside encodings of pixels from −1 to 1, none above `pixel`, are brought to these."""
    # A wrong guess would change the data of someone who had them right.
    if not are_bytes(vectors) or float(np.abs(encodings).max()) > pixel:
        return vectors, ""
    return scaled(vectors), (
        f"{name} holds bytes from 0 to 255, the encodings numbers below {pixel:g}: taken as "
        "pixels from -1 to 1, as InstaHide does; give them in the units of the encodings if not so"
    )


def read_any_array(path: Path, *, limit: int | None = None) -> NDArray[Any]:
    """One array from .npy, .npz, .pt or .pth, told apart by the suffix."""
    if path.suffix.lower() not in (".pt", ".pth"):
        return read_array(path, limit=limit)
    must_be_file(path)
    # The archive is not compressed: as many bytes as the file has, and once more as an array.
    must_fit(2 * path.stat().st_size, path.name, limit)
    try:
        import torch
    except ImportError:
        raise InputError(
            f"{path.name} needs PyTorch: {INSTALL}; or save the tensor as .npy"
        ) from None
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise
    except Exception:  # torch has no one kind of error for files it will not read
        raise InputError(
            f"{path.name} holds no plain tensor, or is damaged (what could run code is never "
            "opened): write the tensor alone with torch.save, or as .npy with numpy.save"
        ) from None
    # A state of a model holds many tensors, and which of them are records cannot be guessed.
    parts = value if isinstance(value, Mapping) else {"": value}
    tensors = {key: item for key, item in parts.items() if hasattr(item, "detach")}
    if len(tensors) != 1:
        names = listed([*map(str, tensors)]) or type(value).__name__
        raise InputError(
            f"{path.name} holds {len(tensors)} tensors ({names}): save the one meant by itself"
        )
    (tensor,) = tensors.values()
    return as_array(tensor, path.name)


def read_labels(path: str | Path, *, limit: int | None = None) -> NDArray[np.int64]:
    """(n,) classes as numbers from 0 on, in the order of their names: an array, or text with one
    label a line; at least two different ones."""
    path = Path(path)
    text = path.suffix.lower() in TABLES
    found = _lines(path, limit) if text else read_any_array(path, limit=limit)
    # A column of labels is a list of labels: that is how tables come out of other programs.
    found = found[:, 0] if found.shape[1:] == (1,) else found
    if found.ndim != 1 or found.dtype.kind not in "iubUSf":
        raise InputError(
            f"{path.name} holds an array of shape {found.shape}: labels are one per record"
        )
    # Numbers with fractions are measurements, and no classifier is asked to name them.
    if found.dtype.kind == "f" and not np.array_equal(found, np.round(found)):
        raise InputError(f"{path.name} holds fractions: labels are classes, whole numbers or words")
    classes, numbers = np.unique(found, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"{path.name} knows one class only: labels need two different ones")
    return numbers.astype(np.int64)


def _lines(path: Path, limit: int | None) -> NDArray[np.str_]:
    """One label a line; a first line is a header where it alone says `label` or `class`."""
    must_be_file(path)
    # A letter may become a Python string of its own.
    must_fit(100 * path.stat().st_size, path.name, limit)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text: save it as UTF-8") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A header is dropped only where it is surely one: a class may be called anything else.
    header = bool(lines) and lines[0].lower() in ("label", "labels", "class", "target", "y")
    if not lines[header:]:
        raise InputError(f"{path.name} is empty: give one label a line")
    return np.array(lines[header:])
