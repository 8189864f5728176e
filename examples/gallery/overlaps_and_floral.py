"""Which encodings share private vectors, and the floral submatrix in which the paper's attack
finds its first four vectors."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
sim = unveil.simulate(unveil.Scheme(k_private=2), n_private=12, m=60, d=3072, rng=0)
overlaps = unveil.gram_extract(sim.encodings)
floral = unveil.find_floral_submatrix(overlaps)

# Encodings sorted by the private vectors they mix: those of one vector form blocks.
order = np.lexsort(np.sort(sim.selection.private, axis=1).T[::-1])
M = overlaps.toarray()
figure, (whole, part) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
shown = whole.imshow(M[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=2)
whole.set(title="overlaps of 60 encodings", xlabel="encoding", ylabel="encoding")
figure.colorbar(shown, ax=whole, label="private vectors shared", ticks=[0, 1, 2], shrink=0.8)

# Six encodings that are all pairs of four vectors, whose names follow from the overlaps alone.
names = ["".join(chr(97 + v) for v in sorted(labels)) for labels in floral.labels]
part.imshow(M[np.ix_(floral.rows, floral.rows)], cmap="Blues", vmin=0, vmax=2)
part.set_xticks(range(6), names)
part.set_yticks(range(6), [f"encoding {floral.rows[i]}: {names[i]}" for i in range(6)])
for i, j in np.ndindex(6, 6):
    shared = M[floral.rows[i], floral.rows[j]]
    part.text(j, i, shared, ha="center", va="center", color="white" if shared == 2 else "black")
part.set_title("a floral: all pairs of a, b, c, d")
figure.savefig(folder / "overlaps_and_floral.png", dpi=110)
