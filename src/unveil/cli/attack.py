"""`unveil attack`: recover private vectors from released encodings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from unveil.cli.group import main
from unveil.cli.options import (
    PATH,
    as_json,
    memory_option,
    out_option,
    read_release,
    read_run,
    scheme_options,
    shape_option,
    units_of,
    workers_options,
)
from unveil.cli.terminal import console, echo_json, print_evidence, progress_bar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from unveil.encodings import Encodings

WORTH_RESUMING = 10_000
"""From so many encodings on, finished blocks of overlaps are kept until the attack is done."""


@main.command()
@click.argument("source", metavar="RUN|ENCODINGS|CHALLENGE", type=PATH)
@scheme_options
@click.option("--public", type=PATH, help="Public vectors: .npy, .npz or a folder of images.")
@click.option(
    "--like",
    type=PATH,
    help="Images like the public ones, for attack natural: .npy, .npz or a folder.",
)
@click.option(
    "--private-like",
    type=PATH,
    help="Other images like the private ones, for attack natural: .npy, .npz or a folder.",
)
@click.option(
    "--flips",
    is_flag=True,
    default=None,
    help="Images were mirrored at random before they were mixed, for attack natural.",
)
@click.option(
    "--crops",
    type=click.IntRange(0),
    metavar="PIXELS",
    help="Images were padded by so many black pixels and cut to size at random, for attack "
    "natural.",
)
@click.option(
    "--units",
    metavar="NAME|MEAN/STD",
    help="In which pixels were mixed, for attack natural: [-1,1], [0,1], bytes, cifar10, imagenet, "
    "or numbers per channel as 0.49,0.48,0.45/0.2,0.2,0.2.  [default: found out]",
)
@click.option(
    "--n-private",
    type=click.IntRange(1),
    help="How many private vectors there are, for natural and cliques.",
)
@click.option(
    "--overlaps",
    type=PATH,
    help="How many private vectors two encodings share, known from elsewhere: .npy, (m, m).",
)
@click.option(
    "--similarity",
    type=PATH,
    help="How alike encodings are, by any means, for attack cliques: .npy, (m, m).",
)
@click.option(
    "--pixel-rms", help="Root mean square of a private pixel, or 'unknown'.  [default: unknown]"
)
@shape_option
@click.option("--attack", "name", help="Attack by name.  [default: the strongest]")
@workers_options
@click.option("--seed", type=int, default=0, show_default=True)
@memory_option
@out_option
@as_json
def attack(
    source: Path,
    name: str | None,
    like: Path | None,
    private_like: Path | None,
    flips: bool | None,
    crops: int | None,
    units: str | None,
    n_private: int | None,
    overlaps: Path | None,
    similarity: Path | None,
    seed: int,
    out: Path | None,
    as_json: bool,
    **about: Any,
) -> int:
    """Recover private vectors from encodings.

    RUN is a run directory; ENCODINGS is a file, and then the options describe how it was made and
    --out takes the result. Without any option how it was made is found out, and without --out the
    answer is only printed. CHALLENGE is a folder with encryption.npy and label.npy; it also gets
    decryption.npy, an image for every encoding. A long run that was interrupted goes on where it
    stood when RUN is attacked again.
    """
    from unveil import parallel, store
    from unveil.attacks import found_out, recover
    from unveil.auditing.lint import lint_encodings
    from unveil.data.challenge import DECRYPTION, is_challenge, write_decryption
    from unveil.shown import plain

    # 1. What is attacked, and whether the result has a place.
    challenge = is_challenge(source)
    unknown = not source.is_dir() and _nothing_said(
        about, name, like or private_like or flips or crops or units, n_private, overlaps
    )
    encodings, public, words = _read(source, challenge, about)
    if flips is None and crops is None and source.is_dir() and not challenge:
        flips, crops = _copies(source, words)
    _must_have_place(source, out)
    # 2. The attack; a long one leaves finished blocks, so that it can go on.
    # A result that goes elsewhere has no place to go on from.
    checkpoint = source / "overlaps" if out is None and encodings.m >= WORTH_RESUMING else None
    with (
        parallel.using(checkpoint=checkpoint),
        progress_bar("attack", not as_json) as progress,
    ):
        images = {"like": like, "private_like": private_like}
        options = _told(encodings, images, overlaps, similarity, words)
        for word in words:
            click.echo(f"Note: {word}.", err=True)
        if unknown and similarity is None:
            encodings, recovery = found_out(
                encodings.values, encodings.image_shape, rng=seed, progress=progress
            )
        else:
            recovery = recover(
                encodings,
                public,
                attack=name,
                n_private=n_private,
                flips=bool(flips),
                crops=crops or 0,
                units=units_of(units),
                rng=seed,
                progress=progress,
                **options,
            )
    facts = recovery.facts(values=False)
    facts["notes"] = words
    scheme = encodings.scheme
    if facts["verified"] and scheme.fixed_weights and scheme.k_private > 1:
        facts["summary"].append(
            f"Values are for weights of {scheme.private_weight:.3g} each "
            f"(--weighting {scheme.weighting}); others scale all of them by one factor."
        )
    # Slips of the encoder help an attacker, so they are told beside what was recovered.
    facts["findings"] = [vars(finding) for finding in lint_encodings(encodings)]
    entry = plain(store.manifest("attack", seed=seed, encodings=str(source), **facts))

    # 3. All files together, or none.
    def write(part: Path, past: dict[str, Any]) -> None:
        store.write_recovery(part / "recovery.npz", recovery)
        if challenge and encodings.shape:
            write_decryption(part / DECRYPTION, recovery, encodings.shape)
        store.write_json(part / "manifest.json", {**past, "attack": entry})

    if out is None and not source.is_dir():
        pass  # a file alone: the answer is printed
    elif out is None:
        # Scores that are there belong to the recovery that is replaced.
        with store.whole_set(source, instead_of=("scores.json",)) as part:
            manifest = source / "manifest.json"
            write(part, store.read_json(manifest) if manifest.exists() else {})
        if checkpoint is not None:
            shutil.rmtree(checkpoint, ignore_errors=True)
    else:
        with store.whole_folder(out) as part:
            store.write_scheme(part / "scheme.json", encodings)
            write(part, {})
    # 4. What to say of it.
    if as_json:
        echo_json({"run": str(out or source), **facts})
    else:
        place = source if out is None and source.is_dir() else out
        _show(console(), facts, place)
    return 0 if facts["verified"] or facts["recognisable"] or facts["approximate"] else 3


def _read(
    source: Path, challenge: bool, about: dict[str, Any]
) -> tuple[Encodings, NDArray[np.float32] | None, list[str]]:
    from unveil.checks import InputError

    if source.is_dir() and not challenge:
        given = [f"--{key.replace('_', '-')}" for key, value in about.items() if value is not None]
        if given:
            raise InputError(f"{', '.join(given)}: a run directory says this itself; leave it out")
        return *read_run(source), []
    return read_release(source, **about)


def _copies(run: Path, words: list[str]) -> tuple[bool, int]:
    """Whether images of a run were mirrored, and by how much cropped, as its manifest has it."""
    from unveil import store

    manifest = run / "manifest.json"
    made = store.read_json(manifest) if manifest.exists() else {}
    flips, crops = bool(made.get("flips")), int(made.get("crops") or 0)
    if flips or crops:
        said = (f"--crops {crops}" if crops else "") + (" --flips" if flips else "")
        words.append(f"the run was made with {said.strip()}: the attack is told so")
    return flips, crops


def _must_have_place(source: Path, out: Path | None) -> None:
    from unveil import store
    from unveil.checks import InputError

    if out is not None:
        store.must_be_new(out)
    elif not source.is_dir():
        return  # printed, not written
    elif not os.access(source, os.W_OK):
        raise InputError(f"{source} is not writable: add --out with the name of a new folder")
    elif (source / "manifest.json").exists():
        store.read_json(source / "manifest.json")  # a damaged one is told before the work


def _told(
    encodings: Encodings,
    images: dict[str, Path | None],
    overlaps: Path | None,
    similarity: Path | None,
    words: list[str],
) -> dict[str, Any]:
    """What the attacker knows from elsewhere; `words` gets a sentence where units were changed."""
    from unveil import store
    from unveil.data import load_vectors
    from unveil.data.arrays import in_units_of
    from unveil.records import Overlaps

    out: dict[str, Any] = {"overlaps": None, "similarity": None}
    for name, path in images.items():
        if path is not None:
            out[name], word = in_units_of(encodings.values, load_vectors(path, name), path.name)
            words += [word] if word else []
    if overlaps is not None:
        out["overlaps"] = Overlaps.from_array(
            store.read_array(overlaps), encodings.scheme.k_private
        )
    if similarity is not None:
        out["similarity"] = store.read_array(similarity)
    return out


def _nothing_said(about: dict[str, Any], *options: object) -> bool:
    """Whether no option says how encodings were made, or which attack to run."""
    said = (value for key, value in about.items() if key != "shape")
    return all(value is None for value in (*said, *options))


def _show(terminal: Console, facts: dict[str, Any], place: Path | None) -> None:
    terminal.print(f"[bold]{escape(facts['verdict'])}[/bold]", soft_wrap=True)
    for sentence in facts["summary"]:
        terminal.print(escape(sentence), soft_wrap=True)
    print_evidence(terminal, facts)
    for finding in facts["findings"]:
        if finding["severity"] in ("high", "medium"):
            terminal.print(
                f"The encoder: {escape(finding['what'])} {escape(finding['consequence'])}",
                soft_wrap=True,
            )
    written = "Nothing was written: add --out." if place is None else f"Written to {place}."
    terminal.print(escape(written), soft_wrap=True)
