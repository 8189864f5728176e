"""Cliques and flow: the attack that broke the InstaHide challenge, for any k_private (Carlini,
Deng, Garg, Jha, Mahloujifar, Mahmoody, Song, Thakurta, Tramèr: "Is Private Learning Possible with
Instance Encoding?", 2020).

    1  S ← how alike encodings are        overlaps, a matrix that is given, or correlations of
                                          squares; there it comes from a neural network
    2  C ← cliques of S, grown greedily   an image's encodings are all alike
    3  L ← k-means around the cliques     S ≈ LLᵀ: score each encoding against each image by least
                                          squares, assign, take the scores of who was assigned as
                                          new centres; then cliques again in what L leaves of S
    4  W ← assignment                     k_private images per encoding at the best total score, and
                                          where all occur equally often no image more than its share
    5  x ← min ‖|Wx| − y‖²                exact where nothing else is mixed in (`from_members`),
                                          else most likely with the public part as noise

With k images per encoding an encoding is like a clique also because both meet in other images:
least squares take that out, means would not. Weights that differ are guessed from the scores. With
such weights or with a public part nothing is exact, and all vectors are unresolved. Centres are a
dense m×n matrix: not more than a few thousand images.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.checks import InputError, Rng, child, root
from unveil.encode.weights import sample_weights
from unveil.encodings import Encodings, as_public
from unveil.engine.blocks import Stopwatch, must_fit
from unveil.engine.blocks import memory_limit as settle_limit
from unveil.engine.folded import maximise
from unveil.exact.from_members import from_subsets
from unveil.paper.folded_search import mean_square
from unveil.paper.gram_extract import gram_extract
from unveil.records import UNRESOLVED, Overlaps, Progress, Recovery

NAME = "cliques"
Reals = NDArray[np.float64]
Index = NDArray[np.int64]


def cliques_and_flow(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    similarity: ArrayLike | sparse.sparray | None = None,
    n_private: int | None = None,
    explains: float = 0.5,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector that a clique of encodings shows: exact without a public part, else
    about as it was.

    overlaps: to start from, where they are known; some may be wrong
    similarity: (m, m), dense or sparse, higher where encodings are more alike: instead of overlaps
    n_private: how many private vectors there are; None: as many as there are cliques
    explains: share of the private energy that the vectors must explain, where nothing is exact
    """
    scheme, m, k = encodings.scheme, encodings.m, encodings.scheme.k_private
    if k < 2:
        raise InputError(
            f"k_private={k}: cliques and flow tell apart who mixes whom, from k_private=2 on; "
            "use attack='exact'"
        )
    if overlaps is not None and similarity is not None:
        raise InputError(
            "overlaps and similarity: either is what cliques are looked for in; give one of them"
        )
    if n_private is not None and n_private < k:
        raise InputError(
            f"n_private={n_private}: an encoding mixes {k} private vectors; give that many or more"
        )
    P = None if public is None else as_public(public, encodings)
    seed, clock, limit = root(rng), Stopwatch(), settle_limit(memory_limit)
    with clock("similarity"):
        S = _similarity(encodings, P, overlaps, similarity, limit, progress)
    with clock("cliques"):
        even = scheme.pairing != "independent"
        found = clique_members(S, k, child(seed, "cliques"), n=n_private, even=even)
    if found is None or found[1].shape[1] <= k:
        why = (
            f"no cliques among {m} encodings: too few of them share a private vector, "
            "or what they share cannot be seen"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    members, scores = found
    sure = (np.take_along_axis(scores, members, axis=1) > 0.5).all(axis=1)
    facts = {"cliques": scores.shape[1], "encodings_assigned": int(sure.sum())}
    draw = child(seed, "pixels")
    if scheme.fixed_weights and not scheme.k_public:
        how: dict[str, Any] = {"facts": facts, "progress": progress}
        rows = np.flatnonzero(sure)
        return from_subsets(encodings, NAME, rows, members[rows], draw, clock, **how)
    # Weights, then values, the rest being noise; cliques of chance explain too little.
    n = scores.shape[1]
    with clock("pixels"):
        weights, noise = _weights(encodings, members, scores, child(seed, "law"))
        places = members.ravel(), np.arange(m + 1) * k
        W = sparse.csr_array((weights.ravel().astype(np.float32), *places), (m, n))
        values, left = folded_least_squares(encodings.magnitudes(), W, noise, draw)
    told = 1 - left / mean_square(encodings.values)
    if m <= n or told < explains * (1 - noise):
        why = (
            f"the {n} cliques explain {told:.0%} of the encodings' energy where private vectors "
            f"have {1 - noise:.0%}: more pixels or more encodings are needed, or another k_private"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    why = "the public part is taken for noise" if scheme.k_public else "weights are guessed"
    return Recovery(
        vectors=values,
        status=np.full(n, UNRESOLVED, dtype="<U10"),
        signed=False,
        members=sparse.csr_array(W.astype(bool)),
        residual=np.full(n, np.sqrt(left)),
        reasons=(f"about right at best: {why}",) * n,
        attack=NAME,
        explanation=f"{n} private vectors from {m} encodings; none is exact, since {why}",
        seconds=clock.seconds,
        evidence=facts,
        weights=None if scheme.fixed_weights else W,
    )


def _similarity(
    encodings: Encodings,
    P: NDArray[np.float32] | None,
    overlaps: Overlaps | None,
    similarity: Any,
    limit: int,
    progress: Progress | None,
) -> Any:
    """S, symmetric, zero on the diagonal and for encodings that share nothing."""
    scheme, m = encodings.scheme, encodings.m
    readable = scheme.fixed_weights and (P is not None or not scheme.k_public)
    if similarity is None and (overlaps is not None or readable):
        M = overlaps.of(encodings) if overlaps is not None else None
        M = M or gram_extract(encodings, P, memory_limit=limit, progress=progress)
        trust = np.float32(1) if M.confidence is None else M.confidence
        similarity = sparse.csr_array(
            (M.matrix.data * trust, M.matrix.indices, M.matrix.indptr), shape=(m, m)
        )
    stored = sparse.issparse(similarity)
    if not stored:
        must_fit(
            20 * m * m, f"similarities of {m:,} encodings", limit, "give them as a sparse array"
        )
    if similarity is None:
        # Correlations of squares: 2z² for Gaussian pixels of correlation z.
        E = np.square(encodings.magnitudes())
        E -= E.mean(axis=1, keepdims=True)
        E /= np.maximum(np.linalg.norm(E, axis=1, keepdims=True), np.float32(1e-12))
        similarity = E @ E.T
    given: Any = sparse.csr_array(similarity) if stored else np.asarray(similarity)
    if given.shape != (m, m) or given.dtype.kind not in "fiub":
        raise InputError(
            f"similarity of shape {given.shape}: give a square matrix of real numbers, {m} by {m}"
        )
    if not np.isfinite(given.data if stored else given).all():
        raise InputError("similarity with NaN or infinite values: put 0 where nothing is known")
    S = ((given + given.T) / 2).astype(np.float32)
    if not stored and m > 1:
        # Most encodings share nothing: their similarity is zero.
        S -= np.median(S[~np.eye(m, dtype=bool)])
    if not stored:
        np.fill_diagonal(S, 0)
        return S
    S.setdiag(0)
    S.eliminate_zeros()
    return S


def clique_members(
    S: Any,
    k: int,
    rng: np.random.Generator,
    *,
    n: int | None = None,
    even: bool = False,
    rounds: int = 4,
    steps: int = 12,
) -> tuple[Index, Reals] | None:
    """(members (m, k), scores (m, images)) of the round that explains S best, scores about 1 for
    members; None: fewer than k cliques."""
    m = S.shape[0]
    cliques: list[Index] = []
    best, least = None, np.inf
    for _ in range(rounds):
        # 1. More cliques in what the sound ones leave of S.
        L = _centres(S, cliques)
        left = S - (sparse.csr_array(L) @ sparse.csr_array(L).T if sparse.issparse(S) else L @ L.T)
        more = _greedy(left, k, rng, cliques, None if n is None else n - len(cliques))
        cliques += more
        if len(cliques) < k or (best is not None and not more):
            break
        L = _centres(S, cliques)
        # 2. Score, assign, new centres, until hardly anyone changes. An encoding has no similarity
        #    with itself: its part of the normal equations goes too.
        room = -(-k * m // n) if even and n == len(cliques) else None
        before = np.zeros((m, k), np.int64)
        for _ in range(steps):
            gram = L.T.astype(np.float64) @ L
            own = np.maximum(np.diag(gram), 1e-12)
            onto = gram + np.diag(np.full(len(own), 0.05 * own.mean()))
            scores = np.asarray(np.linalg.solve(onto, np.asarray(S @ L, np.float64).T).T)
            scores *= own / np.maximum(own - L.astype(np.float64) ** 2, 0.1 * own)
            members = assign(scores, k, room)
            new = np.zeros_like(L)
            kept = np.maximum(np.take_along_axis(scores, members, axis=1), 0)
            np.put_along_axis(new, members, kept.astype(np.float32), axis=1)
            # Scores are off by the inverse of what a column is off by: the mean of both is right.
            size = np.maximum(np.linalg.norm(new, axis=0), np.float32(1e-6))
            L = new * np.sqrt(np.linalg.norm(L, axis=0) / size)
            settled = (members != before).mean() <= 1e-3
            before = members
            if settled:
                break
        error = float(((L.T.astype(np.float64) @ L) ** 2).sum() - 2 * np.vdot(S @ L, L))
        # 3. In the unit of a typical member; sound images are alike in themselves, and no repeat.
        groups = [np.flatnonzero((members == c).any(axis=1)) for c in range(L.shape[1])]
        typical = [np.median(scores[g, c]) if len(g) else 1.0 for c, g in enumerate(groups)]
        unit = scores / np.maximum(typical, 1e-12)
        if error < least:
            best, least = (members, unit), error
        groups = [group[unit[group, c] > 0.5] for c, group in enumerate(groups)]
        within = np.array([_alike(S, group) for group in groups])
        cliques = []
        for c in np.argsort([-len(group) for group in groups], kind="stable"):
            if len(groups[c]) > 2 and within[c] > 0.5 * np.median(within):
                cliques += [] if _repeats(groups[c], cliques) else [groups[c]]
        if n is not None and len(cliques) >= n:
            break
    return best


def _centres(S: Any, cliques: list[Index]) -> NDArray[np.float32]:
    L = np.zeros((S.shape[0], len(cliques)), np.float32)
    for c, clique in enumerate(cliques):
        L[clique, c] = np.sqrt(max(_alike(S, clique), 1e-12))
    return L


def _alike(S: Any, clique: Index) -> float:
    """Mean similarity of the encodings of a clique with each other."""
    size = len(clique)
    return float(S[clique][:, clique].sum()) / (size * (size - 1)) if size > 1 else 0.0


def _repeats(clique: Index, others: list[Index]) -> bool:
    """Whether it mostly repeats another one."""
    return any(np.isin(clique, o).sum() > 0.5 * min(len(clique), len(o)) for o in others)


def _greedy(
    S: Any,
    k: int,
    rng: np.random.Generator,
    have: list[Index],
    most: int | None,
    partners: int = 12,
    idle: int = 20,
) -> list[Index]:
    """Cliques of encodings that are all alike, none mostly a repeat of another: from a random
    encoding in fewer than k cliques and the partner most like it, add whoever is most like the
    clique on average, while at least half as like as the members are; then all encodings are
    judged by the whole, twice. idle: seeds that may fail in a row, for each clique there is."""
    m = S.shape[0]
    # Overlaps count once: a pair that shares two vectors would become a clique of both.
    stored: bool = sparse.issparse(S)
    cap = 1.0 if stored and float(S.max()) <= k else np.inf

    def row(i: int) -> Any:
        return S[[i]].toarray()[0] if stored else S[i].copy()

    cliques, used, failed = list(have), np.zeros(m, np.int64), 0
    for clique in cliques:
        used[clique] += 1
    for i in np.concatenate([rng.permutation(m) for _ in range(2 * k)]).tolist():
        enough = most is not None and len(cliques) - len(have) >= most
        if enough or failed > idle * (10 + len(cliques)):
            break
        if used[i] >= k:
            continue
        failed += 1
        # 1. A partner that is in no clique with it.
        near = row(i)
        free = near.copy()
        for clique in cliques:
            if i in clique:
                free[clique] = 0
        close = rng.permutation(np.flatnonzero(free > 0))
        if len(close) < 2:
            continue
        close = close[np.argsort(-free[close], kind="stable")[:partners]]
        j = int(close[np.argmax(S[close] @ free)])
        # 2. Grow by the sum of similarities to the members.
        grown, score = [i, j], np.minimum(near, cap) + np.minimum(row(j), cap)
        inside = 2 * min(float(near[j]), cap)
        score[grown] = -np.inf
        while True:
            v, size = int(np.argmax(score)), len(grown)
            gain = float(score[v])
            if gain <= 0 or (size >= 6 and gain / size < 0.5 * inside / (size * (size - 1))):
                break
            inside += 2 * gain
            grown.append(v)
            score += np.minimum(row(v), cap)
            score[v] = -np.inf
        # 3. All encodings are judged by the whole clique.
        clique = np.array(grown, np.int64)
        for _ in range(2):
            mean = np.asarray(S[clique].sum(axis=0)).ravel() / max(len(clique), 1)
            mean[clique] *= len(clique) / max(len(clique) - 1, 1)
            least = 0.5 * mean[clique].mean() if len(clique) > 1 else np.inf
            clique = np.flatnonzero(mean >= max(least, 1e-9))
        if len(clique) > 2 and not _repeats(clique, cliques):
            cliques.append(clique)
            used[clique] += 1
            failed = 0
    return cliques[len(have) :]


def assign(scores: Reals, k: int, room: int | None = None, steps: int = 200) -> Index:
    """members (m, k), sorted in each row, of the largest sum of scores (m, n): the k best, or with
    `room` for so many encodings per image the k best less a price, raised where an image is full
    (the dual of the min-cost flow)."""
    m, n = scores.shape
    price, rate = np.zeros(n), float(np.std(scores)) or 1.0
    for step in range(1 if room is None else steps):
        members = np.argsort(price - scores, axis=1, kind="stable")[:, :k]
        over = np.bincount(members.ravel(), minlength=n) - (m if room is None else room)
        if over.max() <= 0:
            break
        price = np.maximum(price + rate / (1 + step) ** 0.5 * over / max(room or m, 1), 0)
    return np.sort(members, axis=1).astype(np.int64)


def _weights(
    encodings: Encodings, members: Index, scores: Reals, rng: np.random.Generator
) -> tuple[Reals, float]:
    """(weights (m, k), share of the energy that is not theirs): the scheme's, or guessed from
    scores, which go with the square of a weight; the best of many images that are not there scores
    about a third."""
    scheme, k = encodings.scheme, members.shape[1]
    if scheme.fixed_weights:
        total = scheme.private_variance + scheme.public_variance
        return np.full(members.shape, scheme.private_weight), scheme.public_variance / total
    drawn = sample_weights(scheme, 20_000, rng)
    mean, own = float(drawn[:, :k].mean()), np.take_along_axis(scores, members, axis=1)
    noise = float(1 - k * mean**2 / (drawn**2).sum(axis=1).mean())
    return mean * np.sqrt(np.clip(1.5 * own - 0.5, 0, 6)), noise


def folded_least_squares(
    Y: NDArray[np.float32],
    W: sparse.csr_array,
    noise: float,
    rng: np.random.Generator,
    steps: int = 50,
    power: int = 60,
) -> tuple[NDArray[np.float32], float]:
    """x (n, d) from y = |Wx + ε|, every pixel by itself, and the variance of ε; noise: its share of
    E[y²], to start from.

    Carlini et al. minimise Σ(|Wx| − y)²; where ε is as strong as Wx that is far off, and the
    likelihood of the same model is not. Start: E[y²] = (Wx)² + τ², so that least squares of y² on
    W∘W give x², and the largest eigenvector of Σ_i rest_i·w_i w_iᵀ the signs. Then expectation–
    maximisation: x ← ridge fit to y·tanh(y·Wx/τ²), τ² ← the mean square of what is left.
    """
    m, n = W.shape
    scale = np.sqrt(np.mean(np.square(Y, dtype=np.float64), axis=0)) + 1e-30
    y, dense = (Y / scale).astype(np.float32), W.toarray()
    energy = np.hstack([dense**2, np.ones((m, 1), np.float32)])
    normal = (energy.T @ energy).astype(np.float64)
    normal[np.arange(n), np.arange(n)] += 1e-3 * np.trace(normal[:n, :n]) / n
    parts = np.linalg.lstsq(normal, energy.T @ y**2, rcond=None)[0].astype(np.float32)
    rest = y**2 - energy @ parts
    size = np.maximum(parts[:n], 1e-3 * np.maximum(parts[:n].mean(axis=0), 0) + 1e-6)
    v, diagonal = rng.standard_normal((n, y.shape[1])).astype(np.float32), (dense**2).T @ rest
    shift = np.zeros(y.shape[1], np.float32)
    for turn in range(power):
        v /= np.linalg.norm(v, axis=0) + 1e-30
        new = dense.T @ (rest * (dense @ v)) - diagonal * v
        # By now the largest eigenvalue in size is known: shifted, the largest positive one wins.
        shift = 0.8 * np.linalg.norm(new, axis=0) if turn == 15 else shift
        v = new + shift * v
    v *= np.sqrt(size.sum(axis=0) / np.maximum((v**2).sum(axis=0), 1e-30))
    x, variance = (np.copysign(np.sqrt(size), v) + v) / 2, float(size.mean())
    gram, free = (dense.T @ dense).astype(np.float64), 1 - min(0.9, n / m)

    def fit(likely: NDArray[np.float32], tau2: Any) -> NDArray[np.float32]:
        ridge = max(float(np.mean(tau2)) / variance, 1e-6 * float(gram.diagonal().max()))
        return np.linalg.solve(gram + ridge * np.eye(n), dense.T @ likely).astype(np.float32)

    def left(likely: NDArray[np.float32], mean: NDArray[np.float32]) -> NDArray[np.float32]:
        # y² has mean 1 here, and the unknowns use up some of the equations.
        over = 1 + np.mean(mean * (mean - 2 * likely), axis=0, dtype=np.float64)
        return np.clip(over / free, 1e-6, 1.0).astype(np.float32)

    start = np.full(y.shape[1], max(noise, 1e-6), np.float32)
    x, tau2 = maximise(y, x.astype(np.float32), start, lambda x: dense @ x, fit, steps, left)
    return (x * scale).astype(np.float32), float(np.mean(tau2 * scale**2))
