"""`unveil audit`: what leaks if encodings of this data are released? Verdict, leakage curve,
report."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from unveil.cli.group import main
from unveil.cli.options import (
    COUNT,
    PATH,
    as_json,
    config_option,
    memory_option,
    on_the_command_line,
    scheme_of,
    scheme_options,
)
from unveil.cli.terminal import console, echo_json, progress_bar

if TYPE_CHECKING:
    from unveil.auditing.result import Audit
    from unveil.records import Scheme

COLOURS = {"leaks": "red", "partly": "yellow", "nothing": "green"}
DEFAULT = {
    "gaussian": {"n_private": 50, "d": 512, "effort": 12.0},
    "fashion-mnist": {"n_private": 30, "effort": 8.0},
}
"""What is audited when nothing is said: small enough for a minute in all."""
DEMO = 40
"""Private images of the demo."""


@main.command()
@click.option(
    "--demo",
    type=click.Choice(["images"]),
    help="Bundled images, encoded as InstaHide released it.",
)
@click.option(
    "--private",
    help="Your records: .npy, .npz, .csv, a folder of images; or gaussian, fashion-mnist.",
)
@click.option("--public", help="Public vectors, in the same forms.")
@scheme_options
@click.option(
    "--m",
    metavar="M|LOW:HIGH",
    help="Encodings released, or a range.  [default: what all records need]",
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
    "--effort", type=float, help="Forecast seconds to spend on the leakage curve.  [default: 40]"
)
@click.option(
    "--relative-tolerance",
    "--tolerance",
    "tolerance",
    type=float,
    default=1e-2,
    show_default=True,
    help="Largest error of a pixel, relative to the rms.",
)
@click.option(
    "--encoder",
    metavar="FILE.py:NAME",
    callback=on_the_command_line,
    help="Your encoder(private, public, rng), to be checked for slips; its file is run.",
)
@memory_option
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--out",
    type=PATH,
    default=Path("unveil-audit"),
    show_default=True,
    help="Folder for report and finished trials.",
)
@config_option("private", "public", "out")
@as_json
def audit(private: str | None, demo: str | None, out: Path, as_json: bool, **options: Any) -> int:
    """What leaks if encodings of this data are released?

    Encodes the records as the scheme would, attacks, holds what comes back against the truth, and
    writes a report. With no options: Gaussian vectors and bundled images. An interrupted audit goes
    on where it stopped.
    """
    from unveil import store
    from unveil.auditing.audit import audit as run
    from unveil.records import InputError
    from unveil.report.page import write_json, write_report

    options["rng"] = options.pop("seed")
    options["m"] = _range(options["m"])
    options["encoder"] = _encoder(options["encoder"])
    scheme = scheme_of(options)
    options = {name: value for name, value in options.items() if value is not None}
    records: Any = private
    if demo is not None:
        if private is not None or "public" in options:
            raise InputError("--demo brings its own images: leave --private and --public out")
        records, options["public"], scheme = _demo()
        private = "demo"
    several = (
        private is None
        and not {"n_private", "d", "n_public", "m", "public", "sample"} & options.keys()
    )
    if several and not any((out / name / "trials").is_dir() for name in DEFAULT):
        store.must_be_new(out)
    names = [*DEFAULT] if several else [records if records is not None else "gaussian"]
    facts = []
    for name in names:
        folder = out / name if several else out
        extra = (
            {"effort": 20.0, **options}
            if demo
            else {**DEFAULT[name], **options}
            if several
            else options
        )
        with progress_bar("audit", not as_json) as progress:
            found = run(name, scheme, out=folder, progress=progress, **extra)
        folder.mkdir(parents=True, exist_ok=True)
        with store.whole_set(folder) as part:
            write_report(found, part / "report.html")
            write_json(found, part / "audit.json")
        report = folder / "report.html"
        facts.append({**found.facts(), "report": str(report)})
        if not as_json:
            _show(console(), found, report)
    if as_json:
        echo_json(facts[0] if len(facts) == 1 else {"audits": facts})
    return 0


def _demo() -> tuple[Any, Any, Scheme]:
    """40 bundled images as private ones, the other 200 as public ones, mixed two and two as
    InstaHide released it."""
    from unveil.data.bundled import fashion_mnist
    from unveil.data.dataset import BUNDLED_SOURCE, image_dataset
    from unveil.records import Scheme

    images, classes = fashion_mnist()
    private = range(0, len(images), len(images) // DEMO)[:DEMO]
    public = [i for i in range(len(images)) if i not in private]
    mine, others = (
        image_dataset(images[rows], tuple(f"{i} {classes[i]}" for i in rows), BUNDLED_SOURCE)
        for rows in ([*private], public)
    )
    return mine, others, Scheme(2, 2, "released", "random", "epochs")


def _show(terminal: Console, found: Audit, report: Path) -> None:
    verdict = found.verdict
    terminal.print(
        Panel(escape(verdict.headline), border_style=COLOURS[verdict.level], style="bold")
    )
    terminal.print(
        f"{escape(str(found.data['source']))}: {found.data['records']} records of {found.data['pixels']} pixels."
    )
    for sentence in verdict.sentences:
        terminal.print(escape(sentence))
    if len(found.curve) > 1:
        table = Table("encodings", "exactly", "95% band", "approximately", "draws", box=box.SIMPLE)
        for p in found.curve:
            table.add_row(
                f"{p.m:,}",
                f"{p.exact:.0%}",
                f"{p.low:.0%}–{p.high:.0%}",
                f"{p.approximate:.0%}",
                str(p.runs),
            )
        terminal.print(table)
    for finding in found.findings:
        if finding.severity != "fine":
            terminal.print(
                f"[bold]{finding.severity}[/]: {escape(finding.what)} {escape(finding.cure)}"
            )
    terminal.print(f"Report: {escape(str(report))}", soft_wrap=True)


def _range(text: str | int | None) -> int | tuple[int, int] | None:
    """500, or 100:2000."""
    from unveil.records import InputError

    if text is None:
        return None
    try:
        parts = [int(part) for part in str(text).split(":")]
    except ValueError:
        parts = []
    if len(parts) not in (1, 2):
        raise InputError(f"--m {text}: give a number of encodings, or a range like 100:2000")
    return parts[0] if len(parts) == 1 else (parts[0], parts[1])


def _encoder(text: str | None) -> Callable[..., Any] | None:
    """The function NAME of FILE.py; the file is run, as any program of the user's."""
    from unveil.records import InputError

    if text is None:
        return None
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not name or path.suffix != ".py" or not path.is_file():
        raise InputError(
            f"--encoder {text}: give FILE.py:NAME, a file that is there and a function in it"
        )
    spec = importlib.util.spec_from_file_location(f"_encoder_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(
            f"--encoder {text}: running the file failed with {type(error).__name__}: {error}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError(f"--encoder {text}: {path.name} has no function {name}")
    return function  # type: ignore[no-any-return]
