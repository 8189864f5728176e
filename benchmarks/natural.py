"""The natural-image attack on pairs of sets of private and public images, encoded as InstaHide
released it.

`python -m benchmarks.natural [--seeds N] [cell …]` measures what `docs/figures/natural.json` lacks,
adds it there, and writes the table of docs/natural_images.md; of the first seed it draws images of
some cells, the worst included (`… pictures` draws all of these again). The attacker knows n, the
law and images like the public ones, none of them used; rows are in the order in which they are
made, unless shuffled. Seeds 44000, 44001, …; settings were chosen on others. SSIM on [0, 1].
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import unveil
from benchmarks.natural_data import ROOT, pair, stored, vectors
from benchmarks.table import Row, write_between
from unveil.encode.units import KNOWN
from unveil.images.likeness import Clues
from unveil.images.mirrored import mirror
from unveil.images.recognition import recognition
from unveil.images.task import WeightLaw
from unveil.scheme import Scheme
from unveil.scoring.images import image_scores

STORE = ROOT / "docs" / "figures" / "natural.json"
FIRST, SHAPE = 44_000, (32, 32, 3)
CLUES = ("misfit", "agreement", "encodings", "again")


@dataclass(frozen=True)
class Cell:
    """`least`: the mean SSIM aimed at."""

    what: str
    private: str
    public: str
    least: float | None = None
    n: int = 40  # 30 of grey images
    encodings: int = 50  # per image: T
    k_public: int = 4
    labels: bool = False
    told: str = "like"  # or "private_like" besides, or the "candidates" themselves
    shift: int = 0
    flips: bool = False
    per_epoch: bool = False  # one crop and one coin per image and epoch
    units: str = "[-1,1]"
    shuffled: bool = False  # rows in random order, not epoch by epoch as they are made


CELLS = {
    "50-4": Cell("photographs", "cifar", "caltech", 0.94),
    "50-4-shuffled": Cell("photographs, rows shuffled", "cifar", "caltech", shuffled=True),
    "50-4-labels": Cell("photographs, labels", "cifar", "caltech", 0.965, labels=True),
    "50-0": Cell("photographs, no public images", "cifar", "caltech", 0.995, k_public=0),
    "25-4": Cell("photographs, T=25", "cifar", "caltech", 0.87, encodings=25),
    "25-4-shuffled": Cell(
        "photographs, T=25, rows shuffled", "cifar", "caltech", encodings=25, shuffled=True
    ),
    "25-4-labels": Cell(
        "photographs, T=25, labels", "cifar", "caltech", 0.95, encodings=25, labels=True
    ),
    "10-4-labels": Cell(
        "photographs, T=10, labels", "cifar", "caltech", 0.70, encodings=10, labels=True
    ),
    "50-4-known": Cell("photographs, candidates known", "cifar", "caltech", told="candidates"),
    "portraits": Cell("portraits", "portraits", "caltech", 0.80),
    "portraits-told": Cell(
        "portraits, others at hand", "portraits", "caltech", 0.88, told="private_like"
    ),
    "lfw": Cell("faces of LFW", "lfw", "caltech", 0.80, n=30),
    "lfw-told": Cell("faces of LFW, others at hand", "lfw", "caltech", 0.88, n=30, told="private_like"),
    "fashion": Cell("clothes", "fashion", "caltech", 0.70, n=30),
    "fashion-told": Cell("clothes, others at hand", "fashion", "caltech", n=30, told="private_like"),
    "grey": Cell("grey photographs", "cifar-grey", "caltech", n=30),
    "caltech-cifar": Cell("grey photographs of objects", "caltech-grey", "cifar-grey", n=30),
    "fashion-cifar": Cell("clothes among other photographs", "fashion", "cifar-grey", n=30),
    "lfw-texture": Cell("faces of LFW, public textures", "lfw", "texture", n=30),
    "texture": Cell("grey photographs, public textures", "cifar-grey", "texture", 0.88, n=30),
    "noise": Cell("grey photographs, public white noise", "cifar-grey", "noise", 0.80, n=30),
    "units": Cell(
        "photographs, mean and deviation of CIFAR-10, command line only",
        "cifar", "caltech", 0.94, units="cifar10",
    ),
    "flips": Cell("grey photographs mirrored at random", "cifar-grey", "caltech", n=30, flips=True),
    "crops-1": Cell("photographs, crops ±1", "cifar", "caltech", 0.85, n=30, shift=1),
    "crops-4": Cell("photographs, crops ±4", "cifar", "caltech", 0.75, n=30, shift=4),
    "crops-4-flips": Cell(
        "photographs, crops ±4, mirrored at random", "cifar", "caltech", 0.70, n=30, shift=4,
        flips=True,
    ),
    "crops-4-epoch": Cell(
        "photographs, crops ±4 and mirrored once per epoch, as released", "cifar", "caltech",
        n=30, shift=4, flips=True, per_epoch=True,
    ),
}  # fmt: skip


def instance(cell: Cell, seed: int) -> tuple[unveil.Simulation, dict[str, Any]]:
    """The simulation, and what the attacker has."""
    private, which, others = pair(cell.private, cell.public, cell.n, seed)
    shape = private.shape[1:]
    scheme = unveil.Scheme(2, cell.k_public, "released", pairing="epochs", signs="random")
    classes = stored("cifar10_test2k_small.npz")["y"][which] if cell.labels else None
    unit = KNOWN[cell.units]
    sim = unveil.simulate(
        scheme,
        private=unit.mixed(vectors(private), shape),
        public=unit.mixed(vectors(others["used"]), shape) if cell.k_public else None,
        m=cell.n * cell.encodings,
        rng=seed,
        image_shape=shape,
        labels=None if classes is None else classes.astype(np.int64),
        flips="epoch" if cell.flips and cell.per_epoch else cell.flips,
        crops=cell.shift,
        crops_per="epoch" if cell.per_epoch else "use",
    )
    if cell.shuffled:
        rows = np.random.default_rng(seed).permutation(sim.encodings.m)
        sim = replace(sim, encodings=replace(sim.encodings, values=sim.encodings.values[rows]))
    options: dict[str, Any] = {
        "n_private": cell.n, "flips": cell.flips, "crops": cell.shift, "rng": seed
    }  # fmt: skip
    options |= {"public": sim.public} if cell.told == "candidates" else {"like": others["like"]}
    if cell.told == "private_like":
        options["private_like"] = others["own"]
    return sim, options


def measure(cell: Cell, seed: int, keep: Path | None = None) -> dict[str, Any]:
    sim, options = instance(cell, seed)
    shape = sim.encodings.image_shape
    assert shape is not None
    start = time.process_time()
    if cell.units == "[-1,1]":
        options = {name: _flat(value) for name, value in options.items()}
        recovery = unveil.recover(sim.encodings, attack="natural", **options)
        images, evidence = recovery.vectors, recovery.evidence
    else:
        images, evidence = by_command(cell, sim, options)
    cpu = time.process_time() - start
    private = vectors(pair(cell.private, cell.public, cell.n, seed)[0])
    scores = image_scores(images, private, shape)
    if cell.flips:  # which way round an image was is not in the encodings
        scores = scores.better(image_scores(images, mirror(private, shape), shape))
    turned = image_scores(-images, private, shape).mean_ssim
    if keep is not None:
        order = np.where(scores.matches < 0, 0, scores.matches)
        np.savez(keep, found=images[order], private=private, ssim=scores.ssim)
    return {
        "ssim": scores.ssim.round(4).tolist(),
        "psnr": round(float(scores.psnr.mean()), 2),
        "negative": round(turned, 3),
        "matches": scores.matches.tolist(),
        "claimed": round(float(np.sum(evidence["recognisable"])), 2),
        "polarity": evidence.get("polarity"),
        "found_units": evidence["units"],
        "clues": {
            name: np.round(np.nan_to_num(evidence[name], posinf=99), 4).tolist() for name in CLUES
        },
        "cpu_seconds": round(cpu, 1),
    }


def _flat(value: Any) -> Any:
    """Bytes (n, height, width[, channels]) as vectors; all else as it is."""
    return vectors(value) if isinstance(value, np.ndarray) and value.dtype == np.uint8 else value


def by_command(
    cell: Cell, sim: unveil.Simulation, options: dict[str, Any]
) -> tuple[np.ndarray, dict[str, Any]]:
    """The same through the command line alone: files in, files out."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        values = sim.encodings.values.reshape(-1, *sim.encodings.image_shape)
        np.save(place / "encodings.npy", values)
        np.save(place / "like.npy", options["like"])
        said = subprocess.run(
            [
                sys.executable, "-m", "unveil", "attack", str(place / "encodings.npy"),
                "--k-public", str(cell.k_public), "--weighting", "released", "--signs", "random",
                "--pairing", "epochs", "--like", str(place / "like.npy"),
                "--n-private", str(cell.n), "--seed", str(options["rng"]),
                "--out", str(place / "out"), "--json",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if said.returncode not in (0, 3):
            sys.exit(said.stderr)
        vectors_found = np.load(place / "out" / "recovery.npz", allow_pickle=False)["vectors"]
        return vectors_found, json.loads(said.stdout)["evidence"]


def results() -> dict[str, Any]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def fill(names: list[str], seeds: int) -> None:
    from benchmarks import natural_pictures

    for seed in range(FIRST, FIRST + seeds):
        for name in names:
            if str(seed) in results().get(name, {}):
                continue
            drawn = seed == FIRST and name in natural_pictures.SHOWN
            result = natural_pictures.measured(name) if drawn else measure(CELLS[name], seed)
            everything = results()
            everything.setdefault(name, {})[str(seed)] = result
            STORE.write_text(json.dumps(everything) + "\n")
            seen = float(np.mean(np.array(result["ssim"]) > 0.5))
            print(
                f"{name} {seed}: SSIM {np.mean(result['ssim']):.3f} (turned {result['negative']}), "
                f"{seen:.0%} above 0.5, claimed {result['claimed'] / len(result['ssim']):.0%}, "
                f"{result['cpu_seconds']} CPU s",
                flush=True,
            )


def page() -> str:
    """The table of docs/natural_images.md: every cell, and what the attack claims of itself."""
    lines = [
        "| private images (public ones: Caltech-101 unless said) | seeds | mean SSIM (lowest, "
        "highest seed) | aimed at | above 0.5: true, claimed | PSNR | CPU s |",
        "|---" * 7 + "|",
    ]
    for name, cell in CELLS.items():
        runs = list(results().get(name, {}).values())
        if not runs:
            continue
        means = [np.mean(run["ssim"]) for run in runs]
        every = np.concatenate([run["ssim"] for run in runs])
        claimed = sum(_claimed(cell, run) for run in runs) / len(every)
        seconds = float(np.median([run["cpu_seconds"] for run in runs]))
        aim = "" if cell.least is None else f"{cell.least}"
        lines.append(
            f"| {cell.what} | {len(runs)} | **{np.mean(means):.3f}** ({min(means):.3f}, "
            f"{max(means):.3f}) | {aim} | {np.mean(every > 0.5):.0%}, {claimed:.0%} "
            f"| {np.mean([run['psnr'] for run in runs]):.1f} "
            f"| {f'{seconds:.0f}' if seconds else ''} |"
        )
    return "\n".join(lines)


@cache
def evenness(k_public: int) -> float:
    """Of the weights that every cell has (`images.task`)."""
    return WeightLaw.of(Scheme(2, k_public, "released"), np.random.default_rng(0)).evenness


def _claimed(cell: Cell, run: dict[str, Any]) -> float:
    """How many images are said to be recognisable, by the clues stored."""
    clues = {name: np.array(values, float) for name, values in run["clues"].items()}
    found = Clues(
        **clues,
        expected=2.0 * cell.encodings * evenness(cell.k_public),
        channels=3 if cell.private in ("cifar", "portraits") else 1,
        public=cell.k_public > 0,
        rough=float(cell.public == "noise"),
        certain=clues["agreement"] if cell.public == "noise" else None,
        labelled=cell.labels,
        cropped=cell.shift > 0,
    )
    return float(recognition(found).probability.sum())


def rows() -> list[Row]:
    """What is stored, against what is aimed at."""
    out: list[Row] = []
    for name, cell in CELLS.items():
        runs = list(results().get(name, {}).values())
        if not runs or cell.least is None:
            continue
        means = [float(np.mean(run["ssim"])) for run in runs]
        measured = f"{np.mean(means):.3f} (seeds {min(means):.3f} to {max(means):.3f})"
        holds = bool(np.mean(means) >= cell.least)
        out.append(
            (f"{cell.what}; {len(runs)} seeds", f"mean SSIM ≥ {cell.least}", measured, holds)
        )
    return out


def main(words: list[str]) -> None:
    seeds = 1
    if "--seeds" in words:
        at = words.index("--seeds")
        seeds = int(words[at + 1])
        words = words[:at] + words[at + 2 :]
    if words == ["pictures"]:
        from benchmarks import natural_pictures

        print(natural_pictures.main())
        return
    fill(words or list(CELLS), seeds)
    write_between(ROOT / "docs" / "natural_images.md", "<!-- rows -->", "<!-- end -->", page())


if __name__ == "__main__":
    main(sys.argv[1:])
