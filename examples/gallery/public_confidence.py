"""Which public vectors an encoding mixes, and how sure LearnPublic is: the fewer pixels, the less
it claims, and what it calls certain is right."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
scheme = unveil.Scheme(k_private=2, k_public=2)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True, layout="constrained")
for axis, d in zip(axes, (48, 96, 384), strict=True):
    sim = unveil.simulate(scheme, n_private=40, n_public=100, m=200, d=d, rng=1)
    supports = unveil.learn_public(sim.encodings, sim.public)
    right = (supports.indices == sim.selection.public).all(axis=1)
    bins = np.linspace(0, 1, 11)
    split = [supports.confidence[right], supports.confidence[~right]]
    axis.hist(split, bins, stacked=True, color=["#0072B2", "#D55E00"], label=["right", "wrong"])
    wrong = int((supports.certain & ~right).sum())
    axis.set_title(f"d = {d}: {right.mean():.0%} right")
    text = f"called certain: {int(supports.certain.sum())}, of these wrong: {wrong}"
    axis.set_xlabel(f"confidence\n{text}")
axes[0].set_ylabel("encodings")
axes[0].legend(title="support found")
figure.savefig(folder / "public_confidence.png", dpi=110)
