"""The natural-image attack on CIFAR-10 private and Caltech-101 public images, encoded as InstaHide
released it.

`python -m benchmarks.natural [cell …]` measures what `docs/figures/natural.json` lacks, adds it
there, draws the figure and prints the tables of docs/natural_images.md. `laws` is a cell too: 40
private images under each law of weights, which the attack is told, or finds out for itself; and
`shifts`: 40 images that are shifted at random before they are mixed; and `large`: 400 images. The
images come from the folder UNVEIL_DATA (../shared/data without it); they are no part of the
package. Public images: 5,500 of Caltech-101 and their mirror images; the attacker has the other
2,742 as a sample of like images, none of those used. In the cell with known candidates all 8,242
are used and known. Fresh seeds 41000, 41001, …; settings were chosen on others.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import unveil
from benchmarks.table import Row
from unveil.experiments.drawing import COLOURS, SERIES, panels, save, style
from unveil.scoring.images import image_scores

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "docs" / "figures" / "natural.json"
N, SEEDS, FIRST, SHAPE = 100, 5, 41_000, (32, 32, 3)


@dataclass(frozen=True)
class Cell:
    encodings: int  # per image: T
    k_public: int
    labels: bool
    known: bool
    least: float


CELLS = {
    "50-4": Cell(50, 4, False, False, 0.70),
    "50-4-labels": Cell(50, 4, True, False, 0.80),
    "50-2": Cell(50, 2, False, False, 0.78),
    "50-1": Cell(50, 1, False, False, 0.86),
    "50-0": Cell(50, 0, False, False, 0.98),
    "25-4": Cell(25, 4, False, False, 0.45),
    "25-4-labels": Cell(25, 4, True, False, 0.62),
    "10-4-labels": Cell(10, 4, True, False, 0.35),
    "50-4-known": Cell(50, 4, False, True, 0.85),
}


def images() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Private images with their classes; public ones that are used; like ones that are not."""
    folder = Path(os.environ.get("UNVEIL_DATA", ROOT.parent / "shared" / "data"))
    try:
        private = np.load(folder / "cifar10_test2k_small.npz", allow_pickle=False)
        public = np.load(folder / "caltech101_32.npz", allow_pickle=False)["x"]
    except OSError:
        sys.exit(
            f"no images in {folder}: set UNVEIL_DATA to the folder of cifar10_test2k_small.npz and caltech101_32.npz"
        )
    order = np.random.default_rng(999).permutation(len(public))
    return private["x"], private["y"].astype(np.int64), public[order[:5500]], public[order[5500:]]


def vectors(pixels: np.ndarray) -> np.ndarray:
    return pixels.reshape(len(pixels), -1).astype(np.float32) / np.float32(127.5) - np.float32(1)


def instance(
    cell: Cell, seed: int, n: int = N, weighting: Any = "released"
) -> tuple[unveil.Simulation, np.ndarray]:
    """The simulation, and the like images the attacker has."""
    private, classes, public, like = images()
    chosen = np.random.default_rng(seed).choice(len(private), n, replace=False)
    used = np.concatenate([public, like] if cell.known else [public, public[:, :, ::-1]])
    scheme = unveil.Scheme(2, cell.k_public, weighting=weighting, pairing="epochs", signs="random")
    sim = unveil.simulate(
        scheme,
        private=vectors(private[chosen]),
        public=vectors(used) if cell.k_public else None,
        m=n * cell.encodings,
        rng=seed,
        shape=SHAPE,
        labels=classes[chosen] if cell.labels else None,
    )
    return sim, vectors(like)


