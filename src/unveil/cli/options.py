"""Options that several commands share, each typed once; what they say, read from disk; and a help
that shows the common ones first."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from unveil.encodings import Encodings
    from unveil.scheme import Scheme

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
COUNT = click.IntRange(0, 10**9)
"""Of records, pixels or encodings: beyond a thousand million nothing fits any machine."""
MIXED = click.IntRange(0, 1000)
"""Of vectors in one encoding: no scheme mixes more than a few dozen."""
TOLERANCE = 1e-2
"""Largest error of a value that counts as exact: a hundredth of the size of the data, which nobody
would call another record."""
SHAPE = "HxW[xC]"
SHOWN = {"show_default": True}
WEIGHTINGS = """equal, paper, convex, half-normal, released, uniform, dirichlet, sorted, dominant or
unknown"""
"""As `unveil.scheme` has them, which takes NumPy to load."""


class Option(click.Option):
    """An option under a heading of the help."""

    def __init__(self, *args: Any, heading: str = "Options", **about: Any) -> None:
        super().__init__(*args, **about)
        self.heading = heading

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Without the range of a number: it is there against slips, and says nothing."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class Command(click.Command):
    """A command whose help begins with the options that most people want. Options of the machine
    and of tables hold for everything it does, and are not handed to it."""

    def invoke(self, ctx: click.Context) -> Any:
        names = ("memory_limit", "workers", "scheduler"), ("text", "missing")
        params = ctx.params
        machine, tables = ({n: params.pop(n) for n in part if n in params} for part in names)
        if not machine and not tables:
            return super().invoke(ctx)
        from unveil.data.tables import reading
        from unveil.engine.blocks import connected, using

        cluster = machine.get("scheduler"), machine.get("workers")
        with using(**machine), connected(*cluster), reading(**tables):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        headings: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                headings.setdefault(getattr(option, "heading", "Options"), []).append(record)
        for heading, records in headings.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def option(*names: str, **about: Any) -> Callable[[F], F]:
    """click's option, with `heading=`."""
    return click.option(*names, cls=Option, **about)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in their order."""
    return lambda command: reduce(lambda inside, add: add(inside), reversed(options), command)


def _remember_json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    """An error that comes later is told as JSON too, also where a file of options asked for it."""
    # Noted as soon as the option is read: the error may be in the next one.
    if value and isinstance(ctx.obj, dict):
        ctx.obj["json"] = True
    return value


def table_of_options(heading: str, *rows: tuple[Any, ...]) -> tuple[Callable[[F], F], ...]:
    """Options, one a row: name, type or None for text, help, and what else click takes."""
    return tuple(
        option(name, type=kind, help=text, heading=heading, **(more[0] if more else {}))
        for name, kind, text, *more in rows
    )


def section(heading: str, *rows: tuple[Any, ...]) -> Callable[[F], F]:
    """The same as one decorator."""
    return together(*table_of_options(heading, *rows))


as_json = option(
    "--json",
    "as_json",
    is_flag=True,
    callback=_remember_json,
    help="One JSON object on stdout, nothing else; errors too.",
)
LIMIT, ADDRESS = click.IntRange(1), {"metavar": "ADDRESS"}
TEXT, MISSING = click.Choice(["one-hot", "ordinal", "drop"]), click.Choice(["mean", "drop"])
out_option, noise_option = table_of_options(
    "Options",
    ("--out", PATH, "Folder to write the results to; it must be new or empty."),
    ("--noise", float, "Standard deviation added to every pixel.", SHOWN | {"default": 0.0}),
)
shape_option = section(
    "Images",
    ("--shape", None, "Height and width of vectors that are images.", {"metavar": SHAPE}),
)
memory_option = section(
    "Machine",
    ("--memory-limit", LIMIT, "Bytes of memory to use.  [default: half of what is free]"),
)
workers_options = section(
    "Machine",
    ("--workers", LIMIT, "Threads, or processes with --scheduler processes.  [default: cores]"),
    ("--scheduler", None, "Dask cluster: tcp://…, or 'processes' for a local one.", ADDRESS),
)
table_options = section(
    "Tables",
    ("--text", TEXT, "What becomes of columns of words.  [default: an error]"),
    ("--missing", MISSING, "Gaps: the mean of the column, or no record.  [default: an error]"),
)
scheme_options = together(
    section(
        "Options",
        ("--k-private", MIXED, "Private vectors per encoding.  [default: 2]"),
        ("--k-public", MIXED, "Public vectors per encoding.  [default: 0]"),
        ("--weighting", None, f"{WEIGHTINGS}.  [default: equal]"),
        ("--signs", None, "absolute, random, kept or masked.  [default: absolute]"),
    ),
    section(
        "Scheme",
        ("--masks", MIXED, "Masks of the pool, with --signs masked.  [default: 0]"),
        ("--alpha", float, "α of --weighting dirichlet, Beta(α, α) for two.  [default: 1]"),
        ("--pairing", None, "independent, epochs, epochs-in-order.  [default: independent]"),
    ),
)


def config_option(*paths: str) -> Callable[[F], F]:
    """--config FILE.toml: every other option of the command, where it is not given; `paths` are
    those that name files."""

    def read(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
        if path is not None:
            from unveil.cli.config import read_config

            found = read_config(path, ctx.command.params, paths)
            ctx.default_map = {**(ctx.default_map or {}), **found}

    about = {"type": PATH, "callback": read, "expose_value": False, "is_eager": True}
    return option("--config", help="Options from a TOML file.", **about)


def on_the_command_line(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Refuse what runs code where only a file says so: a file may come from somebody else."""
    source = ctx.get_parameter_source(option.name or "")
    if value is not None and source is not ParameterSource.COMMANDLINE:
        raise click.UsageError(
            f"{option.name} = {value!r} in a file would run that code: name it on the command "
            "line too",
            ctx,
        )
    return value


