"""`python -m experiments.compare`: every attack on every family of instances, each in a process of
its own; one table, and phase diagrams.

OUT/figures/compare.{json,csv}, OUT/figures/compare-phase*.{svg,png}, OUT/compare.md, and OUT/.cells
with what is finished. A cell is good as long as the code of its attack is the same
(`experiments.compare.sources`): a changed attack is measured again, the others are not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from experiments.cells import LOST, Cells, Facts
from experiments.compare import phase
from experiments.compare.families import FAMILIES, Family
from experiments.compare.page import page, rows, verdict
from experiments.compare.trial import CRASHED, LIMIT, RAN, REFUSED, code_of, run_trials
from experiments.drawing import save, style
from unveil._version import __version__
from unveil.attacks import ATTACKS
from unveil.checks import InputError
from unveil.engine import files
from unveil.records import Progress

PHASE = "phase"
"""Stands for the phase diagrams wherever families are named."""
DRAWS, QUICK_DRAWS = 4, 2
"""Instances of each family: the first is cold, so that times need a second one."""
SECONDS, QUICK_SECONDS = 60.0, 20.0
"""Seconds after which an attack on one instance is ended: a table has 200 cells."""


@dataclass(frozen=True)
class Comparison:
    """What was found, in words and numbers, and the files that tell of it."""

    verdict: str
    facts: Facts
    files: tuple[Path, ...]


def compare(
    out: Path,
    *,
    attacks: Sequence[str] = (),
    families: Sequence[str] = (),
    full: bool = False,
    limit: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare attacks (none named: all) on families (none named: all, and the phase diagrams);
    write everything under `out`.

    limit: seconds after which an attack on one instance is ended
    """
    attacks = _chosen(attacks, list(ATTACKS), "attack")
    families = _chosen(families, [*FAMILIES, PHASE], "family")
    limit = (SECONDS if full else QUICK_SECONDS) if limit is None else limit
    if not limit > 0:
        raise InputError(f"limit={limit:g}: give a positive number of seconds")
    # Measured, or read where code and setting are the same as before.
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    cells = Cells("compare", seed, out / ".cells", progress)
    asked = [name for name in families if name != PHASE]
    facts: Facts = {
        "full": full,
        "seed": seed,
        "unveil": __version__,
        "limit": limit,
        "draws": DRAWS if full else QUICK_DRAWS,
        "asked": {"attacks": attacks, "families": families},
        "families": {name: _about(FAMILIES[name]) for name in asked},
        "results": _table(cells, attacks, asked, full, limit),
        "diagrams": phase.measure(cells, attacks, full, limit) if PHASE in families else [],
    }
    # Files appear together, or not at all.
    with files.whole_set(folder) as part:
        base = part / "compare"
        files.write_text(base.with_suffix(".json"), json.dumps(facts, sort_keys=True) + "\n")
        files.write_csv(base.with_suffix(".csv"), rows(facts))
        with style():
            for suffix, figure in phase.draw(facts["diagrams"]).items():
                save(figure, part / f"compare{suffix}")
        written = tuple(folder / file.name for file in sorted(part.iterdir()))
    files.write_text(out / "compare.md", page(facts, folder.name))
    return Comparison(verdict(facts), facts, (*written, out / "compare.md"))


def _chosen(asked: Sequence[str], known: list[str], what: str) -> list[str]:
    for name in asked:
        if name not in known:
            raise InputError(f"no {what} {name!r}: choose of {', '.join(known)}")
    return [name for name in known if name in asked or not asked]


def _about(family: Family) -> Facts:
    return {**asdict(family), "size": _size(family)}


def _size(family: Family) -> str:
    """In words: what an instance of the family is."""
    scheme = family.scheme
    parts = [f"k_private={scheme.k_private}"] + (
        [f"k_public={scheme.k_public}"] if scheme.k_public else []
    )
    parts += [f"n={family.n}"] if family.n else []
    parts += [f"n_public={family.n_public}"] if family.n_public else []
    m = family.m + round(family.copies * family.m)
    return ", ".join([*parts, f"m={m}", f"d={family.d}"])


def _table(
    cells: Cells, attacks: Sequence[str], families: Sequence[str], full: bool, limit: float
) -> list[Facts]:
    code = {attack: code_of(attack) for attack in attacks}
    settings = [
        {
            "attack": attack,
            "code": code[attack],
            "family": name,
            "about": asdict(FAMILIES[name]),
            "draws": DRAWS if full else QUICK_DRAWS,
            "limit": limit,
        }
        for name in families
        for attack in attacks
    ]
    return cells.run(_cell, settings, "families")


def _cell(
    attack: str, family: str, draws: int, limit: float, seed: int, code: str, about: Facts
) -> Facts:
    """Means over draws; of seconds the median and of memory the largest, the cold draw left out; up
    to the first that fails."""
    trials = [(FAMILIES[family], seed * 1000 + draw) for draw in range(draws)]
    found = run_trials(attack, trials, limit, stop=[REFUSED, LIMIT, CRASHED])
    last = found[-1]
    out: Facts = {
        "attack": attack,
        "family": family,
        "outcome": last["outcome"],
        "reason": last.get("reason", ""),
    }
    ran = [facts for facts in found if facts["outcome"] == RAN]
    if last["outcome"] != RAN:
        # What was verified wrongly before the end counts all the same.
        lost = {LOST: True} if LOST in last else {}
        return {**out, "wrong": sum(facts["wrong"] for facts in ran), "ran": len(ran), **lost}
    # The first trial of a process loads compiled code: it counts only where there is no other.
    warm = [facts for facts in ran if not facts["cold"]] or ran
    means: Facts = {
        name: float(np.mean([facts[name] for facts in ran]))
        for name in ("share", "exact", "close", "ssim")
        if name in ran[0]
    }
    return {
        **out,
        **means,
        "ran": len(ran),
        "wrong": sum(facts["wrong"] for facts in ran),
        "seconds": float(np.median([facts["seconds"] for facts in warm])),
        "mib": max(facts["mib"] for facts in warm),
        "explanation": last["explanation"],
    }
