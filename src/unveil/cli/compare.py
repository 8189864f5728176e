"""`unveil compare`: every attack on every family of instances: what it recovers, what it gets
wrong, what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unveil.cli.group import main
from unveil.cli.options import as_json, measured_in, workers_options
from unveil.cli.terminal import console, echo_json, progress_bar


@main.command()
@click.option(
    "--attack", "attacks", multiple=True, help="Only this one; may be repeated.  [default: all]"
)
@click.option(
    "--family",
    "families",
    multiple=True,
    help="Only these instances; 'phase': the diagrams.  [default: all]",
)
@click.option(
    "--full",
    is_flag=True,
    help="Four draws and fine diagrams, about half an hour; without it a few minutes.",
)
@click.option(
    "--limit",
    type=float,
    metavar="SECONDS",
    help="For an attack on one instance.  [default: 20, with --full 60]",
)
@workers_options
@measured_in("unveil-compare", seed="Same seed, same instances.")
@as_json
def compare(out: Path, as_json: bool, **options: Any) -> int:
    """Which attack wins, where, at what cost?

    Every attack runs on every family of instances, in a process of its own. Writes OUT/compare.md,
    and under OUT/figures the numbers (JSON, CSV) and a phase diagram for each attack (SVG, PNG). An
    interrupted run goes on where it stopped.
    """
    from unveil.experiments.compare.run import compare as run

    with progress_bar("compare", not as_json) as progress:
        found = run(out, progress=progress, **options)
    if as_json:
        return echo_json({"out": str(out), "verdict": found.verdict, **found.facts})
    terminal = console()
    terminal.print(f"[bold]{escape(found.verdict)}[/]", soft_wrap=True)
    _show(terminal, found.facts)
    terminal.print(f"Page: {escape(str(out / 'compare.md'))}", soft_wrap=True)
    return 0


def _show(terminal: Console, facts: dict[str, Any]) -> None:
    from unveil.experiments.compare.page import matrix, reasons, seconds, share, winners

    def cell(result: dict[str, Any]) -> str:
        text = share(result) + (f" {seconds(result)} s" if result["outcome"] == "ran" else "")
        return f"[bold]{text}[/]" if result["attack"] in best[result["family"]] else text

    # Set after `cell`, which asks for it only when the table is drawn.
    best = winners(facts)
    if best:
        heads, lines = matrix(facts, cell)
        # Long names break at their hyphens, so that twelve columns fit a terminal.
        table = Table(*(head.replace("-", "-\n") for head in heads), box=box.SIMPLE)
        for line in lines:
            table.add_row(*line)
        terminal.print(table)
    for attack, words, where in reasons(facts):
        terminal.print(
            f"{escape(attack)} {escape(words)} ({escape(', '.join(where))})", soft_wrap=True
        )
