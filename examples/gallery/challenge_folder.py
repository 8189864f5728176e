"""A folder in the form of the InstaHide challenge, made by somebody else: attacked as it is, with
an image for every encoding as the answer."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import unveil
from unveil.data.bundled import fashion_mnist

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
shape, n = (14, 14), 10
images = fashion_mnist()[0][:, ::2, ::2].reshape(240, -1) / np.float32(127.5) - 1
private, public = images[:n], images[n:]
scheme = unveil.Scheme(2, 2, weighting="released", signs="random", pairing="epochs")
made = unveil.simulate(scheme, private=private, public=public, m=300, image_shape=shape, rng=1)
with TemporaryDirectory() as place:
    np.save(Path(place) / "encryption.npy", made.encodings.values.reshape(-1, *shape, 1))
    encodings = unveil.read_challenge(place, scheme)
recovery = unveil.recover(encodings, public, n_private=n, rng=0)
scores = unveil.image_scores(recovery.vectors, private, shape)
print(recovery.explanation)

figure, axes = plt.subplots(3, n, figsize=(10, 3.4), layout="constrained")
rows = np.abs(encodings.values[:n]), recovery.vectors[scores.matches], private
names = "an encoding", "recovered", "the truth"
for line, name, vectors in zip(axes, names, rows, strict=True):
    line[0].set_ylabel(name)
    for axis, vector in zip(line, vectors, strict=True):
        axis.imshow(vector.reshape(shape), cmap="gray", vmin=-1, vmax=1)
        axis.set(xticks=[], yticks=[])
title = f"{encodings.m} encodings and {len(public)} public images: mean SSIM {scores.mean_ssim:.2f}"
figure.suptitle(title)
figure.savefig(folder / "challenge_folder.png", dpi=110)
