"""What the options of `unveil audit` mean: which records, which encodings, which columns."""

from __future__ import annotations

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

    # 1. What cannot be together.
    given = {name for name, value in options.items() if value is not None}
    encodings, truth = options["encodings"], options.pop("truth")
    if demo is not None and (private is not None or given & {"public", "encodings", "truth"}):
        raise InputError("--demo brings its own images: leave --private and --public out")
    if truth is not None and (encodings is None or private is not None):
        raise InputError("--truth goes with --encodings, in the place of --private")
    if encodings is not None:
        _must_be_alone(private or truth, given)
    if {"labels", "sample"} <= given:
        raise InputError("--labels with --sample: take the sample of both beforehand")
    # 2. Numbers and functions from their words.
    options["rng"], options["m"] = options.pop("seed"), _range(options["m"])
    if options["encoder"] is not None:
        options["encoder"] = load_encoder(options["encoder"])
    # 3. Records; a path alone is left to the audit, which reads it.
    shape = shape_of(options.pop("shape"))
    source = Path(private) if private and Path(private).exists() else truth
    records: Any = private or truth
    n, d, n_public = (options.pop(name) for name in ("n_private", "d", "n_public"))
    family = root(options["rng"])
    if n_public and not k_public:
        raise InputError("--n-public without --k-public: say how many an encoding mixes")
    if demo is None and (n or d or shape is not None or records in (None, "gaussian")):
        rng, sample, own = child(family, "private"), options.pop("sample"), encodings is not None
        records = load_dataset(
            records, n=n, d=d, sample=sample, shape=shape, as_they_are=own, rng=rng
        )
        if n_public and options["public"] is None:
            width = records.values.shape[1]
            options["public"] = gaussian_vectors(n_public, width, child(family, "public"))
    options = {name: value for name, value in options.items() if value is not None}
    return records, [path for path in (source, encodings) if path is not None], options


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
