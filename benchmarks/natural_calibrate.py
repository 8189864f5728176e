"""What clues of likeness are worth: the numbers of `images.recognition`, fitted to stored runs.

`python -m benchmarks.natural calibrate`. Every cell counts the same. What is claimed of a cell is
also worked out with numbers fitted to all other pairs of sets, which is what a user's images are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, ndtr

from benchmarks.natural import CELLS, results
from unveil.images.likeness import Clues
from unveil.images.recognition import PROBABLE, features

SEEN = 0.5
"""SSIM from which on an image counts as recognisable."""
RIDGE = 0.02
"""Pull of every worth towards zero: some clues nearly repeat each other."""
NEAREST = 60
"""Images around a probability from which the SSIM there is read off."""
Doubles = NDArray[np.float64]


def main() -> str:
    # 1. Clues and SSIM of every image, by cell.
    data: dict[str, list[tuple[Doubles, Doubles, float]]] = {}
    for name, runs in results().items():
        cell = CELLS[name]
        for run in runs.values():
            if run["negative"] > np.mean(run["ssim"]):  # the sign of all is another question
                continue
            ssim = np.zeros(len(run["clues"]["again"]))
            for place, value in zip(run["matches"], run["ssim"], strict=True):
                if place >= 0:
                    ssim[place] = value
            clues = {key: np.array(values, float) for key, values in run["clues"].items()}
            found = features(Clues(**clues, expected=2.0 * cell.encodings))
            right = 1.0 if run["polarity"] is None else float(ndtr(run["polarity"]))
            data.setdefault(name, []).append((found, ssim, right))
    # 2. Fitted to all, and to all but the cells with the same pair of sets.
    lines = ["| cell | true | claimed | claimed, fitted to other sets |", "|---" * 4 + "|"]
    worth = fit(data)
    for name, runs in data.items():
        sets = (CELLS[name].private, CELLS[name].public)
        others = {
            key: value
            for key, value in data.items()
            if (CELLS[key].private, CELLS[key].public) != sets
        }
        apart = fit(others) if others else worth
        true = np.mean(np.concatenate([ssim for _, ssim, _ in runs]) > SEEN)
        said = [
            np.mean(np.concatenate([right * expit(f @ w) for f, _, right in runs]))
            for w in (worth, apart)
        ]
        lines.append(f"| {CELLS[name].what} | {true:.0%} | {said[0]:.0%} | {said[1]:.0%} |")
    # 3. The SSIM to expect, and between what, at some probabilities.
    every = [(expit(f @ worth), ssim) for runs in data.values() for f, ssim, _ in runs]
    p, ssim = (np.concatenate(part) for part in zip(*every, strict=True))
    at = [np.argsort(np.abs(p - value), kind="stable")[:NEAREST] for value in PROBABLE]
    tables = {
        "MEAN": [float(np.mean(ssim[rows])) for rows in at],
        "LOW": [float(np.quantile(ssim[rows], 0.1)) for rows in at],
        "HIGH": [float(np.quantile(ssim[rows], 0.9)) for rows in at],
    }
    lines += ["", f"WORTH = {tuple(round(float(w), 2) for w in worth)}"]
    for name, values in tables.items():
        rising = np.maximum.accumulate(values)
        lines.append(f"{name} = {tuple(round(float(v), 2) for v in rising)}")
    return "\n".join(lines)


def fit(data: dict[str, list[tuple[Doubles, Doubles, float]]]) -> Doubles:
    """The logistic law likeliest for all images, every cell with the same weight; better clues are
    never worth less."""
    rows = [(f, ssim > SEEN, 1 / len(ssim)) for runs in data.values() for f, ssim, _ in runs]
    X = np.concatenate([f for f, _, _ in rows])
    y = np.concatenate([seen for _, seen, _ in rows]).astype(float)
    w = np.concatenate([np.full(len(f), each) for f, _, each in rows])

    def loss(b: Doubles) -> tuple[float, Doubles]:
        p = expit(X @ b)
        value = -np.sum(w * (y * np.log(p + 1e-12) + (1 - y) * np.log(1 - p + 1e-12)))
        pull = RIDGE * b * np.array([0, 1, 1, 1, 1])
        return float(value + 0.5 * b @ pull), X.T @ (w * (p - y)) + pull

    bounds = [(None, None), (0, None), (0, None), (0, None), (0, None)]
    return np.asarray(minimize(loss, np.zeros(X.shape[1]), jac=True, bounds=bounds).x)
