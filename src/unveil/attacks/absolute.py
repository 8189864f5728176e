"""The absolute value (Jagielski 2020, as the paper tells it): what one encoding of two natural
images shows by itself.

    y = |λ₁x₁ + λ₂x₂|, no public part; encodings are not compared

    1  y ← |y|                     random signs go: large parts of both images can be seen
    2  z ← ±y as a smooth field    its sign changes only where y is near zero (`images.fields`)
    3  h ← z/(λ₁ + λ₂)             the mean of the two images
    4  x₁, x₂ ← h + u, h − u       by pairs of like images, where they are given (`Layers`);
                                   then 2 to 4 once more
    5  clipped to [−1, 1]

Without like images both come back as h: nothing else tells them apart. Nothing is exact: all images
are unresolved. How good they are likely to be is measured on mixtures of like images, attacked in
the same way. Weights that differ are taken for equal ones. With more images in a mixture, or public
ones, too little is left to see: that is for `natural`, which compares encodings.

Cost per encoding: some hundred thin products with the prior's components, and a pass over pairs of
like images: about 0.1 s for 28×28 pixels and 180 like images, 0.3 s for 32×32×3 and 1,000 (`python
-m benchmarks.absolute`). Blocks of encodings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.checks import InputError, as_vectors
from unveil.encodings import Encodings
from unveil.images.fields import Mixture, anneal
from unveil.images.model import Copies, Prior, image_prior
from unveil.parallel import Stopwatch
from unveil.parallel import memory_limit as settle_limit
from unveil.records import UNRESOLVED, Progress, Recovery
from unveil.seeds import Rng, child, root

NAME = "absolute"
BLOCK = 256
"""Encodings treated at once, to bound memory."""
COARSE, AGAIN = np.geomspace(1, 0.01, 30), np.geomspace(0.3, 0.01, 20)
"""ε of `images.fields`: from nothing, and from a guess at the mixture."""
ROUNDS = 2
"""Times signs are restored and images split: the second time from the guess of the first."""
UNEXPLAINED = 0.05
"""Least share of a mixture's energy that pairs of like images leave open, whatever they say: they
fit better than they know."""
EMPTY = 1e-9
"""Guards divisions: an image may be the mean image."""
TILT = np.float32(0.02)
"""Where nothing is known of the mean image, one sign of the whole is as good as the other: this
decides."""
FEWEST_LIKE, TRIED = 60, 24
"""Like images from which on images are split; and of these, mixtures of two made to see how well
that works."""

Floats = NDArray[np.float32]


def absolute(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    like: ArrayLike | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Two images for each encoding: 2i and 2i + 1 are those of encoding i.

    like: images of the same kind as the private ones, in [−1, 1]; without them images are not split
    """
    scheme, m, shape = encodings.scheme, encodings.m, encodings.shape
    if shape is None:
        raise InputError(
            "attack='absolute' needs images, for smoothness: "
            "give Encodings(image_shape=(height, width[, channels]))"
        )
    if scheme.k_private != 2 or scheme.k_public:
        raise InputError(
            f"k_private={scheme.k_private}, k_public={scheme.k_public}: attack='absolute' is for "
            "two private images and no public one; use attack='natural'"
        )
    if scheme.signs == "kept":
        raise InputError("signs='kept': nothing is hidden by an absolute value; use attack='mixup'")
    if 4 * 4 * m * encodings.d > settle_limit(memory_limit):
        raise InputError(
            f"two images for each of {m:,} encodings are more than the memory limit: "
            "attack fewer, or raise it"
        )
    # 1. What images look like, and pairs of like ones.
    clock, seed = Stopwatch(), root(rng)
    sample = None if like is None else as_vectors(like, "like")
    with clock("prior"):
        prior = image_prior(shape, sample)
        splits = sample is not None and len(sample) >= FEWEST_LIKE
        layers = Layers(sample) if splits and sample is not None else None
    # 2. Every encoding by itself.
    weight = scheme.private_weight if scheme.fixed_weights else 0.5
    images = np.empty((m, 2, encodings.d), np.float32)
    miss = np.empty(m)
    for start in range(0, m, BLOCK):
        rows = slice(start, start + BLOCK)
        with clock("images"):
            images[rows], miss[rows] = _images(
                encodings.magnitudes(rows), weight, prior, layers, Copies(shape)
            )
        if progress:
            progress("images", min(start + BLOCK, m), m)
    # 3. How good that is, on mixtures whose images are known.
    expected = None
    if splits and sample is not None:
        with clock("likeness"):
            expected = _expected(sample, shape, weight, child(seed, "likeness"))
    return _recovery(encodings, images.reshape(2 * m, -1), miss, expected, prior.known, clock)


