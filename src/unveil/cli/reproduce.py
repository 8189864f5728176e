"""`unveil reproduce`: the paper's figures and numbers, measured again, with a verdict on each."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from unveil.cli.group import main
from unveil.cli.options import as_json, measured_in
from unveil.cli.terminal import console, echo_json, progress_bar


@main.command()
@click.argument(
    "item",
    default="all",
    metavar="[utility|learn-public|sample-complexity|gram-accuracy|run-time|all]",
)
@click.option(
    "--full", is_flag=True, help="The real thing, about half an hour; without it a few minutes."
)
@measured_in("unveil-reproduce", seed="Same seed, same numbers; times excepted.")
@as_json
def reproduce(item: str, full: bool, out: Path, seed: int, as_json: bool) -> int:
    """Measure what the paper reports, and say where we agree.

    Writes OUT/reproduce.md, and under OUT/figures each item's numbers (JSON, CSV) and figures (SVG,
    PNG). An interrupted run goes on where it stopped.
    """
    from unveil.checks import InputError
    from unveil.experiments import ITEMS
    from unveil.experiments import reproduce as run

    if item not in (*ITEMS, "all"):
        raise InputError(f"no item {item!r}: choose one of {', '.join(ITEMS)}, or all")
    # One item at a time, shown as soon as it is measured: all of them take half an hour.
    terminal = console()
    facts = []
    for name in ITEMS if item == "all" else (item,):
        with progress_bar(name, not as_json) as progress:
            found = run(name, out, full=full, seed=seed, progress=progress)
        section = found.section
        facts.append(
            {
                "item": name,
                "claim": section.claim,
                "measured": section.ours,
                "verdict": section.verdict,
            }
        )
        if not as_json:
            terminal.print(f"[bold]{escape(section.title)}[/]", soft_wrap=True)
            terminal.print(f"  The paper: {escape(section.claim)}", soft_wrap=True)
            terminal.print(f"  Measured:  {escape(section.ours)}", soft_wrap=True)
            terminal.print(f"  [bold]{escape(section.verdict)}[/]", soft_wrap=True)
    if as_json:
        return echo_json({"out": str(out), "full": full, "seed": seed, "items": facts})
    terminal.print(f"Page: {escape(str(out / 'reproduce.md'))}", soft_wrap=True)
    return 0
