"""Cliques of encodings that are all alike, grown greedily from random encodings, as Carlini et al.
(2020) do.

  seed     a random encoding that is in fewer than k cliques yet, and another that is in none with it: of those most like it the
           one whose own similarities agree best with its
  grow     add the encoding most like the clique, on average, while it is at least half as like as the members are
  settle   C ← all encodings at least half as like as the members are, twice: what came first is judged again
  merge    a clique that mostly repeats another one is dropped

Similarities may have any scale, dense or sparse, but 0 must mean: nothing shared. How many images
there are is not needed. Growth is by means, not by the smallest similarity, so that single wrong
entries do little harm. A clique of s encodings costs s rows of the similarity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.records import Progress

Similarity = NDArray[np.float32] | sparse.csr_array
"""(m, m), symmetric, zero diagonal."""
Clique = NDArray[np.int64]

HALF = 0.5
LEAST = 3
SURE = 6
"""Encodings in a clique from which on its own mean similarity is something to compare with."""
PARTNERS = 12
IDLE = 20
"""Seeds in a row without a new clique before the search ends, for each clique there is."""


def greedy_cliques(
    S: Similarity,
    k: int,
    rng: np.random.Generator,
    *,
    size: int | None = None,
    most: int | None = None,
    have: list[Clique] | None = None,
    progress: Progress | None = None,
) -> list[Clique]:
    """Cliques in the order in which they were found, none a repeat of another one or of those in
    `have`.

    size: encodings in a clique at most; most: cliques at most
    """
    m = S.shape[0]
    size, most = size or m, m if most is None else most
    cliques = list(have or [])
    before = len(cliques)
    names: list[list[int]] = [[] for _ in range(m)]
    for c, clique in enumerate(cliques):
        for i in clique:
            names[i].append(c)
    idle = 0
    for _ in range(2 * k):
        for i in rng.permutation(m):
            if len(cliques) - before >= most or idle > IDLE * (10 + len(cliques)):
                return cliques[before:]
            if len(names[i]) >= k:
                continue
            idle += 1
            together = np.concatenate([[i], *(cliques[c] for c in names[i])]).astype(np.int64)
            found = _clique(S, int(i), together, size, rng)
            if found is None or _repeats(found, cliques, names):
                continue
            for j in found:
                names[j].append(len(cliques))
            cliques.append(found)
            idle = 0
            if progress:
                progress("cliques", len(cliques) - before, most)
    return cliques[before:]


def likeness(S: Similarity, clique: Clique) -> tuple[NDArray[Any], float]:
    """The mean similarity of every encoding to the clique, itself left out, and the mean of that
    over the members."""
    score = np.asarray(S[clique].sum(axis=0), np.float64)
    others = np.full(len(score), len(clique))
    others[clique] -= 1
    score /= np.maximum(others, 1)
    return score, float(score[clique].mean())


def _clique(
    S: Similarity, i: int, together: Clique, size: int, rng: np.random.Generator
) -> Clique | None:
    """The clique around encoding i and a partner that is not among those `together` with it."""
    near = _row(S, i)
    open_ = near.copy()
    open_[together] = 0
    candidates = np.flatnonzero(open_ > 0)
    if len(candidates) < LEAST - 1:
        return None
    candidates = rng.permutation(candidates)  # overlaps have many ties
    candidates = candidates[np.argsort(-open_[candidates], kind="stable")[:PARTNERS]]
    j = int(candidates[np.argmax(S[candidates] @ open_)])
    score = near + _row(S, j)
    inside = 2 * float(near[j])
    clique = [i, j]
    score[clique] = -np.inf
    while len(clique) < size:
        v = int(np.argmax(score))
        gain, s = float(score[v]), len(clique)
        if gain <= 0 or (s >= SURE and gain / s < HALF * inside / (s * (s - 1))):
            break
        inside += 2 * gain
        clique.append(v)
        score += _row(S, v)
        score[v] = -np.inf
    out = np.array(clique, np.int64)
    for _ in range(2):
        if len(out) < LEAST:
            return None
        mean, within = likeness(S, out)
        out = np.flatnonzero(mean >= HALF * within) if within > 0 else out[:0]
        if len(out) > size:
            out = np.sort(out[np.argsort(-mean[out], kind="stable")[:size]])
    return out if len(out) >= LEAST and i in out else None


def _repeats(clique: Clique, cliques: list[Clique], names: list[list[int]]) -> bool:
    shared: dict[int, int] = {}
    for i in clique:
        for c in names[i]:
            shared[c] = shared.get(c, 0) + 1
    return any(count > HALF * min(len(clique), len(cliques[c])) for c, count in shared.items())


def _row(S: Similarity, i: int) -> NDArray[np.float32]:
    if isinstance(S, np.ndarray):
        return np.array(S[i], np.float32)
    out = np.zeros(S.shape[0], np.float32)
    part = slice(S.indptr[i], S.indptr[i + 1])
    out[S.indices[part]] = S.data[part]
    return out
