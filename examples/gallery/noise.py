"""Noise on the encodings: vectors still come back, none of them verified, each with a standard
error that holds."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
levels = [0.005, 0.01, 0.02, 0.05, 0.1]
said, true = [], []
for noise in levels:
    scheme = unveil.Scheme(k_private=2)
    sim = unveil.simulate(scheme, n_private=20, m=200, d=200, noise=noise, rng=0)
    recovery = unveil.recover(sim.encodings, rng=0)
    errors = []
    for vector in recovery.vectors:
        # The nearest private vector, up to one sign per pixel that all vectors share.
        gaps = np.abs(np.abs(vector) - np.abs(sim.private))
        errors.append(np.sqrt((gaps**2).mean(axis=1)).min())
    true.append(np.median(errors))
    said.append(np.median(recovery.evidence["standard_error"]))

figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
axis.loglog(levels, true, "o", markersize=8, label="true error of a pixel, median")
axis.loglog(levels, said, "k--", label="standard error that the recovery states")
axis.loglog(levels, levels, ":", color="#777777", label="the noise itself")
axis.set(xlabel="noise per pixel of an encoding", ylabel="error per pixel of a private vector")
axis.set_xticks(levels, [str(level) for level in levels])
axis.minorticks_off()
axis.set_title("20 encodings of each vector average the noise out")
axis.legend()
figure.savefig(folder / "noise.png", dpi=110)
