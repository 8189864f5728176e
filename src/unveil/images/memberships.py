"""How likely each encoding mixes each private image, from clusters that are neither complete nor
pure.

Every cluster has a template: the combination of whitened squares that explains its members best,
next to all other templates. An encoding's score against it, its own share taken out, is about λ²
where it mixes the image, and noise around zero elsewhere. With the law of λ known, the score
becomes a probability and an expected λ. Probabilities of an encoding are shifted to sum to k; where
rows come epoch by epoch those of an image in an epoch as well (`images.epochs`). They stay soft:
naming the best k at this stage destroys the step that follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.gram.cosines import Alike
from unveil.images.clusters import cluster_size, grow_by_class
from unveil.images.epochs import (
    CERTAIN,
    HALF,
    Epochs,
    epochs_of,
    even_columns,
    forget_within,
    logistic,
    matched_odds,
)
from unveil.images.labelled import labelled_memberships
from unveil.images.labels import ImageMemberships, vote, with_labels
from unveil.images.leftover import leftover_clusters
from unveil.images.settling import DEVIATION
from unveil.parallel import run_blocks, where, worker_count
from unveil.records import Progress

Floats = NDArray[np.float32]
ROUNDS = 7
"""Times templates and probabilities are found from each other."""
GROWTH = (1, 2, 3, 4)
"""Rounds after which clusters that were missed are looked for: strong images hide the others at
first."""
LOOK = 60
"""Clusters by which it is seen whether rows come epoch by epoch: of 400 images the search for all,
which has to begin again if they do, took a third of the time of this stage."""
DROPS, MORE = 2, 4
"""Of rows in epochs: the round from which on uneven columns are dropped, when the first that were
missed have joined; and columns beyond those that are needed, of which the most even stay."""
SURE = 0.8
"""Probability of a member that is taken for one: an encoding with k of them has all its images."""
FAINT = 0.02
"""Probabilities below do not take part in templates: there are many, and they are noise."""
GRID = 25
"""Weights at which the likelihood of a score is averaged, at equal steps of the law's quantiles."""
TAIL = 0.02
"""Quantiles of the law left out at either end: extreme weights would take in any outlier."""
RIDGE, TEMPLATE_RIDGE, LEVEL_RIDGE = 0.1, 0.05, 0.001
"""Ridges, by the mean of the normal equations: of scores, where templates are noisy; of templates;
and of the common level, by that of scores, since it is well known."""
ROWS = 128
"""Encodings whose scores are looked at together: they stay in the processor's cache."""
BISECTIONS = 25
"""Halvings of the shift of log odds: 120·2⁻²⁵ is nothing."""
MOST = 0.85
"""Expected private weights sum to this at most where public images take a share: more leaves these
nothing."""
SMALLEST = 1e-9
"""Guards divisions by a unit or a spread that may be zero."""


