"""`unveil export`: recovered records as files that people open."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from unveil.cli.group import main
from unveil.cli.options import PATH, as_json, read_result
from unveil.cli.terminal import console, echo_json


@main.command()
@click.argument("run", type=PATH)
@click.argument("target", type=PATH)
@as_json
def export(run: Path, target: Path, as_json: bool) -> int:
    """Write recovered records as TARGET.

    Reads recovery.npz in RUN. The ending of TARGET says what it becomes: .csv (a row per record, a
    ' before what a spreadsheet would run), .json, .html, .npy, .npz, .png; the name of a new folder
    gets one PNG per image, where records are images.
    """
    recovery = read_result(run)
    place = recovery.save(target)
    if as_json:
        return echo_json({"written": str(place), "records": len(recovery)})
    console().print(f"{len(recovery)} records written to {escape(str(place))}.", soft_wrap=True)
    return 0
