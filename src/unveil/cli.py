"""The command line: every command prints its verdict first, then the evidence, and returns its exit code.

0: done; 2: bad input, said in one sentence on stderr, nothing written; 3: it ran, but could not recover.
NumPy and all that stands on it load inside the commands, so that `unveil --help` answers at once.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from unveil._version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from unveil.records import Encodings, Progress, Scheme

PATIENCE = 2.0
"""Seconds before a progress bar appears."""
WORTH_RESUMING = 10_000
"""From so many encodings on, finished blocks of overlaps are kept until the attack is done."""
ROWS = 20
"""Vectors listed on the terminal; --json and the manifest have them all."""
F = TypeVar("F", bound=Callable[..., Any])


class _Polite(click.Group):
    """Turns what a user can cause into one sentence and an exit code; anything else is a bug and keeps its traceback."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        try:
            sys.exit(super().main(args, **{**extra, "prog_name": "unveil", "standalone_mode": False}) or 0)
        except click.Abort:
            sys.exit(130)
        except click.UsageError as error:
            where = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
            sentence = error.format_message().rstrip(".") + where
        except click.ClickException as error:
            sentence = error.format_message()
        except MemoryError:
            sentence = "not enough memory: lower m or d, or use a larger machine"
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            sentence = f"{place}{error.strerror or error}; check the path, its permissions and the space on the disk"
        except ValueError as error:
            from unveil.records import InputError

            if not isinstance(error, InputError):
                raise
            sentence = str(error)
        click.echo(f"Error: {' '.join(sentence.split())}", err=True)
        sys.exit(2)


