"""Finished cells of an experiment, kept on disk by joblib: a run that was interrupted goes on where
it stopped, with the same numbers.

A cell is one setting and what was measured there, a JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Memory

from unveil._version import __version__
from unveil.records import Progress

Facts = dict[str, Any]
"""What was measured, ready for JSON: numbers, strings, lists and objects of these."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one item. folder: where finished ones are kept; None: nowhere."""

    item: str
    seed: int = 0
    folder: Path | None = None
    progress: Progress | None = None

    def run(
        self, compute: Callable[..., Facts], settings: Sequence[Mapping[str, Any]], what: str = ""
    ) -> list[Facts]:
        """compute(**setting, seed=…) for each setting, from disk where it was done before."""
        place = None if self.folder is None else self.folder / __version__ / self.item
        measured, out = Memory(place, verbose=0).cache(compute), []
        for number, setting in enumerate(settings):
            if self.progress:
                self.progress(what or self.item, number, len(settings))
            # Through JSON, so that what is written is what is told.
            found = measured(**setting, seed=self.seed)
            out.append(json.loads(json.dumps(found, allow_nan=False)))
        return out
