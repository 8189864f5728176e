"""The family of mixing schemes: what comes back from each, beside what must.

`python -m benchmarks.schemes [part …]`, parts: mixup, singularized. All rows when none is named.
docs/schemes.md shows the table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import unveil
from benchmarks.table import Row, show

FIRST = 60000
"""Fresh seeds from here on."""
N, M, D = 100, 1000, 1024
"""Records, encodings and pixels of the MixUp rows."""
NOISE = 0.05
"""Standard deviation per pixel; records have 1."""
TIMES = 1.3
"""Error under noise, in units of least squares with subsets and weights known."""


def mixup() -> list[Row]:
    """Signs kept, own λ per row by Beta(α, α), Dirichlet(1, …, 1) beyond two."""
    out = [_mixup(2, alpha, 0.0) for alpha in (0.2, 1.0, 8.0)]
    out += [_mixup(k, 1.0, 0.0) for k in (3, 4, 6)]
    out += [_mixup(k, 1.0, NOISE) for k in (2, 3, 4)]
    return [*out, *(_mixup(2, 1.0, 0.0, m) for m in (500, 300, 250))]


def _mixup(k: int, alpha: float, noise: float, m: int = M) -> Row:
    truth, W, encodings = mixtures(k, alpha, noise, m, FIRST)
    start = time.perf_counter()
    recovery = unveil.recover(encodings, rng=0)
    seconds = time.perf_counter() - start
    what = f"MixUp k={k}, α={alpha:g}, noise {noise:g}, m={m}"
    if not noise:
        scores = unveil.score(recovery, truth)
        measured = f"{scores.exact} of {N} exact, {scores.wrong} wrong, {seconds:.1f} s"
        asked = m == M
        return (
            what,
            "all 100, 0 wrong" if asked else "0 wrong",
            measured,
            not scores.wrong and (scores.exact == N or not asked),
        )
    ideal = np.linalg.lstsq(W, encodings.values, rcond=None)[0]
    floor = float(np.sqrt(np.mean((ideal - truth) ** 2)))
    error = np.inf
    if len(recovery) == N:
        apart = [np.square(truth - x).mean(axis=1).min() for x in recovery.vectors]
        error = float(np.sqrt(np.mean(apart)))
    measured = f"{error / floor:.3f} ×, {seconds:.1f} s"
    return what, f"{TIMES} × least squares with all known", measured, error <= TIMES * floor


def mixtures(
    k: int, alpha: float, noise: float, m: int, seed: int
) -> tuple[np.ndarray, np.ndarray, unveil.Encodings]:
    """Records, weights (m, n) and encodings, drawn here and not by the library."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((N, D)).astype(np.float32)
    chosen = np.array([rng.choice(N, k, replace=False) for _ in range(m)])
    W = np.zeros((m, N))
    np.put_along_axis(W, chosen, rng.dirichlet(np.full(k, alpha), m), axis=1)
    values = W @ truth + noise * rng.standard_normal((m, D))
    return (
        truth,
        W,
        unveil.Encodings(values, unveil.Scheme(k, weighting="unknown", signs="kept")),
    )


PARTS: dict[str, Callable[[], list[Row]]] = {"mixup": mixup}


def main() -> None:
    for part in sys.argv[1:] or PARTS:
        show(part, PARTS[part]())


if __name__ == "__main__":
    main()
