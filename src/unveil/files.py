"""Files as such: what a path is, and writing that a kill, a full disk or a second writer cannot
spoil.

Everything is written to a part beside its target and takes the target's name when it is complete,
so that a name never stands for half a file. A kill leaves the part behind. Parts are locked by who
writes them: one that is not locked has lost its writer, and goes when the next file is written to
the same folder. Nothing ever reads a part.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from unveil.checks import InputError

PART = ".unveil-part"
"""How the names of parts end: no other program's files do, so that sweeping is safe in a user's
folder."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def must_be_file(path: Path) -> None:
    """Asked before a file is opened: a pipe would wait for ever, and a device never ends."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    # ValueError: a name with a zero byte.
    except (FileNotFoundError, NotADirectoryError, ValueError):
        link = " (it is a link to nothing)" if path.is_symlink() else ""
        raise InputError(f"no file {path}{link}: check the path") from None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENAMETOOLONG):
            raise
        what = (
            "is a link that leads back to itself"
            if error.errno == errno.ELOOP
            else "is too long for a name"
        )
        raise InputError(f"{str(path)[:200]} {what}: check the path") from None
    if kind != stat.S_IFREG:
        raise InputError(f"{path} is {_KINDS.get(kind, 'something else')}, no file: check the path")


def must_be_new(folder: Path) -> None:
    """Asked before the work, so that hours of it are not lost to a name that is taken."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} exists and is not an empty folder: choose another name or empty it"
        )


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes its name when all went well and leaves nothing otherwise."""
    # What earlier writers that died have left goes first.
    path = Path(path)
    _sweep(path.parent.resolve())
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
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
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
    _sweep(target.parent.resolve())
    handle, shelter = _claim(target, folder=True)
    try:
        part = shelter / target.name
        part.mkdir()
        yield part
    finally:
        shutil.rmtree(shelter, ignore_errors=True)
        os.close(handle)


def _claim(target: Path, *, folder: bool = False) -> tuple[int, Path]:
    """A new part beside the target, opened and locked."""
    prefix = f".{target.name[:100]}."
    # A part is open for a moment before it is locked; one that was swept in between is made again.
    while True:
        if folder:
            name = tempfile.mkdtemp(prefix=prefix, suffix=PART, dir=target.parent)
            handle = os.open(name, os.O_RDONLY)
        else:
            handle, name = tempfile.mkstemp(prefix=prefix, suffix=PART, dir=target.parent)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(name):  # else it was swept before it was locked
            return handle, Path(name)
        os.close(handle)


@cache
def _sweep(folder: Path) -> None:
    """Remove what writers that are no longer there have left; once in a process, since a folder may
    hold many files."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(".") and name.endswith(PART):
                with suppress(OSError):
                    _remove_if_lost(folder / name)


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
