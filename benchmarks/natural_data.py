"""Sets of images for `benchmarks.natural`: private and public ones of one shape, and others like
either.

Sets come from the folder UNVEIL_DATA (../shared/data without it), which is no part of the package:
CIFAR-10, Caltech-101 and its portraits, Fashion-MNIST. Faces of LFW (25×25, grey), textures
(brick, grass, gravel), scans (a printed page) and drawings (a horse) are scikit-image's own, digits
scikit-learn's, every pixel threefold. A public set is brought to the shape of the private one: grey,
and the middle of it.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
USED = 5500
"""Public images that are mixed, each with its mirror image; the attacker has the others."""
FACES = 0
"""The class of portraits in Caltech-101."""
MADE = 8000
"""Images cut from textures or drawn as noise."""
Bytes = NDArray[np.uint8]


@cache
def stored(file: str) -> dict[str, NDArray[np.generic]]:
    folder = Path(os.environ.get("UNVEIL_DATA", ROOT.parent / "shared" / "data"))
    try:
        return dict(np.load(folder / file, allow_pickle=False))
    except OSError:
        sys.exit(f"no images in {folder}: set UNVEIL_DATA to the folder of {file}")


def pixels(name: str, shape: tuple[int, ...] = (32, 32)) -> Bytes:
    """All images of a set; `shape` for those that are made here."""
    rng = np.random.default_rng(5)
    if name.endswith("-grey"):
        return grey(pixels(name.removesuffix("-grey")))
    if name == "cifar":
        return stored("cifar10_test2k_small.npz")["x"].astype(np.uint8)
    if name in ("caltech", "portraits"):
        file = stored("caltech101_32.npz")
        return file["x"][(file["y"] == FACES) == (name == "portraits")].astype(np.uint8)
    if name == "fashion":
        return stored("fashion_mnist_test10k.npz")["x"].astype(np.uint8)
    if name == "noise":
        return rng.integers(0, 256, (MADE, *shape), dtype=np.uint8)
    if name == "flat":  # shades from one side to the other, and nothing else
        return _shades(rng, shape[:2])
    if name == "digits":
        from sklearn.datasets import load_digits

        small = np.rint(load_digits().images * (255 / 16)).astype(np.uint8)
        return small.repeat(3, axis=1).repeat(3, axis=2)
    from skimage import data

    if name == "lfw":  # the first hundred are faces, the others are not
        return np.rint(np.clip(data.lfw_subset()[:100], 0, 1) * 255).astype(np.uint8)
    sheets = {
        "texture": [data.brick(), data.grass(), data.gravel()],
        "scans": [data.page(), data.text()],
        "drawings": [np.where(data.horse(), 255, 0).astype(np.uint8)[::5, ::5]],
    }[name]
    return _cuttings(rng, sheets, shape[:2])


def _cuttings(rng: np.random.Generator, sheets: list[Bytes], shape: tuple[int, ...]) -> Bytes:
    """Pieces of each sheet in turn, at random places."""
    height, width = shape
    cut = []
    for i in range(MADE):
        sheet = sheets[i % len(sheets)]
        top, left = (
            rng.integers(0, whole - side) for whole, side in zip(sheet.shape, shape, strict=True)
        )
        cut.append(sheet[top : top + height, left : left + width])
    return np.stack(cut)


def _shades(rng: np.random.Generator, shape: tuple[int, ...]) -> Bytes:
    """Images that are a plane: grey, with a slope down and one across."""
    down, across = (np.linspace(-0.5, 0.5, side) for side in shape)
    grey_of, first, second = rng.uniform(-100, 100, (3, MADE, 1, 1))
    planes = 127.5 + grey_of / 2 + first * down[None, :, None] / 2 + second * across / 2
    return np.rint(planes).astype(np.uint8)


def grey(images: Bytes) -> Bytes:
    # The weights of ITU-R BT.601 for red, green and blue.
    return np.rint(images @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)


def pair(
    private: str, public: str, n: int, seed: int
) -> tuple[Bytes, NDArray[np.int64], dict[str, Bytes]]:
    """n private images, which of their set they are, and others: public ones that are mixed (used),
    others like them (like), others like the private ones (own)."""
    rng = np.random.default_rng(seed)
    every = pixels(private)
    order = rng.permutation(len(every))
    shape = every.shape[1:]
    theirs = pixels(public, shape)
    if theirs.ndim > every.ndim:
        theirs = grey(theirs)
    top, left = ((a - b) // 2 for a, b in zip(theirs.shape[1:3], shape[:2], strict=True))
    theirs = theirs[:, top : top + shape[0], left : left + shape[1]]
    theirs = theirs[rng.permutation(len(theirs))]
    split = min(USED, 2 * len(theirs) // 3)
    used = np.concatenate([theirs[:split], theirs[:split, :, ::-1]])
    others = {"used": used, "like": theirs[split:], "own": every[order[n : n + 600]]}
    return every[order[:n]], order[:n], others


def vectors(images: Bytes) -> NDArray[np.float32]:
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(127.5) - np.float32(1)
