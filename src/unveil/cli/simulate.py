"""`unveil simulate`: encode vectors and write a run directory."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from unveil.cli.group import main
from unveil.cli.options import (
    COUNT,
    PATH,
    as_json,
    memory_option,
    scheme_of,
    scheme_options,
    shape_of,
    shape_option,
    units_of,
)
from unveil.cli.terminal import console, echo_json, progress_bar


@main.command()
@click.argument("out", type=PATH)
@scheme_options
@click.option("--n-private", type=COUNT, help="Private vectors.  [default: 100]")
@click.option("--n-public", type=COUNT, help="Public vectors.  [default: 0]")
@click.option("--m", type=COUNT, default=800, show_default=True, help="Encodings.")
@click.option("--d", type=COUNT, help="Pixels.  [default: 3072]")
@click.option(
    "--private", type=PATH, help="Your private vectors: .npy, .npz or a folder of images."
)
@click.option("--public", type=PATH, help="Your public vectors: .npy, .npz or a folder of images.")
@shape_option
@click.option(
    "--labels",
    type=PATH,
    help="Class of each private vector, .npy: encodings then come with mixed labels.",
)
@click.option(
    "--flips",
    is_flag=True,
    help="Mirror each image with probability one half.",
)
@click.option(
    "--crops",
    type=click.IntRange(0),
    default=0,
    metavar="PIXELS",
    help="Pad private images by so many black pixels and cut them to size at random.",
)
@click.option(
    "--copies-per",
    type=click.Choice(["use", "epoch"]),
    default="use",
    show_default=True,
    help="Mirror and crop each time an image is mixed, or private images once per epoch.",
)
@click.option(
    "--units",
    metavar="NAME|MEAN/STD",
    help="Mix images in these: [-1,1], [0,1], bytes, cifar10, imagenet, released (private ones in "
    "cifar10, public ones in imagenet), or numbers per channel as 0.49,0.48,0.45/0.2,0.2,0.2.  "
    "[default: as they are]",
)
@click.option(
    "--noise",
    type=float,
    default=0.0,
    show_default=True,
    help="Standard deviation added to every pixel.",
)
@click.option(
    "--seed", type=int, help="Same seed, same bytes; drawn and noted in the manifest when left out."
)
@memory_option
@as_json
def simulate(
    out: Path,
    private: Path | None,
    public: Path | None,
    shape: str | None,
    labels: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Encode vectors and write a run directory.

    OUT, a new folder, gets the encodings of Gaussian vectors, or of your own, with the truth beside
    them.
    """
    from unveil import encode, store
    from unveil.data.arrays import in_units_of, load_shaped

    # Before any work: a folder that is in the way is told at once.
    store.must_be_new(out)
    scheme = scheme_of(options)
    seed = options.pop("seed")
    # Drawn, and noted in the manifest: even a run without a seed can be repeated.
    seed = secrets.randbits(32) if seed is None else seed
    options["shape"] = shape_of(shape)
    for name, path in (("private", private), ("public", public)):
        options[name], sizes = (None, None) if path is None else load_shaped(path, name)
        options["shape"] = options["shape"] or sizes
    if options["private"] is not None and options["public"] is not None:
        for one, other in (("private", "public"), ("public", "private")):
            options[one], word = in_units_of(options[other], options[one], one)
            if word:
                click.echo(f"Note: {word}.", err=True)
    options["units"] = units_of(options["units"])
    # What was asked for goes into the manifest in the words of the command line.
    noted = {name: options[name] for name in ("noise", "flips", "crops", "copies_per", "units")}
    options["crops_per"] = options.pop("copies_per")
    if options["flips"] and options["crops_per"] == "epoch":
        options["flips"] = "epoch"
    options["labels"] = None if labels is None else store.read_array(labels)
    with progress_bar("simulate", not as_json):
        simulation = encode.simulate(scheme, **options, rng=seed)
        store.write_simulation(
            out,
            simulation,
            store.manifest("simulate", seed=seed, **noted),
        )
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
