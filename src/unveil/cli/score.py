"""`unveil score`: hold a recovery against the truth."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from unveil.cli import options as of
from unveil.cli.group import main
from unveil.cli.terminal import console, echo_json

TOLERANCE = """Largest error of a value that counts as exact, in the units of the data.  [default:
0.01 of the spread of the data]"""


@main.command()
@click.argument("run", type=of.PATH)
@of.section(
    "Options",
    ("--private", of.PATH, "The true vectors, where RUN holds no truth.npz."),
    ("--tolerance", float, TOLERANCE),
)
@of.table_options
@of.memory_option
@of.as_json
def score(run: Path, private: Path | None, tolerance: float | None, as_json: bool) -> int:
    """Hold a recovery against the truth.

    Reads recovery.npz and truth.npz in RUN, writes scores.json. Images also get SSIM and PSNR;
    decryption.npy the scores of the challenge, where truth.npz says which images each encoding
    mixes.
    """
    from unveil.engine.files import alone, write_json
    from unveil.shown import plain

    # An attack that ends meanwhile waits: scores stand beside the recovery they are of.
    with alone(run) if run.is_dir() else nullcontext():
        facts, verdicts, good, wrong = _scored(run, private, tolerance)
        facts = plain({**facts, "verdict": " ".join(verdicts)})
        write_json(run / "scores.json", facts)
    if as_json:
        echo_json({"run": str(run), **facts})
    else:
        style = "bold white on red" if wrong else "bold"
        for sentence in verdicts:
            console().print(f"[{style}]{escape(sentence)}[/]", soft_wrap=True)
    return 0 if good and not wrong else 3


def _scored(
    run: Path, private: Path | None, tolerance: float | None
) -> tuple[dict[str, Any], list[str], bool, bool]:
    """Facts, verdicts, whether anything came back, and whether anything verified is wrong."""
    import numpy as np

    from unveil import scoring
    from unveil.checks import InputError
    from unveil.data import load_dataset, load_vectors
    from unveil.data.challenge import DECRYPTION, distinct_images, read_decryption
    from unveil.engine import files, runs
    from unveil.images.model import mirror
    from unveil.scoring.images import are_images

    # 1. What there is: vectors, pictures, and the truth in their shape.
    exact, pictures = ((run / name).is_file() for name in ("recovery.npz", DECRYPTION))
    if not exact and not pictures:
        raise InputError(f"no recovery.npz in {run}: run `unveil attack` on it first")
    if private is None and not (run / "truth.npz").is_file():
        raise InputError(f"no truth.npz in {run}: add --private with the true vectors")
    scheme = run / "scheme.json"
    shape = files.read_json(scheme).get("shape") if scheme.is_file() else None
    if pictures:
        rows, shape = read_decryption(run / DECRYPTION)
    mixed, sizes = None, tuple(shape or ())
    if private is None:
        truth, mixed = runs.read_truth(run / "truth.npz")
    elif shape is None:
        truth = load_vectors(private, "private")
    else:
        # The same scaling as an audit's, so that pixels are compared with pixels.
        truth = load_dataset(private, most=10**9, rng=np.random.default_rng(0)).values
    # 2. Vectors against the truth.
    facts: dict[str, Any] = {}
    evidence: Mapping[str, Any] = {}
    verdicts, wrong, good, seen = [], False, False, False
    if exact:
        recovery = runs.read_recovery(run / "recovery.npz")
        evidence = recovery.evidence
        scores = scoring.score(recovery, truth, tolerance=tolerance)
        facts, verdicts = scores.facts(), [scores.verdict(recovery)]
        wrong, good = scores.wrong > 0, scores.exact > 0
        # Signs that are not known, one per pixel, leave nothing to see.
        seen = (recovery.signed or "recognisable" in evidence) and are_images(truth, shape)
    # 3. Pictures. Of images that were mirrored at random nobody knows which way round.
    if pictures or seen:
        vectors = recovery.vectors if exact else distinct_images(rows)
        found = scoring.image_scores(vectors, truth, sizes)
        if evidence.get("mirrored"):
            found = found.better(scoring.image_scores(vectors, mirror(truth, sizes), sizes))
        facts["images"] = found.facts()
        good = good or facts["images"]["recognisable"] > 0
    if pictures and mixed is not None and len(mixed) == len(rows):
        facts["challenge"] = scoring.challenge_scores(rows, truth, mixed, sizes).facts()
    verdicts += [facts[name].pop("verdict") for name in ("images", "challenge") if name in facts]
    return facts, verdicts, good, wrong
