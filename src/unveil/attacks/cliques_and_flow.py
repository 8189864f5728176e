"""Cliques and flow: the attack that broke the InstaHide challenge, for any k_private.

    1  S ← how alike encodings are        overlaps, the user's own matrix, or from energies (`gram`)
    2  C ← cliques of S, grown greedily   an image's encodings are all alike
                                          (`rivals.cliques.greedy`)
    3  L ← k-means around the cliques     a score of every encoding against every image
                                          (`rivals.cliques.centres`)
    4  W ← min-cost flow                  k_private images per encoding, and where all occur equally
                                          often no image more than its share (`rivals.cliques.flow`)
    5  x ← min ‖|Wx| − y‖²                exact where nothing else is mixed in
                                          (`attacks.from_subsets`), else with the public part as
                                          noise (`rivals.cliques.folded_least_squares`)

Carlini, Deng, Garg, Jha, Mahloujifar, Mahmoody, Song, Thakurta, Tramèr: "Is Private Learning
Possible with Instance Encoding?", 2020. There S comes from a neural network trained on public
images; here it is an input. Weights that differ from encoding to encoding are read off labels,
where there are any, else guessed from the scores. With such weights or with a public part nothing
is exact, and nothing is called verified. Centres are a dense m×n matrix: not more than a few
thousand images.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.attacks.finish import incidence
from unveil.attacks.from_subsets import from_subsets
from unveil.checks import InputError, as_vectors
from unveil.encode.weights import sample_weights
from unveil.encodings import Encodings, as_public
from unveil.gram.correlation import squared_correlations
from unveil.gram.energies import whitened_energies
from unveil.gram.gram_extract import gram_extract
from unveil.images.memberships import Labels
from unveil.images.model import image_prior
from unveil.images.start import pixel_signs
from unveil.parallel import Stopwatch
from unveil.parallel import memory_limit as settle_limit
from unveil.records import UNRESOLVED, Overlaps, Progress, Recovery
from unveil.rivals.cliques.centres import Centres, clique_centres
from unveil.rivals.cliques.flow import assign
from unveil.rivals.cliques.folded_least_squares import folded_least_squares
from unveil.rivals.cliques.greedy import Similarity
from unveil.scheme import Scheme
from unveil.seeds import Rng, child, root

NAME = "cliques"
LAW = 20_000
"""Draws from which the mean weight is taken: sure to a percent."""
EXPLAINED = 0.5
"""Of the energy that private vectors have, so much must be explained. It keeps out much, not all:
cliques of chance explain a fifth of the energy of 300 encodings of 1000 pixels, and more of smaller
instances."""
CHANCE, MOST = 1 / 3, 4.0
"""Scores go with the square of a weight. The best of many images that are not there scores about
`CHANCE`; a weight is guessed as at most √(`MOST`/(1 − `CHANCE`)) times the mean."""


def cliques_and_flow(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    similarity: ArrayLike | sparse.sparray | None = None,
    like: ArrayLike | None = None,
    n_private: int | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector that a clique of encodings shows: exact without a public part, else
    about as it was.

    overlaps: to start from, where they are known; some may be wrong
    similarity: (m, m), dense or sparse, higher where encodings are more alike, by whatever means:
    instead of overlaps
    like: images like the public ones, which tell the signs of pixels better than images in general
    do (with encodings.shape)
    n_private: how many private vectors there are; None: as many as there are cliques
    """
    scheme, m, k = encodings.scheme, encodings.m, encodings.scheme.k_private
    if k < 2:
        raise InputError(
            f"k_private={k}: cliques and flow tell apart who mixes whom, from k_private=2 on; "
            "use attack='full'"
        )
    if overlaps is not None and similarity is not None:
        raise InputError(
            "overlaps and similarity: either is what cliques are looked for in; give one of them"
        )
    if n_private is not None and n_private < k:
        raise InputError(
            f"n_private={n_private}: an encoding mixes {k} private vectors; give that many or more"
        )
    # 1. Similarities.
    P = None if public is None else as_public(public, encodings)
    sample = None if like is None else as_vectors(like, "like")
    limit = settle_limit(memory_limit)
    seed, clock = root(rng), Stopwatch()
    with clock("similarity"):
        S, graph = _similarity(encodings, P, overlaps, similarity, limit, progress)
    # 2. to 4. Cliques, refined, and k_private of them for each encoding.
    with clock("cliques"):
        draw, even = child(seed, "cliques"), scheme.pairing != "independent"
        centres = clique_centres(S, k, draw, n=n_private, even=even, graph=graph, progress=progress)
    del S, graph
    if centres is None or centres.scores.shape[1] <= k:
        why = (
            f"no cliques among {m} encodings: too few of them share a private vector, "
            "or what they share cannot be seen"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    # 5. Values: exact and certified where private vectors are all there is, else about right.
    if scheme.fixed_weights and not scheme.k_public:
        rows = np.flatnonzero(centres.sure)
        facts = {"cliques": centres.scores.shape[1], "encodings_assigned": len(rows)}
        draw = child(seed, "pixels")
        return from_subsets(
            encodings,
            NAME,
            rows,
            centres.members[rows],
            draw,
            clock,
            facts=facts,
            progress=progress,
        )
    return _approximate(
        encodings, centres, sample if sample is not None else P, seed, limit, clock, progress
    )


def _similarity(
    encodings: Encodings,
    P: NDArray[np.float32] | None,
    overlaps: Overlaps | None,
    similarity: ArrayLike | sparse.sparray | None,
    limit: int,
    progress: Progress | None,
) -> tuple[Similarity, Similarity | None]:
    """S with zero for encodings that share nothing, and the graph cliques are grown in where that
    is another one."""
    # 1. Overlaps, given or readable: each as far as it is sure.
    scheme, m = encodings.scheme, encodings.m
    readable = (
        scheme.fixed_weights and encodings.shape is None and (P is not None or not scheme.k_public)
    )
    if similarity is None and (overlaps is not None or readable):
        M = (
            gram_extract(encodings, P, memory_limit=limit, progress=progress)
            if overlaps is None
            else overlaps.of(encodings)
        )
        confidence = np.float32(1) if M.confidence is None else M.confidence
        shared = sparse.csr_array(
            (M.matrix.data * confidence, M.matrix.indices, M.matrix.indptr), shape=(m, m)
        )
        S = _without_diagonal(shared)
        graph = S.copy()
        # Two shared vectors are no better reason to be in one clique: it would become that of both.
        graph.data = np.minimum(graph.data, np.float32(1))
        return S, graph
    # 2. The user's own sparse matrix: what is not stored shares nothing.
    if sparse.issparse(similarity):
        stored = sparse.csr_array(similarity)
        _check(stored.shape, stored.data, m)
        return _without_diagonal(stored.astype(np.float64)), None
    if 20 * m * m > limit:
        raise InputError(
            f"similarities of {m:,} encodings need about {20 * m * m / 2**30:.1f} GiB, more than "
            "the memory limit: attack fewer of them, give similarity= as a sparse array, or raise "
            "memory_limit"
        )
    # 3. A dense matrix: the user's own; for images cosines of whitened energies, which neighbouring
    #    pixels do not drown; else correlations of squares.
    if similarity is not None:
        given = np.asarray(similarity)
        _check(given.shape, given, m)
        dense = given.astype(np.float32)
        dense = np.asarray((dense + dense.T) / 2, np.float32)
    elif encodings.shape is not None:
        dense = whitened_energies(encodings.magnitudes()).gram
        scale = 1 / np.sqrt(np.maximum(np.diag(dense), 1e-12))
        dense = np.asarray(dense * scale * scale[:, None], np.float32)
    else:
        dense = squared_correlations(encodings.magnitudes()).astype(np.float32)
    # 4. Most encodings share nothing: their similarity is zero.
    dense -= np.median(dense[~np.eye(m, dtype=bool)]) if m > 1 else 0
    np.fill_diagonal(dense, 0)
    return np.ascontiguousarray(dense, np.float32), None


def _check(shape: tuple[int, ...], values: NDArray[Any], m: int) -> None:
    if shape != (m, m) or values.dtype.kind not in "fiub":
        raise InputError(
            f"similarity of shape {shape}: give a square matrix of real numbers, {m} by {m}"
        )
    if not np.isfinite(values).all():
        raise InputError("similarity with NaN or infinite values: put 0 where nothing is known")


def _without_diagonal(matrix: sparse.csr_array) -> sparse.csr_array:
    """Symmetric, its diagonal gone, in single precision."""
    both = ((matrix + matrix.T) / 2).tocoo()
    keep = (both.row != both.col) & (both.data != 0)
    return sparse.csr_array(
        (both.data[keep].astype(np.float32), (both.row[keep], both.col[keep])), shape=matrix.shape
    )


def _approximate(
    encodings: Encodings,
    centres: Centres,
    sample: NDArray[np.float32] | None,
    seed: np.random.SeedSequence,
    limit: int,
    clock: Stopwatch,
    progress: Progress | None,
) -> Recovery:
    """With the public part, or with what weights are off by, as noise."""
    # 1. More equations than unknowns: noise takes some of them.
    m, d, n = encodings.m, encodings.d, centres.scores.shape[1]
    if m <= n:
        why = (
            f"{m} encodings of {n} private vectors: "
            "with noise in them too few to solve for their values"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    # 2. Weights, then values pixel by pixel.
    with clock("pixels"):
        weight, noise = _expected(encodings.scheme, child(seed, "law"))
        members, weights = _weights(encodings, centres, weight)
        draw = child(seed, "pixels")
        fit = folded_least_squares(
            encodings.magnitudes(), members, weights, n, noise, draw, progress=progress
        )
    # 3. Cliques of chance explain too little.
    left = float(np.mean(fit.noise**2) / np.mean(np.square(encodings.values, dtype=np.float64)))
    if 1 - left < EXPLAINED * (1 - noise):
        why = (
            f"the {n} cliques explain {1 - left:.0%} of the encodings' energy where private "
            f"vectors have {1 - noise:.0%}: they are not those of private vectors; "
            "more pixels or more encodings are needed, or another k_private"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    # 4. In images neighbouring pixels tell the sign of each pixel.
    values, signed = fit.values.astype(np.float32), False
    if encodings.shape is not None and 16 * d * d < limit:
        with clock("signs of pixels"):
            prior = image_prior(encodings.shape, sample)
            values = values * pixel_signs(values, prior, child(seed, "signs"))
            values = -values if values.mean(axis=0) @ prior.mean < 0 else values
            signed = prior.known
    # 5. The recovery: all unresolved, with the error to expect at best.
    pairs = [(np.arange(m), members)]
    at = np.repeat(np.arange(m), members.shape[1]), members.ravel()
    noise_is = (
        "the public part is taken for noise" if encodings.scheme.k_public else "weights are guessed"
    )
    return Recovery(
        vectors=values,
        status=np.full(n, UNRESOLVED, dtype="<U10"),
        signed=signed,
        members=incidence(pairs, m, n),
        residual=np.full(n, np.sqrt(left)),
        reasons=tuple(
            f"known to ±{error:.2g} per pixel at best: {noise_is}" for error in fit.error
        ),
        attack=NAME,
        explanation=f"{n} private vectors from {m} encodings, each to ±{np.median(fit.error):.2g} "
        f"per pixel at best; none is exact, since {noise_is}",
        seconds=clock.seconds,
        evidence={
            "cliques": n,
            "encodings_assigned": int(centres.sure.sum()),
            "standard_error": fit.error.tolist(),
        },
        weights=None
        if encodings.scheme.fixed_weights
        else sparse.csr_array((weights.ravel(), at), shape=(m, n)),
    )


def _expected(scheme: Scheme, rng: np.random.Generator) -> tuple[float, float]:
    """The mean weight of a private vector, and the share of the energy that is not that of these
    weights."""
    if scheme.fixed_weights:
        return scheme.private_weight, scheme.public_variance / (
            scheme.private_variance + scheme.public_variance
        )
    weights = sample_weights(scheme, LAW, rng)
    mean = float(weights[:, : scheme.k_private].mean())
    return mean, float(1 - scheme.k_private * mean**2 / (weights**2).sum(axis=1).mean())


def _weights(
    encodings: Encodings, centres: Centres, mean: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Who mixes whom and how much, (m, k): by labels where there are any, what they rule out
    assigned anew; else by scores."""
    members, labels = centres.members, encodings.labels
    if labels is None and encodings.scheme.fixed_weights:
        return members, np.full(members.shape, mean)
    if labels is None:
        own = np.take_along_axis(centres.scores, members, axis=1)
        return members, mean * np.sqrt(np.clip(own - CHANCE, 0, MOST) / (1 - CHANCE))
    # An image has the class of most of its encodings; encodings without it are assigned anew.
    chosen = np.zeros(centres.scores.shape, np.float32)
    np.put_along_axis(chosen, members, 1, axis=1)
    classes = Labels(labels, members.shape[1]).classes_of(chosen).argmax(axis=1)
    possible = labels[:, classes] > 0
    members = assign(
        centres.scores - np.where(possible, 0, 10 * np.abs(centres.scores).max()), members.shape[1]
    )
    theirs = classes[members]
    several = (theirs[:, :, None] == theirs[:, None, :]).sum(axis=2)
    weights = np.take_along_axis(labels, theirs, axis=1) / several
    return members, np.where(weights > 0, weights, mean).astype(np.float64)


ATTACK = cliques_and_flow
