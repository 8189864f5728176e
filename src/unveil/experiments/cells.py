"""Finished cells of an experiment, kept on disk: a run that was interrupted goes on where it stopped, with the same bytes.

A cell is one setting and what was measured there, a JSON object. Its file is named after everything that decides the result:
the package's version, the item, the setting, the seed. A damaged file is measured again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil import store
from unveil._version import __version__
from unveil.records import InputError, Progress

Facts = dict[str, Any]
"""What was measured, ready for JSON: numbers, strings, lists and objects of these."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one item. folder: where finished ones are kept; None: nowhere."""

    item: str
    seed: int = 0
    folder: Path | None = None
    progress: Progress | None = None

    def run(self, compute: Callable[..., Facts], settings: Sequence[Mapping[str, Any]], what: str = "") -> list[Facts]:
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
        name = json.dumps([__version__, self.item, what, setting, self.seed], sort_keys=True)
        key = hashlib.sha256(name.encode()).hexdigest()[:24]
        path = None if self.folder is None else self.folder / f"{self.item}-{key}.json"
        if path is not None and path.is_file():
            try:
                return store.read_json(path)
            except InputError:
                path.unlink()
        # Through JSON in any case, so that a number from disk and one just measured are the same.
        found: Facts = json.loads(json.dumps(compute(**setting, seed=self.seed), allow_nan=False))
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            store.write_json(path, found)
        return found
