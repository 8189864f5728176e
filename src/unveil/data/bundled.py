"""What comes with the package: 240 test images of Fashion-MNIST, 24 of each class, 28×28 grey
bytes.

Xiao, Rasul and Vollgraf, 2017, https://github.com/zalandoresearch/fashion-mnist, MIT licence
(bundled/LICENSE): the first 24 test images of each class in the order of the test set, packed by
`python -m benchmarks.bundle`.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray


def fashion_mnist() -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """(240, 28, 28) images and the name of each one's class."""
    with (
        (files("unveil.data") / "bundled" / "fashion_mnist.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        return archive["images"], tuple(archive["classes"][archive["labels"]].tolist())
