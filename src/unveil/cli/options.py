"""Options that several commands share, and what they say read from disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

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
"""Largest error of a pixel that counts as exact: a hundredth of the size of the data, which nobody
would call another record."""
SHAPE = "HxW[xC]"


def _remember_json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    """An error that comes later is told as JSON too, also where a file of options asked for it."""
    # Noted as soon as the option is read: the error may be in the next one.
    if value and isinstance(ctx.obj, dict):
        ctx.obj["json"] = True
    return value


as_json = click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=_remember_json,
    help="One JSON object on stdout, nothing else; errors too.",
)
shape_option = click.option(
    "--shape", metavar=SHAPE, help="Height, width and channels, where vectors are images."
)
out_option = click.option(
    "--out", type=PATH, help="Folder to write the results to; it must be new or empty."
)


def memory_option(command: F) -> F:
    """--memory-limit BYTES, for everything the command does."""

    @click.option(
        "--memory-limit",
        type=click.IntRange(1),
        metavar="BYTES",
        help="Memory to use.  [default: half of what is free]",
    )
    @wraps(command)
    def limited(*args: Any, memory_limit: int | None, **options: Any) -> Any:
        from unveil import parallel

        with parallel.using(memory_limit=memory_limit):
            return command(*args, **options)

    return cast(F, limited)


def workers_options(command: F) -> F:
    """--workers and --scheduler, for everything the command does."""

    @click.option(
        "--workers",
        type=click.IntRange(1),
        help="Threads, or processes with --scheduler processes.  [default: cores]",
    )
    @click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Dask cluster to compute on: tcp://…, or 'processes' for a local one.",
    )
    @wraps(command)
    def spread(*args: Any, workers: int | None, scheduler: str | None, **options: Any) -> Any:
        from unveil import parallel
        from unveil.cluster import connected

        with (
            parallel.using(workers=workers, scheduler=scheduler),
            connected(scheduler, workers),
        ):
            return command(*args, **options)

    return cast(F, spread)


def measured_in(folder: str, *, seed: str) -> Callable[[F], F]:
    """--out and --seed of a command that measures and writes a page; `seed`: what the seed does."""

    def add(command: F) -> F:
        start = click.option(
            "--seed", type=click.IntRange(0), default=0, show_default=True, help=seed
        )
        place = click.option(
            "--out",
            type=PATH,
            default=Path(folder),
            show_default=True,
            help="Folder for numbers, figures, page.",
        )
        return place(start(command))

    return add


def config_option(*paths: str) -> Callable[[F], F]:
    """--config FILE.toml: every other option of the command, where it is not given; `paths` are
    those that name files."""

    def read(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
        if path is None:
            return
        from unveil.checks import InputError
        from unveil.config import read_config

        # An option may have an older name: a file may say either.
        said = {
            text.lstrip("-").replace("-", "_"): p
            for p in ctx.command.params
            for text in p.opts
            if p.name not in ("config", None)
        }
        found = read_config(path, {name: _types(p.type) for name, p in said.items()}, paths)
        settled: dict[str, Any] = {}
        for name, value in found.items():
            known_as = said[name].name or name
            if known_as in settled:
                raise InputError(f"{path.name} says {known_as} twice: keep one of them")
            settled[known_as] = value
        ctx.default_map = {**(ctx.default_map or {}), **settled}

    return click.option(
        "--config",
        type=PATH,
        callback=read,
        expose_value=False,
        is_eager=True,
        help="Options from a TOML file.",
    )


def _types(kind: Any) -> tuple[type, ...]:
    """What a file may say for an option of this kind. Text may be a number too, as in m = 500."""
    if isinstance(kind, (type(click.INT), type(click.FLOAT))):
        return (int,) if isinstance(kind, type(click.INT)) else (float, int)
    return (
        (bool,)
        if isinstance(kind, type(click.BOOL))
        else (str,)
        if isinstance(kind, click.Path)
        else (str, int)
    )


def on_the_command_line(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> str | None:
    """Refuse what runs code where only a file says so: a file may come from somebody else."""
    if (
        value is not None
        and ctx.get_parameter_source(option.name or "") is not ParameterSource.COMMANDLINE
    ):
        raise click.UsageError(
            f"{option.name} = {value!r} in a file would run that code: name it on the command "
            "line too",
            ctx,
        )
    return value


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


def scheme_options(command: F) -> F:
    """How encodings are made; what is left out takes the defaults of unveil.Scheme."""
    for option in (
        click.option(
            "--pairing", help="independent, epochs or epochs-in-order.  [default: independent]"
        ),
        click.option(
            "--alpha",
            type=float,
            help="α of --weighting dirichlet, Beta(α, α) for two.  [default: 1]",
        ),
        click.option(
            "--masks", type=MIXED, help="Masks of the pool, with --signs masked.  [default: 0]"
        ),
        click.option("--signs", help="absolute, random, kept or masked.  [default: absolute]"),
        click.option(
            "--weighting",
            help=(
                "equal, paper, convex, half-normal, released, uniform, dirichlet, sorted, dominant "
                "or unknown.  [default: equal]"
            ),
        ),
        click.option("--k-public", type=MIXED, help="Public vectors per encoding.  [default: 0]"),
        click.option("--k-private", type=MIXED, help="Private vectors per encoding.  [default: 2]"),
    ):
        command = option(command)
    return command


def scheme_of(options: dict[str, Any], otherwise: Scheme | None = None) -> Scheme:
    """What the options say; what they leave out, as in `otherwise`."""
    from dataclasses import replace

    from unveil.scheme import Scheme

    # Only what was said: defaults live in Scheme, once.
    given = {
        key: value for key in Scheme.__dataclass_fields__ if (value := options.pop(key)) is not None
    }
    return replace(otherwise or Scheme(), **given)


def read_run(run: Path) -> tuple[Encodings, NDArray[np.float32] | None]:
    from unveil import records, store
    from unveil.data import load_vectors

    encodings = store.read_encodings(run)
    public = load_vectors(run / "public.npy", "public") if (run / "public.npy").exists() else None
    return encodings, None if public is None else records.as_public(public, encodings)


def read_release(
    path: Path, public: Path | None, pixel_rms: str | None, shape: str | None, **scheme: Any
) -> tuple[Encodings, NDArray[np.float32] | None, list[str]]:
    """Encodings from a file, or a folder of the challenge, made as the options say; the public
    vectors, and what was done to these, in words.

    The size of a private pixel is not known of files that somebody else made.
    """
    from dataclasses import replace

    from unveil import records
    from unveil.checks import as_table, column_names
    from unveil.data import load_vectors, read_challenge
    from unveil.data.arrays import in_units_of, load_shaped

    try:
        rms = None if pixel_rms in (None, "unknown") else float(pixel_rms)
    except ValueError:
        raise records.InputError(
            f"--pixel-rms {pixel_rms}: give a positive number, or 'unknown'"
        ) from None
    sizes = shape_of(shape)
    if path.is_dir():
        found = read_challenge(path)
        encodings = replace(
            found,
            scheme=scheme_of(scheme, found.scheme),
            pixel_rms=rms,
            image_shape=found.image_shape if sizes is None else sizes,
        )
    else:
        table = as_table(path)
        names = column_names(table)
        values, own = load_shaped(path, "encodings") if table is path else (table, None)
        encodings = records.Encodings(values, scheme_of(scheme), rms, sizes or own, columns=names)
    if public is None:
        return encodings, None, []
    # A pool that no encoding uses is a sign that the scheme was left out.
    if not encodings.scheme.k_public:
        raise records.InputError(
            "--public without --k-public: say how many public vectors an encoding mixes"
        )
    vectors, word = in_units_of(encodings.values, load_vectors(public, "public"), public.name)
    return encodings, records.as_public(vectors, encodings), [word] if word else []
