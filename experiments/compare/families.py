"""Instance families on which attacks are compared: one sentence, one scheme, one size each.

`FAMILIES` is all there is to know. What counts as recovered is decided by the family:

  exact    private vectors that are verified and right at every pixel (`unveil.score`)
  close    private vectors that correlate by more than 0.9 with what came back (`auditing.outcome`):
           where nothing can be exact
  ssim     mean likeness of images (`scoring.images`)
  public   encodings whose public vectors were all found, and no other; nothing is private there
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from unveil.data.bundled import fashion_mnist
from unveil.encode import selection_matrix, simulate
from unveil.encodings import Encodings, Selection, Simulation
from unveil.records import Overlaps
from unveil.scheme import Scheme
from unveil.seeds import child, root

Measure = Literal["exact", "close", "ssim", "public"]
MIDDLE = 127.5
"""Half of the largest byte: pixels are scaled to [−1, 1]."""
SHAPE = (14, 14)
"""Bundled images, every second pixel: attacks on images take seconds then, not minutes."""


@dataclass(frozen=True)
class Family:
    """copies: so many of the encodings, as a share, are there twice. told: the attack is handed the
    overlaps of private subsets, and this share of all pairs is off by one; None: it is not. images:
    bundled ones instead of Gaussian vectors."""

    sentence: str
    scheme: Scheme
    n: int
    m: int
    d: int
    n_public: int = 0
    noise: float = 0.0
    copies: float = 0.0
    told: float | None = None
    images: bool = False
    measure: Measure = "exact"


RELEASED = Scheme(2, 0, "released", "random", "epochs")
"""The scheme of InstaHide's released code: weights of their own, random signs, epochs of pairs."""
# Sizes for which every attack that applies ends within a minute, on the easy side of some limit
# (many encodings, many pixels) or on the hard side (few of either).
FAMILIES: Mapping[str, Family] = {
    "k2": Family(
        "Many encodings, few pixels, k_private = 2.",
        Scheme(2), 24, 240, 400,
    ),
    "k3": Family(
        "Many encodings, few pixels, k_private = 3.",
        Scheme(3), 24, 360, 600,
    ),
    "k4": Family(
        "Many encodings, few pixels, k_private = 4.",
        Scheme(4), 24, 480, 900,
    ),
    "paper-k2": Family(
        "The paper's regime: so many encodings that a floral exists, many pixels.",
        Scheme(2), 24, 110, 2048,
    ),
    "paper-k3": Family(
        "The paper's regime for k_private = 3.",
        Scheme(3), 12, 250, 4096,
    ),
    "few-encodings": Family(
        "Four encodings for every private vector.",
        Scheme(2), 30, 120, 1024,
    ),
    "few-pixels": Family(
        "Fewer pixels than single overlaps can be read from.",
        Scheme(2), 24, 360, 64,
    ),
    "public": Family(
        "Two public vectors in every encoding, of 200 known ones.",
        Scheme(2, 2), 24, 240, 600, n_public=200,
    ),
    "noise": Family(
        "Noise of a twentieth of a pixel's size.",
        Scheme(2), 24, 300, 512, noise=0.05, measure="close",
    ),
    "copies": Family(
        "A third of the encodings are there twice.",
        Scheme(2), 24, 180, 800, copies=1 / 3,
    ),
    "unequal": Family(
        "Weights that are new and unknown in every encoding.",
        Scheme(2, 0, "half-normal"), 20, 300, 1000,
    ),
    "told-k2": Family(
        "True overlaps are handed in; too few pixels to read them.",
        Scheme(2), 24, 160, 100, told=0.0,
    ),
    "told-k3": Family(
        "True overlaps for k_private = 3.",
        Scheme(3), 24, 240, 150, told=0.0,
    ),
    "told-wrong": Family(
        "Overlaps are handed in, and one in a hundred is wrong.",
        Scheme(2), 24, 160, 100, told=0.01,
    ),
    "mixup": Family(
        "MixUp: signs are not hidden.",
        Scheme(2, signs="kept"), 24, 160, 200,
    ),
    "all-public": Family(
        "Nothing private: which of 100 public vectors does an encoding mix?",
        Scheme(0, 4), 0, 60, 600, 100, measure="public",
    ),
    "images": Family(
        "Images with the weights InstaHide released, no public part.",
        RELEASED, 12, 300, 196, images=True, measure="ssim",
    ),
    "images-public": Family(
        "The same with two public images of known candidates.",
        replace(RELEASED, k_public=2), 12, 360, 196, 228, images=True, measure="ssim",
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Instance:
    """An instance with its truth, and what else an attack that can use it is given."""

    simulation: Simulation
    options: Mapping[str, Any]


def instance(family: Family, seed: int) -> Instance:
    """The instance of a family and a seed; the same bytes in every process."""
    # Every part draws from a seed of its own: adding one does not change the others.
    draw = root(seed)
    size: dict[str, Any] = {"m": family.m, "noise": family.noise, "rng": child(draw, "instance")}
    if family.images:
        pictures, _ = fashion_mnist()
        x = pictures[:, ::2, ::2].reshape(len(pictures), -1).astype(np.float32)
        x = x / np.float32(MIDDLE) - np.float32(1)
        order = child(draw, "images").permutation(len(x))
        own, others = x[order[: family.n]], x[order[family.n :]]
        public = others[: family.n_public] if family.n_public else None
        simulation = simulate(family.scheme, private=own, public=public, image_shape=SHAPE, **size)
        return Instance(
            simulation, {"n_private": family.n} | ({"like": others} if public is None else {})
        )
    simulation = simulate(family.scheme, family.n, n_public=family.n_public, d=family.d, **size)
    if family.copies:
        simulation = _with_copies(
            simulation, round(family.copies * family.m), child(draw, "copies")
        )
    if family.told is None:
        return Instance(simulation, {})
    return Instance(
        simulation,
        {"overlaps": _overlaps(simulation, family.n, family.told, child(draw, "overlaps"))},
    )


def _with_copies(simulation: Simulation, count: int, rng: np.random.Generator) -> Simulation:
    """With `count` of the encodings there twice, all in random order."""
    m = simulation.encodings.m
    rows = rng.permutation(np.append(np.arange(m), rng.choice(m, count, replace=False)))
    chosen = simulation.selection
    encodings = Encodings(
        simulation.encodings.values[rows],
        simulation.encodings.scheme,
        simulation.encodings.pixel_rms,
    )
    return replace(
        simulation,
        encodings=encodings,
        selection=Selection(chosen.private[rows], chosen.public[rows]),
    )


def _overlaps(simulation: Simulation, n: int, wrong: float, rng: np.random.Generator) -> Overlaps:
    """True ones, of which the share `wrong` of all pairs is off by one, up or down as it can be."""
    chosen, k = simulation.selection.private, simulation.encodings.scheme.k_private
    W = selection_matrix(chosen, n).astype(np.int64)
    M = (W @ W.T).toarray()
    rows, columns = np.triu_indices(len(M), 1)
    off = rng.random(len(rows)) < wrong
    rows, columns = rows[off], columns[off]
    step = np.where(
        M[rows, columns] == 0,
        1,
        np.where(M[rows, columns] == k, -1, rng.choice([-1, 1], len(rows))),
    )
    M[rows, columns] += step
    M[columns, rows] = M[rows, columns]
    return Overlaps.from_array(M, k)
