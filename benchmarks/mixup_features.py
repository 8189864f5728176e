"""Standard MixUp on real features: how many records come back, from how many encodings on?

`python -m benchmarks.mixup_features [name …]`: y = Σ λ_j·x_j, signs kept, λ of Dirichlet(α, …, α),
60 records of three tables that come with scikit-learn and of CIFAR-10 as plain vectors of values.
Each cell: records that are *back*, every value within a hundredth of its column's spread; of these
verified; and what an attacker gets who is *told* which records every encoding mixes, and finds
weights and records in turn by least squares. docs/schemes.md shows the table.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

import unveil
from unveil.mixing.model import least_squares, mixed, simplex_weights, weight_matrix

N, SEED = 60, 62000
TIMES = (3.5, 5, 10, 20)
"""Encodings for each record."""
ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("UNVEIL_DATA", ROOT.parent / "shared" / "data"))
CIFAR = DATA / "cifar10_test2k_small.npz"


def features(name: str, n: int) -> np.ndarray:
    """(n, d) records; constant columns left out."""
    if name == "cifar10":
        x = np.load(CIFAR)["x"].reshape(2000, -1).astype(np.float64) / 255
    else:
        from sklearn import datasets

        x = getattr(datasets, f"load_{name}")().data.astype(np.float64)
    x = np.unique(x[np.random.default_rng(SEED).permutation(len(x))[: n + 20]], axis=0)[:n]
    return x[:, x.std(axis=0) > 0]


def told(Y: np.ndarray, members: np.ndarray, n: int, turns: int = 400) -> np.ndarray:
    """Records from known members: weights and records in turn, each step a little further."""
    scale = Y.std(axis=0)
    # Rotated into the directions that hold anything, of which there are n at most.
    left, sizes, axes = np.linalg.svd(Y / scale, full_matrices=False)
    Z = (left * sizes)[:, :n]
    weights = np.full(members.shape, 1 / members.shape[1])
    x = least_squares(weight_matrix(members, weights, n), Z)
    for _ in range(turns):
        assert x is not None
        weights = simplex_weights(Z, x, members)
        left = np.linalg.norm(Z - mixed(x, members, weights), axis=1)
        trust = 1 / np.maximum(left, 0.1 * np.median(left) + 1e-12)
        new = least_squares(weight_matrix(members, weights, n), Z, trust, ridge=1e-10)
        if new is None or left.max() < 1e-7:
            break
        x = new + 0.7 * (new - x)
    return np.asarray(x @ axes[:n] * scale)


def back(found: np.ndarray, truth: np.ndarray) -> int:
    if not len(found):
        return 0
    spread = truth.std(axis=0)
    return sum(bool((np.abs(found - x) <= 0.01 * spread).all(axis=1).any()) for x in truth)


def cell(x: np.ndarray, scheme: unveil.Scheme, m: int) -> str:
    sim = unveil.simulate(scheme, private=x.astype(np.float32), m=m, rng=SEED)
    recovery = unveil.recover(sim.encodings, rng=0)
    truth = sim.private.astype(np.float64)
    wrong = unveil.score(recovery, sim.private, tolerance=1e-2 * truth.std()).wrong
    most = told(sim.encodings.values.astype(np.float64), sim.selection.private, len(x))
    text = f"{back(recovery.vectors, truth)} ({int(recovery.verified.sum())}; {back(most, truth)})"
    return f"{text} {wrong} WRONG" if wrong else text


def main(names: list[str]) -> None:
    print("| data | k | α |", " | ".join(f"m = {times} n" for times in TIMES), "|")
    for name in names or ["breast_cancer", "digits", "wine", "cifar10"]:
        if name == "cifar10" and not CIFAR.exists():
            continue
        x = features(name, N)
        for k in (2, 3):
            for alpha in (1.0, 0.2):
                scheme = unveil.Scheme(k, weighting="dirichlet", alpha=alpha, signs="kept")
                cells = [cell(x, scheme, int(times * N)) for times in TIMES]
                head = f"| {name}, {x.shape[1]} values | {k} | {alpha:g} |"
                print(head, " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
