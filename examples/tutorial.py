"""# The paper in an hour

*On InstaHide, Phase Retrieval, and Sparse Matrix Factorization* (Chen, Li, Song, Zhuo, ICLR
2021), algorithm by algorithm, on instances small enough to print. Have the paper beside you. Its
parts are named by their LaTeX labels, as in the [paper map](paper_map.md); where the print and
the truth differ, it says so.
"""

# %% [markdown]
# ## 1 What is released
#
# A private vector is a row of numbers, one per pixel. An encoding mixes a few of them with a
# selection vector w and drops the signs: y = |wᵀX| (`eq:instahide_def`). The paper's model draws
# every pixel from N(0, 1) (`defn:gaussian_images`). Five vectors with four pixels:

# %%
import itertools

import matplotlib.pyplot as plt
import numpy as np

import unveil
from unveil.paper import psi, psi_inverse
from unveil.paper.floral import encodings_needed

np.set_printoptions(precision=2, suppress=True)
scheme = unveil.Scheme(k_private=2)
sim = unveil.simulate(scheme, n_private=5, m=4, d=4, rng=0)
print("private\n", sim.private)
print("which two each encoding mixes\n", sim.selection.private)
print("encodings\n", sim.encodings.values)

# %% [markdown]
# The weight of each selected vector is 1/√2, so that w has length 1. By hand, the first encoding:

# %%
first, second = sim.private[sim.selection.private[0]]
print(np.abs((first + second) / np.sqrt(2)))

# %% [markdown]
# **Print and truth.** With public vectors in the mix, `defn:select_distribution` gives public
# entries 1/√k_pub and private ones 1/√k_priv. Then w has length √2, not 1, and the inner products
# of section 3 are no multiples of 1/k. `weighting="paper"` is the literal text, `"equal"` (the
# default) has length 1.

# %%
for weighting in ("paper", "equal"):
    mixed = unveil.Scheme(2, 2, weighting=weighting)
    length = np.sqrt(2 * mixed.private_weight**2 + 2 * mixed.public_weight**2)
    print(f"{weighting}: an entry is {mixed.private_weight:.3f}, |w| = {length:.3f}")

# %% [markdown]
# ## 2 LearnPublic: which public vectors are in it?
#
# `alg:public_attack`. One encoding of two private and two public vectors, and everybody knows all
# six public ones. Take the moment matrix M̃ = mean over pixels of (y² − 1)(ppᵀ − I), p the six
# public values at that pixel. Where y is large, the mixed-in vectors are large too, so their
# entries stand out.

# %%
mixed = unveil.Scheme(k_private=2, k_public=2)
one = unveil.simulate(mixed, n_private=4, n_public=6, m=1, d=50_000, rng=3)
y, P = one.encodings.values[0], one.public
moment = ((y**2 - 1) * P) @ P.T / len(y) - (y**2 - 1).mean() * np.eye(6)
print("public vectors in the encoding:", one.selection.public[0])
print(moment)

# %%
figure, axis = plt.subplots(figsize=(4.2, 3.4), layout="constrained")
shown = axis.imshow(moment, cmap="Blues", vmin=0)
axis.set(xlabel="public vector", ylabel="public vector", title="moment matrix of one encoding")
figure.colorbar(shown)

# %% [markdown]
# The four dark entries are the support. **Print and truth:** `lem:population` says that the
# expectation is ½·[w][w]ᵀ; its own derivation ends with 2·[w][w]ᵀ. Here w has entries ½, so the
# entries should be 2·¼ = ½, and not ⅛: the matrix above decides. (In `lem:public`, "d ≥
# poly(k)/log(n/δ)" is meant as a product.)
#
# The paper then solves a semidefinite program to read the support off M̃ with fewer pixels; the
# library's default searches in the likelihood and needs fewer still:

# %%
few = unveil.simulate(mixed, n_private=4, n_public=20, m=20, d=80, rng=1)
for method in ("diagonal", "sdp", "folded-em"):
    found = unveil.learn_public(few.encodings, few.public, method=method)
    right = (found.indices == few.selection.public).all(axis=1).sum()
    print(f"{method}: {right} of 20 supports right with 80 pixels")

# %% [markdown]
# ## 3 GramExtract: who shares a private vector with whom?
#
# `alg:private_attack`. Two encodings that share one of two vectors have w's with inner product z
# = ½. The signs are gone, but magnitudes still go together: Cov(|a|, |b|) = Ψ(z) (`lem:kr17`).

# %%
for z in (0, 0.5, 1):
    print(f"z = {z}: Ψ(z) = {psi(z):.4f}")

