"""The class of every record, for what encodings are still worth: .npy, .npz, .pt, or text with one
label a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.data.features import SUFFIXES
from unveil.data.tensors import read_any_array
from unveil.files import must_be_file
from unveil.parallel import must_fit

PER_LABEL = 100
"""Bytes of memory of a label that is text, at most, for each byte in the file: a letter becomes a
Python string."""


def read_labels(path: str | Path, *, limit: int | None = None) -> NDArray[np.int64]:
    """(n,) classes as numbers from 0 on, in the order of their names; at least two different
    ones."""
    path = Path(path)
    if path.suffix.lower() in SUFFIXES:
        found: NDArray[Any] = np.array(_lines(path, limit))
    else:
        found = read_any_array(path, limit=limit)
    # A column of labels is a list of labels: that is how tables come out of other programs.
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1 or found.dtype.kind not in "iubUSf":
        raise InputError(
            f"{path.name} holds an array of shape {found.shape}: labels are one per record, "
            "(records,)"
        )
    # Numbers with fractions are measurements, and no classifier is asked to name them.
    if found.dtype.kind == "f" and not np.array_equal(found, np.round(found)):
        raise InputError(f"{path.name} holds fractions: labels are classes, whole numbers or words")
    classes, numbers = np.unique(found, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"{path.name} knows one class only: labels need two different ones")
    return numbers.astype(np.int64)


def _lines(path: Path, limit: int | None) -> list[str]:
    """One label a line; a first line is a header where it alone says `label` or `class`."""
    must_be_file(path)
    must_fit(PER_LABEL * path.stat().st_size, path.name, limit)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text: save it as UTF-8") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A header is dropped only where it is surely one: a class may be called anything else.
    if lines and lines[0].lower() in ("label", "labels", "class", "target", "y"):
        lines = lines[1:]
    if not lines:
        raise InputError(f"{path.name} is empty: give one label a line")
    return lines
