"""The paper's attack on the instances it must solve: how many seeds give k+2 exact vectors, and how
long it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from benchmarks.table import Row

import unveil


@dataclass(frozen=True)
class Instance:
    k: int
    n: int
    m: int
    d: int
    seeds: int
    needed: int
    k_public: int = 0
    n_public: int = 0
    weighting: str = "equal"

    def __str__(self) -> str:
        public = (
            f", k_public={self.k_public}, n_public={self.n_public}, {self.weighting}"
            if self.k_public
            else ""
        )
        return f"k={self.k}, n={self.n}, m={self.m}, d={self.d}{public}"


INSTANCES = (
    Instance(2, 100, 800, 3072, 20, 18),
    Instance(3, 30, 2500, 8192, 10, 9),
    Instance(4, 20, 5000, 12288, 10, 9),
    Instance(5, 12, 2000, 20000, 10, 9),
    Instance(6, 13, 3000, 20000, 10, 9),
    Instance(2, 60, 600, 12288, 10, 9, k_public=2, n_public=300),
    Instance(2, 60, 600, 12288, 10, 9, k_public=2, n_public=300, weighting="paper"),
)
UNDECIDABLE = Instance(6, 12, 3000, 20000, 10, 0)
"""n = 2k: provably undecidable (docs/paper_map.md); the honest answer is "ambiguous", for every
seed."""


def run(instance: Instance) -> Row:
    full = wrong = ambiguous = 0
    seconds = []
    for seed in range(instance.seeds):
        sim = unveil.simulate(
            unveil.Scheme(instance.k, instance.k_public, instance.weighting),
            instance.n,
            n_public=instance.n_public,
            m=instance.m,
            d=instance.d,
            rng=10_000 + seed,
        )
        start = time.perf_counter()
        recovery = unveil.learn_private_image(sim.encodings, sim.public)
        seconds.append(time.perf_counter() - start)
        scores = unveil.score(recovery, sim.private)
        full += scores.exact == instance.k + 2 and recovery.signed == bool(instance.k_public)
        wrong += scores.wrong
        ambiguous += len(recovery) > 0 and set(recovery.status.tolist()) == {"ambiguous"}
    signs = "with signs" if instance.k_public else "up to one sign per pixel"
    measured = f"{full} of {instance.seeds}, {wrong} wrong, {np.median(seconds):.1f} s each"
    if instance == UNDECIDABLE:
        return (
            str(instance),
            "n = 2k: undecidable, said so",
            f"{measured}, {ambiguous} ambiguous",
            wrong == 0 and full == 0,
        )
    must = (
        f"{instance.k + 2} vectors {signs} in {instance.needed} of {instance.seeds} seeds, 0 wrong"
    )
    return str(instance), must, measured, full >= instance.needed and wrong == 0


def rows() -> list[Row]:
    return [run(instance) for instance in (*INSTANCES, UNDECIDABLE)]