# %% [markdown]
# **Print and truth.** `lem:kr17` and `cor:kr17` have 1 on the diagonal. The variance of |a| is
# Ψ(1) = 1 − 2/π = 0.3634, as printed above. Off the diagonal Ψ is right.
#
# Six encodings of four vectors. Estimate the covariances, turn Ψ around, multiply by k, round:

# %%
six = unveil.simulate(scheme, n_private=4, m=6, d=3000, rng=4)
covariance = np.cov(six.encodings.values)
estimate = 2 * psi_inverse(covariance)
print("which two each mixes:", [tuple(map(int, pair)) for pair in six.selection.private])
print("estimates of how many two encodings share\n", estimate)
print("rounded\n", estimate.round().astype(int))

# %% [markdown]
# `unveil.gram_extract` does this in blocks, for thousands of encodings, with thresholds where
# both errors are equally likely, and says how many of its entries are probably wrong.

# %%
overlaps = unveil.gram_extract(six.encodings)
print(np.array_equal(overlaps.toarray(), estimate.round()), f"{overlaps.expected_errors:.1e}")

# %% [markdown]
# ## 4 The floral submatrix
#
# `defn:floral`. From here on no pixels are needed, only the matrix M of overlaps. Look for six
# encodings that are all pairs of four vectors: M then has a pattern that names the vectors.
# Eleven encodings of seven vectors, by hand:

# %%
pairs = ["ab", "ac", "ad", "bc", "bd", "cd", "ae", "ef", "bf", "cg", "fg"]
M = np.array([[len(set(s) & set(t)) for t in pairs] for s in pairs])
floral = unveil.find_floral_submatrix(unveil.Overlaps.from_array(M, k_private=2))
print(M)
print("rows of the floral:", floral.rows, "which are", [pairs[row] for row in floral.rows])
print("names that the algorithm gives\n", floral.labels)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
left.imshow(M, cmap="Blues")
left.set_xticks(range(len(pairs)), pairs)
left.set_yticks(range(len(pairs)), pairs)
left.set_title("overlaps")
right.imshow(floral.incidence, cmap="Blues", aspect="auto")
right.set_yticks(range(6), [pairs[row] for row in floral.rows])
right.set_xticks(range(4))
right.set(xlabel="name given", title="the floral: who mixes whom")

# %% [markdown]
# **Print and truth: k = 2 is ambiguous.** Swap the labels of ab and cd: every overlap inside the
# six stays as it is. So M does not identify the sets, against `lem:construct`. Worse, the swapped
# labels have an exact solution too:

# %%
x = np.random.default_rng(1).normal(size=(4, 3))
a, b, c, d = x
other = np.array([c + d + a - b, c + d - a + b, a + b + c - d, a + b - c + d]) / 2
sets = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
swapped = [(2, 3), (0, 2), (0, 3), (1, 2), (1, 3), (0, 1)]
truth = np.abs([x[i] + x[j] for i, j in sets])
print(np.allclose(truth, np.abs([other[i] + other[j] for i, j in swapped])), "but not the truth:")
print(x, "\n", other)

# %% [markdown]
# The printed procedure returns wrong vectors half of the time. A seventh encoding that shares
# exactly one of the four settles it: ae above overlaps with ab, ac, ad, a star. Under the swapped
# labels it would be a triangle, which no set of one vector explains. For k ≥ 3 the second family
# are *sunflowers*, and they are the common case ([paper map](paper_map.md), 11). Unveil asks the
# other encodings, and says "ambiguous" where none tells.
#
# `alg:findsetsystem` finds the floral by walking: from one encoding to its neighbours that share
# k − 1 vectors, and so on. The printed recursion is for k − 2; what remains are (k − 4)-subsets
# of a (k − 2)-set, so it is for k − 4. How many encodings until there is a floral at all
# (`lem:setsystemexist`)? About n^(k − 2/(k+1)):

# %%
for n in (10, 100, 1000):
    print(n, "vectors:", {k: encodings_needed(n, k) for k in (2, 3, 4)})

# %% [markdown]
# ## 5 The sign system: from who mixes whom to pixels
#
# `alg:private_attack2`, last step. At one pixel there are four unknowns and six magnitudes. If
# the signs of the sums were known it were linear. The paper tries all 2^t sign patterns, t = 6
# here. Four independent equations are enough: 2³ candidates up to a common sign, and the other
# two equations verify (`lem:generic`).

# %%
A = np.zeros((6, 4))
for row, pair in enumerate(sets):
    A[row, list(pair)] = 1
