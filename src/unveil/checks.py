"""Checks of what comes from outside: arrays, shapes, counts and seeds are as asked for, or one
sentence says how to make them so.

Every complaint is an `InputError`. A check returns what it has checked, in the form that the rest
of the library works with: real numbers as float32, (items, pixels), C order.

Randomness comes in as `rng`, an int, a Generator or None, and each stage draws from its own named
`child`: the same seed gives the same bytes, and drawing more in one stage never shifts what another
stage sees.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterator, Sequence
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.shown import room

DataLike = ArrayLike | PathLike[str]
"""What is taken wherever data are: NumPy arrays and lists, tensors of PyTorch, frames of pandas or
Polars, and paths of files (.npy, .npz, .pt, .csv) or of a folder of images."""
Rng = int | np.random.Generator | None
TABLES = (".csv", ".tsv", ".txt", ".parquet")
"""How files of tables end."""
SIZES = (1e-30, 1e18)
"""Largest value of data, at least and at most, but for zeros: squares of others, summed over
pixels, leave single precision."""


class InputError(ValueError):
    """Input that cannot be used, said in one sentence that names the cure.

    Examples
    --------
    >>> import unveil
    >>> unveil.Scheme(k_private=-1)
    Traceback (most recent call last):
    unveil.checks.InputError: k_private=-1: give a whole number, 0 or more
    """


def as_vectors(values: DataLike, name: str) -> NDArray[np.float32]:
    """(items, pixels) as float32 in C order, every number finite; memory-mapped float32 stays on
    disk."""
    array = as_array(values, name)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} of dtype {array.dtype}: give real numbers (float32 is best)")
    if array.ndim != 2:
        raise InputError(
            f"{name} of shape {array.shape}: give a 2-D array (items, pixels); flatten images first"
        )
    if 0 in array.shape:
        raise InputError(
            f"{name} of shape {array.shape} is empty: give at least one item with one pixel"
        )
    if array.dtype != np.float32 or not array.flags.c_contiguous:
        # Doubles beyond float32 become infinite here and are named, with their place, below.
        with np.errstate(over="ignore"):
            array = np.ascontiguousarray(array, dtype=np.float32)
    largest = 0.0
    for start, block in row_blocks(array):
        finite = np.isfinite(block)
        if not finite.all():
            row, pixel = np.argwhere(~finite)[0]
            raise InputError(
                f"{name}: the value at row {start + row}, pixel {pixel} is NaN, infinite or beyond "
                "float32; remove or repair it"
            )
        largest = max(largest, float(block.max()), -float(block.min()))
    if largest and not SIZES[0] <= largest <= SIZES[1]:
        raise InputError(
            f"{name}: the largest value is {largest:.0e}, too far from 1 for single precision; "
            "multiply all data by one number that brings it near 1"
        )
    return array


def flat(array: NDArray[Any]) -> NDArray[Any]:
    """(items, values) of (items, …)."""
    return array.reshape(len(array), prod(array.shape[1:]))


def as_shape(shape: Any, d: int) -> tuple[int, ...]:
    """(height, width) or (height, width, channels) of images with d pixels."""
    try:
        sizes = tuple(int(size) for size in shape)
    except (TypeError, ValueError):
        sizes = ()
    # The comparison with what was given refuses 2.5 and "3", which int() would accept.
    if len(sizes) not in (2, 3) or min(sizes) < 1 or sizes != tuple(shape):
        raise InputError(
            f"image_shape={shape!r}: give (height, width) or (height, width, channels)"
        )
    if prod(sizes) != d:
        raise InputError(
            f"image_shape={sizes} has {prod(sizes)} pixels, the vectors {d}: the product must be "
            "the number of pixels"
        )
    return sizes


def as_array(values: Any, name: str) -> NDArray[Any]:
    """An array of whatever was given (`DataLike`); masked numbers become NaN, so that they are
    noticed."""
    if isinstance(values, (str, PathLike)):
        return np.asarray(room("data.arrays").load_vectors(values, name))
    if hasattr(values, "detach"):
        return _of_tensor(values, name)
    if is_frame(values):
        return np.asarray(as_table(values).to_numpy())
    try:
        array: NDArray[Any] = np.asanyarray(values)
    except ValueError:
        raise InputError(f"{name}: rows of different lengths; give a rectangular array") from None
    if isinstance(array, np.ma.MaskedArray) and array.dtype.kind == "f":
        return np.asarray(array.filled(np.nan))
    return array


def is_frame(values: Any) -> bool:
    """Whether this is a table with named columns, of pandas or Polars; neither is imported."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def as_table(values: Any) -> Any:
    """The file of a table, or a frame, as a frame of numbers; anything else as it is. Who needs the
    numbers and the names of the columns reads once."""
    file = isinstance(values, (str, PathLike)) and Path(values).suffix.lower() in TABLES
    return room("data.tables").read_table(values) if file or is_frame(values) else values


