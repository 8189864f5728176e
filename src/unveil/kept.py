"""Results kept on disk, so that work that was interrupted goes on where it stopped.

A result is kept under a name made of everything that decides it, data and options alike, and
carries that name inside. A file that is damaged, or that carries another name, counts as not there:
the work is done again and the file replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError, row_blocks
from unveil.npy import array_names, read_array, write_arrays
from unveil.store import read_json, write_json

_NAME = "kept as"


def name_of(facts: Any, *arrays: NDArray[Any] | None) -> str:
    """The same only for the same facts (ready for JSON) and the same arrays, their shapes and types
    included."""
    # Keys sorted: the order in which facts were collected does not matter.
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for array in arrays:
        digest.update(b"none" if array is None else repr((array.shape, array.dtype.str)).encode())
        # In blocks: a memory-mapped array stays on disk.
        for _, block in (
            () if array is None or not array.size else row_blocks(array.reshape(len(array), -1))
        ):
            digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


def keep_arrays(path: Path, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    write_arrays(path, {**arrays, _NAME: np.array(name)})


def kept_arrays(path: Path, name: str) -> dict[str, NDArray[Any]] | None:
    """What was kept under this name, or None."""
    try:
        found = {key: read_array(path, key) for key in array_names(path)} if path.is_file() else {}
    except InputError:
        return None
    # A file that was copied here under another name is not what it seems.
    return found if str(found.pop(_NAME, "")) == name else None


def keep_json(path: Path, name: str, facts: Mapping[str, Any]) -> None:
    write_json(path, {_NAME: name, "facts": facts})


def kept_json(path: Path, name: str) -> dict[str, Any] | None:
    """What was kept under this name, or None."""
    try:
        found = read_json(path) if path.is_file() else {}
    except InputError:
        return None
    # Kept under another name, or written by something else: as good as not there.
    facts = found.get("facts")
    return facts if found.get(_NAME) == name and isinstance(facts, dict) else None
