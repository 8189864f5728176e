"""A table of few columns: its rows come back to the last digit, from sums of two rows with signs
dropped."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
rng = np.random.default_rng(0)
columns = ["age", "income", "height", "weight", "pulse", "pressure"]
age = rng.normal(size=30)
parts = [age, 0.6 * age + rng.gamma(2, size=30) - 2, rng.normal(size=30), rng.normal(size=30)]
table = np.stack([*parts, rng.normal(size=30), rng.standard_t(4, size=30)], axis=1)

sim = unveil.simulate(unveil.Scheme(k_private=2), private=table, m=300, rng=0)
recovery = unveil.recover(sim.encodings, rng=0)
matches = unveil.score(recovery, table).matches
found = np.flatnonzero(recovery.verified & (matches >= 0))

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].hist(sim.encodings.values.ravel(), 40, color="#777777")
axes[0].set(title="what was released: 300 encodings", xlabel="value", ylabel="count")
for column, name in enumerate(columns):
    mine, truth = recovery.vectors[found, column], table[matches[found], column]
    sign = np.sign(mine @ truth)  # one sign per column cannot be told from |Xw|
    axes[1].plot(truth, sign * mine, "o", markersize=4, label=name)
axes[1].axline((0, 0), slope=1, color="black", linewidth=0.6)
title = f"{len(found)} of {len(table)} rows verified, attack {recovery.attack}"
axes[1].set(title=title, xlabel="true value", ylabel="recovered value")
axes[1].legend(fontsize=8)
figure.savefig(folder / "table_values.png", dpi=110)
