"""400 photographs in 20,000 encodings: how long, how much memory, how good.

`python -m benchmarks.natural_large [seed]` prints one line and the seconds of each stage. Memory is
the most that the process ever held, the simulation in it as well. Four minutes on two cores.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace

import numpy as np

import unveil
from benchmarks.natural import CELLS, _flat, instance
from benchmarks.natural_data import pair, vectors
from unveil.scoring.images import image_scores

IMAGES, SEED = 400, 47_000


def main(seed: int = SEED) -> str:
    cell = replace(CELLS["50-4"], n=IMAGES)
    sim, options = instance(cell, seed)
    options = {name: _flat(value) for name, value in options.items()}
    clock, cpu = time.perf_counter(), time.process_time()
    found = unveil.recover(sim.encodings, attack="natural", **options)
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    private = vectors(pair(cell.private, cell.public, cell.n, seed)[0])
    ssim = image_scores(found.vectors, private, sim.encodings.shape).ssim
    stages = ", ".join(f"{stage} {seconds:.0f}" for stage, seconds in found.seconds.items())
    return (
        f"seed {seed}: SSIM {np.mean(ssim):.3f}, {np.mean(ssim > 0.5):.0%} above 0.5, "
        f"{clock:.0f} s by the clock, {cpu:.0f} CPU s, {most:.2f} GiB ({stages})"
    )


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
