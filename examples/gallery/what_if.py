"""What if fewer encodings were released? What comes back of the records then, and what the
encodings are still worth to those they are made for."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
rng = np.random.default_rng(0)
classes = np.repeat([0, 1], 8)
records = rng.normal(size=(16, 12)) + np.outer(classes, np.ones(12))
audit = unveil.audit(records, m=80, labels=classes, what_if="m", seeds=1, rng=0)
print(audit.verdict.headline)

points = [point for point in audit.what_if if point.attacker == "blind"]
m = [point.value for point in points]
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.fill_between(m, [p.low for p in points], [p.high for p in points], color="#D55E00", alpha=0.15)
label = "records that come back, with a 95% interval"
axis.plot(m, [point.recovered for point in points], "o-", color="#D55E00", label=label)
label = "accuracy of a classifier trained on the encodings"
axis.plot(m, [point.utility for point in points], "s--", color="#0072B2", label=label)
axis.set(xlabel="encodings released", ylabel="share", ylim=(-0.02, 1.02), xscale="log")
axis.set_xticks(m, [f"{value:.0f}" for value in m])
axis.minorticks_off()
axis.set_title("16 records of two classes: what is released, and what it is worth")
axis.legend()
figure.savefig(folder / "what_if.png", dpi=110)
