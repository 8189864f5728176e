"""Published attacks and the default one, on the same encodings, as pixels become fewer."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
attacks = {"exact": "o-", "tensor": "s--", "line-graph": "^-.", "cliques": "D:", "paper": "v-"}
sizes = [50, 100, 200, 400]
scheme, n = unveil.Scheme(k_private=2), 16
found = {attack: [] for attack in attacks}
for d in sizes:
    sim = unveil.simulate(scheme, n_private=n, m=100, d=d, rng=3)
    for attack in attacks:
        recovery = unveil.recover(sim.encodings, attack=attack, rng=0)
        found[attack].append(unveil.score(recovery, sim.private).exact / n)

figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
for attack, look in attacks.items():
    axis.plot(sizes, found[attack], look, label=attack, alpha=0.8)
axis.set(xscale="log", xlabel="pixels d", ylabel="private vectors recovered exactly")
axis.set_xticks(sizes, [str(d) for d in sizes])
axis.minorticks_off()
axis.set_title(f"100 encodings of {n} vectors, k_private = 2")
axis.legend(title="attack")
figure.savefig(folder / "rivals.png", dpi=110)
