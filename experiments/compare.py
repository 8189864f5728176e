"""`python -m experiments.compare [--attack NAME …] [--family NAME …]`: every attack on the same
instances, each in a process of its own; OUT/compare.json and the page OUT/compare.md.

What counts as recovered is said by the family: private vectors that are verified and right at every
pixel (exact), that correlate by more than 0.9 with what came back (close), the mean likeness of
images (ssim), or encodings all of whose public vectors were found (public).
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import click
import numpy as np
from experiments.section import table

from unveil.attacks import ATTACKS, attack_called, recover_told
from unveil.checks import InputError
from unveil.data.bundled import fashion_mnist
from unveil.encode import selection_matrix, simulate
from unveil.encodings import Simulation
from unveil.engine import files
from unveil.records import Overlaps, Recovery
from unveil.scheme import Scheme
from unveil.scoring import score
from unveil.scoring.images import image_scores

Facts = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """told: the attack is handed the overlaps of private subsets, of which this share is off by
    one; None: it is not. measure: "exact", "close", "ssim" (bundled images) or "public"."""

    about: str
    scheme: Scheme
    n: int
    m: int
    d: int
    n_public: int = 0
    noise: float = 0.0
    told: float | None = None
    measure: str = "exact"


RELEASED = Scheme(2, 0, "released", "random", "epochs")
# Sizes for which every attack that applies ends within a minute.
FAMILIES = {
    "k2": Family("many encodings, few pixels, pairs", Scheme(2), 24, 240, 400),
    "k3": Family("the same, three in each", Scheme(3), 24, 360, 600),
    "k4": Family("the same, four in each", Scheme(4), 24, 480, 900),
    "paper-k2": Family("enough encodings for a floral, many pixels", Scheme(2), 24, 110, 2048),
    "paper-k3": Family("the same, three in each", Scheme(3), 12, 250, 4096),
    "few-encodings": Family("four encodings for every private vector", Scheme(2), 30, 120, 1024),
    "few-pixels": Family("too few pixels for single overlaps", Scheme(2), 24, 360, 64),
    "public": Family("two public vectors of 200 in each", Scheme(2, 2), 24, 240, 600, 200),
    "noise": Family("noise of a twentieth", Scheme(2), 24, 300, 512, noise=0.05, measure="close"),
    "unequal": Family("weights new in each", Scheme(2, 0, "half-normal"), 20, 300, 1000),
    "told-k2": Family("true overlaps are handed in", Scheme(2), 24, 160, 100, told=0.0),
    "told-k3": Family("the same, three in each", Scheme(3), 24, 240, 150, told=0.0),
    "told-wrong": Family("one overlap in a hundred is wrong", Scheme(2), 24, 160, 100, told=0.01),
    "mixup": Family("signs are not hidden", Scheme(2, signs="kept"), 24, 160, 200),
    "all-public": Family("nothing private", Scheme(0, 4), 0, 60, 600, 100, measure="public"),
    "images": Family("14×14, weights as released", RELEASED, 12, 300, 196, measure="ssim"),
    "images-public": Family(
        "the same with two of 228 public images",
        replace(RELEASED, k_public=2), 12, 360, 196, 228, measure="ssim",
    ),
}  # fmt: skip


def instance(family: Family, seed: int) -> tuple[Simulation, Facts]:
    """The simulation, and what else an attack that can use it is given."""
    rng = np.random.default_rng(seed)
    size: Facts = {"m": family.m, "noise": family.noise, "rng": rng}
    if family.measure == "ssim":
        pictures = fashion_mnist()[0][:, ::2, ::2].reshape(-1, 196).astype(np.float32) / 127.5 - 1
        x = pictures[rng.permutation(len(pictures))].astype(np.float32)
        own, others = x[: family.n], x[family.n :]
        public = others[: family.n_public] if family.n_public else None
        sim = simulate(family.scheme, private=own, public=public, image_shape=(14, 14), **size)
        return sim, {"n_private": family.n} | ({"like": others} if public is None else {})
    sim = simulate(family.scheme, family.n, n_public=family.n_public, d=family.d, **size)
    if family.told is None:
        return sim, {}
    W = selection_matrix(sim.selection.private, family.n).astype(np.int64)
    M, k = (W @ W.T).toarray(), family.scheme.k_private
    off = np.triu(rng.random(M.shape) < family.told, 1)
    M = np.where(off | off.T, np.where(M == 0, 1, M - 1), M)
    return sim, {"overlaps": Overlaps.from_array(M, k)}


def scored(recovery: Recovery, family: Family, sim: Simulation) -> tuple[float, int]:
    """(share recovered as the family measures it, vectors or encodings verified and wrong)."""
    if family.measure == "public":
        assert sim.public is not None
        names = [int(np.abs(sim.public - x).max(axis=1).argmin()) for x in recovery.vectors]
        right = wrong = 0
        for row, truth in zip(recovery.members.toarray(), sim.selection.public, strict=True):
            found = np.flatnonzero(row)
            if len(found):
                same = sorted(names[i] for i in found) == sorted(truth.tolist())
                right += same
                wrong += not same and bool(recovery.verified[found].all())
        return right / len(sim.selection.public), wrong
    scores, x = score(recovery, sim.private), sim.private
    if family.measure == "ssim":
        assert sim.encodings.shape is not None
        # Who returns two images for every encoding has no more guesses than others: the surest.
        surest = np.argsort(recovery.residual, kind="stable")[: family.n]
        found = image_scores(recovery.vectors[surest], x, sim.encodings.shape)
        return found.mean_ssim, scores.wrong
    if family.measure == "close" and len(recovery):
        # Signs are common to all vectors: those of the nearest true ones.
        v = recovery.vectors
        near = np.corrcoef(np.abs(v), np.abs(x))[: len(v), len(v) :].argmax(axis=1)
        v = v * np.where((v * x[near]).sum(axis=0) < 0, -1, 1)
        alike = np.corrcoef(v, x)[: len(v), len(v) :]
        return float((alike.max(axis=0) > 0.9).mean()), scores.wrong
    return scores.exact / family.n, scores.wrong


def attempt(attack: str, name: str, seed: int, pipe: Any, limit: float) -> None:
    """One attack on one instance, after a run on another that loads what is compiled."""
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    most = int(time.process_time() + limit) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
    family = FAMILIES[name]
    takes = signature(attack_called(attack)).parameters
    try:
        if family.told is not None and "overlaps" not in takes:
            raise InputError("it takes no overlaps")
        for draw in (seed + 1000, seed):
            sim, given = instance(family, draw)
            options = {key: value for key, value in given.items() if key in takes}
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            start = time.process_time()
            found = recover_told(sim.encodings, sim.public, attack, options, {"rng": draw})
            seconds = time.process_time() - start
        share, wrong = scored(found, family, sim)
        mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        pipe.send({"share": share, "wrong": wrong, "seconds": seconds, "mib": mib})
    except InputError as error:
        pipe.send({"refused": str(error)})
    # Whatever an attack does wrong is a result, not the end of the comparison.
    except Exception as error:
        pipe.send({"crashed": f"{type(error).__name__}: {error}"})


def trial(attack: str, name: str, seed: int, limit: float) -> Facts:
    """What `attempt` says, or that it took more than `limit` CPU seconds."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=attempt, args=(attack, name, seed, theirs, limit))
    process.start()
    theirs.close()
    try:
        facts: Facts = ours.recv()
    except EOFError:
        facts = {"late": True}
    process.join()
    return facts


