"""`unveil plan`: before running, what an attack would need, and whether it should succeed."""

from __future__ import annotations

from typing import Any

import click
from rich import box
from rich.markup import escape
from rich.table import Table

from unveil.cli.group import main
from unveil.cli.options import COUNT, as_json, config_option, scheme_of, scheme_options
from unveil.cli.terminal import console, echo_json


@main.command()
@scheme_options
@click.option("--n-private", type=COUNT, default=100, show_default=True, help="Private vectors.")
@click.option("--n-public", type=COUNT, default=0, show_default=True, help="Public vectors.")
@click.option("--m", type=COUNT, help="Encodings.  [default: what all vectors need]")
@click.option("--d", type=COUNT, default=3072, show_default=True, help="Pixels.")
@click.option(
    "--noise",
    type=float,
    default=0.0,
    show_default=True,
    help="Standard deviation added to every pixel.",
)
@config_option()
@as_json
def plan(as_json: bool, **options: Any) -> int:
    """What would an attack need, and should it succeed?

    Seconds and memory on this machine, the attack that applies, what holds and what is missing.
    Nothing is attacked.
    """
    from unveil.auditing.clock import PATIENCE
    from unveil.auditing.plan import plan as forecast

    scheme = scheme_of(options)
    found = forecast(
        scheme, options.pop("n_private"), options.pop("m"), options.pop("d"), **options
    )
    if as_json:
        return echo_json(found.facts())
    terminal = console()
    terminal.print(f"[bold]{escape(found.advice)}[/]", soft_wrap=True)
    # Peak of the whole process: that is what a limit or a container ends.
    memory = f"{found.memory / 2**20:,.0f} MiB"
    terminal.print(
        f"About {found.seconds:.1f} s and {memory}; the first run on a machine compiles for "
        f"{found.compile_seconds:.0f} s."
    )
    if len(found.tried) > 1:
        terminal.print(
            f"Where that does not get through, {', '.join(found.tried)} are tried in turn: up to "
            f"{found.most_seconds:,.0f} s on data that are not Gaussian. An audit ends them by the "
            f"clock, {PATIENCE:g} times its effort.",
            soft_wrap=True,
        )
    table = Table("needs", "", "", box=box.SIMPLE)
    for item in found.preconditions:
        table.add_row(
            "[green]✓[/]" if item.holds else "[red]✗[/]", escape(item.what), escape(item.why)
        )
    terminal.print(table)
    terminal.print(
        "Seconds: " + ", ".join(f"{stage.name} {stage.seconds:.2f}" for stage in found.stages) + "."
    )
    return 0
