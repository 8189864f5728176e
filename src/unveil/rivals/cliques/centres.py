"""From cliques to who mixes whom: k-means whose centres are cliques and whose points have k centres
each.

    S_ij ≈ Σ_c L_ic·L_jc     L (m, n): how much of image c is in encoding i, k of them above zero, by what S is measured in

    score    least squares of an encoding's similarities on the columns of L, its own part left out
    assign   every encoding to k images, by flow, within capacities where these are known     (`rivals.cliques.flow`)
    centre   L ← the scores of who was assigned; until hardly anyone changes
    drop     images whose encodings are much less alike than those of most, or as alike to another image's
    again    cliques are sought in what L leaves of S                                         (`rivals.cliques.greedy`)

Mean similarities would do for one image per encoding. With k an encoding is like a clique also
because both meet in other images; least squares take that out. Entries of L are not rounded to one:
a member that is hardly like the others (a small weight, or a wrong assignment) moves the centre
little. Cost per step: S times an m×n matrix, and the flow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.records import Progress
from unveil.rivals.cliques.flow import assign
from unveil.rivals.cliques.greedy import Clique, Similarity, greedy_cliques

RIDGE = 0.05
STEPS = 12
ROUNDS = 4
CHANGED = 0.001
LOOSE = 0.5
"""Less than so much of the typical value: no image, or no member."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Centres:
    """members (m, k): the images of each encoding; scores (m, n): about 1 for them, 0 for
    others."""

    members: NDArray[np.int64]
    scores: NDArray[np.float64]

    @property
    def sure(self) -> NDArray[np.bool_]:
        """(m,): every one of its k images stands out."""
        return np.asarray(
            (np.take_along_axis(self.scores, self.members, axis=1) > LOOSE).all(axis=1)
        )


def clique_centres(
    S: Similarity,
    k: int,
    rng: np.random.Generator,
    *,
    n: int | None = None,
    even: bool = False,
    graph: Similarity | None = None,
    progress: Progress | None = None,
) -> Centres | None:
    """Cliques and the assignment, of all rounds the one that explains S best. None: fewer than k
    cliques.

    n: how many images there are; even: all of them occur equally often; graph: what cliques are
    grown in, if not S
    """
    m = S.shape[0]
    # Of known n the surest half of a clique will do: what is added last is least sure.
    size = None if n is None else max(6, int(0.6 * k * m / n))
    cliques = greedy_cliques(
        S if graph is None else graph, k, rng, size=size, most=n, progress=progress
    )
    best, least = None, np.inf
    for turn in range(ROUNDS):
        if len(cliques) < k:
            break
        room = -(-k * m // n) if even and len(cliques) == n else None
        L, centres = _refine(S, _start(S, cliques), k, room)
        error = _error(S, L)
        if error < least:
            best, least = centres, error
        if progress:
            progress("centres", turn + 1, ROUNDS)
        good = _sound(S, L)
        if n is not None and len(good) >= n:
            break
        cliques = _cliques(centres, good)
        more = greedy_cliques(
            _rest(S, L[:, good]),
            k,
            rng,
            size=size,
            most=None if n is None else n - len(good),
            have=cliques,
        )
        if not more and len(good) == L.shape[1]:
            break
        cliques += more
    return best


def _start(S: Similarity, cliques: list[Clique]) -> Floats:
    L = np.zeros((S.shape[0], len(cliques)), np.float32)
    for c, clique in enumerate(cliques):
        L[clique, c] = 1
    return L * np.sqrt(np.maximum(np.diag(_between(S, L)), 1e-12)).astype(np.float32)


def _refine(S: Similarity, L: Floats, k: int, room: int | None) -> tuple[Floats, Centres]:
    before = np.zeros((len(L), k), np.int64)
    for _ in range(STEPS):
        scores = _scores(S, L)
        members = assign(scores, k, room)
        new = np.zeros_like(L)
        np.put_along_axis(
            new,
            members,
            np.maximum(np.take_along_axis(scores, members, axis=1), 0).astype(np.float32),
            axis=1,
        )
        # Scores are off by the inverse of any factor that a column is off by: the mean of both is
        # right.
        L = new * np.sqrt(_norms(L) / _norms(new))
        settled = (members != before).mean() <= CHANGED
        before = members
        if settled:
            break
    typical = np.ones(L.shape[1])
    for c in range(L.shape[1]):
        own = scores[(members == c).any(axis=1), c]
        typical[c] = np.median(own) if len(own) else 1.0
    return L, Centres(members, scores / np.maximum(typical, 1e-12))


def _scores(S: Similarity, L: Floats) -> NDArray[np.float64]:
    gram = L.T.astype(np.float64) @ L
    own = np.maximum(np.diag(gram), 1e-12)
    onto = gram + np.diag(RIDGE * np.full(len(own), own.mean()))
    scores = np.linalg.solve(onto, np.asarray(S @ L, np.float64).T).T
    # An encoding has no similarity with itself: its part of the normal equations goes too.
    return np.asarray(scores * (own / np.maximum(own - L.astype(np.float64) ** 2, 0.1 * own)))


def _norms(L: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum((L**2).sum(axis=0), 1e-12)), np.float32)


def _between(S: Similarity, L: Floats) -> NDArray[np.float64]:
    """(n, n): the mean similarity of the encodings in one column with those in another, each with
    itself left out."""
    member = (L > 0).astype(np.float32)
    size = member.sum(axis=0, dtype=np.float64)
    pairs = np.outer(size, size) - (member.T @ member)
    return np.asarray((member.T @ np.asarray(S @ member)) / np.maximum(pairs, 1), np.float64)


def _error(S: Similarity, L: Floats) -> float:
    """Σ_{i≠j} (S − LLᵀ)², but for ΣS²."""
    products = np.einsum("ic,ic->", np.asarray(S @ L), L, dtype=np.float64)
    gram = L.T.astype(np.float64) @ L
    return float(
        (gram**2).sum() - ((L.astype(np.float64) ** 2).sum(axis=1) ** 2).sum() - 2 * products
    )


def _sound(S: Similarity, L: Floats) -> NDArray[np.int64]:
    """Images that are alike in themselves, and of those that are alike to each other the
    largest."""
    between, size = _between(S, L), (L > 0).sum(axis=0)
    within = np.diag(between)
    good: list[int] = []
    for c in np.argsort(-size, kind="stable"):
        if size[c] < 2 or within[c] < LOOSE * np.median(within):
            continue
        if not good or between[c, good].max() < LOOSE * within[c]:
            good.append(int(c))
    return np.sort(np.array(good, np.int64))


def _cliques(centres: Centres, good: NDArray[np.int64]) -> list[Clique]:
    """Who surely is in each of these images."""
    sure = np.zeros(centres.scores.shape, bool)
    np.put_along_axis(
        sure,
        centres.members,
        np.take_along_axis(centres.scores, centres.members, axis=1) > LOOSE,
        axis=1,
    )
    return [np.flatnonzero(sure[:, c]) for c in good]


def _rest(S: Similarity, L: Floats) -> Similarity:
    """Similarities less what shared images explain."""
    if isinstance(S, np.ndarray):
        rest = S - L @ L.T
        np.fill_diagonal(rest, 0)
        return np.asarray(rest, np.float32)
    part = sparse.csr_array(L)
    left = sparse.csr_array(S - (part @ part.T).multiply(S.astype(bool)))
    left.data[left.data < LOOSE * np.median(S.data)] = 0
    left.eliminate_zeros()
    return left
