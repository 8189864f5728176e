"""`unveil plan`: how many encodings which attack needs."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from unveil.cli.group import main
from unveil.cli.options import (
    COUNT,
    SHOWN,
    as_json,
    config_option,
    noise_option,
    scheme_of,
    scheme_options,
    table_of_options,
    together,
)
from unveil.cli.terminal import console, echo_json


@main.command()
@together(
    *table_of_options(
        "Options",
        ("--n-private", COUNT, "Private vectors.", {"default": 100, **SHOWN}),
        ("--n-public", COUNT, "Public vectors.", {"default": 0, **SHOWN}),
        ("--m", COUNT, "Encodings.  [default: what all vectors need]"),
        ("--d", COUNT, "Pixels.", {"default": 3072, **SHOWN}),
    )
)
@scheme_options
@noise_option
@config_option()
@as_json
def plan(as_json: bool, **options: Any) -> int:
    """How many encodings does each attack need?

    From the scheme and the counts alone; nothing is attacked, and no time is forecast.
    """
    from unveil.auditing.plan import plan as needs_of

    scheme = scheme_of(options)
    found = needs_of(
        scheme, options.pop("n_private"), options.pop("m"), options.pop("d"), **options
    )
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
