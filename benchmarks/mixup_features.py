"""Standard MixUp on real features: how many records come back, from how many encodings on?

`python -m benchmarks.mixup_features [n]`: y = Σ λ_j·x_j, signs kept, λ of Dirichlet(α, …, α), n
records (60) of three tables that come with scikit-learn and of CIFAR-10 as plain vectors of
values. *back*: every value within a hundredth of its column's spread. *told*: what an attacker gets
who is told which records every encoding mixes, and finds weights and records in turn by least
squares. docs/schemes.md shows the table.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import unveil
from unveil.mixing.model import least_squares, mixed, simplex_weights, weight_matrix

SEED = 62000
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
    Z = Y / scale
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
    return np.asarray(x * scale)


def back(found: np.ndarray, truth: np.ndarray) -> int:
    if not len(found):
        return 0
    spread = truth.std(axis=0)
    return sum(bool((np.abs(found - x) <= 0.01 * spread).all(axis=1).any()) for x in truth)


def main(n: int) -> None:
    for name in ("breast_cancer", "digits", "wine", "cifar10"):
        if name == "cifar10" and not CIFAR.exists():
            continue
        x = features(name, n)
        for k in (2, 3):
            for alpha in (1.0, 0.2):
                cells = []
                for times in (3.5, 5, 10, 20):
                    scheme = unveil.Scheme(k, weighting="dirichlet", alpha=alpha, signs="kept")
                    sim = unveil.simulate(
                        scheme, private=x.astype(np.float32), m=int(times * n), rng=SEED
                    )
                    began = time.process_time()
                    recovery = unveil.recover(sim.encodings, attack="mixing", rng=0)
                    spent = time.process_time() - began
                    truth = sim.private.astype(np.float64)
                    wrong = unveil.score(recovery, sim.private, tolerance=1e-2 * truth.std()).wrong
                    oracle = told(sim.encodings.values.astype(np.float64), sim.selection.private, n)
                    cells.append(
                        f"{back(recovery.vectors, truth)} ({int(recovery.verified.sum())}; "
                        f"{back(oracle, truth)}) {spent:.1f} s" + (f" {wrong} WRONG" * bool(wrong))
                    )
                head = f"| {name}, {x.shape[1]} values | {k} | {alpha:g} |"
                print(head, " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
