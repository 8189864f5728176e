"""One item on the page of results: what the paper says, what was measured, whether they agree. All from measured numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    title: str
    claim: str
    ours: str
    verdict: str
    body: str = ""
    captions: tuple[str, ...] = ()
    """One for each figure, in their order."""


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    cells = [list(heads), ["---"] * len(heads), *map(list, lines)]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"
