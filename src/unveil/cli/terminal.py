"""What the commands say on the terminal: verdicts, tables, a progress bar, or one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from unveil.records import Progress

PATIENCE = 2.0
"""Seconds before a progress bar appears."""
ROWS = 20
"""Vectors listed on the terminal; --json and the manifest have them all."""


@contextmanager
def progress_bar(title: str, wanted: bool) -> Iterator[Progress | None]:
    """A bar on stderr that appears when the work outlasts a user's patience."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)
    timer = Timer(PATIENCE, bar.start)
    timer.start()
    try:
        yield lambda stage, done, total: bar.update(
            task, description=stage, completed=done, total=total
        )
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def print_evidence(terminal: Console, facts: Mapping[str, Any]) -> None:
    if facts["status"]:
        table = Table("vector", "status", "encodings", "reason", box=box.SIMPLE)
        last = None
        for row in zip(
            range(ROWS), facts["status"], facts["encodings_used"], facts["reasons"], strict=False
        ):
            *cells, reason = map(str, row)
            table.add_row(*cells, "″" if reason == last else escape(reason))
            last = reason
        terminal.print(table)
        if len(facts["status"]) > ROWS:
            terminal.print(f"… and {len(facts['status']) - ROWS} more")
    terminal.print(
        "Seconds: "
        + ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in facts["seconds"].items())
        + "."
    )


def console() -> Console:
    return Console(highlight=False)


def echo_json(facts: Mapping[str, Any]) -> int:
    from unveil.verdict import plain

    click.echo(json.dumps(plain(facts), allow_nan=False))
    return 0
