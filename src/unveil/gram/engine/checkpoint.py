"""Resume: finished blocks on disk, so that a run that was killed goes on where it stood and ends
with the same bytes.

Blocks lie in a folder named after a fingerprint of everything that decides them: encodings, public
part, plan, version. Another input has another folder and never picks them up. Each block is written
whole or not at all; one that cannot be read is computed again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil._version import __version__
from unveil.gram.engine.blocks import Block, OverlapEngine
from unveil.kept import keep_arrays, kept_arrays
from unveil.records import InputError, row_blocks

FORMAT = 1
_FIELDS = ("rows", "columns", "overlap", "rival", "margin", "table")


class Checkpoint:
    """The finished blocks of one engine in a folder."""

    def __init__(self, folder: Path, engine: OverlapEngine) -> None:
        self.folder = Path(folder) / fingerprint(engine)
        self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, i: int, j: int) -> Block | None:
        found = kept_arrays(self._path(i, j), self._name(i, j))
        return (
            None
            if found is None or set(found) != set(_FIELDS)
            else Block(*(found[name] for name in _FIELDS))
        )

    def write(self, i: int, j: int, block: Block) -> None:
        try:
            keep_arrays(
                self._path(i, j), self._name(i, j), {name: getattr(block, name) for name in _FIELDS}
            )
        except FileNotFoundError:
            raise InputError(
                f"{self.folder} vanished while blocks were written to it: leave the checkpoint folder alone"
            ) from None

    def _name(self, i: int, j: int) -> str:
        return f"{self.folder.name} {i} {j}"

    def _path(self, i: int, j: int) -> Path:
        return self.folder / f"block-{i:05d}-{j:05d}.npz"


def fingerprint(engine: OverlapEngine) -> str:
    """Of all that decides the blocks; the number of workers does not."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((FORMAT, __version__, engine.scheme, engine.plan)).encode())
    arrays: list[NDArray[Any]] = [
        engine.values,
        engine.levels.mean,
        engine.levels.sd,
        engine.levels.skew,
    ]
    if engine.public is not None:
        digest.update(repr((engine.public.weight, engine.public.variance)).encode())
        arrays += (
            [engine.public.supports]
            if engine.public.vectors is None
            else [engine.public.supports, engine.public.vectors]
        )
    for array in arrays:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        for _, block in row_blocks(array):
            digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()
