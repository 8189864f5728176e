"""Pack the subset of Fashion-MNIST that comes with the package.

`python -m benchmarks.bundle TEST_SET.npz` takes the test set as arrays x (10000, 28, 28), y and
class_names, and writes src/unveil/data/bundled/fashion_mnist.npz with the first 24 images of each
class in the order of the test set.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

EACH = 24
TARGET = Path(__file__).parents[1] / "src/unveil/data/bundled/fashion_mnist.npz"


def main(source: str) -> None:
    with np.load(source, allow_pickle=False) as test:
        x, y, names = test["x"], test["y"], test["class_names"]
    chosen = np.sort(np.concatenate([np.flatnonzero(y == c)[:EACH] for c in range(10)]))
    np.savez_compressed(TARGET, images=x[chosen], labels=y[chosen], classes=names)


if __name__ == "__main__":
    main(sys.argv[1])