def page(results: Facts) -> str:
    """The page, from {family: {attack: [facts of each draw]}}."""
    names = [
        a for a in ATTACKS if any(a in row and "share" in row[a][-1] for row in results.values())
    ]

    def cell(runs: list[Facts], what: str) -> str:
        if "share" not in runs[-1]:
            return next(("late" if k == "late" else "–" if k == "refused" else k) for k in runs[-1])
        mean = float(np.mean([run[what] for run in runs if "share" in run]))
        return f"{mean:.0%}" if what == "share" else f"{mean:.2g}"

    def rows(what: str) -> list[list[str]]:
        return [
            [name, *(cell(row[a], what) if a in row else "" for a in names)]
            for name, row in results.items()
        ]

    about = []
    for name, f in FAMILIES.items():
        mixed = f"{f.scheme.k_private} + {f.scheme.k_public}"
        if name in results:
            about.append([name, f.about, mixed, str(f.n), str(f.m), str(f.d), f.measure])
    every = [run for row in results.values() for runs in row.values() for run in runs]
    wrong = sum(run.get("wrong", 0) for run in every)
    parts = [
        "# Which attack wins, where, at what cost?\n",
        "`python -m experiments.compare` measures everything on this page anew and writes it; "
        "`--attack` and `--family` choose.\nEvery attack runs in a process of its own, with one "
        "BLAS thread; what is compiled is loaded before. What the attacks are: "
        "[Attacks](attacks.md).\n",
        f"Verified and wrong, all runs together: **{wrong}**.\n",
        "## What was recovered\n",
        "Mean over draws. exact: private vectors verified and right at every pixel; close: with a "
        "correlation above 0.9; ssim: mean\nlikeness of images; public: encodings with all their "
        "public vectors. –: does not apply (compare.json says why). late: over the limit. Attacks "
        "that apply to none of\nthese families have no column.\n",
        table(["family", *names], rows("share")),
        "## CPU seconds\n",
        table(["family", *names], rows("seconds")),
        "## Families\n",
        table(["family", "what", "private + public", "n", "m", "d", "measure"], about),
    ]
    return "\n".join(parts)


@click.command()
@click.option("--attack", multiple=True, type=click.Choice(ATTACKS))
@click.option("--family", multiple=True, type=click.Choice(list(FAMILIES)))
@click.option("--draws", default=2, type=click.IntRange(1), help="Instances of each family.")
@click.option("--limit", default=60.0, help="CPU seconds of an attack on one instance.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("unveil-compare"))
def main(
    attack: tuple[str, ...], family: tuple[str, ...], draws: int, limit: float, out: Path
) -> None:
    """Compare attacks on families of instances; writes OUT/compare.md."""
    out.mkdir(parents=True, exist_ok=True)
    results: Facts = {}
    for name in family or FAMILIES:
        results[name] = {}
        for one in attack or ATTACKS:
            runs: list[Facts] = []
            while len(runs) < draws and (not runs or "share" in runs[-1]):
                runs.append(trial(one, name, len(runs), limit))
            results[name][one] = runs
            click.echo(f"{name:14} {one:16} {runs[-1]}")
        files.write_json(out / "compare.json", results)
        files.write_text(out / "compare.md", page(results))
    click.echo(f"Page: {out / 'compare.md'}")


if __name__ == "__main__":
    main()