@click.group(cls=_Polite, name="unveil", invoke_without_command=True)
@click.version_option(__version__, prog_name="unveil")
@click.pass_context
def main(ctx: click.Context) -> None:
    """What can be recovered of private data from its InstaHide encodings?

    Exit code 0: done; 2: bad input; 3: it ran, but could not recover.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks × or Σ shows ?, not a traceback
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


PATH = click.Path(path_type=Path)
COUNT = click.IntRange(0, 10**9)
as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
out_option = click.option("--out", type=PATH, help="Folder to write the results to; it must be new or empty.")


def scheme_options(command: F) -> F:
    """How encodings are made; what is left out takes the defaults of unveil.Scheme."""
    for option in (
        click.option("--signs", help="absolute, random or kept.  [default: absolute]"),
        click.option("--weighting", help="equal, paper, convex or half-normal.  [default: equal]"),
        click.option("--k-public", type=COUNT, help="Public vectors per encoding.  [default: 0]"),
        click.option("--k-private", type=COUNT, help="Private vectors per encoding.  [default: 2]"),
    ):
        command = option(command)
    return command


@main.command()
@click.argument("out", type=PATH)
@scheme_options
@click.option("--n-private", type=COUNT, help="Private vectors.  [default: 100]")
@click.option("--n-public", type=COUNT, help="Public vectors.  [default: 0]")
@click.option("--m", type=COUNT, default=800, show_default=True, help="Encodings.")
@click.option("--d", type=COUNT, help="Pixels.  [default: 3072]")
@click.option("--private", type=PATH, help="Your private vectors: .npy, .npz or a folder of images.")
@click.option("--public", type=PATH, help="Your public vectors: .npy, .npz or a folder of images.")
@click.option("--noise", type=float, default=0.0, show_default=True, help="Standard deviation added to every pixel.")
@click.option("--seed", type=int, help="Same seed, same bytes; drawn and noted in the manifest when left out.")
@as_json
def simulate(out: Path, private: Path | None, public: Path | None, as_json: bool, **options: Any) -> int:
    """Encode vectors and write a run directory.

    OUT, a new folder, gets the encodings of Gaussian vectors, or of your own, with the truth beside them.
    """
    from unveil import encode, store
    from unveil.data import load_vectors

    store.must_be_new(out)
    scheme = _scheme(options)
    seed = options.pop("seed")
    seed = secrets.randbits(32) if seed is None else seed
    for name, path in (("private", private), ("public", public)):
        options[name] = None if path is None else load_vectors(path, name)
    with _progress_bar("simulate", not as_json):
        simulation = encode.simulate(scheme, **options, rng=seed)
        store.write_simulation(out, simulation, store.manifest("simulate", seed=seed, noise=options["noise"]))
    m, d = simulation.encodings.values.shape
    facts = {"run": str(out), "seed": seed, "m": m, "d": d, "n_private": len(simulation.private)}
    facts["n_public"] = 0 if simulation.public is None else len(simulation.public)
    if as_json:
        return _echo_json(facts)
    text = (
        f"{m} encodings of {facts['n_private']} private vectors, {d} pixels each, written to {escape(str(out))} (seed {seed})."
    )
    _console().print(text, soft_wrap=True)
    return 0


@main.command()
@click.argument("source", metavar="RUN|ENCODINGS", type=PATH)
@scheme_options
@click.option("--public", type=PATH, help="Public vectors: .npy, .npz or a folder of images.")
@click.option("--pixel-rms", help="Root mean square of a private pixel, or 'unknown'.  [default: 1]")
@click.option("--attack", "name", help="Attack by name.  [default: the strongest]")
@click.option("--workers", type=click.IntRange(1), help="Threads, or processes with --scheduler processes.  [default: cores]")
@click.option("--scheduler", metavar="ADDRESS", help="Dask cluster to compute on: tcp://…, or 'processes' for a local one.")
@click.option("--seed", type=int, default=0, show_default=True)
@out_option
@as_json
def attack(
    source: Path,
    name: str | None,
    workers: int | None,
    scheduler: str | None,
    seed: int,
    out: Path | None,
    as_json: bool,
    **about: Any,
) -> int:
    """Recover private vectors from encodings.

    RUN is a run directory; ENCODINGS is a file, and then the options describe how it was made and --out takes the result.
    A long run that was interrupted goes on where it stood when RUN is attacked again.
    """
    from unveil import parallel, store
    from unveil.attacks import recover
    from unveil.records import InputError
    from unveil.verdict import plain, recovery_facts

    if source.is_dir():
        given = [f"--{key.replace('_', '-')}" for key, value in about.items() if value is not None]
        if given:
            raise InputError(f"{', '.join(given)}: a run directory says this itself; leave it out")
        encodings, public = _read_run(source)
    else:
        if out is None:
            raise InputError("no place for the result: add --out with the name of a new folder")
        encodings, public = _read_file(source, **about)
    if out is None:
        past = store.read_json(source / "manifest.json") if (source / "manifest.json").exists() else {}
        if not os.access(source, os.W_OK):
            raise InputError(f"{source} is not writable: add --out with the name of a new folder")
    else:
        store.must_be_new(out)
        past = {}
    checkpoint = source / "overlaps" if out is None and encodings.m >= WORTH_RESUMING else None
    with parallel.using(workers, scheduler, checkpoint), _progress_bar("attack", not as_json) as progress:
        recovery = recover(encodings, public, attack=name, rng=seed, progress=progress)
    facts = recovery_facts(recovery)
    entry = plain(store.manifest("attack", seed=seed, encodings=str(source), **facts))
    if out is None:
        store.write_recovery(source / "recovery.npz", recovery)
        (source / "scores.json").unlink(missing_ok=True)  # they belong to the recovery that was just replaced
        store.write_json(source / "manifest.json", {**past, "attack": entry})
        if checkpoint is not None:
            shutil.rmtree(checkpoint, ignore_errors=True)
    else:
        with store.whole_folder(out) as part:
            store.write_scheme(part / "scheme.json", encodings)
            store.write_recovery(part / "recovery.npz", recovery)
            store.write_json(part / "manifest.json", {"attack": entry})
    if as_json:
        _echo_json({"run": str(out or source), **facts})
    else:
        console = _console()
        console.print(f"[bold]{escape(facts['verdict'])}[/bold]", soft_wrap=True)
        _print_evidence(console, facts)
        console.print(f"Written to {escape(str(out or source))}.", soft_wrap=True)
    return 0 if facts["verified"] else 3


@main.command()
@click.argument("run", type=PATH)
@click.option("--private", type=PATH, help="The true vectors, where RUN holds no truth.npz.")
@click.option("--tolerance", type=float, default=1e-2, show_default=True, help="Largest pixel error that counts as exact.")
@as_json
def score(run: Path, private: Path | None, tolerance: float, as_json: bool) -> int:
    """Hold a recovery against the truth.

    Reads recovery.npz and truth.npz in RUN, writes scores.json.
    """
    from unveil import scoring, store
    from unveil.data import load_vectors
    from unveil.records import InputError
    from unveil.verdict import plain, score_facts

    if not (run / "recovery.npz").is_file():
        raise InputError(f"no recovery.npz in {run}: run `unveil attack` on it first")
    if private is None and not (run / "truth.npz").is_file():
        raise InputError(f"no truth.npz in {run}: add --private with the true vectors")
    truth = store.read_array(run / "truth.npz", "private") if private is None else load_vectors(private, "private")
    recovery = store.read_recovery(run / "recovery.npz")
    scores = scoring.score(recovery, truth, tolerance=tolerance)
    facts = score_facts(recovery, scores)
    store.write_json(run / "scores.json", plain(facts))
    if as_json:
        _echo_json({"run": str(run), **facts})
    else:
        style = "bold white on red" if scores.wrong else "bold"
        _console().print(f"[{style}]{escape(facts['verdict'])}[/]", soft_wrap=True)
    return 0 if scores.exact and not scores.wrong else 3


@main.command()
@click.option("--k-private", type=COUNT, default=2, show_default=True, help="Private vectors per encoding.")
@click.option("--n-private", type=COUNT, default=100, show_default=True, help="Private vectors.")
@click.option("--m", type=COUNT, default=800, show_default=True, help="Encodings released.")
@click.option("--d", type=COUNT, default=3072, show_default=True, help="Pixels.")
@click.option("--seed", type=int, default=0, show_default=True)
@out_option
@as_json
def audit(k_private: int, n_private: int, m: int, d: int, seed: int, out: Path | None, as_json: bool) -> int:
    """May encodings like these be released?

    Simulates them, attacks them, and counts what was recovered exactly.
    """
    from unveil import encode, scoring, store
    from unveil.attacks import recover
    from unveil.records import Scheme
    from unveil.verdict import audit_verdict, plain, recovery_facts, score_facts

    if out is not None:
        store.must_be_new(out)
    with _progress_bar("audit", not as_json) as progress:
        simulation = encode.simulate(Scheme(k_private), n_private, m=m, d=d, rng=seed)
        recovery = recover(simulation.encodings, simulation.public, rng=seed, progress=progress)
        scores = scoring.score(recovery, simulation.private)
    facts = {**recovery_facts(recovery), **score_facts(recovery, scores)}
    facts |= {"k_private": k_private, "n_private": n_private, "m": m, "d": d, "seed": seed}
    facts["verdict"], colour = audit_verdict(recovery, scores)
    if out is not None:
        with store.whole_folder(out) as part:
            store.write_simulation(part, simulation, store.manifest("audit", seed=seed, seconds=facts["seconds"]))
            store.write_recovery(part / "recovery.npz", recovery)
            store.write_json(part / "scores.json", plain(facts))
    if as_json:
        return _echo_json(facts)
    console = _console()
    console.print(Panel(escape(facts["verdict"]), border_style=colour, style="bold"))
    console.print(f"Simulated: {m} encodings of {n_private} Gaussian vectors, {d} pixels, k_private={k_private}, seed {seed}.")
    _print_evidence(console, facts)
    if out is not None:
        console.print(f"Written to {escape(str(out))}.", soft_wrap=True)
    return 0


@main.command()
@as_json
def doctor(as_json: bool) -> int:
    """Is this installation healthy?

    Versions, BLAS, memory, and a tiny attack that must succeed; every line that fails names its cure.
    """
    from unveil.doctor import examine

    findings = list(examine())
    healthy = all(finding["ok"] for finding in findings)
    if as_json:
        _echo_json({"healthy": healthy, "checks": findings})
    else:
        console = _console()
        console.print("[bold]Healthy.[/]" if healthy else "[bold red]Not healthy: each line marked ✗ names its cure.[/]")
        table = Table(box=None, show_header=False)
        for finding in findings:
            mark = "[red]✗[/]" if not finding["ok"] else "[dim]–[/]" if finding["cure"] else "[green]✓[/]"
            cure = f"  → {finding['cure']}" if finding["cure"] else ""
            table.add_row(mark, escape(finding["check"]), escape(finding["found"] + cure))
        console.print(table)
    return 0 if healthy else 3


def _scheme(options: dict[str, Any]) -> Scheme:
    from unveil.records import Scheme

    return Scheme(**{key: value for key in Scheme.__dataclass_fields__ if (value := options.pop(key)) is not None})


def _read_run(run: Path) -> tuple[Encodings, NDArray[np.float32] | None]:
    from unveil import records, store

    scheme, pixel_rms = store.read_scheme(run / "scheme.json")
    encodings = records.Encodings(store.read_array(run / "encodings.npy"), scheme, pixel_rms)
    public = store.read_array(run / "public.npy") if (run / "public.npy").exists() else None
    return encodings, records.as_public(public, encodings)


def _read_file(
    path: Path, public: Path | None, pixel_rms: str | None, **scheme: Any
) -> tuple[Encodings, NDArray[np.float32] | None]:
    from unveil import records
    from unveil.data import load_vectors

    try:
        rms = None if pixel_rms == "unknown" else float(pixel_rms or 1.0)
    except ValueError:
        raise records.InputError(f"--pixel-rms {pixel_rms}: give a positive number, or 'unknown'") from None
    encodings = records.Encodings(load_vectors(path, "encodings"), _scheme(scheme), rms)
    if public is not None and not encodings.scheme.k_public:
        raise records.InputError("--public without --k-public: say how many public vectors an encoding mixes")
    vectors = None if public is None else load_vectors(public, "public")
    return encodings, records.as_public(vectors, encodings)


@contextmanager
def _progress_bar(title: str, wanted: bool) -> Iterator[Progress | None]:
    """A bar on stderr that appears when the work outlasts a user's patience."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)
    timer = Timer(PATIENCE, bar.start)
    timer.start()
    try:
        yield lambda stage, done, total: bar.update(task, description=stage, completed=done, total=total)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _print_evidence(console: Console, facts: Mapping[str, Any]) -> None:
    if facts["status"]:
        table = Table("vector", "status", "encodings", "reason", box=box.SIMPLE)
        last = None
        for row in zip(range(ROWS), facts["status"], facts["encodings_used"], facts["reasons"], strict=False):
            *cells, reason = map(str, row)
            table.add_row(*cells, "″" if reason == last else escape(reason))
            last = reason
        console.print(table)
        if len(facts["status"]) > ROWS:
            console.print(f"… and {len(facts['status']) - ROWS} more")
    console.print("Seconds: " + ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in facts["seconds"].items()) + ".")


def _console() -> Console:
    return Console(highlight=False)


def _echo_json(facts: Mapping[str, Any]) -> int:
    from unveil.verdict import plain

    click.echo(json.dumps(plain(facts), allow_nan=False))
    return 0