# ---- What options say.


def shape_of(text: str | None) -> tuple[int, ...] | None:
    """28x28 or 32x32x3."""
    if text is None:
        return None
    from unveil.checks import InputError

    sizes = text.lower().replace("×", "x").split("x")
    if len(sizes) not in (2, 3) or not all(size.isdecimal() and int(size) for size in sizes):
        raise InputError(f"--shape {text}: give {SHAPE}, such as 28x28 or 32x32x3")
    return tuple(map(int, sizes))


def units_of(text: str | None) -> str | tuple[list[float], list[float]] | None:
    """A name, or mean/std with a number per channel."""
    if text is None or "/" not in text:
        return text
    from unveil.checks import InputError

    try:
        mean, std = ([float(value) for value in part.split(",")] for part in text.split("/"))
    except ValueError:
        raise InputError(
            f"--units {text}: give a name, or numbers such as 0.49,0.48,0.45/0.2,0.2,0.2"
        ) from None
    return mean, std


def scheme_of(options: dict[str, Any], otherwise: Scheme | None = None) -> Scheme:
    """What the options say; what they leave out, as in `otherwise`."""
    from dataclasses import replace

    from unveil.scheme import Scheme

    # Only what was said: defaults live in Scheme, once.
    said = {name: options.pop(name) for name in Scheme.__dataclass_fields__}
    said = {name: value for name, value in said.items() if value is not None}
    return replace(otherwise or Scheme(), **said)


def read_run(run: Path) -> tuple[Encodings, NDArray[np.float32] | None]:
    """The encodings of a run directory, and its public vectors."""
    from unveil.encodings import as_public
    from unveil.engine import runs

    encodings, public = runs.read_encodings(run), run / "public.npy"
    return encodings, as_public(public, encodings) if public.exists() else None


def read_release(
    path: Path, public: Path | None, pixel_rms: str | None, shape: str | None, **scheme: Any
) -> tuple[Encodings, NDArray[np.float32] | None, list[str]]:
    """Encodings from a file, or a folder of the challenge, made as the options say; the public
    vectors, and what was done to these, in words.

    The size of a private pixel is not known of files that somebody else made.
    """
    from dataclasses import replace

    from unveil.checks import InputError, as_table, column_names
    from unveil.data import load_vectors, read_challenge
    from unveil.data.arrays import in_units_of, load_shaped
    from unveil.encodings import Encodings, as_public

    try:
        rms = None if pixel_rms in (None, "unknown") else float(pixel_rms)
    except ValueError:
        raise InputError(f"--pixel-rms {pixel_rms}: give a positive number, or 'unknown'") from None
    sizes = shape_of(shape)
    if path.is_dir():
        found = read_challenge(path)
        made, sizes = scheme_of(scheme, found.scheme), sizes or found.image_shape
        encodings = replace(found, scheme=made, pixel_rms=rms, image_shape=sizes)
    else:
        table = as_table(path)
        values, own = load_shaped(path, "encodings") if table is path else (table, None)
        names = column_names(table)
        encodings = Encodings(values, scheme_of(scheme), rms, sizes or own, columns=names)
    if public is None:
        return encodings, None, []
    # A pool that no encoding uses is a sign that the scheme was left out.
    if not encodings.scheme.k_public:
        raise InputError("--public without --k-public: say how many of them an encoding mixes")
    vectors, word = in_units_of(encodings.values, load_vectors(public, "public"), public.name)
    return encodings, as_public(vectors, encodings), [word] if word else []
