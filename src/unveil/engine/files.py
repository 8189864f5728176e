"""Files that a kill, a full disk or a second writer cannot spoil, and arrays that cannot harm.

**Written whole or not at all.** Everything is written to a part beside its target and takes the
target's name when it is complete, so that a name never stands for half a file. A kill leaves the
part behind. Parts are locked by who writes them: one that is not locked has lost its writer, and
goes when the next file is written to the same folder. Nothing ever reads a part.

**Read within the memory, and never a pickle.** The header of an array says how large it is; it is
held against the memory limit before anything is unpacked. A large .npy is mapped, not loaded.

**Kept.** A result of long work is kept under a name made of everything that decides it, and carries
that name inside. A file that is damaged, or carries another name, counts as not there.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.engine.blocks import must_fit

PART = ".unveil-part"
"""How the names of parts end: no other program's files do, so that sweeping is safe in a user's
folder."""
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
_STARTS = {b"\x89PNG": "a PNG image", b"\xff\xd8\xff": "a JPEG image", b"\x1f\x8b": "a gzip file"}
"""What files that are often mistaken for arrays start with."""
_PICKLE = "is a pickle, which may run code when opened: save it again as a plain .npy array"
_NAME = "kept as"


# ---- What a path is.


def must_be_file(path: Path) -> None:
    """Asked before a file is opened: a pipe would wait for ever, and a device never ends."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except PermissionError:
        raise
    except (OSError, ValueError):  # ValueError: a name with a zero byte
        name = str(path)[:200]
        link = f"{name} is a link that leads back to itself or to nothing"
        what = link if os.path.islink(path) else f"no file {name}"
        raise InputError(f"{what}: check the path") from None
    if kind != stat.S_IFREG:
        raise InputError(f"{path} is {_KINDS.get(kind, 'a device')}, no file: check the path")


