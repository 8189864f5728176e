"""`unveil score`: hold a recovery against the truth."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from unveil.cli.group import main
from unveil.cli.options import PATH, as_json, memory_option
from unveil.cli.terminal import console, echo_json


@main.command()
@click.argument("run", type=PATH)
@click.option("--private", type=PATH, help="The true vectors, where RUN holds no truth.npz.")
@click.option(
    "--tolerance",
    type=float,
    help="Largest pixel error that counts as exact.  [default: 0.01 of the spread of the data]",
)
@memory_option
@as_json
def score(run: Path, private: Path | None, tolerance: float | None, as_json: bool) -> int:
    """Hold a recovery against the truth.

    Reads recovery.npz and truth.npz in RUN, writes scores.json. Images also get SSIM and PSNR;
    decryption.npy the scores of the challenge, where truth.npz says which images each encoding
    mixes.
    """
    from unveil.files import alone

    # An attack that ends meanwhile waits: scores stand beside the recovery they are of.
    with alone(run) if run.is_dir() else nullcontext():
        return _score(run, private, tolerance, as_json)


def _score(run: Path, private: Path | None, tolerance: float | None, as_json: bool) -> int:
    import numpy as np

    from unveil import scoring, store
    from unveil.checks import InputError
    from unveil.data import load_dataset, load_vectors
    from unveil.data.challenge import DECRYPTION, distinct_images, read_decryption
    from unveil.images.model import mirror
    from unveil.scoring.images import are_images
    from unveil.verdict import challenge_facts, image_facts, plain, score_facts

    # 1. What there is: vectors, pictures, and the truth in their shape.
    exact, pictures = ((run / name).is_file() for name in ("recovery.npz", DECRYPTION))
    if not exact and not pictures:
        raise InputError(f"no recovery.npz in {run}: run `unveil attack` on it first")
    if private is None and not (run / "truth.npz").is_file():
        raise InputError(f"no truth.npz in {run}: add --private with the true vectors")
    shape = (
        store.read_json(run / "scheme.json").get("shape")
        if (run / "scheme.json").is_file()
        else None
    )
    if pictures:
        rows, shape = read_decryption(run / DECRYPTION)
    mixed = None
    if private is None:
        truth, mixed = store.read_truth(run / "truth.npz")
    elif shape is None:
        truth = load_vectors(private, "private")
    else:
        # The same scaling as an audit's, so that pixels are compared with pixels.
        truth = load_dataset(private, most=10**9, rng=np.random.default_rng(0)).values
    # 2. Vectors against the truth.
    facts: dict[str, Any] = {}
    verdicts, wrong, good = [], False, False
    if exact:
        recovery = store.read_recovery(run / "recovery.npz")
        scores = scoring.score(recovery, truth, tolerance=tolerance)
        facts = score_facts(recovery, scores)
        verdicts, wrong, good = [facts["verdict"]], scores.wrong > 0, scores.exact > 0
    # 3. Pictures. Signs that are not known, one per pixel, leave nothing to see: exact scores are
    # for such vectors. Of images that were mirrored at random nobody knows which way round.
    told = recovery.evidence if exact else {}
    seen = exact and (recovery.signed or "recognisable" in told)
    if pictures or (seen and are_images(truth, shape)):
        sizes = tuple(shape or ())
        vectors = recovery.vectors if exact else distinct_images(rows)
        found = scoring.image_scores(vectors, truth, sizes)
        if told.get("mirrored"):
            found = found.better(scoring.image_scores(vectors, mirror(truth, sizes), sizes))
        facts["images"] = image_facts(found)
        verdicts.append(facts["images"].pop("verdict"))
        good = good or facts["images"]["recognisable"] > 0
    if pictures and mixed is not None and len(mixed) == len(rows):
        facts["challenge"] = challenge_facts(
            scoring.challenge_scores(rows, truth, mixed, tuple(shape or ()))
        )
        verdicts.append(facts["challenge"].pop("verdict"))
    # 4. Written, and said.
    facts["verdict"] = " ".join(verdicts)
    store.write_json(run / "scores.json", plain(facts))
    if as_json:
        echo_json({"run": str(run), **facts})
    else:
        style = "bold white on red" if wrong else "bold"
        for sentence in verdicts:
            console().print(f"[{style}]{escape(sentence)}[/]", soft_wrap=True)
    return 0 if good and not wrong else 3
