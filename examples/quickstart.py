"""Encode private vectors, attack the encodings, count what came back."""

import unveil

scheme = unveil.Scheme(k_private=2, k_public=0, weighting="equal")
sim = unveil.simulate(scheme, n_private=40, m=280, d=300, rng=0)

recovery = unveil.recover(sim.encodings, rng=0)
print(recovery.explanation)

scores = unveil.score(recovery, sim.private)
print(f"exact {scores.exact}, wrong {scores.wrong}, missing {scores.missing}")