def must_be_new(folder: Path) -> None:
    """Asked before the work, so that hours of it are not lost to a name that is taken."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} exists and is not an empty folder: choose another name or empty it"
        )


# ---- Whole or not at all.


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes its name when all went well and leaves nothing otherwise."""
    path = Path(path)
    handle, part = _claim(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            # Else a machine that loses power may keep the name and not the content.
            os.fsync(handle)
            os.chmod(part, 0o644)
            part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name only when all went well."""
    folder = Path(folder)
    must_be_new(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _shelter(folder) as part:
        yield part
        try:
            part.rename(folder)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                must_be_new(folder)  # somebody else was faster
            raise


@contextmanager
def whole_set(folder: Path, *, instead_of: tuple[str, ...] = ()) -> Iterator[Path]:
    """A place for files that belong together: they enter `folder` when all are complete, and no
    other writer's come between.

    instead_of: names in `folder` that no longer hold then.
    """
    with _shelter(folder / "set") as part:
        yield part
        # Together, while no other set can enter.
        with alone(folder):
            for name in instead_of:
                (folder / name).unlink(missing_ok=True)
            for file in sorted(part.iterdir()):
                file.replace(folder / file.name)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Whoever else asks for the same folder waits; a process that dies gives it back."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: files are whole there all the same
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _shelter(target: Path) -> Iterator[Path]:
    """A new folder inside a locked part beside `target`."""
    handle, shelter = _claim(target, folder=True)
    try:
        part = shelter / target.name
        part.mkdir()
        yield part
    finally:
        shutil.rmtree(shelter, ignore_errors=True)
        os.close(handle)


def _claim(target: Path, *, folder: bool = False) -> tuple[int, Path]:
    """A new part beside the target, opened and locked; what earlier writers that died have left
    goes first."""
    _sweep(target.parent.resolve())
    place = PART, f".{target.name[:100]}.", target.parent
    # A part is open for a moment before it is locked; one that was swept in between is made again.
    while True:
        if folder:
            name = tempfile.mkdtemp(*place)
            handle = os.open(name, os.O_RDONLY)
        else:
            handle, name = tempfile.mkstemp(*place)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(name):
            return handle, Path(name)
        os.close(handle)


@cache
def _sweep(folder: Path) -> None:
    """Remove what writers that are no longer there have left; once in a process, since a folder may
    hold many files."""
    with suppress(OSError):
        for part in folder.iterdir():
            if part.name.startswith(".") and part.name.endswith(PART):
                with suppress(OSError):
                    _remove_if_lost(part)


def _remove_if_lost(part: Path) -> None:
    handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        # Fails where the writer still holds the lock; then the part is not ours to remove.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
    finally:
        os.close(handle)


# ---- Arrays.


def read_array(
    path: Path, key: str | None = None, *, limit: int | None = None, map_from: int = 64 << 20
) -> NDArray[Any]:
    """One array from .npy or .npz, within `limit` bytes of memory (None: memory_limit).

    map_from: bytes from which a .npy file is mapped; smaller ones are read faster than mapped page
    by page
    """
    path = Path(path)
    must_be_file(path)
    with _archive(path) as archive:
        if isinstance(archive, np.ndarray):
            if path.stat().st_size >= map_from:
                return archive
            must_fit(archive.nbytes, path.name, limit)
            return np.array(archive)
        if key is None and len(archive.files) != 1:
            names = ", ".join(archive.files[:6])
            raise InputError(
                f"{path.name} holds {len(archive.files)} arrays ({names}): save the one meant as "
                ".npy"
            )
        key = key or archive.files[0]
        if key not in archive.files:
            raise InputError(f"{path.name} holds no array '{key}': is it the right file?")
        # What an archive says of its content is all that it can unpack to.
        member = archive.zip.getinfo(f"{key}.npy")
        must_fit(member.file_size, f"{path.name}, unpacked,", limit)
        return np.asarray(archive[key])


def array_names(path: Path) -> tuple[str, ...]:
    """The names of the arrays in a .npz file."""
    must_be_file(path)
    with _archive(path) as archive:
        return () if isinstance(archive, np.ndarray) else tuple(archive.files)


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
    if array.dtype != np.float32 or not array.flags.c_contiguous:
        # A mapped array costs its copy only; another one is in memory beside it.
        mapped = isinstance(array, np.memmap) and array.flags.c_contiguous
        must_fit(4 * array.size + (0 if mapped else array.nbytes), f"{name} as float32", limit)


class _Plain:
    """A file that NumPy must write to through Python: by itself it overlooks that a disk is full at
    the last 4096 bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write


@contextmanager
def _archive(path: Path) -> Iterator[Any]:
    """What NumPy makes of a file, mapped or not yet unpacked; whatever it stumbles over, in one
    sentence, but not what the system says of a file that may be good."""
    with path.open("rb") as file:
        start = file.read(256)
    if not start.startswith((npy.MAGIC_PREFIX, b"PK\x03\x04")):
        raise InputError(f"{path.name} {_what(start)}")
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            yield loaded
        else:
            with loaded:
                yield loaded
    except InputError:
        raise
    except Exception as error:
        # EINVAL: a damaged archive points before its start.
        if isinstance(error, OSError) and error.errno not in (errno.EINVAL, None):
            raise
        if "object" in str(error).lower():
            raise InputError(f"{path.name} {_PICKLE}") from None
        raise InputError(
            f"{path.name} is not a readable .npy or .npz array (truncated or damaged): write it "
            "again with numpy.save"
        ) from None


def _what(start: bytes) -> str:
    """What a file is that is no array, by its first bytes, and the cure."""
    if not start:
        return "is empty: write it again with numpy.save"
    # A pickle's first two bytes: that it is one, and its protocol.
    if re.match(rb"\x80[\x02-\x05]", start):
        return _PICKLE
    known = [kind for begin, kind in _STARTS.items() if start.startswith(begin)]
    text = start.decode("utf-8", errors="replace").rstrip("\ufffd")  # a last letter may be cut
    if known:
        what = f"{known[0]}: turn it into an array and write that with numpy.save"
    elif "\ufffd" not in text and "\0" not in text:
        what = "text: if it is a table, give it the suffix .csv; else write it with numpy.save"
    else:
        what = "bytes of no known format: write it again with numpy.save"
    return f"is not a readable .npy or .npz array but {what}"


# ---- JSON, text and tables.


def read_json(path: Path) -> dict[str, Any]:
    """One JSON object, refused where it would not fit the memory."""
    must_be_file(path)
    # A byte of JSON takes at most 30 of memory: a list of empty lists does.
    must_fit(30 * path.stat().st_size, path.name, cure="write it again")
    try:
        content = json.loads(path.read_bytes())
    # RecursionError: brackets nested thousands deep.
    except (ValueError, RecursionError):
        raise InputError(f"{path.name} is not valid JSON: write it again") from None
    if not isinstance(content, dict):
        raise InputError(f"{path.name} must hold one JSON object")
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Keys sorted, so that the same content is the same bytes."""
    write_bytes(path, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())


def write_text(path: Path, text: str) -> None:
    """As UTF-8; names of files that are not text themselves are spelled out with backslashes."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_bytes(path: Path, content: bytes) -> None:
    with whole(path) as file:
        file.write(content)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """A table, its columns those of the first row. Text that a spreadsheet would run as a formula
    gets a ' before it."""
    columns = list(rows[0]) if rows else []
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    lines: list[list[Any]] = [columns, *([row.get(name) for name in columns] for row in rows)]
    for line in lines:
        writer.writerow([_harmless(cell) for cell in line])
    write_text(path, text.getvalue())


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        return cell
    with suppress(ValueError):
        if cell.isascii():
            float(cell)
            return cell
    return f"'{cell}"


# ---- Kept results.


def name_of(facts: Any, *arrays: NDArray[Any] | None) -> str:
    """The same only for the same facts and the same arrays, their shapes and types included."""
    import joblib

    return str(joblib.hash((facts, [_plain(array) for array in arrays]), hash_name="sha1"))


def _plain(array: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if array is None else np.ascontiguousarray(array).view(np.ndarray)


class Kept:
    """Finished results of `engine.blocks.results` in a folder: what was done before is read, not
    computed. A result is a mapping of names to arrays.

    folder        gets a folder of its own for every input, so that results of others cannot be
                  taken for these
    facts, arrays  all that decides the results: options ready for `name_of`, data
    """

    def __init__(self, folder: Path, facts: Any, *arrays: NDArray[Any] | None) -> None:
        self.name = name_of(facts, *arrays)
        self.folder = Path(folder) / self.name
        self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, item: Any) -> dict[str, NDArray[Any]] | None:
        path = self._path(item)
        try:
            kept = {key: read_array(path, key) for key in array_names(path)}
        except InputError:
            return None
        # A file that was copied here under another name is not what it seems.
        return kept if str(kept.pop(_NAME, "")) == f"{self.name} {item}" else None

    def write(self, item: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        try:
            write_arrays(self._path(item), {**arrays, _NAME: np.array(f"{self.name} {item}")})
        except FileNotFoundError:
            raise InputError(
                f"{self.folder} vanished while results were written to it: leave the checkpoint "
                "folder alone"
            ) from None

    def _path(self, item: Any) -> Path:
        words = re.findall(r"\w+", str(item))
        return self.folder / f"{'-'.join(['block', *words])}.npz"
