"""Finished block tasks in a folder, so that a run that was killed goes on where it stood and ends
with the same bytes.

Each run has a folder of its own, named after a fingerprint of all that decides its blocks: results
of another run are never taken for these. A result that cannot be read is computed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from unveil._version import __version__
from unveil.checks import InputError
from unveil.engine.files import keep_arrays, kept_arrays, name_of


class Checkpoint:
    """The finished tasks of one run; facts and arrays: all that decides them."""

    def __init__(self, folder: Path, facts: list[str], arrays: list[NDArray[Any] | None]) -> None:
        self.folder = Path(folder) / name_of([__version__, *facts], *arrays)[:32]
        self.folder.mkdir(parents=True, exist_ok=True)

    def _place(self, task: tuple[int, int]) -> tuple[Path, str]:
        i, j = task
        return self.folder / f"block-{i:05d}-{j:05d}.npz", f"{self.folder.name} {i} {j}"

    def read(self, task: tuple[int, int]) -> dict[str, NDArray[Any]] | None:
        """What was kept of a task, or None."""
        return kept_arrays(*self._place(task))

    def write(self, task: tuple[int, int], arrays: Mapping[str, NDArray[Any]]) -> None:
        try:
            keep_arrays(*self._place(task), arrays)
        except FileNotFoundError:
            raise InputError(
                f"{self.folder} vanished while blocks were written to it: leave the checkpoint "
                "folder alone"
            ) from None
