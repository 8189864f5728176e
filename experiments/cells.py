"""Finished cells of an experiment, kept on disk: a run that was interrupted goes on where it
stopped, with the same bytes.

A cell is one setting and what was measured there, a JSON object. Its file is named after everything
that decides the result: the package's version, the item, the setting, the seed. A damaged file is
measured again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil._version import __version__
from unveil.engine.blocks import results, where
from unveil.engine.files import keep_json, kept_json, name_of
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
        self,
        compute: Callable[..., Facts],
        settings: Sequence[Mapping[str, Any]],
        what: str = "",
        *,
        at_once: int = 1,
    ) -> list[Facts]:
        """compute(**setting, seed=…) for each setting, from disk where it was done before.

        at_once: how many may run side by side; on a cluster as many as it has workers
        """
        # 1. What is there already. Everything that decides a result is part of its name.
        names = [
            name_of([__version__, self.item, what, setting, self.seed]) for setting in settings
        ]
        out = [self._kept(name) for name in names]
        missing = [number for number, found in enumerate(out) if found is None]
        done = len(settings) - len(missing)
        if self.progress:
            self.progress(what or self.item, done, len(settings))
        # 2. The rest, kept as it comes.
        for number, measured in self._measured(compute, settings, missing, at_once):
            # Through JSON in any case, so that a number from disk and one just measured are the
            # same.
            out[number] = found = json.loads(json.dumps(measured, allow_nan=False))
            path = self._path(names[number])
            if path is not None and not found.get(LOST):
                path.parent.mkdir(parents=True, exist_ok=True)
                keep_json(path, names[number], found)
            done += 1
            if self.progress:
                self.progress(what or self.item, done, len(settings))
        return [found for found in out if found is not None]

    def _measured(
        self,
        compute: Callable[..., Facts],
        settings: Sequence[Mapping[str, Any]],
        missing: Sequence[int],
        at_once: int,
    ) -> Iterable[tuple[int, Facts]]:
        if at_once == 1 and where().scheduler is None:
            # One after the other, each with the machine to itself.
            return ((number, compute(**settings[number], seed=self.seed)) for number in missing)
        return results(_computed, (compute, settings, self.seed), missing, workers=at_once)

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{self.item}-{name[:24]}.json"

    def _kept(self, name: str) -> Facts | None:
        path = self._path(name)
        return None if path is None else kept_json(path, name)


def _computed(
    shared: tuple[Callable[..., Facts], Sequence[Mapping[str, Any]], int], number: int
) -> Facts:
    compute, settings, seed = shared
    return compute(**settings[number], seed=seed)
