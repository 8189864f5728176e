"""`unveil plan`: how many encodings which attack needs."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from unveil.cli import options as of
from unveil.cli.group import main
from unveil.cli.terminal import console, echo_json


@main.command()
@of.section(
    "Options",
    ("--n-private", of.COUNT, "Private vectors.", {"default": 100, **of.SHOWN}),
    ("--n-public", of.COUNT, "Public vectors.", {"default": 0, **of.SHOWN}),
    ("--m", of.COUNT, "Encodings.  [default: what all vectors need]"),
    ("--d", of.COUNT, "Pixels.", {"default": 3072, **of.SHOWN}),
)
@of.scheme_options
@of.noise_option
@of.config_option()
@of.as_json
def plan(as_json: bool, **options: Any) -> int:
    """How many encodings does each attack need?

    From the scheme and the counts alone; nothing is attacked, and no time is forecast.
    """
    from unveil.auditing.plan import plan as needs_of

    sizes = (options.pop(name) for name in ("n_private", "m", "d"))
    found = needs_of(of.scheme_of(options), *sizes, **options)
    if as_json:
        return echo_json(found.facts())
    terminal = console()
    terminal.print(f"[bold]{escape(found.advice)}[/]", soft_wrap=True)
    table = Table("", "attack", "encodings", "records", "why", box=box.SIMPLE)
    for need in found.needs:
        mark = "[green]✓[/]" if need.enough else "[red]✗[/]"
        count = f"{need.encodings:,}"
        table.add_row(mark, escape(need.attack), count, need.records, escape(need.why))
    terminal.print(table)
    return 0
