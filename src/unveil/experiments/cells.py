"""Finished cells of an experiment, kept on disk: a run that was interrupted goes on where it
stopped, with the same bytes.

A cell is one setting and what was measured there, a JSON object. Its file is named after everything
that decides the result: the package's version, the item, the setting, the seed. A damaged file is
measured again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil._version import __version__
from unveil.kept import keep_json, kept_json, name_of
from unveil.records import Progress

Facts = dict[str, Any]
"""What was measured, ready for JSON: numbers, strings, lists and objects of these."""
LOST = "lost"
"""Marks facts of a process that somebody else ended: they are told, and not kept."""


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
        out = []
        for number, setting in enumerate(settings):
            if self.progress:
                self.progress(what or self.item, number, len(settings))
            out.append(self._cell(compute, setting, what))
        if self.progress:
            self.progress(what or self.item, len(settings), len(settings))
        return out

    def _cell(self, compute: Callable[..., Facts], setting: Mapping[str, Any], what: str) -> Facts:
        name = name_of([__version__, self.item, what, setting, self.seed])
        path = None if self.folder is None else self.folder / f"{self.item}-{name[:24]}.json"
        found = None if path is None else kept_json(path, name)
        if found is None:
            # Through JSON in any case, so that a number from disk and one just measured are the
            # same.
            found = json.loads(json.dumps(compute(**setting, seed=self.seed), allow_nan=False))
            if path is not None and not found.get(LOST):
                path.parent.mkdir(parents=True, exist_ok=True)
                keep_json(path, name, found)
        return found
