"""`unveil audit`: what leaks if encodings of this data are released? Verdict, columns, report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from unveil.cli.audit_input import demo_images, settled
from unveil.cli.gate import FAILED, GATES, why_not
from unveil.cli.group import main
from unveil.cli.options import (
    COUNT,
    PATH,
    SHOWN,
    TOLERANCE,
    as_json,
    config_option,
    memory_option,
    noise_option,
    on_the_command_line,
    scheme_of,
    scheme_options,
    shape_option,
    table_of_options,
    table_options,
    together,
    workers_options,
)
from unveil.cli.provenance import provenance
from unveil.cli.terminal import console, echo_json, progress_bar

DEFAULT = {"gaussian": {"n_private": 50, "d": 512}, "fashion-mnist": {"n_private": 30}}
"""What is audited when nothing is said: small enough for a minute in all."""


GATE, WHAT_IF = click.Choice(GATES), click.Choice(["noise", "k", "m", "all"])
ENCODER = {"metavar": "FILE.py:NAME", "callback": on_the_command_line}
LENGTH, RANGE, COLUMN = ({"metavar": text} for text in ("90s|10m|2h", "M|LOW:HIGH", "COLUMN"))
SEEDS, SEED = SHOWN | {"default": 3}, SHOWN | {"default": 0}
CLOSE = SHOWN | {"default": TOLERANCE}
FOLDER = SHOWN | {"default": Path("unveil-audit")}


@main.command()
@together(
    *table_of_options(
        "Options",
        ("--private", None, "Your records: .npy, .npz, .pt, .csv, a folder; or fashion-mnist."),
        ("--public", None, "Public vectors, in the same forms."),
        ("--sample", COUNT, "Audit so many of the records, drawn at random."),
        ("--m", None, "Encodings released, or a range.  [default: what is needed]", RANGE),
        ("--out", PATH, "Folder for report.html and audit.json.", FOLDER),
        ("--fail-on", GATE, "Exit code 1 if values leak; 'approximate': or in part; 'any'."),
        ("--time", None, "When attacks end.  [default: two minutes for the first]", LENGTH),
    )
)
@config_option("private", "public", "out", "encodings", "truth", "labels")
@as_json
@scheme_options
@noise_option
@together(
    *table_of_options(
        "Your own encodings",
        ("--encoder", None, "Your encoder(private, public, rng); its file is run.", ENCODER),
        ("--encodings", PATH, "Encodings somebody else made, audited against --truth."),
        ("--truth", PATH, "The records behind --encodings, in their units."),
    ),
    *table_of_options(
        "Data that are drawn",
        ("--demo", click.Choice(["images"]), "Bundled images, as InstaHide released it."),
        ("--n-private", COUNT, "Records, where they are drawn or bundled."),
        ("--n-public", COUNT, "Public vectors, where they are drawn."),
        ("--d", COUNT, "Values of a record, where records are drawn."),
    ),
    *table_of_options(
        "What is asked",
        ("--what-if", WHAT_IF, "Also: what each attacker gets as noise, k or m change."),
        ("--labels", PATH, "Class of each record: what encodings are worth to a classifier."),
        ("--sensitive", None, "Must not be inferred: a name, or a number from 1 on.", COLUMN),
        ("--relative-tolerance", float, "Of a value that is back exactly.", CLOSE),
        ("--seeds", COUNT, "Independent draws of the mixture.", SEEDS),
        ("--seed", int, "The same number gives the same audit.", SEED),
    ),
)
@shape_option
@table_options
@workers_options
@memory_option
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
    against the truth value by value, and writes a report. With no options: Gaussian vectors and
    bundled images.

    Exit code 0: done, whatever the verdict; 1: the gate of --fail-on is closed; 2: bad input.
    """
    from unveil.auditing.audit import audit as run
    from unveil.checks import InputError
    from unveil.cli.audit_terminal import show
    from unveil.engine import files
    from unveil.report.page import write_json, write_report

    # 1. What is audited, and with what options.
    scheme = scheme_of(options)
    sizes = {"n_private", "d", "n_public", "m", "public", "sample"}
    several = (
        private is None
        and demo is None
        and options["encodings"] is None
        and all(options[name] is None for name in sizes)
    )
    if several and options["labels"] is not None:
        raise InputError("--labels without --private: say which records they are of")
    _must_be_ours(out)
    given = (ctx.obj or {}).get("args", [])
    facts, closed = [], False
    for name in [*DEFAULT] if several else [private]:
        folder = out / name if several and name else out
        wanted = {**options, **DEFAULT[name]} if several and name else dict(options)
        records, source, wanted = settled(name, demo, wanted, k_public=scheme.k_public)
        law = scheme
        if demo is not None:
            records, wanted["public"], law = demo_images()
        # 2. The audit.
        with progress_bar("audit", not as_json, every=2.0) as progress:
            found = run(records, law, progress=progress, **wanted)
        found = replace(found, provenance=provenance(found.provenance, given, source))
        # 3. Report and JSON, together or not at all.
        folder.mkdir(parents=True, exist_ok=True)
        with files.whole_set(folder) as part:
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
                passed = "[green]passed[/]" if not reason else f"[red]failed[/], {escape(reason)}"
                console().print(f"Gate --fail-on {fail_on}: {passed}.", soft_wrap=True)
    if as_json:
        echo_json(facts[0] if len(facts) == 1 else {"audits": facts})
    return FAILED if closed else 0


def _must_be_ours(out: Path) -> None:
    """A folder that is new, empty, or holds reports of an earlier audit, which may be replaced."""
    from unveil.engine import files

    folders = [out, *(out / name for name in DEFAULT)]
    if not any((folder / "audit.json").is_file() for folder in folders):
        files.must_be_new(out)
