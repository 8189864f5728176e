"""What the commands say on the terminal: verdicts, tables, progress, or one JSON object."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
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
    """On stderr, how long it has run and what was last heard of it: one line that changes on a
    terminal, a new line now and then elsewhere.

    wanted    whether a terminal may show it; lines are for logs, and come with --json too
    patience  seconds before a terminal shows anything: quick work would only flicker
    every     seconds between two lines: an hour is no more than 360 of them
    """
    heard, ended, start, terminal = [""], Event(), time.monotonic(), sys.stderr.isatty()
    if terminal and not wanted:
        yield None
        return

    def tell() -> None:
        wait = patience if terminal else every
        while not ended.wait(wait):
            text = f"{title}: {time.monotonic() - start:.0f} s{heard[0]}"
            click.echo(f"\r{text:<79.79}" if terminal else text, err=True, nl=not terminal)
            wait = 0.1 if terminal else every

    def hear(stage: str, done: int, total: int) -> None:
        # What was found so far is no part of the count.
        work, also, found = stage.partition("; ")
        count = f" {done} of {total}" * bool(total)
        heard[0] = f", {work}{count}{also}{found}"

    # A thread of its own: lines come also while a kernel runs that reports nothing.
    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield hear
    finally:
        ended.set()
        teller.join()
        if terminal and time.monotonic() - start > patience:
            click.echo(f"\r{'':79}\r", err=True, nl=False)


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