def image_memberships(
    alike: Alike,
    k: int,
    n: int | None,
    law: NDArray[np.float64],
    *,
    labels: NDArray[np.float32] | None = None,
    ordered: bool = True,
    epochs: Epochs | None = None,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> ImageMemberships | None:
    """law: a sample of private weights; n: how many images, None: as many as there are clusters;
    ordered: rows may come epoch by epoch, which is found out, unless `epochs` says so. None: no
    cluster at all. Cosines are changed where rows of one epoch say nothing of each other."""
    # 1. Clusters in the cosines of whitened squares. Of unknown n: all that stand out.
    m, K = len(alike), alike.cosines
    norms = alike.lengths**2
    if labels is not None and ordered:
        known = labelled_memberships(alike, labels, k, n, rng)
        if known is not None:
            return known
    size = cluster_size(k, m, n) if n else m // 4
    most = n if n is not None else m
    asks = ordered and n is not None and labels is None and epochs is None
    first = min(most, LOOK) if asks else most
    clusters = []
    if epochs is None:
        clusters = grow_by_class(K, labels, size=size, most=first, rng=rng, progress=progress)
    # 2. Where rows come epoch by epoch, an image has k rows of each, and rows of one epoch are
    #    alike by the public images they share: clusters again, with that known. Else the others.
    if n is None:
        size = cluster_size(k, m, max(len(clusters), 1))
    elif asks and clusters:
        epochs = epochs_of(who(clusters, m), n, k)
    if epochs is not None:
        forget_within(K, epochs)
        clusters = grow_by_class(
            K, labels, size=size, most=most, epochs=epochs, rng=rng, progress=progress
        )
    elif len(clusters) == first < most:
        clusters += grow_by_class(
            K, labels, size=size, most=most - first, have=clusters, rng=rng, progress=progress
        )
    if not clusters:
        return None
    # 3. The first template of a cluster: the mean of its members, each of the same norm.
    expected = np.zeros((m, len(clusters)), np.float32)
    for c, cluster in enumerate(clusters):
        expected[cluster, c] = np.sqrt(norms.mean() / norms[cluster]) / len(cluster)
    products = alike.times(expected)
    combine: NDArray[np.floating] = np.eye(len(clusters))
    out = ImageMemberships(np.zeros((m, 0), np.float32), np.zeros((m, 0), np.float32))
    for turn in range(ROUNDS):
        # 4. Scores against templates, and from them probabilities and weights.
        hat = (expected @ combine).astype(np.float32)
        scores, _ = _scores(alike, hat, (products @ combine).astype(np.float32))
        odds, weight, _ = _log_odds(scores, k, n or hat.shape[1], law)
        if epochs is None:
            out = _labelled(ImageMemberships(_to_sum(odds, k), weight), hat, labels, k)
        else:
            if turn >= DROPS:
                full = epochs.n if turn > max(GROWTH) else hat.shape[1]
                keep = even_columns(_to_sum(odds, k), epochs, full)
                odds, weight = odds[:, keep], weight[:, keep]
            matched = logistic(matched_odds(odds, epochs))
            out = ImageMemberships(_single(matched), weight, epochs)
        if turn == ROUNDS - 1:
            break
        # 5. Templates again: least squares of all squares on the expected λ².
        expected = np.where(out.probability > FAINT, out.probability * out.weight**2, 0).astype(
            np.float32
        )
        products = alike.times(expected)
        # 6. Clusters that were missed join with the mean of λ² in their encodings. Where it is told
        #    later which of them are images, more than are needed.
        room = most + (0 if epochs is None else MORE) - expected.shape[1]
        if turn in GROWTH and room > 0:
            sure = out.probability > SURE
            new = leftover_clusters(
                alike, expected, products, sure.sum(axis=1) >= k, out.probability > 0.5,
                size=size, most=room, labels=labels, epochs=epochs, rng=rng,
            )  # fmt: skip
            if new:
                more = (who(new, m) * np.mean(law**2)).astype(np.float32)
                expected = np.concatenate([expected, more], axis=1)
                products = np.concatenate([products, alike.times(more)], axis=1)
        normal = (expected.T @ expected).astype(np.float64)
        normal[np.diag_indices(len(normal))] += (
            TEMPLATE_RIDGE * np.trace(normal) / len(normal) + 1e-12
        )
        combine = np.asarray(np.linalg.inv(normal))
    # 7. With labels the order of rows is for later rounds: known here already, it cost 0.06 of SSIM
    #    at T = 25, and on one seed everything.
    if labels is not None and n is not None and ordered:
        out = replace(out, epochs=epochs_of(out.probability > HALF, n, k))
    return out


def _scores(
    alike: Alike, hat: Floats, templates: Floats
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least squares of every encoding over all templates and the level common to all, its own share
    taken out; and the products of templates with each other. hat (m, c): of which encodings
    templates consist; templates: gram·hat."""
    gram = (hat.T @ templates).astype(np.float64)
    c = len(gram)
    scale = np.sqrt(max(np.trace(gram), 0.0) / c / max(alike.level_norm, 1e-30))
    both = np.empty((c + 1, c + 1))
    both[:c, :c] = gram
    both[c, :c] = both[:c, c] = scale * (alike.level @ hat)
    both[c, c] = scale**2 * alike.level_norm
    ridge = np.full(c + 1, RIDGE * np.trace(both) / (c + 1))
    ridge[c] *= LEVEL_RIDGE
    products = np.concatenate(
        [templates - hat * alike.lengths[:, None] ** 2, scale * alike.level[:, None]], axis=1
    )
    scores = np.linalg.solve(both + np.diag(ridge), products.T.astype(np.float64)).T[:, :c]
    return np.asarray(scores, np.float64), gram


def posterior(
    scores: NDArray[np.float64],
    k: int,
    n: int,
    law: NDArray[np.float64],
    epochs: Epochs | None = None,
) -> tuple[ImageMemberships, NDArray[np.float64]]:
    """Probability and expected λ from scores, which are brought to the unit of λ² by the mean of
    each column's largest."""
    odds, weight, unit = _log_odds(scores, k, n, law)
    if epochs is None:
        return ImageMemberships(_to_sum(odds, k), weight), unit
    return ImageMemberships(_single(logistic(matched_odds(odds, epochs))), weight, epochs), unit


def _log_odds(
    scores: NDArray[np.float64], k: int, n: int, law: NDArray[np.float64]
) -> tuple[Floats, Floats, NDArray[np.float64]]:
    """Log odds (m, c) that each image is in each encoding, its expected weight there, and the unit
    of each column's scores."""
    # 1. Scores in the unit of λ², noise around zero. Single precision from here on: exponentials of
    #    all scores are what takes longest.
    m = len(scores)
    top = min(max(1, k * m // n), m // 2)
    best = np.partition(scores, m - top, axis=0)[m - top :]
    unit = np.maximum(best.mean(axis=0), SMALLEST) / np.mean(law**2)
    x = (scores / unit).astype(np.float32)
    x -= np.median(x, axis=0)
    spread = DEVIATION * np.median(np.abs(x), axis=0) + np.float32(SMALLEST)
    grid = np.quantile(law, np.linspace(TAIL, 1 - TAIL, GRID)).astype(np.float32)
    odds, weight = np.empty_like(x), np.empty_like(x)

    def task(rows: slice) -> None:
        # 2. Likelihood of each score without the image, and with it, averaged over the law. The
        #    largest exponent is taken out first, so that nothing overflows.
        score = x[rows] / spread
        none = -0.5 * score**2
        likelihoods = [-0.5 * (score - value**2 / spread) ** 2 for value in grid]
        largest = none
        for likelihood in likelihoods:
            largest = np.maximum(largest, likelihood)
        total, first = np.zeros_like(none), np.zeros_like(none)
        for value, likelihood in zip(grid, likelihoods, strict=True):
            likelihood -= largest
            np.exp(likelihood, out=likelihood)
            total += likelihood
            first += np.multiply(value, likelihood, out=likelihood)
        with np.errstate(divide="ignore"):
            odds[rows] = np.log(k / n / GRID * total) - (none - largest)
        weight[rows] = first / np.maximum(total, 1e-30)

    _by_rows(task, m)
    return odds, weight, unit


def _to_sum(odds: Floats, k: int) -> Floats:
    """Probabilities, of log odds with a shift for each encoding after which they sum to k."""
    out = np.empty_like(odds)

    def task(rows: slice) -> None:
        part = odds[rows]
        low, high = np.full((2, len(part)), [[-CERTAIN], [CERTAIN]], np.float32)
        for _ in range(BISECTIONS):
            shift = (low + high) / 2
            above = logistic(part + shift[:, None]).sum(axis=1) > k
            high, low = np.where(above, shift, high), np.where(above, low, shift)
        out[rows] = logistic(part + shift[:, None])

    _by_rows(task, len(odds))
    return out


def _by_rows(task: Callable[[slice], None], m: int) -> None:
    blocks = [slice(start, start + ROWS) for start in range(0, m, ROWS)]
    run_blocks(task, blocks, worker_count(where().workers))


def expected_weights(found: ImageMemberships, public: bool) -> tuple[Floats, Floats]:
    """Expected weights and squared weights (m, n); public: whether public images take a share."""
    p = np.where(found.probability > FAINT, found.probability, 0)
    weights, squares = p * found.weight, p * found.weight**2
    total = weights.sum(axis=1, keepdims=True)
    # 1e-6 guards the division: an encoding may have no likely member.
    scale = np.minimum(1, (MOST if public else 1.0) / np.maximum(total, 1e-6)).astype(np.float32)
    return np.asarray(weights * scale, np.float32), np.asarray(squares * scale**2, np.float32)


def _labelled(
    found: ImageMemberships, hat: Floats, labels: Floats | None, k: int
) -> ImageMemberships:
    """Memberships that respect labels, where there are any; hat (m, c): the templates."""
    if labels is None:
        return found
    return with_labels(found, labels, vote(np.maximum(hat, 0), labels), k)


def who(clusters: list[NDArray[np.int64]], m: int) -> NDArray[np.bool_]:
    """(m, clusters): who is in which."""
    out = np.zeros((m, len(clusters)), bool)
    for c, cluster in enumerate(clusters):
        out[cluster, c] = True
    return out


def _single(values: NDArray[np.float64]) -> Floats:
    return values.astype(np.float32)
