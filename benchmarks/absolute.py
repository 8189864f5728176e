"""What one encoding of two images shows by itself: mean SSIM and PSNR with both images, against
what needs no work.

`python -m benchmarks.absolute [images.npz]`: Fashion-MNIST as bundled, and the images `x` (n,
height, width[, channels]) of a file, where one is given. Like images are others than the private
ones.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from benchmarks.table import Row
from numpy.typing import NDArray

import unveil
from unveil.data.bundled import fashion_mnist
from unveil.rivals.absolute import absolute
from unveil.scoring.images import psnr, ssim

M, N = 60, 60
Floats = NDArray[np.float32]


def rows(file: str = "") -> list[Row]:
    out = _of("Fashion-MNIST, 180 like images", fashion_mnist()[0], must=True)
    if file:
        with np.load(file, allow_pickle=False) as archive:
            out += _of("file, 1,000 like images", archive["x"][:1060], must=False)
    return out


def _of(what: str, pixels: NDArray[np.uint8], *, must: bool) -> list[Row]:
    shape = pixels.shape[1:]
    images = pixels.reshape(len(pixels), -1).astype(np.float32) / np.float32(127.5) - 1
    order = np.random.default_rng(70000).permutation(len(images))
    private, like = images[order[:N]], images[order[N:]]
    sim = unveil.simulate(unveil.Scheme(2), private=private, m=M, image_shape=shape, rng=70001)
    y = sim.encodings.magnitudes() / np.sqrt(np.float32(2))
    mixture = private[sim.selection.private].mean(axis=1)
    start = time.perf_counter()
    split = absolute(sim.encodings, like=like, rng=0)
    seconds = (time.perf_counter() - start) / M
    alone = unveil.recover(sim.encodings, attack="absolute", rng=0)
    candidates = {
        "|y| itself": _twice(y),
        "1 − 2|y|": _twice(1 - 2 * y),
        "mixture halved, true signs (not known to an attacker)": _twice(mixture),
        "attack without like images": alone.vectors.reshape(M, 2, -1),
        f"attack with like images, {1000 * seconds:.0f} ms per encoding": split.vectors.reshape(
            M, 2, -1
        ),
    }
    scores = {
        name: _score(found, private[sim.selection.private], shape)
        for name, found in candidates.items()
    }
    last = list(scores)[-1]
    best = max(
        value[0] for name, value in scores.items() if name != last and "not known" not in name
    )
    return [
        (f"{what}: {name}", "best" if must and name == last else "", f"SSIM {a:.2f}, PSNR {b:.1f} dB",
         (a > best) if must and name == last else None)
        for name, (a, b) in scores.items()
    ]  # fmt: skip


def _twice(images: Floats) -> Floats:
    return np.repeat(images[:, None], 2, axis=1)


def _score(found: Floats, truth: Floats, shape: tuple[int, ...]) -> tuple[float, float]:
    """Means over encodings and both images, the better way round by SSIM."""
    ways = [[(found[:, i], truth[:, j]) for i, j in ((0, a), (1, 1 - a))] for a in (0, 1)]
    alike = np.array([np.mean([ssim(x, t, shape) for x, t in way], axis=0) for way in ways])
    noise = np.array([np.mean([psnr(x, t, shape) for x, t in way], axis=0) for way in ways])
    pick = alike.argmax(axis=0), np.arange(len(found))
    return float(alike[pick].mean()), float(noise[pick].mean())


if __name__ == "__main__":
    from benchmarks.table import show

    show("The absolute value of one encoding", rows(*sys.argv[1:2]))