pixel = np.array([0.3, -1.1, 0.8, 0.4])
y = np.abs(A @ pixel)
chosen = [0, 1, 2, 3]  # ab, ac, ad, bc: independent
for rest in itertools.product((1, -1), repeat=3):
    signs = np.array([1, *rest])
    candidate = np.linalg.solve(A[chosen], signs * y[chosen])
    misfit = np.abs(np.abs(A @ candidate) - y).max()
    print(signs, candidate, f"misfit {misfit:.2f}", "<- fits" if misfit < 1e-9 else "")

# %% [markdown]
# The truth is found up to one sign, common to all four vectors at this pixel: x and −x give the
# same magnitudes. That sign is lost for good, at every pixel anew. Relative signs are kept.
# **Print and truth:** the printed system leaves out the weights and the public part c: it is
# |a·Σx + c| = y. With c ≠ 0 even the sign comes back:

# %%
c = np.array([0.5, -0.2, 0.9, 0.1, -0.7, 0.3])
y = np.abs(A @ pixel + c)
for sign in (1, -1):
    print(f"sign {sign:+d}: misfit {np.abs(np.abs(sign * A @ pixel + c) - y).max():.2f}")

# %% [markdown]
# ## 6 LearnPrivateImage: all of it
#
# `alg:private_attack2`, `thm:main`: LearnPublic, GramExtract, FindFloralSubmatrix, signs. It
# returns k + 2 vectors.

# %%
sim = unveil.simulate(scheme, n_private=8, m=50, d=2500, rng=0)
recovery = unveil.learn_private_image(sim.encodings, rng=0)
scores = unveil.score(recovery, sim.private)
print(recovery.explanation)
print(f"exact {scores.exact}, wrong {scores.wrong}, missing {scores.missing}")

# %%
mine, true = recovery.vectors[:, :40], sim.private[scores.matches][:, :40]
signs = np.sign((mine * true).sum(axis=0))
rows = {"truth": true, "recovered": mine, "one sign per pixel put right": signs * mine}
figure, axes = plt.subplots(3, 1, figsize=(8, 3.6), layout="constrained", sharex=True)
for axis, (title, values) in zip(axes, rows.items(), strict=True):
    axis.imshow(values, cmap="RdBu", vmin=-3, vmax=3, aspect="auto")
    axis.set_title(title, fontsize=9)
    axis.set_yticks([])
axes[2].set_xlabel("pixel")

# %% [markdown]
# Columns of the middle picture have the right colours or the opposite ones, all four rows
# together.
#
# ## 7 What nobody can tell, and what more can be told
#
# With n = 2k vectors even the full list of encodings has two readings. Replace each subset by its
# complement and each vector by x' = (Σ all)/k − x: nothing changes.

# %%
x = np.random.default_rng(2).normal(size=(4, 3))
other = x.sum(axis=0) / 2 - x
for i, j in sets:
    p, q = {0, 1, 2, 3} - {i, j}
    assert np.allclose(np.abs(x[i] + x[j]), np.abs(other[p] + other[q]))
print("all six encodings agree, and no vector does:", not np.isclose(x, other).all(axis=1).any())

# %% [markdown]
# Unveil says "ambiguous" there, whatever the attack. Elsewhere more can be had than the paper's k
# + 2 vectors. For pairs the default attack uses no statistics: four encodings that mix four
# vectors in a ring have a signed sum that vanishes at every pixel ([attacks](attacks.md#exact)).
# From the same 50 encodings, and from their first 100 pixels:

# %%
for pixels in (2500, 100):
    part = unveil.Encodings(sim.encodings.values[:, :pixels], scheme)
    scores = unveil.score(unveil.recover(part, rng=0), sim.private[:, :pixels])
    print(f"{pixels} pixels: exact {scores.exact}, wrong {scores.wrong}, missing {scores.missing}")

# %% [markdown]
# ## 8 Where print and truth differ
#
# | where | printed | true | section |
# |---|---|---|---|
# | `defn:select_distribution` | 1/√k_pub and 1/√k_priv | length √2, and no multiples of 1/k | 1 |
# | `lem:population` | ½·[w][w]ᵀ | 2·[w][w]ᵀ | 2 |
# | `lem:public` | poly(k)/log(n/δ) | a product | 2 |
# | `lem:kr17`, `cor:kr17` | 1 on the diagonal | 1 − 2/π | 3 |
# | `lem:construct` | a floral names its sets | two families of sets have the same matrix | 4 |
# | `alg:findsetsystem` | recursion for k − 2 | for k − 4 | 4 |
# | `alg:private_attack2` | 2^t sign patterns, no public part | 2^(k+1), and \|a·Σx + c\| = y | 5 |
#
# Each has a test in `tests/paper`; the [paper map](paper_map.md) names it, and what else was
# found. The paper's experiments, measured again: [reproduce](reproduce.md).