class Layers:
    """Two images from their mean h = (x₁ + x₂)/2, where images of the same kind are at hand.

    x₁ = h + u and x₂ = h − u fit h whatever u is. Of all pairs (a, b) of like images those with the
    smallest ‖h − (a + b)/2‖ look like (x₁, x₂): u is the mean of ±(a − b)/2 over the best of them,
    weighted by fit, each the way round that agrees with the best pair. Where pairs disagree they
    cancel, so that u is as large as what is known of it.

    most: like images looked at, evenly spaced; memory goes with their pairs.
    pairs: pairs averaged. The best one alone has details that are not in the image.
    """

    def __init__(self, like: Floats, *, most: int = 1000, pairs: int = 200) -> None:
        self.pairs = pairs
        self.like = np.ascontiguousarray(like[:: -(-len(like) // most)])
        gram = self.like @ self.like.T
        self.first, self.second = np.triu_indices(len(gram), 1)
        size = np.diag(gram)
        # ‖(a + b)/2‖² of every pair: with two products per image it gives all costs.
        self.quarter = ((size[:, None] + size + 2 * gram) / 4)[self.first, self.second]

    def split(self, h: Floats) -> tuple[Floats, Floats, NDArray[np.float64]]:
        """u (m, d), the mean of the best pairs (m, d), and ‖h − (a + b)/2‖² of the best one
        (m,)."""
        u, mean, miss = np.empty_like(h), np.empty_like(h), np.empty(len(h))
        count = min(self.pairs, len(self.quarter))
        for i, image in enumerate(h):
            along = self.like @ image
            cost = self.quarter - along[self.first] - along[self.second]
            top = np.argpartition(cost, count - 1)[:count]
            top = top[np.argsort(cost[top], kind="stable")]
            a, b = self.like[self.first[top]], self.like[self.second[top]]
            apart = (a - b) / 2
            # (a, b) and (b, a) fit alike: turned the way that agrees with the best pair.
            way = np.where(apart @ apart[0] < 0, np.float32(-1), np.float32(1))
            # A third of the spread of costs as temperature: the last of the pairs hardly counts.
            # 1e-9 guards the division, should all pairs cost the same.
            spread = max(float(cost[top[-1]] - cost[top[0]]), 1e-9)
            weight = np.exp(-3 * (cost[top] - cost[top[0]]) / spread)
            weight = (weight / weight.sum()).astype(np.float32)
            u[i], mean[i] = (weight * way) @ apart, weight @ (a + b) / 2
            miss[i] = max(0.0, float(cost[top[0]]) + float(image @ image))
        return u, mean, miss


def _images(
    y: Floats, weight: float, prior: Prior, layers: Layers | None, copies: Copies
) -> tuple[Floats, NDArray[np.float64]]:
    """(m, 2, d), and the share of each mean image that pairs of like ones do not explain."""
    m, total = len(y), np.float32(2 * weight)
    nothing = sparse.csr_array(np.zeros((m, 1), np.float32)), np.zeros((1, y.shape[1]), np.float32)
    noise = np.full(m, 2 * weight**2, np.float32)
    level = prior.mean if prior.known else prior.mean - TILT
    mean, u, miss = np.repeat(level[None], m, axis=0), np.zeros_like(y), np.ones(m)
    for turn in range(ROUNDS if layers is not None else 1):
        mixture = Mixture(nothing[0], noise, np.zeros(m, np.float32), prior.mean, total * mean)
        epsilons = AGAIN if turn else COARSE
        E = anneal(y, mixture, nothing[1], prior, copies, epsilons, prior.mean)[1]
        h = np.asarray(np.copysign(y, E) / total, np.float32)
        if layers is not None:
            u, mean, left = layers.split(h)
            miss = np.minimum(1, left / np.maximum(np.square(h - prior.mean).sum(axis=1), EMPTY))
            noise = (2 * weight**2 * np.maximum(miss, UNEXPLAINED)).astype(np.float32)
    return np.clip(np.stack([h + u, h - u], axis=1), -1, 1), miss


def _expected(
    like: Floats, shape: tuple[int, ...], weight: float, rng: np.random.Generator
) -> float:
    """Mean correlation of pixels with the true image, for mixtures of like images that the attack
    is not shown."""
    order = rng.permutation(len(like))
    count = min(TRIED, len(like) // 4)
    first, second, rest = (
        like[order[:count]],
        like[order[count : 2 * count]],
        like[order[2 * count :]],
    )
    y = np.abs(np.float32(weight) * (first + second))
    found, _ = _images(y, weight, image_prior(shape, rest), Layers(rest), Copies(shape))
    straight = _correlation(found[:, 0], first) + _correlation(found[:, 1], second)
    crossed = _correlation(found[:, 0], second) + _correlation(found[:, 1], first)
    return float(np.maximum(straight, crossed).mean()) / 2


def _correlation(a: Floats, b: Floats) -> NDArray[np.float64]:
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.einsum("ij,ij->i", a, b) / np.maximum(size, EMPTY), np.float64)


def _recovery(
    encodings: Encodings,
    images: Floats,
    miss: NDArray[np.float64],
    expected: float | None,
    signed: bool,
    clock: Stopwatch,
) -> Recovery:
    m = encodings.m
    if expected is None:
        how = "the mean of both images of encoding {}: like images would tell them apart"
    else:
        how = (
            "one of the two images of encoding {}: a correlation of about "
            f"{expected:.1f} with it is to be expected"
        )
    return Recovery(
        vectors=images,
        status=np.full(2 * m, UNRESOLVED, dtype="<U10"),
        signed=signed,
        members=sparse.csr_array(
            (np.ones(2 * m, bool), (np.repeat(np.arange(m), 2), np.arange(2 * m))), shape=(m, 2 * m)
        ),
        residual=np.repeat(miss, 2),
        reasons=tuple(how.format(i // 2) for i in range(2 * m)),
        attack=NAME,
        explanation=f"two images from each of {m} encodings by itself, "
        + (
            "not split: give like="
            if expected is None
            else f"expected to correlate {expected:.2f} with the true ones"
        )
        + "; none is exact",
        seconds=clock.seconds,
        evidence={} if expected is None else {"correlation": expected},
    )


ATTACK = absolute
