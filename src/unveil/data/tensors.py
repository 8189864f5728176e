"""Tensors of PyTorch as arrays: from `.pt` files, and as they are in memory.

A `.pt` file is a pickle in an archive. It is read by torch itself with weights_only=True, which
builds tensors and plain containers and runs nothing else; without torch it is not read at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from unveil.checks import InputError, as_array
from unveil.files import must_be_file
from unveil.npy import read_array
from unveil.parallel import must_fit

SUFFIXES = (".pt", ".pth")
INSTALL = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


def read_any_array(path: Path, *, limit: int | None = None) -> NDArray[Any]:
    """One array from .npy, .npz, .pt or .pth, told apart by the suffix."""
    if path.suffix.lower() not in SUFFIXES:
        return read_array(path, limit=limit)
    must_be_file(path)
    # The archive is not compressed: as many bytes as the file has, and once more as an array.
    must_fit(2 * path.stat().st_size, path.name, limit)
    return as_array(_one_tensor(path, _loaded(path)), path.name)


def _loaded(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise InputError(
            f"{path.name} is a file of PyTorch, which is not installed: {INSTALL}; "
            "or save the tensor as .npy"
        ) from None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise
    except Exception:  # torch has no one kind of error for files it will not read
        raise InputError(
            f"{path.name} holds no plain tensor, or is damaged (what could run code is never "
            "opened): write the tensor alone with torch.save, or as .npy with numpy.save"
        ) from None


def _one_tensor(path: Path, value: Any) -> Any:
    """The tensor itself, or the only one of a dictionary."""
    if isinstance(value, Mapping):
        # A state of a model holds many tensors, and which of them are records cannot be guessed.
        found = [(key, item) for key, item in value.items() if hasattr(item, "detach")]
        if len(found) == 1:
            return found[0][1]
        names = ", ".join(str(key) for key, _ in found[:6])
        raise InputError(
            f"{path.name} holds {len(found)} tensors ({names}): save the one meant by itself"
        )
    if not hasattr(value, "detach"):
        raise InputError(
            f"{path.name} holds a {type(value).__name__}, no tensor: save the tensor by itself"
        )
    return value
