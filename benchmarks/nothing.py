"""How soon is nothing to find called that? CPU seconds of the default attack where it cannot
succeed, beside those of a success.

`python -m benchmarks.nothing [seed]`: k = 2, n = 100, m = 1,000, d = 1,024, all Gaussian; fresh
seed 78000 unless given. Right: correlation above 0.75 with a true vector, after one sign per pixel
common to all of them.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

import unveil
from benchmarks.full_unequal import aligned
from benchmarks.table import Row, show

SEED = 78_000
K, N, M, D = 2, 100, 1000, 1024
TIMES, SECONDS = 3, 20
"""Nothing must be said within so many times the time of success, or so many seconds."""
NEAR = 0.75
"""Correlation of a vector that was found: noise of 0.8 leaves 0.8 to 0.95, and other vectors have
0.1."""


def timed(
    values: NDArray[np.float32], scheme: unveil.Scheme, private: NDArray[np.float32]
) -> tuple[float, str]:
    """CPU seconds, and what came back."""
    encodings = unveil.Encodings(values, scheme, 1.0)
    start = time.process_time()
    found = unveil.recover(encodings, rng=0)
    seconds = time.process_time() - start
    wrong = unveil.score(found, private).wrong
    verified = int(found.verified.sum())
    right = aligned(found, private, NEAR)
    return seconds, f"{len(found)} vectors, {right} right, {verified} verified, {wrong} wrong"


def rows(seed: int = SEED) -> list[Row]:
    # 1. Compiled code is loaded before anything is timed.
    scheme = unveil.Scheme(K)
    unveil.recover(unveil.simulate(scheme, 20, m=100, d=64, rng=0).encodings, rng=0)
    # 2. A success to compare with.
    sim = unveil.simulate(scheme, N, m=M, d=D, rng=seed)
    Y = sim.encodings.values
    success, told = timed(Y, scheme, sim.private)
    out: list[Row] = [("success", "all verified", f"{success:.1f} CPU s; {told}", None)]
    # 3. Nothing to find, and noise that hides nearly everything.
    rng = np.random.default_rng(seed)
    noise = np.abs(rng.standard_normal(Y.shape)).astype(np.float32)
    noisy = np.abs(Y + rng.normal(0, 0.8, Y.shape)).astype(np.float32)
    for what, values, stated in (
        ("pure noise", noise, scheme),
        ("k = 3 stated", Y, unveil.Scheme(3)),
        ("noise 0.8", noisy, scheme),
    ):
        seconds, told = timed(values, stated, sim.private)
        most = max(TIMES * success, SECONDS)
        found = what == "noise 0.8"  # a success of its own is no answer of nothing
        out.append(
            (
                what,
                "stated" if found else f"within {TIMES} × success, or {SECONDS} s",
                f"{seconds:.1f} CPU s, {seconds / success:.1f} × success; {told}",
                None if found else seconds <= most,
            )
        )
    return out


if __name__ == "__main__":
    show("Nothing to find", rows(*map(int, sys.argv[1:2])))
