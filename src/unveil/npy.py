"""Arrays in .npy and .npz files: never a pickle, and never more than the memory limit.

The header of an array says how large it is; it is read first, and held against the memory limit and
against what the file holds. A small .npz may unpack to a thousand times its size. A large .npy is
not loaded at all but mapped.
"""

from __future__ import annotations

import errno
import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.files import must_be_file, whole
from unveil.parallel import must_fit

_MAP_FROM = 64 << 20
"""Bytes from which a .npy file is mapped: smaller ones are read faster than mapped page by page."""
_PICKLE = "is a pickle, which may run code when opened: save it again as a plain .npy array"
_STARTS = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF file",
    b"\x1f\x8b": "a gzip file",
    b"\xfd7zXZ": "an xz file",
    b"\x89HDF": "an HDF5 file",
    b"PAR1": "a Parquet file",
    b"MATLAB": "a MATLAB file",
}
"""What files that are often mistaken for arrays start with."""


def read_array(path: Path, key: str | None = None, *, limit: int | None = None) -> NDArray[Any]:
    """One array from .npy (memory-mapped when large) or .npz, within `limit` bytes of memory (None:
    memory_limit)."""
    path = Path(path)
    must_be_file(path)
    if path.suffix == ".npz":
        with _archive(path) as archive:
            return _from_archive(path, archive, key, limit)
    _must_start_with(path, npy.MAGIC_PREFIX)
    # The header first: it says how much memory the array would take.
    with _damage_told(path), path.open("rb") as file:
        size = path.stat().st_size
        needed = _checked(path.name, file, size)
        if size >= _MAP_FROM:
            return npy.open_memmap(path, mode="r")
        must_fit(needed, path.name, limit)
        file.seek(0)
        return npy.read_array(file, allow_pickle=False)


def array_names(path: Path) -> tuple[str, ...]:
    """The names of the arrays in a .npz file."""
    must_be_file(path)
    with _archive(path) as archive:
        return _names(archive)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """One .npy file, whole or not at all."""
    with whole(path) as file:
        npy.write_array(_Plain(file), np.asanyarray(array), allow_pickle=False)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """One .npz file, whole or not at all."""
    with whole(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def must_fit_as_vectors(array: NDArray[Any], name: str, limit: int | None = None) -> None:
    """Asked before an array becomes float32 in C order, which copies all others."""
    ready = array.dtype == np.float32 and array.flags.c_contiguous
    if not ready:
        # A mapped array costs its copy only; another one is in memory beside it.
        mapped = isinstance(array, np.memmap) and array.flags.c_contiguous
        must_fit(4 * array.size + (0 if mapped else array.nbytes), f"{name} as float32", limit)


class _Plain:
    """A file that NumPy must write to through Python: by itself it overlooks that a disk is full at
    the last 4096 bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    _must_start_with(path, b"PK")
    with _damage_told(path), zipfile.ZipFile(path) as archive:
        yield archive


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Whatever NumPy or zipfile stumble over, in one sentence; not what the system says of a file
    that may be good."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        # EINVAL: a damaged archive points before its start.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise InputError(
            f"{path.name} is not a readable .npy or .npz array (truncated or damaged): write it "
            "again with numpy.save"
        ) from None


def _from_archive(
    path: Path, archive: zipfile.ZipFile, key: str | None, limit: int | None
) -> NDArray[Any]:
    names = _names(archive)
    if key is None and len(names) != 1:
        raise InputError(
            f"{path.name} holds {len(names)} arrays ({', '.join(names[:6])}): save the one meant "
            "as .npy"
        )
    if key is not None and key not in names:
        raise InputError(f"{path.name} holds no array '{key}': is it the right file?")
    member = archive.getinfo(f"{key or names[0]}.npy")
    # Opened twice: once for the header, and again from the start for the numbers.
    with archive.open(member) as file:
        needed = _checked(path.name, file, member.file_size)
    must_fit(needed, f"{path.name}, unpacked,", limit)
    with archive.open(member) as file:
        return npy.read_array(file, allow_pickle=False)


def _names(archive: zipfile.ZipFile) -> tuple[str, ...]:
    return tuple(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy"))


def _checked(name: str, file: IO[bytes], size: int) -> int:
    """Bytes that the array of a .npy file takes, from its header; `size` is what the file has in
    all."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, _, dtype = read[npy.read_magic(file)](file)
    if dtype.hasobject:
        raise InputError(f"{name} {_PICKLE}")
    # In Python's own numbers: a forged shape must not overflow into something small.
    needed = math.prod(shape) * dtype.itemsize
    there = size - file.tell()
    if min(shape, default=0) < 0 or there < needed:
        raise InputError(
            f"{name} is truncated or damaged: of {needed:,} bytes of numbers {there:,} are there; "
            "write it again with numpy.save"
        )
    return needed


def _must_start_with(path: Path, magic: bytes) -> None:
    """Else say what it is: it may be another kind of file, or nothing known."""
    with path.open("rb") as file:
        start = file.read(256)
    if start.startswith(magic):
        return
    if not start:
        raise InputError(f"{path.name} is empty: write it again with numpy.save")
    if start.startswith(b"PK\x03\x04"):
        raise InputError(f"{path.name} is an archive of arrays: give it the suffix .npz")
    if start.startswith(npy.MAGIC_PREFIX):
        raise InputError(f"{path.name} is one array, no archive: give it the suffix .npy")
    # A pickle's first two bytes: that it is one, and its protocol.
    if re.match(rb"\x80[\x02-\x05]", start):
        raise InputError(f"{path.name} {_PICKLE}")
    known = [what for begin, what in _STARTS.items() if start.startswith(begin)]
    what = (
        f"{known[0]}: turn it into an array and write that with numpy.save"
        if known
        else _text_or_bytes(start)
    )
    raise InputError(f"{path.name} is not a readable .npy or .npz array but {what}")


def _text_or_bytes(start: bytes) -> str:
    text = start.decode("utf-8", errors="replace").rstrip("\ufffd")  # a last letter may be cut
    if "\ufffd" not in text and "\0" not in text:
        return (
            "text: if it is a table of numbers, give it the suffix .csv; else write it again with "
            "numpy.save"
        )
    return "bytes of no known format: write it again with numpy.save"
