"""`unveil plan`: before running, what an attack would need, and whether it should succeed."""

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
    """What would an attack need, and should it succeed?

    The attack that applies, what it needs and what is missing. Nothing is attacked.
    """
    from unveil.auditing.plan import plan as forecast

    scheme = scheme_of(options)
    n_private, m, d = (options.pop(name) for name in ("n_private", "m", "d"))
    found = forecast(scheme, n_private, m, d, **options)
    if as_json:
        return echo_json(found.facts())
    console().print(f"[bold]{escape(str(found))}[/]", soft_wrap=True)
    frame = found.to_frame()
    table = Table(*map(str, frame.columns), box=box.SIMPLE)
    for row in frame.itertuples(index=False):
        cells = (f"{cell:,.4g}" if isinstance(cell, float) else str(cell) for cell in row)
        table.add_row(*map(escape, cells))
    console().print(table)
    return 0
