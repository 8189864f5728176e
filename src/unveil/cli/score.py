"""`unveil score`: hold a recovery against the truth."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from unveil.cli.group import main
from unveil.cli.options import PATH, as_json
from unveil.cli.terminal import console, echo_json


@main.command()
@click.argument("run", type=PATH)
@click.option("--private", type=PATH, help="The true vectors, where RUN holds no truth.npz.")
@click.option("--tolerance", type=float, default=1e-2, show_default=True, help="Largest pixel error that counts as exact.")
@as_json
def score(run: Path, private: Path | None, tolerance: float, as_json: bool) -> int:
    """Hold a recovery against the truth.

    Reads recovery.npz and truth.npz in RUN, writes scores.json.
    """
    from unveil import scoring, store
    from unveil.data import load_vectors
    from unveil.records import InputError
    from unveil.verdict import plain, score_facts

    if not (run / "recovery.npz").is_file():
        raise InputError(f"no recovery.npz in {run}: run `unveil attack` on it first")
    if private is None and not (run / "truth.npz").is_file():
        raise InputError(f"no truth.npz in {run}: add --private with the true vectors")
    truth = store.read_array(run / "truth.npz", "private") if private is None else load_vectors(private, "private")
    recovery = store.read_recovery(run / "recovery.npz")
    scores = scoring.score(recovery, truth, tolerance=tolerance)
    facts = score_facts(recovery, scores)
    store.write_json(run / "scores.json", plain(facts))
    if as_json:
        echo_json({"run": str(run), **facts})
    else:
        style = "bold white on red" if scores.wrong else "bold"
        console().print(f"[{style}]{escape(facts['verdict'])}[/]", soft_wrap=True)
    return 0 if scores.exact and not scores.wrong else 3
