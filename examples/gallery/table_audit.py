"""A table, audited before its encodings are released: what comes back, from how many encodings on,
and to whom."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
rng = np.random.default_rng(0)
people = np.round(rng.normal([41, 52e3, 172, 70, 64, 121], [12, 9e3, 9, 11, 8, 14], (24, 6)), 1)
with TemporaryDirectory() as place:
    table = Path(place) / "people.csv"
    header = "age,income,height,weight,pulse,pressure"
    np.savetxt(table, people, delimiter=",", header=header, comments="", fmt="%.1f")
    audit = unveil.audit(table, m=(20, 120), sensitive="income", seeds=2, rng=0)
print(audit.verdict.headline)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
m = [point.m for point in audit.curve]
left.fill_between(m, [p.low for p in audit.curve], [p.high for p in audit.curve], alpha=0.2)
left.plot(m, [point.exact + point.approximate for point in audit.curve], "o-")
left.set(xlabel="encodings released", ylabel="records that come back", ylim=(-0.02, 1.02))
left.set_title("from how many encodings on")
who = [threat.knows for threat in audit.threats]
right.barh(who, [threat.exact for threat in audit.threats], color="#D55E00")
right.invert_yaxis()
right.set(xlabel=f"of {len(people)} records", xlim=(0, len(people)))
right.set_title("who gets how many")
figure.suptitle(audit.verdict.headline)
figure.savefig(folder / "table_audit.png", dpi=110)
