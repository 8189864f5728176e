"""Images, audited: each mixed with another one, signs dropped. What is released, and what comes
back of it."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
audit = unveil.audit("fashion-mnist", sample=16, m=100, seeds=1, rng=0)
print(audit.verdict.headline)

shown = audit.pictures
rows = {"private": shown.originals, "released": shown.encodings, "recovered": shown.recoveries}
count = min(10, len(shown.names))
figure, axes = plt.subplots(3, count, figsize=(11, 3.6), layout="constrained")
for line, (name, images) in zip(axes, rows.items(), strict=True):
    line[0].set_ylabel(name)
    for axis, image in zip(line, images[:count], strict=True):
        axis.imshow(image, cmap="gray", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
for axis, name in zip(axes[0], shown.names[:count], strict=True):
    axis.set_title(name, fontsize=7)
figure.suptitle(audit.verdict.headline)
figure.savefig(folder / "image_audit.png", dpi=110)