def measure(cell: Cell, seed: int, n: int = N) -> dict[str, Any]:
    sim, like = instance(cell, seed, n)
    options = {"public": sim.public} if cell.known else {"like": like}
    start, cpu = time.perf_counter(), time.process_time()
    recovery = unveil.recover(sim.encodings, attack="natural", n_private=n, rng=seed, **options)
    scores = image_scores(recovery.vectors, sim.private, SHAPE)
    return {
        "ssim": scores.ssim.round(4).tolist(),
        "psnr": round(float(scores.psnr.mean()), 2),
        "matches": scores.matches.tolist(),
        "evidence": {
            name: np.round(np.nan_to_num(recovery.evidence[name], posinf=99), 4).tolist()
            for name in ("misfit", "agreement", "encodings")
        },
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "stages": {stage: round(value, 1) for stage, value in recovery.seconds.items()},
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def stored() -> dict[str, Any]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def with_law(weighting: Any, k_public: int) -> dict[str, Any]:
    """Mean SSIM with the law given, and with it unknown; and which one was found."""
    cell, n, seed = Cell(50, k_public, False, False, 0.0), 40, FIRST
    sim, like = instance(cell, seed, n, weighting)
    out: dict[str, Any] = {}
    for told in (weighting, "unknown"):
        encodings = replace(sim.encodings, scheme=replace(sim.encodings.scheme, weighting=told))
        recovery = unveil.recover(encodings, attack="natural", n_private=n, rng=seed, like=like)
        out[told] = round(float(image_scores(recovery.vectors, sim.private, SHAPE).ssim.mean()), 3)
        out["found"] = recovery.evidence["weighting"]
    return out


def with_shifts(reach: int) -> float:
    """Mean SSIM of 40 images that encodings shift by up to `reach` pixels each way before they are
    mixed, to the copy each is most like; 50 encodings of each, four public images, the attack not
    told of shifts."""
    n, seed = 40, FIRST
    private, _, public, like = images()
    chosen = private[np.random.default_rng(seed).choice(len(private), n, replace=False)]
    steps = [
        (down, across) for down in range(-reach, reach + 1) for across in range(-reach, reach + 1)
    ]
    # Every shifted copy is a private image of its own: to draw one is to draw an image and a shift.
    copies = [vectors(np.roll(chosen, step, axis=(1, 2))) for step in steps]
    scheme = unveil.Scheme(2, 4, weighting="released", signs="random")
    used = vectors(np.concatenate([public, public[:, :, ::-1]]))
    sim = unveil.simulate(
        scheme, private=np.concatenate(copies), public=used, m=50 * n, rng=seed, shape=SHAPE
    )
    recovery = unveil.recover(
        sim.encodings, attack="natural", n_private=n, rng=seed, like=vectors(like)
    )
    return round(
        float(
            np.max(
                [image_scores(recovery.vectors, copy, SHAPE).ssim for copy in copies], axis=0
            ).mean()
        ),
        3,
    )


def fill_shifts() -> None:
    for reach in (0, 1, 2):
        if str(reach) not in stored().get("shifts", {}):
            everything = stored() | {
                "shifts": stored().get("shifts", {}) | {str(reach): with_shifts(reach)}
            }
            STORE.write_text(json.dumps(everything) + "\n")
            print("shifts", reach, everything["shifts"][str(reach)], flush=True)


def fill_large() -> None:
    """400 private images, 20,000 encodings, four public images in each: about 18 CPU minutes."""
    if "large" not in stored():
        result = measure(CELLS["50-4"], FIRST + 1000, 400)
        STORE.write_text(json.dumps(stored() | {"large": result}) + "\n")
        print(
            "large",
            f"SSIM {np.mean(result['ssim']):.3f}, {result['cpu_seconds']} CPU s, {result['peak_gib']} GiB",
            flush=True,
        )


def fill_laws() -> None:
    for k_public in (4, 0):
        for weighting in ("released", "uniform", "dirichlet", "sorted"):
            name = f"{weighting}-{k_public}"
            if name in stored().get("laws", {}):
                continue
            result = with_law(weighting, k_public)
            everything = stored()
            everything.setdefault("laws", {})[name] = result
            STORE.write_text(json.dumps(everything) + "\n")
            print("laws", name, result, flush=True)


def fill(names: list[str]) -> None:
    for seed in range(FIRST, FIRST + SEEDS):
        for name in names:
            if str(seed) in stored().get(name, {}):
                continue
            result = measure(CELLS[name], seed)
            everything = stored()
            everything.setdefault(name, {})[str(seed)] = result
            STORE.write_text(json.dumps(everything) + "\n")
            print(
                name, seed, f"SSIM {np.mean(result['ssim']):.3f}, {result['seconds']} s", flush=True
            )


def page() -> str:
    """The tables of docs/natural_images.md: every cell, and the laws."""
    lines = [
        "| T, k_public | labels | seeds | mean SSIM (lowest, highest seed) | images below 0.5 | PSNR |",
        "|---" * 6 + "|",
    ]
    for name, cell in CELLS.items():
        runs = list(stored().get(name, {}).values())
        means, every = (
            [np.mean(run["ssim"]) for run in runs],
            np.concatenate([run["ssim"] for run in runs]),
        )
        lines.append(
            f"| {cell.encodings}, {cell.k_public}{', candidates known' * cell.known} | {'yes' if cell.labels else 'no'} "
            f"| {len(runs)} | **{np.mean(means):.3f}** ({min(means):.3f}, {max(means):.3f}) "
            f"| {np.mean(every < 0.5):.1%} | {np.mean([run['psnr'] for run in runs]):.1f} |"
        )
    lines += [
        "",
        "| law, k_public | found | SSIM, law given | SSIM, law unknown |",
        "|---" * 4 + "|",
    ]
    for name, law in stored().get("laws", {}).items():
        weighting, k_public = name.split("-")
        lines.append(
            f"| {weighting}, {k_public} | {law['found']} | {law[weighting]:.3f} | {law['unknown']:.3f} |"
        )
    return "\n".join(lines)


def draw() -> None:
    """docs/figures/natural.svg: the SSIM of every image, the worst first, in each cell."""
    with style():
        figure, axes = panels(1, 2, (8, 3.2), sharey=True)
        for axis, title, names in (
            (
                axes[0],
                "50 encodings of each image",
                [n for n, c in CELLS.items() if c.encodings == 50],
            ),
            (axes[1], "fewer encodings", [n for n, c in CELLS.items() if c.encodings < 50]),
        ):
            for name, colour in zip(names, (*SERIES, "black"), strict=False):
                cell = CELLS[name]
                ssim = np.sort(np.concatenate([run["ssim"] for run in stored()[name].values()]))
                label = f"{cell.k_public} public" + (
                    ", candidates known" if cell.known else ", labels" if cell.labels else ""
                )
                label = label if cell.encodings == 50 else f"{cell.encodings} each, {label}"
                axis.plot(np.linspace(0, 100, len(ssim)), ssim, color=COLOURS[colour], label=label)
            axis.axhline(0.5, color=COLOURS["grey"], linestyle=":", linewidth=1)
            axis.set(
                xlabel="percent of images, the worst first",
                title=title,
                xlim=(0, 100),
                ylim=(-0.1, 1.02),
            )
            axis.legend(loc="lower right")
        axes[0].set_ylabel("SSIM")
        save(figure, STORE)


def rows() -> list[Row]:
    """What is stored, against what must hold."""
    out: list[Row] = []
    for name, cell in CELLS.items():
        runs = list(stored().get(name, {}).values())
        what = (
            f"T={cell.encodings}, k_public={cell.k_public}, labels {'yes' if cell.labels else 'no'}"
        )
        what += ", public candidates known" if cell.known else ""
        if not runs:
            out.append((what, f"mean SSIM ≥ {cell.least}", "not measured", None))
            continue
        means = [float(np.mean(run["ssim"])) for run in runs]
        every = np.concatenate([run["ssim"] for run in runs])
        measured = (
            f"{np.mean(means):.3f} (seeds {min(means):.3f} to {max(means):.3f}); {np.mean(every < 0.5):.0%} of images "
            f"below 0.5; "
            f"PSNR {np.mean([run['psnr'] for run in runs]):.1f}; {np.median([run['seconds'] for run in runs]):.0f} s"
        )
        what += f"; {len(runs)} seeds"
        out.append(
            (what, f"mean SSIM ≥ {cell.least}", measured, bool(np.mean(means) >= cell.least))
        )
    return out


if __name__ == "__main__":
    others = {"laws": fill_laws, "shifts": fill_shifts, "large": fill_large}
    wanted = sys.argv[1:] or [*CELLS, *others]
    fill([name for name in wanted if name not in others])
    for name, measure_it in others.items():
        if name in wanted:
            measure_it()
    draw()
    print(page())
