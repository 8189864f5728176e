"""Records that need no file: Gaussian ones, and 240 test images of Fashion-MNIST.

Xiao, Rasul and Vollgraf, 2017, https://github.com/zalandoresearch/fashion-mnist, MIT licence
(bundled/LICENSE): the first 24 test images of each class in the order of the test set, packed by
`python -m benchmarks.bundle`.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from unveil.engine.blocks import must_fit


def gaussian_vectors(n: int, d: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """n vectors of d values, each an independent draw from N(0, 1) (`defn:gaussian_images`)."""
    must_fit(4 * n * d, f"{n:,} vectors of {d:,} pixels", cure="lower their number or d")
    return rng.standard_normal((n, d), dtype=np.float32)


def fashion_mnist() -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """(240, 28, 28) grey images, 24 of each class, and the name of each one's class."""
    with (
        (files("unveil.data") / "bundled" / "fashion_mnist.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        return archive["images"], tuple(archive["classes"][archive["labels"]].tolist())
