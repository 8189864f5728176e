"""How many encodings may be released? The share of private vectors that come back exactly, as m
grows."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
scheme, n = unveil.Scheme(k_private=2), 20
sizes = [30, 40, 50, 60, 80, 100]
curves = []
for seed in range(2):
    sim = unveil.simulate(scheme, n_private=n, m=max(sizes), d=200, rng=seed)
    shares = []
    for m in sizes:
        part = unveil.Encodings(sim.encodings.values[:m], scheme)
        shares.append(unveil.score(unveil.recover(part, rng=0), sim.private).exact / n)
    curves.append(shares)

figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
axis.fill_between(sizes, np.min(curves, axis=0), np.max(curves, axis=0), alpha=0.2)
axis.plot(sizes, np.mean(curves, axis=0), "o-", label="recovered exactly; band: two draws")
twice = n / 2 * (np.log(n) + np.log(np.log(n)))
axis.axvline(twice, color="#D55E00", linestyle="--", label="every vector used twice, on average")
axis.set(xlabel="encodings released, m", ylabel="share of 20 private vectors", ylim=(-0.02, 1.02))
axis.set_title("five encodings per vector give every vector away")
axis.legend(loc="upper left")
figure.savefig(folder / "leak_curve.png", dpi=110)
