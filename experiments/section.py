"""One item on the page of results: what the paper says, what was measured, whether they agree. All
from measured numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Section:
    title: str
    claim: str
    ours: str
    verdict: str
    body: str = ""
    captions: Mapping[str, str] = field(default_factory=dict)
    """What each figure shows, by the suffix of its name; "" is the first one."""


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; a bar inside a cell would end it."""
    # The second line is what makes it a table in Markdown.
    cells = [list(heads), ["---"] * len(heads), *map(list, lines)]
    return (
        "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells
        )
        + "\n"
    )
