"""The attack on natural images: cells, which stages it needs, and how well it judges itself.

    python -m benchmarks.images [cell …] [--seeds N] [--first SEED]   one line for each cell and seed
    python -m benchmarks.images --table [--beside SRC]   cells of several sets, seed 1 and 3, and what
                                               other code does of them: a table of the same page
    python -m benchmarks.images --ablate [stage …]   every stage off alone: the table of
                                               docs/natural_images.md; of some stages: in parts
    python -m benchmarks.images --calibrate    fits the numbers of `images.likeness`, and checks them on
                                               sets that they were not fitted to

Private and public images are of one shape; the attacker knows n, the law, and other images like the
public ones, none of them mixed. SSIM on [0, 1]; an image that came back mirrored counts where images
were mirrored. Sets come from the folder UNVEIL_DATA (../shared/data without it), which is no part of
the package, and from scikit-image; `fresh_32.npz` has the AT&T faces, cuttings of the papyri of
DIBCO 2019 and of Brodatz' textures, 32×32 and grey. Nothing but the public interface is used by
cells, so that they also run against older code.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unveil

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("UNVEIL_DATA", ROOT.parent / "shared" / "data"))
SHAPE = (32, 32, 3)
FIRST = 95_000
FRESH = "fresh_32.npz"
PAGE = ROOT / "docs" / "natural_images.md"
RUNS = ROOT / "docs" / "figures" / "likeness.json"
STAGES = ROOT / "docs" / "figures" / "stages.json"
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Cell:
    """Private and public set, and how encodings are made."""

    private: str
    public: str = "caltech"
    n: int = 30
    per_image: int = 50  # encodings that an image is the first of
    k_public: int = 4
    labels: bool = False
    flips: bool = False
    crops: int = 0  # once per epoch, with flips as well
    known: bool = False  # the candidates for public images
    shuffled: bool = False


CELLS = {
    "photographs": Cell("cifar"),
    "challenge": Cell("cifar", n=100),
    "large": Cell("cifar", n=400),
    "grey": Cell("cifar-grey"),
    "few": Cell("cifar", per_image=25),
    "shuffled": Cell("cifar", shuffled=True),
    "labels": Cell("cifar", labels=True),
    "labels-few": Cell("cifar", labels=True, per_image=10),
    "alone": Cell("cifar", k_public=0),
    "known": Cell("cifar", known=True),
    "flips": Cell("cifar-grey", flips=True),
    "crops": Cell("cifar", n=20, crops=4, flips=True),
    "portraits": Cell("portraits"),
    "portraits-grey": Cell("portraits-grey"),
    "faces": Cell("lfw"),
    "clothes": Cell("fashion"),
    "scans": Cell("pages"),
    "textures": Cell("textures"),
    "among textures": Cell("cifar-grey", "textures"),
    "tissue": Cell("tissue"),
    "retina": Cell("retina"),
    "sky": Cell("sky"),
    "objects": Cell("objects"),
    "AT&T faces": Cell("att"),
    "papyri": Cell("papyri"),
    "Brodatz": Cell("brodatz"),
}


@cache
def stored(file: str) -> dict[str, NDArray[Any]]:
    try:
        return dict(np.load(FOLDER / file, allow_pickle=False))
    except OSError:
        sys.exit(f"no images in {FOLDER}: set UNVEIL_DATA to the folder of {file}")


def grey(images: NDArray[Any]) -> Bytes:
    # The weights of ITU-R BT.601 for red, green and blue.
    return np.rint(images[..., :3] @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)


@cache
def image_set(name: str) -> Bytes:
    """(items, height, width[, 3]); `textures`, `pages` and the like are cut from scikit-image's own
    pictures at random places."""
    if name.endswith("-grey"):
        return grey(image_set(name.removesuffix("-grey")))
    if name == "cifar":
        return stored("cifar10_test2k_small.npz")["x"].astype(np.uint8)
    if name in ("caltech", "portraits"):
        file = stored("caltech101_32.npz")
        return file["x"][(file["y"] == 0) == (name == "portraits")].astype(np.uint8)
    if name == "fashion":
        return stored("fashion_mnist_test10k.npz")["x"].astype(np.uint8)
    if name in ("att", "papyri", "brodatz"):
        return stored(FRESH)[name]
    if name == "digits":  # 8×8 pixels of 17 shades, twice as large
        from sklearn.datasets import load_digits

        return np.rint(load_digits().images * 15.9375).repeat(2, 1).repeat(2, 2).astype(np.uint8)
    from skimage import data

    if name == "lfw":  # the first hundred are faces, the others are not
        return np.rint(np.clip(data.lfw_subset()[:100], 0, 1) * 255).astype(np.uint8)
    sheets, smaller = {
        "textures": ([data.brick(), data.grass(), data.gravel()], 1),
        "pages": ([data.page(), data.text()], 1),
        "tissue": ([data.immunohistochemistry()], 2),
        "retina": ([data.retina()], 4),
        "sky": ([data.hubble_deep_field(), data.moon()[..., None].repeat(3, axis=2)], 2),
        "objects": ([data.coffee(), data.chelsea(), data.rocket(), data.astronaut()], 3),
    }[name]
    rng = np.random.default_rng(5)
    cuttings = []
    for i in range(3000):
        sheet = sheets[i % len(sheets)]
        side = 32 * smaller
        top, left = (int(rng.integers(0, whole - side)) for whole in sheet.shape[:2])
        cut = sheet[top : top + side, left : left + side]
        size = (32, smaller, 32, smaller, *cut.shape[2:])
        cuttings.append(cut.reshape(size).mean(axis=(1, 3)) if smaller > 1 else cut)
    return np.rint(np.stack(cuttings)).astype(np.uint8)


def vectors(images: Bytes) -> NDArray[np.float32]:
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(127.5) - np.float32(1)


def instance(cell: Cell, seed: int) -> tuple[unveil.Simulation, dict[str, Any]]:
    """The simulation, and what the attacker has."""
    rng = np.random.default_rng(seed)
    every, public = image_set(cell.private), image_set(cell.public)
    order = rng.permutation(len(every))[: cell.n]
    private = every[order]
    if public.ndim > private.ndim:
        public = grey(public)
    if public.ndim < private.ndim:
        public = public[..., None].repeat(3, axis=3)
    top, left = ((a - b) // 2 for a, b in zip(public.shape[1:3], private.shape[1:3], strict=True))
    public = public[:, top : top + private.shape[1], left : left + private.shape[2]]
    public = vectors(public[rng.permutation(len(public))])
    split = 2 * len(public) // 3
    classes = stored("cifar10_test2k_small.npz")["y"][order] if cell.labels else None
    scheme = unveil.Scheme(2, cell.k_public, "released", pairing="epochs", signs="random")
    sim = unveil.simulate(
        scheme,
        private=vectors(private),
        public=public[:split] if cell.k_public else None,
        m=cell.n * cell.per_image,
        rng=seed,
        image_shape=private.shape[1:],
        labels=None if classes is None else classes.astype(np.int64),
        flips="epoch" if cell.flips and cell.crops else cell.flips,
        crops=cell.crops,
        crops_per="epoch" if cell.crops else "use",
    )
    if cell.shuffled:
        rows = rng.permutation(sim.encodings.m)
        sim = replace(sim, encodings=replace(sim.encodings, values=sim.encodings.values[rows]))
    told = {"public": sim.public} if cell.known else {"like": public[split:]}
    options = {"n_private": cell.n, "flips": cell.flips, "crops": cell.crops, "rng": seed}
    return sim, told | options


def measure(cell: Cell, seed: int, **more: Any) -> dict[str, Any]:
    """One attack: SSIM of every true image, that of every image found or of its negative, clues."""
    sim, options = instance(cell, seed)
    shape = sim.encodings.image_shape
    assert shape is not None
    start = time.process_time()
    # Older code has the attack by name only.
    attack = getattr(unveil, "recover_images", None) or partial(unveil.recover, attack="natural")
    found = attack(sim.encodings, **options, **more)
    cpu = time.process_time() - start
    truth = [sim.private]
    if cell.flips:
        turned = sim.private.reshape(cell.n, *shape)[:, :, ::-1]
        truth.append(np.ascontiguousarray(turned).reshape(cell.n, -1))
    scores = [unveil.image_scores(found.vectors, one, shape) for one in truth]
    best = scores[0] if len(scores) == 1 else scores[0].better(scores[1])
    each = np.zeros(len(found.vectors))
    for sign in (1, -1):
        for one in truth:
            mine = unveil.image_scores(sign * found.vectors, one, shape)
            there = mine.matches >= 0
            each[mine.matches[there]] = np.maximum(each[mine.matches[there]], mine.ssim[there])
    clues = {
        name: np.nan_to_num(found.evidence[name], posinf=99).round(4).tolist()
        for name in ("misfit", "agreement", "encodings", "again", "sign")
        if name in found.evidence
    }
    return {
        "ssim": best.ssim.round(4).tolist(),
        "each": each.round(3).tolist(),
        "claimed": float(np.mean(found.evidence["recognisable"])),
        "clues": clues,
        "cpu_seconds": round(cpu, 1),
        "gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def line(run: dict[str, Any]) -> str:
    ssim = np.array(run["ssim"])
    return (
        f"{ssim.mean():.3f} ({ssim.min():.2f}, {np.mean(ssim < 0.5):.0%} below .5) "
        f"{run['cpu_seconds']:.0f} CPU s {run['gib']:.2f} GiB, "
        f"{np.mean(np.array(run['each']) > 0.5):.0%} recognisable, {run['claimed']:.0%} claimed"
    )


OFF: dict[str, dict[str, Any]] = {
    "all stages": {},
    "cross terms as a start": {"cross_terms": False},
    "what images have in common as a start": {"commons": 0},
    "inverted regions turned back": {"regions": False},
    "scale of images": {"scale": False},
    "public part that rows share": {"public_from": 99, "ends": 0},
    "annealings at the end, one": {"ends": 1},
}
"""Stages, and the schedule without them."""


def ablate(
    first: int,
    seeds: int,
    only: list[str],
    cells: tuple[str, ...] = ("grey", "faces", "clothes", "scans"),
) -> str:
    """Every stage off alone: differences of the mean SSIM, over seeds. Runs are stored, so that
    they may be made in parts: `only` names stages."""
    from unveil.images.rounds import Schedule

    lines = [
        f"| switched off | {' | '.join(cells)} | mean | images lost |",
        "|---" * (len(cells) + 3) + "|",
    ]
    base: list[float] = []
    for name in only or OFF:
        means, lost = [], 0
        for cell in cells:
            runs = []
            for seed in range(first, first + seeds):
                key = f"{name}/{cell}/{seed}"
                stored_runs = json.loads(STAGES.read_text()) if STAGES.exists() else {}
                if key not in stored_runs:
                    small = replace(CELLS[cell], n=16, per_image=40)
                    run = measure(small, seed, schedule=Schedule(**OFF[name]))
                    stored_runs = json.loads(STAGES.read_text()) if STAGES.exists() else {}
                    stored_runs[key] = run["ssim"]
                    STAGES.write_text(json.dumps(stored_runs) + "\n")
                runs.append(stored_runs[key])
            means.append(float(np.mean(runs)))
            lost += int(np.sum(np.array(runs) < 0.5))
        base = base or means
        shown = means if means is base else [a - b for a, b in zip(means, base, strict=True)]
        form = "{:.3f}" if means is base else "{:+.3f}"
        cellsof = " | ".join(form.format(value) for value in (*shown, np.mean(shown)))
        lines.append(f"| {name} | {cellsof} | {lost} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def table(first: int, seeds: int, beside: str | None) -> str:
    """Small cells of several image sets; beside: a folder with another version of the package."""
    small = {
        name: replace(CELLS[name], n=16 if name == "flips" else 20, per_image=40)
        for name in (
            "AT&T faces", "papyri", "Brodatz", "faces", "scans", "textures", "grey", "flips",
            "portraits-grey", "clothes",
        )
    }  # fmt: skip
    head = "SSIM (worst, below .5) | CPU s | recognisable, claimed"
    lines = [f"| cell | this code: {head} | the code beside: {head} |", "|---" * 7 + "|"]
    for name, cell in small.items():
        if cell.private in ("att", "papyri", "brodatz") and not (FOLDER / FRESH).exists():
            print(f"{name}: left out, there is no {FOLDER / FRESH}")
            continue
        shown = []
        for code in (None, beside):
            if code is None or beside is not None:
                runs = [_elsewhere(cell, seed, code) for seed in range(first, first + 2 * seeds, 2)]
                ssim = np.concatenate([run["ssim"] for run in runs])
                seconds = np.mean([run["cpu_seconds"] for run in runs])
                seen = np.mean(np.concatenate([run["each"] for run in runs]) > 0.5)
                claimed = np.mean([run["claimed"] for run in runs])
                shown.append(
                    f"{ssim.mean():.3f} ({ssim.min():.2f}, {np.mean(ssim < 0.5):.0%}) | "
                    f"{seconds:.1f} | {seen:.0%}, {claimed:.0%}"
                )
        without = " – |" * 3 if beside is None else ""
        lines.append(f"| {name} | {' | '.join(shown)} |{without}")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def _elsewhere(cell: Cell, seed: int, source: str | None) -> dict[str, Any]:
    """`measure` in a process of its own, by the package in a folder."""
    code = (
        "import json, sys; from benchmarks.images import Cell, measure; "
        "print(json.dumps(measure(Cell(**json.loads(sys.argv[1])), int(sys.argv[2]))))"
    )
    path = source or str(ROOT / "src")
    ran = subprocess.run(
        [sys.executable, "-c", code, json.dumps(vars(cell)), str(seed)],
        env={**os.environ, "PYTHONPATH": path}, cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return dict(json.loads(ran.stdout.splitlines()[-1]))


FITTED = (
    ("cifar-grey", "caltech"), ("caltech-grey", "cifar-grey"), ("cifar-grey", "textures"),
    ("digits", "caltech"), ("digits", "cifar-grey"), ("cifar", "caltech"), ("lfw", "caltech"),
    ("portraits-grey", "caltech"), ("fashion", "caltech"), ("fashion", "cifar-grey"),
    ("pages", "caltech"), ("textures", "caltech"), ("tissue-grey", "caltech"),
    ("retina-grey", "cifar-grey"),
)  # fmt: skip
UNSEEN = (("objects-grey", "cifar-grey"), ("sky-grey", "caltech"))
"""Pairs of private and public sets that likeness is fitted to, and those that only check it."""
PER_IMAGE = (40, 20, 10)
"""Encodings per image: enough, few, too few."""


def calibrate(first: int, seeds: int) -> str:
    """Numbers for `images.likeness`, and what they claim. Of a set that they are fitted to, it is
    shown what a fit to all other private sets claims."""
    from scipy.optimize import minimize
    from scipy.special import expit

    from unveil.images.likeness import PROBABLE, Clues, features

    # 1. Runs, as far as they are not stored.
    runs = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    for seed in range(first, first + seeds):
        for private, public in FITTED + UNSEEN:
            colour = image_set(private).ndim == 4
            for per_image in PER_IMAGE[:1] if colour else PER_IMAGE:
                key = f"{private}/{public}/{per_image}/{seed}"
                if key not in runs:
                    runs[key] = measure(Cell(private, public, 20, per_image), seed)
                    RUNS.write_text(json.dumps(runs) + "\n")
                    print(key, line(runs[key]), flush=True)
    # 2. Clues, the SSIM of each image, and the weight by which every pair counts the same.
    data: dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]] = {}
    even = _evenness()
    for pair in FITTED + UNSEEN:
        X, ssim = [], []
        for key, run in runs.items():
            private, public, per_image, _ = key.split("/")
            if (private, public) == pair:
                clues = {name: np.array(values) for name, values in run["clues"].items()}
                channels = 3 if image_set(private).ndim == 4 else 1
                known = Clues(**clues, expected=2.0 * int(per_image) * even, channels=channels)
                X.append(features(known))
                ssim.append(np.array(run["each"]))
        if X:
            data[pair] = np.concatenate(X), np.concatenate(ssim)

    def fit(pairs: list[tuple[str, str]]) -> NDArray[Any]:
        X, ssim = (np.concatenate([data[pair][i] for pair in pairs]) for i in (0, 1))
        weight = np.concatenate([np.full(len(data[p][1]), 60 / len(data[p][1])) for p in pairs])
        toward = np.where(ssim > 0.5, 1, -1)

        def loss(b: NDArray[Any]) -> float:
            return float(weight @ np.logaddexp(0, -toward * (X @ b)) + b[1:] @ b[1:])

        bounds = [(None, None)] + [(0, None)] * (X.shape[1] - 1)
        return np.asarray(minimize(loss, np.zeros(X.shape[1]), bounds=bounds).x)

    # 3. Each set by the fit to the others; the numbers, from all.
    claims, lines = (
        {},
        ["| private/public images | images | recognisable | claimed |", "|---" * 4 + "|"],
    )
    worth = fit([pair for pair in data if pair in FITTED])
    for pair, (X, ssim) in data.items():
        name = pair[0].removesuffix("-grey")
        others = [p for p in data if p in FITTED and p[0].removesuffix("-grey") != name]
        claims[pair] = expit(X @ (worth if pair in UNSEEN else fit(others)))
        kind = " (not fitted)" if pair in UNSEEN else ""
        lines.append(
            f"| {'/'.join(pair)}{kind} | {len(ssim)} | {np.mean(ssim > 0.5):.0%} | "
            f"{claims[pair].mean():.0%} |"
        )
    print("WORTH =", tuple(worth.round(2).tolist()))
    p = np.concatenate([claims[pair] for pair in data])
    ssim = np.concatenate([data[pair][1] for pair in data])
    near = [np.argsort(np.abs(p - value), kind="stable")[:160] for value in PROBABLE]
    readers = {
        "MEAN": np.mean,
        "LOW": lambda v: np.quantile(v, 0.1),
        "HIGH": lambda v: np.quantile(v, 0.9),
    }
    for name, read in readers.items():
        values = np.maximum.accumulate([read(ssim[rows]) for rows in near])
        print(name, "=", tuple(values.round(2).tolist()))
    return "\n".join(lines)


def _evenness() -> float:
    from unveil.images.weigh import WeightLaw

    law = WeightLaw.of(unveil.Scheme(2, 4, "released"), np.random.default_rng(0))
    return law.mean**2 / float(np.mean(law.sample**2))


def rows() -> list[tuple[str, str, str, bool | None]]:
    """Three cells for `python -m benchmarks.run images`."""
    aims = {"photographs": 0.97, "faces": 0.94, "flips": 0.92}
    out: list[tuple[str, str, str, bool | None]] = []
    for name, least in aims.items():
        run = measure(CELLS[name], FIRST)
        out.append((name, f"mean SSIM ≥ {least}", line(run), bool(np.mean(run["ssim"]) >= least)))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cells", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--n", type=int)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--beside", metavar="SRC", help="folder of another version")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--calibrate", action="store_true")
    words = parser.parse_args()
    from benchmarks.table import write_between

    if words.table:
        write_between(
            PAGE, "<!-- rows -->", "<!-- end -->", table(words.first, words.seeds, words.beside)
        )
    elif words.ablate:
        text = ablate(words.first, words.seeds, words.cells)
        if not words.cells:
            write_between(PAGE, "<!-- stages -->", "<!-- end of stages -->", text)
    elif words.calibrate:
        write_between(
            PAGE, "<!-- pairs -->", "<!-- end of pairs -->", calibrate(words.first, words.seeds)
        )
    else:
        for name in words.cells or CELLS:
            cell = replace(CELLS[name], n=words.n) if words.n else CELLS[name]
            for seed in range(words.first, words.first + words.seeds):
                print(f"{name} {seed} n={cell.n}: {line(measure(cell, seed))}", flush=True)


if __name__ == "__main__":
    main()
