"""Is "certain" right where public and private vectors are not Gaussian? The calibration table of
docs/learn_public.md.

    python -m benchmarks.public_laws [--quick] [first seed]

Smooth, heavy-tailed, discrete, non-negative and natural vectors, private ones of another kind than
the public ones, and Gaussian ones. Seeds 53000, 53001, … are fresh: settings were chosen on others.
Images come from the folder UNVEIL_DATA (../shared/data without it), tables from scikit-learn; what
is missing is left out, and said.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import unveil
from benchmarks.table import Row, show

FIRST, SEEDS = 53_000, 4
FOLDER = Path(
    os.environ.get("UNVEIL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
Draw = Callable[[np.random.Generator, int, int], NDArray[np.floating]]
"""rng, n, d → vectors (n, d)."""

KINDS: dict[str, Draw] = {
    "Gaussian": lambda r, n, d: r.standard_normal((n, d)),
    "random walks": lambda r, n, d: np.cumsum(r.standard_normal((n, d)), axis=1),
    "moving averages": lambda r, n, d: _moving(r.standard_normal((n, d + 9)), 10),
    "Student t, 2.5 degrees": lambda r, n, d: r.standard_t(2.5, (n, d)),
    "cubes of Gaussians": lambda r, n, d: r.standard_normal((n, d)) ** 3,
    "sparse": lambda r, n, d: r.standard_normal((n, d)) * (r.random((n, d)) < 0.05),
    "signs": lambda r, n, d: r.integers(0, 2, (n, d)) * 2.0 - 1,
    "counts": lambda r, n, d: r.poisson(0.3, (n, d)).astype(float),
    "half-normal": lambda r, n, d: np.abs(r.standard_normal((n, d))),
}


def _moving(x: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    return np.lib.stride_tricks.sliding_window_view(x, width, axis=1).mean(axis=2)


def _images(name: str) -> NDArray[np.floating] | None:
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        return None
    x = np.load(path, allow_pickle=False)["x"]
    x = x.reshape(len(x), -1).astype(np.float32)
    return x / 255 if name.startswith("fashion") else x / np.float32(127.5) - 1


def _table(name: str) -> NDArray[np.floating] | None:
    try:
        from sklearn import datasets
    except ImportError:
        return None
    x = getattr(datasets, name)().data
    return np.asarray(x if name == "load_digits" else (x - x.mean(axis=0)) / x.std(axis=0))


STORED: dict[str, Callable[[], NDArray[np.floating] | None]] = {
    "CIFAR-10": lambda: _images("cifar10_test2k_small"),
    "Caltech-101": lambda: _images("caltech101_32"),
    "Fashion-MNIST": lambda: _images("fashion_mnist_test10k"),
    "digits": lambda: _table("load_digits"),
    "breast cancer": lambda: _table("load_breast_cancer"),
}

# public, private, n_public, d (0: as stored), k_public, encodings for each seed
CELLS = (
    ("Gaussian", "Gaussian", 400, 400, 2, 300),
    ("random walks", "random walks", 50, 250, 2, 300),
    ("random walks", "random walks", 400, 120, 3, 200),
    ("moving averages", "moving averages", 200, 300, 2, 200),
    ("Student t, 2.5 degrees", "Student t, 2.5 degrees", 200, 300, 2, 200),
    ("cubes of Gaussians", "cubes of Gaussians", 200, 300, 2, 200),
    ("sparse", "sparse", 200, 300, 2, 200),
    ("signs", "signs", 60, 60, 2, 300),
    ("signs", "signs", 200, 250, 2, 200),
    ("counts", "counts", 200, 200, 2, 200),
    ("half-normal", "half-normal", 200, 100, 2, 200),
    ("random walks", "Gaussian", 60, 250, 2, 200),
    ("random walks", "moving averages", 60, 250, 2, 200),
    ("Gaussian", "random walks", 200, 250, 2, 300),
    ("Gaussian", "Student t, 2.5 degrees", 200, 150, 2, 300),
    ("Gaussian", "signs", 200, 150, 2, 300),
    ("digits", "digits", 200, 0, 2, 300),
    ("breast cancer", "breast cancer", 100, 0, 1, 300),
    ("Fashion-MNIST", "Fashion-MNIST", 200, 0, 2, 100),
    ("Caltech-101", "CIFAR-10", 300, 0, 2, 60),
    ("Caltech-101", "CIFAR-10", 300, 0, 4, 40),
)


def instance(cell: tuple[str, str, int, int, int, int], seed: int) -> unveil.Simulation | None:
    """40 private vectors, both lists of mean square 1; None: the data are not here."""
    public, private, n_public, d, k, m = cell
    rng = np.random.default_rng(seed)
    parts = []
    if public in STORED and public == private:
        stored = STORED[public]()
        if stored is None:
            return None
        both = stored[rng.choice(len(stored), n_public + 40, replace=False)]
        parts = [both[:n_public], both[n_public:]]
    else:
        for kind, n in ((public, n_public), (private, 40)):
            stored = STORED[kind]() if kind in STORED else KINDS[kind](rng, n, d)
            if stored is None:
                return None
            parts.append(stored[rng.choice(len(stored), n, replace=False)])
    P, X = ((x / np.sqrt(np.mean(np.square(x)))).astype(np.float32) for x in parts)
    return unveil.simulate(unveil.Scheme(2, k, "equal"), private=X, public=P, m=m, rng=seed)


def measure(
    cell: tuple[str, str, int, int, int, int], seeds: range
) -> tuple[int, int, int, int, int, float, bool]:
    """Encodings, right, certain, certain and wrong, above 99% and wrong, milliseconds each, whether
    a warning was given."""
    total = right = certain = slips = above = 0
    seconds, warned = 0.0, False
    for seed in seeds:
        sim = instance(cell, seed)
        if sim is None:
            break
        start = time.perf_counter()
        found = unveil.learn_public(sim.encodings, sim.public)
        seconds += time.perf_counter() - start
        exact = (found.indices == sim.selection.public).all(axis=1)
        total, right = total + len(exact), right + int(exact.sum())
        certain, slips = (
            certain + int(found.certain.sum()),
            slips + int((found.certain & ~exact).sum()),
        )
        above += int(((found.confidence > 0.99) & ~exact).sum())
        warned |= bool(found.warning)
    return total, right, certain, slips, above, 1e3 * seconds / max(1, total), warned


def rows(quick: bool = False, first: int = FIRST) -> list[Row]:
    out: list[Row] = []
    sums = np.zeros(2, int)
    for cell in CELLS:
        total, right, certain, slips, above, each, warned = measure(
            cell, range(first, first + (1 if quick else SEEDS))
        )
        what = f"{cell[0]}, private {cell[1]}: n_public={cell[2]}, d={cell[3] or 'all'}, k_public={cell[4]}"
        if not total:
            out.append((what, "–", "data not here", None))
            continue
        sums += (certain, slips)
        said = "warned" if warned else "no warning"
        measured = f"{total}: right {right}, certain {certain}, of those wrong {slips}; above 99% and wrong {above}"
        out.append(
            (
                what,
                "99.9% of certain ones right",
                f"{measured}; {said}; {each:.0f} ms each",
                slips <= certain / 1000,
            )
        )
    out.append(
        (
            "all together",
            "99.9% of certain ones right",
            f"{sums[1]} of {sums[0]} wrong",
            bool(sums[1] <= sums[0] / 1000),
        )
    )
    return out


def main() -> int:
    arguments = [a for a in sys.argv[1:] if a != "--quick"]
    table = rows("--quick" in sys.argv, int(arguments[0]) if arguments else FIRST)
    show("Certain supports where vectors are not Gaussian", table)
    return int(any(row[3] is False for row in table))


if __name__ == "__main__":
    sys.exit(main())
