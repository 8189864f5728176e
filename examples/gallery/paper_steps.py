"""The paper's algorithms one after the other: LearnPublic, GramExtract, FindFloralSubmatrix, and
the sign system that LearnPrivateImage solves."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
scheme = unveil.Scheme(k_private=2, k_public=1)
sim = unveil.simulate(scheme, n_private=8, n_public=30, m=50, d=1200, rng=0)
supports = unveil.learn_public(sim.encodings, sim.public)
overlaps = unveil.gram_extract(sim.encodings, sim.public, supports=supports)
floral = unveil.find_floral_submatrix(overlaps)
recovery = unveil.learn_private_image(sim.encodings, sim.public, rng=0)
scores = unveil.score(recovery, sim.private)
print(f"exact {scores.exact}, wrong {scores.wrong}; {recovery.explanation}")

figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
axes[0].plot(sim.selection.public[:, 0], supports.indices[:, 0], "o", alpha=0.5)
axes[0].set(title="1 LearnPublic", xlabel="true public vector", ylabel="found")
axes[1].imshow(overlaps.toarray(), cmap="Blues")
axes[1].set(title="2 GramExtract: overlaps", xlabel="encoding", ylabel="encoding")
axes[2].imshow(floral.incidence, cmap="Blues", aspect="auto")
axes[2].set_xticks(range(4), "abcd")
axes[2].set_yticks(range(6), [str(row) for row in floral.rows])
axes[2].set(title="3 a floral: who mixes whom", xlabel="private vector", ylabel="encoding")
truth = sim.private[scores.nearest]
axes[3].plot(truth.ravel(), recovery.vectors.ravel(), ".", markersize=2)
axes[3].set(title="4 pixels, with their signs", xlabel="true value", ylabel="recovered value")
figure.savefig(folder / "paper_steps.png", dpi=110)
