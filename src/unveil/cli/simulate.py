"""`unveil simulate`: encode vectors and write a run directory."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from unveil.cli import options as of
from unveil.cli.group import main
from unveil.cli.terminal import console, echo_json, progress_bar

CROPS, NAME = {"default": 0, "metavar": "PIXELS"}, {"metavar": "NAME|MEAN/STD"}
COPIES, PER = click.Choice(["use", "epoch"]), {"default": "use", **of.SHOWN}
UNITS = (
    "[-1,1], [0,1], bytes, cifar10, imagenet, released (private ones in cifar10, public ones in "
    "imagenet), or numbers per channel as 0.49,0.48,0.45/0.2,0.2,0.2"
)


@main.command()
@click.argument("out", type=of.PATH)
@of.section(
    "Options",
    ("--private", of.PATH, "Your vectors: .npy, .npz, .csv or a folder of images."),
    ("--public", of.PATH, "Your public vectors, in the same forms."),
    ("--n-private", of.COUNT, "Private vectors to draw.  [default: 100]"),
    ("--n-public", of.COUNT, "Public vectors to draw.  [default: 0]"),
    ("--m", of.COUNT, "Encodings.", {"default": 800, **of.SHOWN}),
    ("--d", of.COUNT, "Pixels of vectors to draw.  [default: 3072]"),
)
@of.scheme_options
@of.noise_option
@of.section("Options", ("--seed", int, "Same seed, same bytes; drawn and noted when left out."))
@of.shape_option
@of.section(
    "Images",
    ("--labels", of.PATH, "Class of each private vector, .npy: labels are mixed along."),
    ("--flips", None, "Mirror each image with probability one half.", {"is_flag": True}),
    ("--crops", click.IntRange(0), "Pad private images by so many pixels, and cut.", CROPS),
    ("--copies-per", COPIES, "Mirror and crop at each use, or once per epoch.", PER),
    ("--units", None, f"Mix images in {UNITS}.  [default: as they are]", NAME),
)
@of.table_options
@of.memory_option
@of.as_json
def simulate(
    out: Path,
    shape: str | None,
    labels: Path | None,
    seed: int | None,
    copies_per: Any,
    as_json: bool,
    **options: Any,
) -> int:
    """Encode vectors and write a run directory.

    OUT, a new folder, gets the encodings of Gaussian vectors, or of your own, with the truth beside
    them.
    """
    import numpy as np

    from unveil.checks import as_table
    from unveil.data.arrays import in_units_of, load_shaped
    from unveil.encode import simulate as encode
    from unveil.engine.files import must_be_new, read_array
    from unveil.engine.runs import manifest, write_simulation

    # Before any work: a folder that is in the way is told at once.
    must_be_new(out)
    scheme = of.scheme_of(options)
    # Drawn, and noted in the manifest: even a run without a seed can be repeated.
    seed = secrets.randbits(32) if seed is None else seed
    sizes = of.shape_of(shape)
    given: dict[str, Any] = {}
    for name in ("private", "public"):
        path = options.pop(name)
        # A table keeps the names of its columns.
        given[name] = as_table(path)
        if path is not None and given[name] is path:
            given[name], own = load_shaped(path, name)
            sizes = sizes or own
    if all(isinstance(vectors, np.ndarray) for vectors in given.values()):
        for one, other in (("private", "public"), ("public", "private")):
            given[one], word = in_units_of(given[other], given[one], one)
            if word:
                click.echo(f"Note: {word}.", err=True)
    options["units"] = of.units_of(options["units"])
    # What was asked for goes into the manifest in the words of the command line.
    noted = {name: options[name] for name in ("noise", "flips", "crops", "units")}
    if options["flips"] and copies_per == "epoch":
        options["flips"] = "epoch"
    with progress_bar("simulate", not as_json):
        classes = None if labels is None else read_array(labels)
        about = {"image_shape": sizes, "crops_per": copies_per, "labels": classes, "rng": seed}
        simulation = encode(scheme, **given, **options, **about)
        facts = manifest("simulate", seed=seed, copies_per=copies_per, **noted)
        write_simulation(out, simulation, facts)
    m, d = simulation.encodings.values.shape
    facts = {"run": str(out), "seed": seed, "m": m, "d": d, "n_private": len(simulation.private)}
    facts["n_public"] = 0 if simulation.public is None else len(simulation.public)
    if as_json:
        return echo_json(facts)
    text = (
        f"{m} encodings of {facts['n_private']} private vectors, {d} pixels each, written to "
        f"{escape(str(out))} (seed {seed})."
    )
    console().print(text, soft_wrap=True)
    return 0
