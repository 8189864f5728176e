"""`unveil audit`"""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape
from rich.panel import Panel

from unveil.cli.group import main
from unveil.cli.options import COUNT, as_json, out_option
from unveil.cli.terminal import console, echo_json, print_evidence, progress_bar


@main.command()
@click.option("--k-private", type=COUNT, default=2, show_default=True, help="Private vectors per encoding.")
@click.option("--n-private", type=COUNT, default=100, show_default=True, help="Private vectors.")
@click.option("--m", type=COUNT, default=800, show_default=True, help="Encodings released.")
@click.option("--d", type=COUNT, default=3072, show_default=True, help="Pixels.")
@click.option("--seed", type=int, default=0, show_default=True)
@out_option
@as_json
def audit(k_private: int, n_private: int, m: int, d: int, seed: int, out: Path | None, as_json: bool) -> int:
    """May encodings like these be released?

    Simulates them, attacks them, and counts what was recovered exactly.
    """
    from unveil import encode, scoring, store
    from unveil.attacks import recover
    from unveil.records import Scheme
    from unveil.verdict import audit_verdict, plain, recovery_facts, score_facts

    if out is not None:
        store.must_be_new(out)
    with progress_bar("audit", not as_json) as progress:
        simulation = encode.simulate(Scheme(k_private), n_private, m=m, d=d, rng=seed)
        recovery = recover(simulation.encodings, simulation.public, rng=seed, progress=progress)
        scores = scoring.score(recovery, simulation.private)
    facts = {**recovery_facts(recovery), **score_facts(recovery, scores)}
    facts |= {"k_private": k_private, "n_private": n_private, "m": m, "d": d, "seed": seed}
    facts["verdict"], colour = audit_verdict(recovery, scores)
    if out is not None:
        with store.whole_folder(out) as part:
            store.write_simulation(part, simulation, store.manifest("audit", seed=seed, seconds=facts["seconds"]))
            store.write_recovery(part / "recovery.npz", recovery)
            store.write_json(part / "scores.json", plain(facts))
    if as_json:
        return echo_json(facts)
    terminal = console()
    terminal.print(Panel(escape(facts["verdict"]), border_style=colour, style="bold"))
    terminal.print(f"Simulated: {m} encodings of {n_private} Gaussian vectors, {d} pixels, k_private={k_private}, seed {seed}.")
    print_evidence(terminal, facts)
    if out is not None:
        terminal.print(f"Written to {escape(str(out))}.", soft_wrap=True)
    return 0
