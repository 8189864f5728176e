"""Images as InstaHide encodes them: weights of their own, two public images in each, random signs.
What an attacker sees, and what comes back."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unveil
from unveil.data.bundled import fashion_mnist

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
shape = (14, 14)
pixels = fashion_mnist()[0][:, ::2, ::2].reshape(240, -1).astype(np.float32) / 127.5 - 1
order = np.random.default_rng(0).permutation(240)
private, public = pixels[order[:12]], pixels[order[12:]]

scheme = unveil.Scheme(2, 2, weighting="released", signs="random", pairing="epochs")
sim = unveil.simulate(scheme, private=private, public=public, m=360, rng=1, image_shape=shape)
recovery = unveil.recover(sim.encodings, public, n_private=12, rng=0)
scores = unveil.image_scores(recovery.vectors, private, shape)

first = [int(np.flatnonzero((sim.selection.private == j).any(axis=1))[0]) for j in range(12)]
rows = {"private": private, "one encoding": np.abs(sim.encodings.values[first])}
rows["recovered"] = recovery.vectors[scores.matches]
figure, axes = plt.subplots(3, 12, figsize=(11, 3.4), layout="constrained")
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    line[0].set_ylabel(name)
    for axis, picture in zip(line, pictures, strict=True):
        axis.imshow(picture.reshape(shape), cmap="gray", vmin=-1, vmax=1)
        axis.set(xticks=[], yticks=[])
for axis, value in zip(axes[2], scores.ssim, strict=True):
    axis.set_xlabel(f"{value:.2f}")
figure.suptitle(f"360 encodings of 12 images; below each its SSIM, mean {scores.mean_ssim:.2f}")
figure.savefig(folder / "images.png", dpi=110)
