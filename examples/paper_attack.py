"""The paper's attack, stage by stage: overlaps, a floral submatrix, k+2 private vectors."""

import unveil

scheme = unveil.Scheme(k_private=2, weighting="equal")
sim = unveil.simulate(scheme, n_private=30, m=250, d=3072, rng=0)

overlaps = unveil.gram_extract(sim.encodings)
print(f"pairs of encodings that share a private vector: {overlaps.tocsr().nnz // 2}")

floral = unveil.find_floral_submatrix(overlaps)
print(f"encodings {floral.rows.tolist()} are all pairs of four vectors")

recovery = unveil.learn_private_image(sim.encodings, rng=0)
scores = unveil.score(recovery, sim.private)
print(f"exact {scores.exact}, wrong {scores.wrong}")
