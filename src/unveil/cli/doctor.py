"""`unveil doctor`: is this installation healthy?"""

from __future__ import annotations

import click
from rich.markup import escape
from rich.table import Table

from unveil.cli.group import main
from unveil.cli.options import as_json
from unveil.cli.terminal import console, echo_json


@main.command()
@as_json
def doctor(as_json: bool) -> int:
    """Is this installation healthy?

    Versions, BLAS, memory, and a tiny attack that must succeed; every line that fails names its
    cure.
    """
    from unveil.doctor import examine

    if not as_json:
        # The first attack on a machine compiles its kernels, and says nothing meanwhile.
        click.echo("Looking. Half a minute the first time, then a few seconds.", err=True)
    findings = list(examine())
    healthy = all(finding["ok"] for finding in findings)
    if as_json:
        echo_json({"healthy": healthy, "checks": findings})
    else:
        terminal = console()
        terminal.print(
            "[bold]Healthy.[/]"
            if healthy
            else "[bold red]Not healthy: each line marked ✗ names its cure.[/]"
        )
        table = Table(box=None, show_header=False)
        for finding in findings:
            # Three states: broken, not there but not needed, well.
            mark = (
                "[red]✗[/]"
                if not finding["ok"]
                else "[dim]–[/]"
                if finding["cure"]
                else "[green]✓[/]"
            )
            cure = f"  → {finding['cure']}" if finding["cure"] else ""
            table.add_row(mark, escape(finding["check"]), escape(finding["found"] + cure))
        terminal.print(table)
    return 0 if healthy else 3
