"""What the options of `unveil audit` mean: which records, which encodings, which columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.cli.encoder import load_encoder
from unveil.cli.options import shape_of

if TYPE_CHECKING:
    from unveil.scheme import Scheme

DEMO = 40
"""Private images of the demo."""


def settled(
    private: str | None, demo: str | None, options: dict[str, Any], *, k_public: int
) -> tuple[Any, list[Path], dict[str, Any]]:
    """The records, the files they and the encodings come from, and the options of `unveil.audit`
    that were given; k_public: whether drawn records need a drawn pool."""
    from unveil.checks import InputError, child, root
    from unveil.data import gaussian_vectors, load_dataset
    from unveil.data.arrays import read_labels

    # 1. What cannot be together.
    given = {name for name, value in options.items() if value is not None}
    encodings, truth = options.pop("encodings"), options.pop("truth")
    if demo is not None and (private is not None or given & {"public", "encodings", "truth"}):
        raise InputError("--demo brings its own images: leave --private and --public out")
    if truth is not None and (encodings is None or private is not None):
        raise InputError("--truth goes with --encodings, in the place of --private")
    if encodings is not None:
        _must_be_alone(private or truth, given)
    if {"labels", "sample"} <= given:
        raise InputError("--labels with --sample: take the sample of both beforehand")
    # 2. Numbers and functions from their words.
    options["rng"] = options.pop("seed")
    options["m"] = _range(options["m"])
    shape, sensitive = shape_of(options.pop("shape")), options.pop("sensitive")
    source = Path(private) if private and Path(private).exists() else truth
    if sensitive is not None:
        options["sensitive"] = _column(sensitive, source)
    if options["labels"] is not None:
        options["labels"] = read_labels(options["labels"])
    if options["encoder"] is not None:
        options["encoder"] = load_encoder(options["encoder"])
    # 3. Records and encodings; a path alone is left to the audit, which reads it.
    records: Any = private
    n, d, n_public = (options.pop(name) for name in ("n_private", "d", "n_public"))
    family = root(options["rng"])
    if encodings is not None:
        options["encodings"], records = _release(encodings, source or private, shape)
    elif demo is None and (n or d or shape is not None or private in (None, "gaussian")):
        sample = options.pop("sample")
        rng = child(family, "private")
        records = load_dataset(private, n=n, d=d, sample=sample, shape=shape, rng=rng)
        if n_public and k_public and options["public"] is None:
            width = records.values.shape[1]
            options["public"] = gaussian_vectors(n_public, width, child(family, "public"))
    if n_public and not k_public:
        raise InputError("--n-public without --k-public: say how many an encoding mixes")
    options = {name: value for name, value in options.items() if value is not None}
    files = [path for path in (source, encodings) if path is not None]
    return records, files, options


def _must_be_alone(truth: Any, given: set[str]) -> None:
    """Encodings that are there cannot be made again, with other options."""
    from unveil.checks import InputError

    if truth is None:
        raise InputError(
            "--encodings without --truth: give the records they were made of; without them, "
            "`unveil attack` says what an outsider finds"
        )
    for name in ("m", "encoder", "sample", "n_private", "d"):
        if name in given:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} with --encodings: they are made already; leave it out")


def _release(path: Path, truth: Any, shape: tuple[int, ...] | None) -> tuple[Any, Any]:
    """Encodings that somebody else made, and the truth in their units."""
    from unveil.checks import InputError, child, root
    from unveil.data import load_dataset
    from unveil.data.arrays import load_shaped

    # As they are: who made the encodings did so in units of his own, and standardising would
    # compare others.
    values, own = load_shaped(path, "encodings")
    records = load_dataset(truth, shape=shape, as_they_are=True, rng=child(root(0), "truth"))
    d = records.values.shape[1]
    if values.shape[1] != d:
        raise InputError(
            f"{path.name} has {values.shape[1]} values per encoding, the truth {d} per record: "
            "they must come from the same space"
        )
    if records.image_shape is None and own is not None:
        records = replace(records, image_shape=own)
    return values, records


def _column(text: str, source: Path | None) -> int:
    """The place of a column, from 0 on, by its name in the header or its number from 1 on."""
    from unveil.checks import InputError, as_table, column_names

    names = column_names(as_table(source))
    # A name wins over a number: a column may be called 7.
    if text in names:
        return names.index(text)
    if text.isdecimal() and int(text) >= 1 and (not names or int(text) <= len(names)):
        return int(text) - 1
    known = f"one of {', '.join(names[:8])}" if names else "the number of a column, from 1 on"
    raise InputError(f"--sensitive {text}: give {known}")


def demo_images() -> tuple[Any, Any, Scheme]:
    """40 bundled images as private ones, the other 200 as public ones, mixed two and two as
    InstaHide released it."""
    from unveil.data.bundled import fashion_mnist
    from unveil.data.dataset import BUNDLED_SOURCE, image_dataset
    from unveil.scheme import Scheme

    images, classes = fashion_mnist()
    # Evenly spaced over the classes, so that every class is private and public.
    private = range(0, len(images), len(images) // DEMO)[:DEMO]
    public = [i for i in range(len(images)) if i not in private]
    mine, others = (
        image_dataset(images[rows], tuple(f"{i} {classes[i]}" for i in rows), BUNDLED_SOURCE)
        for rows in ([*private], public)
    )
    return mine, others, Scheme(2, 2, "released", "random", "epochs")


def _range(text: str | int | None) -> int | tuple[int, int] | None:
    """500, or 100:2000."""
    from unveil.checks import InputError

    if text is None:
        return None
    try:
        parts = [int(part) for part in str(text).split(":")]
    except ValueError:
        parts = []
    if len(parts) not in (1, 2):
        raise InputError(f"--m {text}: give a number of encodings, or a range like 100:2000")
    return parts[0] if len(parts) == 1 else (parts[0], parts[1])
