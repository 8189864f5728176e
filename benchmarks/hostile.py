"""Instances made to fool an attack: wrong k, wrong weighting, noise, decoys, tiny sizes. Not one wrong vector may be verified.

`python -m benchmarks.hostile [count] [attack] [kind]` prints a row per kind of mischief, with the seeds of whatever went wrong:
a wrong vector, an error that is none of ours, or a warning. The tests run a few dozen of them.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import unveil
from benchmarks.table import Row

KINDS = (
    "honest",
    "wrong k",
    "wrong weighting",
    "noise",
    "quantised",
    "pure noise",
    "equal vectors",
    "repeated encodings",
    "mixture of schemes",
    "wrong public",
    "public part denied",
    "smooth vectors",
)


@dataclass(frozen=True, eq=False)
class Trap:
    """Encodings as the attacker is told about them, and the vectors that are really behind them."""

    kind: str
    encodings: unveil.Encodings
    public: NDArray[np.float32] | None
    private: NDArray[np.float32]


def trap(kind: str, seed: int, size: int = 1, signs: str = "absolute") -> Trap:
    """One instance of random size: k 2 to 4, few vectors, 3 to 250 encodings, 1 to 3000 pixels; `size` times as many vectors
    and encodings. signs: "absolute", or "kept" as MixUp does."""
    hidden = np.abs if signs == "absolute" else np.asarray
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    k = int(rng.integers(2, 5))
    n, m = int(rng.integers(k, k + 14 * size)), int(rng.integers(3, 250 * size))
    d = int(rng.choice([1, 2, 5, 20, 50, 100, 300, 1000, 3000]))
    k_public = int(rng.choice([0, 0, 1, 2]))
    n_public = int(rng.integers(k_public, 30)) if k_public else 0
    weighting = str(rng.choice(["equal", "paper", "convex"]))
    scheme = told = unveil.Scheme(k, k_public, weighting, signs)
    private = rng.standard_normal((n, d)).astype(np.float32)
    public = rng.standard_normal((n_public, d)).astype(np.float32) if k_public else None
    pixel_rms: float | None = 1.0
    if kind == "equal vectors":
        private[1] = private[0]
        private[-1] = private[-2]
    if kind == "smooth vectors":
        walk = np.cumsum(rng.standard_normal((n, d)), axis=1)
        private = np.clip(2 * walk / (np.abs(walk).max() + 1e-9), -1, 1).astype(np.float32)
        pixel_rms = None

    def values(scheme: unveil.Scheme) -> NDArray[np.float32]:
        draw = int(rng.integers(1 << 30))
        return unveil.simulate(scheme, private=private, public=public, m=m, rng=draw).encodings.values

    Y = values(scheme)
    if kind == "wrong k":
        told = unveil.Scheme(max(2, k + int(rng.choice([-1, 1, 2]))), k_public, weighting, signs)
    elif kind == "wrong weighting":
        told = unveil.Scheme(k, k_public, str(rng.choice(["equal", "paper", "convex"])), signs)
    elif kind == "noise":
        Y = hidden(Y + rng.normal(0, 10 ** rng.uniform(-7, 0), Y.shape)).astype(np.float32)
    elif kind == "quantised":
        Y = (np.round(Y * 50) / 50).astype(np.float32)
    elif kind == "pure noise":
        Y = hidden(rng.standard_normal(Y.shape)).astype(np.float32)
    elif kind == "repeated encodings":
        Y = Y[rng.integers(0, m, m)]
    elif kind == "mixture of schemes" and n > k:
        Y = np.vstack([Y, values(unveil.Scheme(k + 1, k_public, weighting, signs))])
    elif kind == "wrong public" and public is not None:
        public = rng.standard_normal(public.shape).astype(np.float32)
    elif kind == "public part denied":
        told, public = unveil.Scheme(k, 0, weighting, signs), None
    return Trap(kind, unveil.Encodings(Y, told, pixel_rms), public, private)


def spring(trap: Trap, attack: str) -> tuple[str, int]:
    """What the attack answered, and how many vectors it verified wrongly."""
    try:
        recovery = unveil.recover(trap.encodings, trap.public, attack=attack, rng=0)
    except unveil.InputError:
        return "declined", 0
    wrong = unveil.score(recovery, trap.private).wrong
    return ("nothing" if not len(recovery) else "verified" if recovery.verified.any() else str(recovery.status[0])), wrong


def rows(count: int = 2000, attack: str = "paper", only: str = "") -> list[Row]:
    return [_row(kind, -(-count // len(KINDS)), attack) for kind in KINDS if only in ("", kind)]


def _row(kind: str, seeds: int, attack: str) -> Row:
    start = time.perf_counter()
    answers: Counter[str] = Counter()
    wrong, failures = 0, []
    for seed in range(seeds):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                answer, errors = spring(trap(kind, seed, signs="kept" if attack == "mixup" else "absolute"), attack)
        except Exception as error:  # what a user would see as a traceback
            answer, errors = "crashed", 0
            failures.append(f"seed {seed}: {error!r:.80}")
        if errors:
            failures.append(f"seed {seed}: {errors} wrong")
        answers[answer] += 1
        wrong += errors
    said = ", ".join(f"{number} {answer}" for answer, number in answers.most_common())
    measured = "; ".join([f"{wrong} wrong ({said}; {time.perf_counter() - start:.0f} s)", *failures])
    return kind, "0 wrong, 0 crashed", measured, not failures


if __name__ == "__main__":
    from benchmarks.table import show

    show("Hostile instances", rows(*(kind(arg) for kind, arg in zip((int, str, str), sys.argv[1:], strict=False))))
