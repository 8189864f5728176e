"""One way to print results, rows of (what, must hold, measured, holds), and to write them down."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Row = tuple[str, str, str, bool | None]


def show(title: str, rows: Iterable[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_lines=False)
    for name in ("what", "must hold", "measured", ""):
        table.add_column(name)
    for what, must, measured, holds in rows:
        table.add_row(what, must, measured, {True: "yes", False: "NO", None: ""}[holds])
    Console(width=150).print(table)


def write_between(page: Path, start: str, end: str, text: str) -> None:
    """What a page has between two of its lines becomes `text`."""
    before, rest = page.read_text().split(start)
    page.write_text(f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}")
