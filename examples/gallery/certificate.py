"""Which recovered vectors are proved, which are not, and why: every vector comes with its status
and a reason in words."""

import re
import sys
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
sim = unveil.simulate(unveil.Scheme(k_private=2), n_private=30, m=70, d=1200, rng=4)
recovery = unveil.recover(sim.encodings, attack="line-graph", rng=0)
uses = np.asarray(recovery.members.sum(axis=0)).ravel()

colours = {"verified": "#009E73", "ambiguous": "#E69F00", "unresolved": "#D55E00"}
order = np.lexsort((-uses, [list(colours).index(s) for s in recovery.status]))
figure, axis = plt.subplots(figsize=(9, 4.4), layout="constrained")
bars = [colours[recovery.status[i]] for i in order]
axis.bar(range(len(order)), uses[order], color=bars)
axis.set(xlabel="recovered vector", ylabel="encodings that mix it")
for status, colour in colours.items():
    rows = np.flatnonzero(recovery.status == status)
    # The reason of most of them, without its numbers.
    reasons = Counter(re.sub(r"\d+", "…", recovery.reasons[i]) for i in rows).most_common(1)
    text = f"{len(rows)} {status}" + "".join(f": {reason}" for reason, _ in reasons)
    axis.bar(0, 0, color=colour, label=text)
axis.set_ylim(top=1.5 * uses.max())
axis.legend(loc="upper right", fontsize=8)
axis.set_title("70 encodings of 30 private vectors: what is proved, and why the rest is not")
figure.savefig(folder / "certificate.png", dpi=110)
