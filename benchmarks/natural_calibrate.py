"""What clues of likeness are worth: the numbers of `images.recognition`, fitted to measured runs.

    python -m benchmarks.natural_calibrate [pair …]   measures what docs/figures/likeness.json lacks
    python -m benchmarks.natural_calibrate fit        fits, prints the numbers and writes the table
                                                      of docs/natural_images.md
    python -m benchmarks.natural_calibrate check      the same pairs and some more, another seed:
                                                      nothing is fitted to them; a second table

Runs are small: 24 grey images of fourteen pairs of sets, 50 or 20 encodings of each. Those of
`benchmarks.natural` are fitted to as well, for images in colour and others; not crops, which
nothing was learned from. Every pair of sets counts the same. What is claimed of a pair is also
worked out with numbers fitted to all other pairs, which is what a user's images are.

True is an SSIM above 0.5 of an image or of its negative; runs of `benchmarks.natural` have images
as they are only, and where most are negatives they are left out.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

import unveil
from benchmarks.natural import CELLS, CLUES, evenness, results
from benchmarks.natural_data import ROOT, pair, vectors
from benchmarks.table import write_between
from unveil.images.likeness import RECOGNISABLE, Clues, roughness
from unveil.images.prior import image_prior
from unveil.images.recognition import HIGH, LOW, PROBABLE, WHITE, WORTH, features
from unveil.scoring.images import image_scores

STORE = ROOT / "docs" / "figures" / "likeness.json"
PAIRS = (
    ("cifar-grey", "caltech"),
    ("cifar-grey", "texture"),
    ("cifar-grey", "flat"),
    ("caltech-grey", "cifar-grey"),
    ("portraits-grey", "caltech"),
    ("lfw", "caltech"),
    ("lfw", "texture"),
    ("lfw", "fashion"),
    ("fashion", "caltech"),
    ("fashion", "cifar-grey"),
    ("digits", "caltech"),
    ("scans", "caltech"),
    ("drawings", "caltech"),
    ("texture", "caltech"),
)
"""Private and public set. White noise has clues of its own (`images.recognition.CERTAIN`)."""
UNSEEN = (
    ("digits", "fashion"),
    ("scans", "cifar-grey"),
    ("drawings", "cifar-grey"),
    ("texture", "cifar-grey"),
    ("portraits-grey", "texture"),
)
"""Pairs that nothing is ever fitted to."""
PER_IMAGE = (50, 20)
"""Encodings of each image as the first of two: enough, and hardly enough."""
N, SEEDS, CHECK = 24, (61_000, 61_001), (62_000,)
"""Private images, seeds that numbers are fitted to, and those that only check them."""
RIDGE = 0.02
"""Pull of every worth towards zero: some clues nearly repeat each other."""
AS_MANY = 3
"""What a pair of sets counts, against that pull."""
CLOSE = 0.1
"""Share of images by which claims may be off."""
NEAREST = 150
"""Images around a probability from which the SSIM there is read off."""
TAIL = 0.05
"""Share of these images beyond either bound: of images of other pairs it is twice as much, which
the bounds are for."""
TOGETHER = np.eye(6)
TOGETHER[3, 2] = 1
"""The worth of the share of encodings (3) is that of sharpness (2) and something more."""
Doubles = NDArray[np.float64]


def measure(private: str, public: str, per_image: int, seed: int) -> dict[str, Any]:
    """One attack as a stranger makes it: he knows the law, n, and images like the public ones."""
    images, _, others = pair(private, public, N, seed)
    shape = images.shape[1:]
    scheme = unveil.Scheme(2, 4, "released", pairing="epochs", signs="random")
    sim = unveil.simulate(
        scheme, private=vectors(images), public=vectors(others["used"]), m=N * per_image, rng=seed,
        image_shape=shape,
    )  # fmt: skip
    start = time.process_time()
    like = vectors(others["like"])
    found = unveil.recover(sim.encodings, attack="natural", like=like, n_private=N, rng=seed)
    cpu = time.process_time() - start
    out: dict[str, Any] = {"cpu_seconds": round(cpu, 1), "polarity": found.evidence.get("polarity")}
    out["expected"] = 2.0 * per_image
    out["rough"] = round(roughness(image_prior(shape, like)), 3)
    for name, sign in (("ssim", 1), ("turned", -1)):
        scores = image_scores(sign * found.vectors, vectors(images), shape)
        each = np.zeros(len(found.vectors))
        each[scores.matches[scores.matches >= 0]] = scores.ssim[scores.matches >= 0]
        out[name] = each.round(3).tolist()
    for name in CLUES:
        values = np.nan_to_num(np.array(found.evidence.get(name, []), float), posinf=99)
        out[name] = values.round(3).tolist()
    return out


def fill(names: list[str], pairs: tuple[tuple[str, str], ...], seeds: tuple[int, ...]) -> None:
    stored = json.loads(STORE.read_text()) if STORE.exists() else {}
    for seed in seeds:
        for private, public in pairs:
            for per_image in PER_IMAGE:
                key = f"{private}/{public}/{per_image}/{seed}"
                if key in stored or (names and f"{private}/{public}" not in names):
                    continue
                stored[key] = run = measure(private, public, per_image, seed)
                STORE.write_text(json.dumps(stored) + "\n")
                seen = [np.mean(np.array(run[k]) > RECOGNISABLE) for k in ("ssim", "turned")]
                print(
                    f"{key}: {seen[0]:.0%} (turned {seen[1]:.0%}), polarity {run['polarity']}, "
                    f"again {np.median(run['again']):.2f}, {run['cpu_seconds']} s",
                    flush=True,
                )


Run = tuple[Doubles, Doubles, bool]
"""Features of every image, its SSIM, and whether likeness is said to be known."""


def small_runs(seeds: tuple[int, ...]) -> dict[str, list[Run]]:
    """What is stored of these seeds, by pair of sets."""
    out: dict[str, list[Run]] = {}
    for key, run in json.loads(STORE.read_text()).items():
        private, public, _, seed = key.split("/")
        if int(seed) not in seeds:
            continue
        ssim = np.maximum(run["ssim"], run["turned"])
        clues = Clues(*(np.array(run[name]) for name in CLUES), run["expected"] * evenness(4))
        known = run.get("rough", float(public == "noise")) <= WHITE
        out.setdefault(f"{private}, {public}", []).append((features(clues), ssim, known))
    return out


def runs() -> dict[str, list[Run]]:
    """All that numbers are fitted to, by pair of sets."""
    out = small_runs(SEEDS)
    for name, seeds in results().items():
        cell = CELLS[name]
        for run in seeds.values():
            if cell.shift or cell.public == "noise" or run["negative"] > np.mean(run["ssim"]):
                continue
            ssim = np.zeros(len(run["clues"]["again"]))
            for place, value in zip(run["matches"], run["ssim"], strict=True):
                if place >= 0:
                    ssim[place] = value
            channels = 3 if cell.private in ("cifar", "portraits") else 1
            found = Clues(
                *(np.array(run["clues"][clue], float) for clue in CLUES),
                2.0 * cell.encodings * evenness(cell.k_public), channels, cell.k_public > 0,
            )  # fmt: skip
            pair_of = f"{cell.private}, {cell.public if cell.k_public else 'none'}"
            out.setdefault(pair_of, []).append((features(found), ssim, cell.public != "noise"))
    return out


def report() -> tuple[str, str]:
    """What the numbers of `images.recognition` claim, and the numbers."""
    # 1. Fitted to all, and to all but one pair.
    data = runs()
    worth = fit(data)
    lines = ["| private, public images | images | true | claimed | fitted to other pairs |"]
    lines.append("|---" * 5 + "|")
    off = 0
    for name, mine in data.items():
        others = fit({key: value for key, value in data.items() if key != name})
        true = np.mean(np.concatenate([ssim for _, ssim, _ in mine]) > RECOGNISABLE)
        said = [
            np.mean(np.concatenate([known * expit(f @ w) for f, _, known in mine]))
            for w in (worth, others)
        ]
        count = sum(len(ssim) for _, ssim, _ in mine)
        off += abs(said[1] - true) > CLOSE
        lines.append(f"| {name} | {count} | {true:.0%} | {said[0]:.0%} | {said[1]:.0%} |")
    table = "\n".join(lines)
    lines = [f"{len(data) - off} of {len(data)} pairs within {CLOSE:.0%}, fitted to others"]
    # 2. The SSIM to expect, and between what, at some probabilities.
    every = [(expit(f @ worth), ssim) for mine in data.values() for f, ssim, known in mine if known]
    p, ssim = (np.concatenate(part) for part in zip(*every, strict=True))
    at = [np.argsort(np.abs(p - value), kind="stable")[:NEAREST] for value in PROBABLE]
    tables = {
        "MEAN": [float(np.mean(ssim[rows])) for rows in at],
        "LOW": [float(np.quantile(ssim[rows], TAIL)) for rows in at],
        "HIGH": [float(np.quantile(ssim[rows], 1 - TAIL)) for rows in at],
    }
    lines.append(f"WORTH = {tuple(round(float(w), 2) for w in worth)}")
    for name, values in tables.items():
        rising = np.maximum.accumulate(values)
        lines.append(f"{name} = {tuple(round(float(v), 2) for v in rising)}")
    return table, "\n".join(lines)


def check() -> tuple[str, str]:
    """What the numbers in `images.recognition` claim of runs that they were not fitted to."""
    lines = ["| private, public images | images | true | claimed |", "|---" * 4 + "|"]
    off = inside = number = 0
    data = small_runs(CHECK)
    for name, mine in data.items():
        ssim = np.concatenate([values for _, values, _ in mine])
        p = np.concatenate([known * expit(f @ np.array(WORTH)) for f, _, known in mine])
        true, said = np.mean(ssim > RECOGNISABLE), np.mean(p)
        off += abs(said - true) > CLOSE
        low, high = (np.interp(p, PROBABLE, table) for table in (LOW, HIGH))
        known = np.concatenate([np.full(len(values), k) for _, values, k in mine])
        inside += int(np.sum(known & (low <= ssim) & (ssim <= high)))
        number += int(known.sum())
        lines.append(f"| {name} | {len(ssim)} | {true:.0%} | {said:.0%} |")
    return "\n".join(lines), (
        f"{len(data) - off} of {len(data)} pairs within {CLOSE:.0%}; "
        f"{inside / number:.0%} of {number} images in their interval"
    )


def fit(data: dict[str, list[Run]]) -> Doubles:
    """The logistic law likeliest for all images, every pair with the same weight; better clues are
    never worth less. More encodings make halves less sharp at the same agreement, so that their
    share is worth at least as much as sharpness."""
    rows = [
        (f, ssim > RECOGNISABLE, 1 / sum(len(s) for _, s, _ in mine))
        for mine in data.values()
        for f, ssim, known in mine
        if known
    ]
    X = np.concatenate([f for f, _, _ in rows]) @ TOGETHER
    y = np.concatenate([seen for _, seen, _ in rows]).astype(float)
    w = AS_MANY * np.concatenate([np.full(len(f), each) for f, _, each in rows])

    def loss(b: Doubles) -> tuple[float, Doubles]:
        p = expit(X @ b)
        value = -np.sum(w * (y * np.log(p + 1e-12) + (1 - y) * np.log(1 - p + 1e-12)))
        pull = RIDGE * b * np.minimum(np.arange(len(b)), 1)
        return float(value + 0.5 * b @ pull), X.T @ (w * (p - y)) + pull

    bounds = [(None, None)] + [(0, None)] * (X.shape[1] - 1)
    return np.asarray(TOGETHER @ minimize(loss, np.zeros(X.shape[1]), jac=True, bounds=bounds).x)


if __name__ == "__main__":
    page = ROOT / "docs" / "natural_images.md"
    if sys.argv[1:] == ["fit"]:
        table, numbers = report()
        write_between(page, "<!-- pairs -->", "<!-- end of pairs -->", table)
        print(numbers)
    elif sys.argv[1:] == ["check"]:
        fill([], PAIRS + UNSEEN, CHECK)
        table, numbers = check()
        write_between(page, "<!-- fresh -->", "<!-- end of fresh -->", table)
        print(numbers)
    else:
        fill(sys.argv[1:], PAIRS, SEEDS)
