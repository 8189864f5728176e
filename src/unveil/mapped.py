"""Arrays in memory-mapped files: where they lie, and how what was read of them is let go.

Pages that were read stay with the process until the system needs them elsewhere. It would take them
back in time, but until then a file of 12 GB looks like 12 GB of memory, to users and to whatever
ends processes that take too much. So who has read a block of a large file gives its pages back;
they stay in the system's cache, and are mapped again where they are read again.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 1 << 28
"""Bytes from which a file is worth letting go: a smaller one may stay mapped as a whole."""


def mapping_of(values: NDArray[Any]) -> np.memmap[Any, Any] | None:
    """The memory-mapped array that these numbers lie in; None where they are in plain memory."""
    # What `asarray` makes of a mapped array is a plain one that looks at the same numbers.
    owner: Any = values
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    return owner if isinstance(owner, np.memmap) else None


def let_go(values: NDArray[Any]) -> None:
    """Give the pages of a large file back that were read. Numbers that are read again are the same:
    only files that nobody writes through this mapping are touched."""
    owner = mapping_of(values)
    if owner is None or owner.mode != "r" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    file: Any = getattr(owner, "_mmap", None)
    if file is not None and len(file) >= LARGE:
        file.madvise(mmap.MADV_DONTNEED)
