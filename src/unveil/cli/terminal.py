"""What the commands say on the terminal: verdicts, tables, progress, or one JSON object."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unveil._version import SCHEMA

if TYPE_CHECKING:
    from unveil.records import Progress


@contextmanager
def progress_bar(
    title: str, wanted: bool, *, patience: float = 2.0, every: float = 10.0
) -> Iterator[Progress | None]:
    """On stderr, when the work outlasts a user's patience: a bar on a terminal, lines elsewhere.

    wanted    whether a bar may be shown; lines are for logs, and come with --json too
    patience  seconds before a bar appears: quick work shows none, which would only flicker
    every     seconds between two lines: an hour is no more than 360 of them
    """
    if not sys.stderr.isatty():
        with _progress_lines(title, every) as progress:
            yield progress
        return
    if not wanted:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)
    timer = Timer(patience, bar.start)
    timer.start()

    def show(stage: str, done: int, total: int) -> None:
        bar.update(task, description=stage, completed=done, total=total)

    try:
        yield show
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


@contextmanager
def _progress_lines(title: str, every: float) -> Iterator[Progress]:
    """A line every so many seconds: how long it has run, and what was last heard of it."""
    heard, ended, start = [""], Event(), time.monotonic()

    def tell() -> None:
        while not ended.wait(every):
            seconds = time.monotonic() - start
            click.echo(f"{title}: {seconds:.0f} s{heard[0]}", err=True)

    def hear(stage: str, done: int, total: int) -> None:
        heard[0] = f", {stage} {done} of {total}" if total else f", {stage}"

    # A thread of its own: lines come also while a kernel runs that reports nothing.
    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield hear
    finally:
        ended.set()
        teller.join()


def print_recovery(facts: Mapping[str, Any], rows: int = 20) -> None:
    """The verdict, what was recovered, the vectors one by one, and the seconds; rows: how many
    vectors are listed. --json and the manifest have them all."""
    terminal = console()
    terminal.print(f"[bold]{escape(facts['verdict'])}[/bold]", soft_wrap=True)
    for sentence in facts["summary"]:
        terminal.print(escape(sentence), soft_wrap=True)
    columns = [facts[name] for name in ("status", "encodings_used", "reasons")]
    table = Table("vector", "status", "encodings", "reason", box=box.SIMPLE)
    last = None
    for *cells, reason in zip(range(rows), *columns, strict=False):
        # The same reason, twenty times, would hide the one that differs.
        table.add_row(*map(str, cells), "″" if reason == last else escape(reason))
        last = reason
    if table.rows:
        terminal.print(table)
    if len(facts["status"]) > rows:
        terminal.print(f"… and {len(facts['status']) - rows} more")
    seconds = ", ".join(f"{stage} {time:.2f}" for stage, time in facts["seconds"].items())
    terminal.print(f"Seconds: {seconds}.")


def console() -> Console:
    return Console(highlight=False)


def echo_json(facts: Mapping[str, Any]) -> int:
    from unveil.shown import plain

    click.echo(json.dumps({"schema": SCHEMA, **plain(facts)}, allow_nan=False))
    return 0


def echo_error(sentence: str, code: int, *, as_json: bool) -> int:
    """One line on stderr for the person who reads the log; with --json also an object on stdout,
    where a program looks for its answer."""
    if as_json:
        echo_json({"error": {"message": sentence, "exit_code": code}})
    click.echo(f"Error: {sentence}", err=True)
    return code
