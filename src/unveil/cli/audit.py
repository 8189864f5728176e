"""`unveil audit`: what leaks if encodings of this data are released? Verdict, leakage curve,
report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from unveil.cli.audit_input import demo_images, settled
from unveil.cli.audit_terminal import show
from unveil.cli.gate import FAILED, GATES, why_not
from unveil.cli.group import main
from unveil.cli.options import (
    COUNT,
    PATH,
    TOLERANCE,
    as_json,
    config_option,
    memory_option,
    on_the_command_line,
    scheme_of,
    scheme_options,
    shape_option,
    table_options,
    workers_options,
)
from unveil.cli.provenance import provenance
from unveil.cli.terminal import console, echo_json, progress_bar

DEFAULT = {
    "gaussian": {"n_private": 50, "d": 512, "effort": 6.0},
    "fashion-mnist": {"n_private": 30, "effort": 5.0},
}
"""What is audited when nothing is said: small enough for a minute in all."""
DEMO_EFFORT = 20.0
"""Of the demo, for two minutes in all."""


@main.command()
@click.option(
    "--demo",
    type=click.Choice(["images"]),
    help="Bundled images, encoded as InstaHide released it.",
)
@click.option(
    "--private",
    help="Your records: .npy, .npz, .pt, .csv, a folder of images; or gaussian, fashion-mnist.",
)
@click.option("--public", help="Public vectors, in the same forms.")
@scheme_options
@click.option(
    "--m",
    metavar="M|LOW:HIGH",
    help="Encodings released, or a range; with --encoder the first M of those.  "
    "[default: what all records need, or all there are]",
)
@click.option(
    "--noise",
    type=float,
    default=0.0,
    show_default=True,
    help="Standard deviation added to every pixel.",
)
@click.option("--n-private", type=COUNT, help="Records, where they are drawn or bundled.")
@click.option("--n-public", type=COUNT, help="Public vectors, where they are drawn.")
@click.option("--d", type=COUNT, help="Pixels, where vectors are drawn.")
@click.option("--sample", type=COUNT, help="Audit so many of the records, drawn at random.")
@click.option(
    "--seeds", type=COUNT, default=3, show_default=True, help="Independent draws of subsets."
)
@click.option(
    "--effort",
    type=float,
    help="Forecast seconds of attacks and curve; the clock ends them at 5 times, after 3 minutes "
    "at least.  [default: 40]",
)
@click.option(
    "--relative-tolerance",
    "--tolerance",
    type=float,
    default=TOLERANCE,
    show_default=True,
    help="Largest error of a value, relative to the rms of the data.",
)
@click.option(
    "--encoder",
    metavar="FILE.py:NAME",
    callback=on_the_command_line,
    help="Your encoder(private, public, rng), or an object with encode; its file is run.",
)
@click.option(
    "--encodings",
    type=PATH,
    help="Encodings somebody else made, audited against --truth: .npy, .npz, .pt, .csv.",
)
@click.option("--truth", type=PATH, help="The records behind --encodings, in their units.")
@shape_option
@click.option(
    "--what-if",
    type=click.Choice(["noise", "k", "m", "all"]),
    help="Also: what comes back, and what is left, as noise, k or m change.",
)
@click.option(
    "--labels",
    type=PATH,
    help="Class of each record, one a line or .npy: what encodings are worth to a classifier.",
)
@click.option(
    "--sensitive",
    metavar="COLUMN",
    help="A column that must not be inferred: its name, or its number from 1 on.",
)
@click.option(
    "--fail-on",
    type=click.Choice(GATES),
    help="Exit code 1 if records leak; 'approximate': or leak in part; 'any': or anything does.",
)
@table_options
@workers_options
@memory_option
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--out",
    type=PATH,
    default=Path("unveil-audit"),
    show_default=True,
    help="Folder for report and finished trials.",
)
@config_option("private", "public", "out", "encodings", "truth", "labels")
@as_json
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    private: str | None,
    demo: str | None,
    out: Path,
    fail_on: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """What leaks if encodings of this data are released?

    Encodes the records as the scheme (or your encoder) would, attacks, holds what comes back
    against the truth, and writes a report. With no options: Gaussian vectors and bundled images. An
    interrupted audit goes on where it stopped.

    Exit code 0: done, whatever the verdict; 1: the gate of --fail-on is closed; 2: bad input.
    """
    from unveil import store
    from unveil.auditing.audit import audit as run
    from unveil.auditing.inputs import holds_audits
    from unveil.checks import InputError
    from unveil.report.page import write_json, write_report

    # 1. What is audited, and with what options.
    scheme = scheme_of(options)
    records, source, options = settled(private, demo, options)
    if demo is not None:
        records, options["public"], scheme = demo_images()
        options.setdefault("effort", DEMO_EFFORT)
    several = (
        records is None
        and not {"n_private", "d", "n_public", "m", "public", "sample"} & options.keys()
    )
    if several and "labels" in options:
        raise InputError("--labels without --private: say which records they are of")
    if several and not holds_audits(out):
        store.must_be_new(out)
    names = [*DEFAULT] if several else [records if records is not None else "gaussian"]
    given = (ctx.obj or {}).get("args", [])
    facts, closed = [], False
    for name in names:
        # 2. The audit.
        folder = out / name if several else out
        extra = {**DEFAULT[name], **options} if several else options
        with progress_bar("audit", not as_json) as progress:
            found = run(name, scheme, out=folder, progress=progress, **extra)
        found = replace(found, provenance=provenance(found.provenance, given, source))
        # 3. Report and JSON, together or not at all.
        folder.mkdir(parents=True, exist_ok=True)
        with store.whole_set(folder) as part:
            write_report(found, part / "report.html")
            write_json(found, part / "audit.json")
        report = folder / "report.html"
        # 4. What to say, and whether the gate is open.
        reason = why_not(found, fail_on) if fail_on else ""
        closed = closed or bool(reason)
        facts.append({**found.facts(), "report": str(report)})
        if fail_on:
            facts[-1]["gate"] = {"fail_on": fail_on, "passed": not reason, "why": reason}
        if not as_json:
            show(console(), found, report)
            if fail_on:
                _show_gate(fail_on, reason)
    if as_json:
        echo_json(facts[0] if len(facts) == 1 else {"audits": facts})
    return FAILED if closed else 0


def _show_gate(gate: str, reason: str) -> None:
    passed = "[green]passed[/]" if not reason else f"[red]failed[/], {escape(reason)}"
    console().print(f"Gate --fail-on {gate}: {passed}.", soft_wrap=True)
