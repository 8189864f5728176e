"""With public vectors in the mix: which ones does each encoding use, and what is left of the
private part?"""

import unveil

scheme = unveil.Scheme(k_private=2, k_public=2, weighting="equal")
sim = unveil.simulate(scheme, n_private=30, n_public=200, m=240, d=600, rng=1)

supports = unveil.learn_public(sim.encodings, sim.public)
right = (supports.indices == sim.selection.public).all(axis=1)
print(f"supports right: {right.sum()} of {len(right)}; called certain: {supports.certain.sum()}")
print(f"certain and wrong: {(supports.certain & ~right).sum()}")

recovery = unveil.recover(sim.encodings, sim.public, rng=1)
scores = unveil.score(recovery, sim.private)
print(
    f"exact {scores.exact}, wrong {scores.wrong}, missing {scores.missing},",
    f"signs {'known' if recovery.signed else 'lost'}",
)
