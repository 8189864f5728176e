"""`unveil attack`: recover private vectors from released encodings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from unveil.cli import options as of
from unveil.cli.group import main
from unveil.cli.terminal import console, echo_json, print_recovery, progress_bar

if TYPE_CHECKING:
    from unveil.encodings import Encodings

WORTH_RESUMING = 10_000
"""From so many encodings on, finished blocks of overlaps are kept until the attack is done."""
FLAG, PIXELS = {"is_flag": True, "default": None}, {"metavar": "PIXELS"}
SEED, UNITS = {"default": 0, **of.SHOWN}, {"metavar": "NAME|MEAN/STD"}


@main.command()
@click.argument("source", metavar="RUN|ENCODINGS|CHALLENGE", type=of.PATH)
@of.section("Options", ("--public", of.PATH, "Public vectors: .npy, .npz or a folder of images."))
@of.scheme_options
@of.section(
    "Options",
    ("--attack", None, "Attack by name.  [default: the strongest]"),
    ("--seed", int, "The same number gives the same bytes.", SEED),
    ("--out", of.PATH, "Folder to write the results to; it must be new or empty."),
)
@of.shape_option
@of.section(
    "Images",
    ("--like", of.PATH, "Images like the public ones."),
    ("--private-like", of.PATH, "Others like the private ones."),
    ("--flips", None, "They were mirrored at random.", FLAG),
    ("--crops", click.IntRange(0), "They were padded by so many pixels and cut.", PIXELS),
    ("--units", None, "In which they were mixed: see simulate.  [default: those that fit]", UNITS),
)
@of.section(
    "What else is known",
    ("--n-private", click.IntRange(1), "How many private vectors there are."),
    ("--overlaps", of.PATH, "How many private vectors two encodings share: .npy, (m, m)."),
    ("--similarity", of.PATH, "How alike encodings are, for attack cliques: .npy, (m, m)."),
    ("--pixel-rms", None, "Root mean square of a private pixel.  [default: unknown]"),
)
@of.table_options
@of.workers_options
@of.memory_option
@of.as_json
def attack(source: Path, seed: int, out: Path | None, as_json: bool, **options: Any) -> int:
    """Recover private vectors from encodings.

    RUN is a run directory. ENCODINGS is a file: then options describe its scheme, and --out takes
    the result. Without options the scheme is estimated too, and without --out the answer is only
    printed. CHALLENGE is a folder with encryption.npy and label.npy; it also gets
    decryption.npy, an image for every encoding. A long run that was interrupted goes on where it
    stood when RUN is attacked again.
    """
    from unveil.data.challenge import DECRYPTION, is_challenge, write_decryption
    from unveil.engine import blocks, files, runs
    from unveil.shown import plain

    # 1. What is attacked, whether the result has a place, and what the attacker is told.
    challenge = is_challenge(source)
    words: list[str] = []
    unknown = not source.is_dir() and not any(
        value is not None for key, value in options.items() if key != "shape"
    )
    name = options.pop("attack")
    told = {key: options.pop(key) for key in ("flips", "crops", "units", "n_private")}
    told["units"] = of.units_of(told["units"])
    paths = {key: options.pop(key) for key in ("like", "private_like", "overlaps", "similarity")}
    if source.is_dir() and not challenge:
        given = [f"--{key.replace('_', '-')}" for key in options if options[key] is not None]
        if given:
            raise click.UsageError(
                f"{', '.join(given)}: a run directory says this itself; leave it out"
            )
        encodings, public = of.read_run(source)
        if told["flips"] is None and told["crops"] is None:
            told |= _copies(source, words)
    else:
        encodings, public, words = of.read_release(source, **options)
    _must_have_place(source, out)
    # Loaded only now: what is wrong with the input is told at once.
    from unveil.attacks import identify_and_recover, recover_told
    from unveil.auditing.lint import lint_encodings

    # 2. The attack; a long one leaves finished blocks, so that it can go on. A result that goes
    # elsewhere has no place to go on from.
    checkpoint = source / "overlaps" if out is None and encodings.m >= WORTH_RESUMING else None
    with blocks.using(checkpoint=checkpoint), progress_bar("attack", not as_json) as progress:
        told |= _read(encodings, paths, words)
        for word in words:
            click.echo(f"Note: {word}.", err=True)
        how = {"rng": seed, "progress": progress}
        if unknown:
            values, shape = encodings.values, encodings.image_shape
            encodings, recovery = identify_and_recover(values, shape, **how)
        else:
            recovery = recover_told(encodings, public, name, told, how)
    facts = {**recovery.facts(values=False), "notes": words}
    scheme = encodings.scheme
    if facts["verified"] and scheme.fixed_weights and scheme.k_private > 1:
        facts["summary"].append(
            f"Values are for weights of {scheme.private_weight:.3g} each "
            f"(--weighting {scheme.weighting}); others scale all of them by one factor."
        )
    if not facts["verified"] and not facts["approximate"] and not unknown:
        facts["summary"].append(
            "So it looks too where the encodings are few (unveil plan says how many it takes), or "
            "where --k-private, --weighting or --signs are others; without them a scheme is looked "
            "for."
        )
    # Slips of the encoder help an attacker, so they are told beside what was recovered.
    facts["findings"] = [vars(finding) for finding in lint_encodings(encodings)]
    entry = plain(runs.manifest("attack", seed=seed, encodings=str(source), **facts))

    # 3. All files together, or none.
    def write(part: Path, past: dict[str, Any]) -> None:
        runs.write_recovery(part / "recovery.npz", recovery)
        if challenge and encodings.image_shape:
            write_decryption(part / DECRYPTION, recovery, encodings.image_shape)
        files.write_json(part / "manifest.json", {**past, "attack": entry})

    place = source if out is None and source.is_dir() else out
    if out is not None:
        with files.whole_folder(out) as part:
            runs.write_scheme(part / "scheme.json", encodings)
            write(part, {})
    elif place is not None:
        # Scores that are there belong to the recovery that is replaced.
        with files.whole_set(source, instead_of=("scores.json",)) as part:
            manifest = source / "manifest.json"
            write(part, files.read_json(manifest) if manifest.exists() else {})
        if checkpoint is not None:
            shutil.rmtree(checkpoint, ignore_errors=True)
    # 4. What to say of it.
    if as_json:
        echo_json({"run": str(out or source), **facts})
    else:
        print_recovery(facts)
        for finding in facts["findings"]:
            if finding["severity"] in ("high", "medium"):
                slip = f"The encoder: {finding['what']} {finding['consequence']}"
                console().print(escape(slip), soft_wrap=True)
        written = "Nothing was written: add --out." if place is None else f"Written to {place}."
        console().print(escape(written), soft_wrap=True)
    return 0 if facts["verified"] or facts["recognisable"] or facts["approximate"] else 3


def _copies(run: Path, words: list[str]) -> dict[str, Any]:
    """Whether images of a run were mirrored, and by how much cropped, as its manifest has it."""
    from unveil.engine.files import read_json

    manifest = run / "manifest.json"
    made = read_json(manifest) if manifest.exists() else {}
    told = {"flips": bool(made.get("flips")) or None, "crops": int(made.get("crops") or 0) or None}
    said = [f"--crops {told['crops']}"] * bool(told["crops"]) + ["--flips"] * bool(told["flips"])
    if said:
        words.append(f"the run was made with {' '.join(said)}: the attack is told so")
    return told


def _must_have_place(source: Path, out: Path | None) -> None:
    from unveil.checks import InputError
    from unveil.engine.files import must_be_new, read_json

    if out is not None:
        must_be_new(out)
    elif source.is_dir() and not os.access(source, os.W_OK):
        raise InputError(f"{source} is not writable: add --out with the name of a new folder")
    elif (source / "manifest.json").is_file():
        read_json(source / "manifest.json")  # a damaged one is told before the work


def _read(encodings: Encodings, paths: dict[str, Path | None], words: list[str]) -> dict[str, Any]:
    """What the attacker knows from elsewhere; `words` gets a sentence where units were changed."""
    from unveil.data import load_vectors
    from unveil.data.arrays import in_units_of
    from unveil.engine.files import read_array
    from unveil.records import Overlaps

    out: dict[str, Any] = {}
    for name, path in paths.items():
        if path is None:
            continue
        if name == "similarity":
            out[name] = read_array(path)
        elif name == "overlaps":
            out[name] = Overlaps.from_array(read_array(path), encodings.scheme.k_private)
        else:
            out[name], word = in_units_of(encodings.values, load_vectors(path, name), path.name)
            words += [word] * bool(word)
    return out