def column_names(values: Any) -> tuple[str, ...]:
    """What a frame calls its columns; () for everything else, and where a file had no header."""
    named = is_frame(values) and getattr(values, "attrs", {}).get("header", True)
    return tuple(map(str, values.columns)) if named else ()


def _of_tensor(value: Any, name: str) -> NDArray[Any]:
    """A tensor of PyTorch, whether it has gradients or lives on a graphics card."""
    try:
        tensor = value.detach().cpu()
        # NumPy has no bfloat16 and no half of complex numbers: single precision holds the first.
        tensor = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
        return np.asarray(tensor.numpy())
    except (TypeError, RuntimeError) as error:
        raise InputError(f"{name}: this tensor is no plain array: {error}") from None


def listed(items: Sequence[str], most: int = 5) -> str:
    """Up to so many, and how many more there are."""
    text = ", ".join(items[:most])
    return text if len(items) <= most else f"{text} and {len(items) - most} more"


def is_count(value: Any, least: int = 0) -> bool:
    """Whether this is a whole number of `least` or more; True and False are no numbers."""
    # NumPy's integers are numbers too; a bool is an int in Python, but nobody means it as one.
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return bool(whole and value >= least)


def row_blocks(array: NDArray[Any], numbers: int = 1 << 24) -> Iterator[tuple[int, NDArray[Any]]]:
    """(start, rows) in blocks of about `numbers` numbers, 64 MiB of float32: of a large file one
    block is mapped at a time."""
    step = max(1, numbers // max(1, array.shape[1]))
    for start in range(0, len(array), step):
        yield start, array[start : start + step]
        let_go(array)


def mapping_of(values: NDArray[Any]) -> np.memmap[Any, Any] | None:
    """The memory-mapped array that these numbers lie in; None where they are in plain memory."""
    # What `asarray` makes of a mapped array is a plain one that looks at the same numbers.
    owner: Any = values
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    return owner if isinstance(owner, np.memmap) else None


def let_go(values: NDArray[Any], large: int = 1 << 28) -> None:
    """Give the pages of a mapped file back that were read; large: bytes from which that is worth
    it.

    They would stay with the process until the system needs them elsewhere, and a file of 12 GB
    would look like 12 GB of memory. Numbers that are read again are the same: only files that
    nobody writes through this mapping are touched.
    """
    owner = mapping_of(values)
    if owner is None or owner.mode != "r" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    file: Any = getattr(owner, "_mmap", None)
    if file is not None and len(file) >= large:
        file.madvise(mmap.MADV_DONTNEED)


def root(rng: Rng) -> np.random.SeedSequence:
    """The seed behind `rng`; a Generator is advanced, so two calls with it differ."""
    # Two numbers of 63 bits: enough entropy that no two draws give the same seed.
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(0, 2**63, size=2).tolist())
    if rng is None:
        return np.random.SeedSequence()
    if not is_count(rng):
        raise InputError(
            f"rng={rng!r}: give a whole number of 0 or more, a numpy Generator, or None"
        )
    return np.random.SeedSequence(int(rng))


def child(parent: np.random.SeedSequence, name: str) -> np.random.Generator:
    """The generator of the stage `name`."""
    # A checksum of the name, not its place in a list: a stage that is added shifts no other.
    key = (*parent.spawn_key, zlib.crc32(name.encode()))
    return np.random.default_rng(np.random.SeedSequence(parent.entropy, spawn_key=key))
