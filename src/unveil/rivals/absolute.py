"""The absolute value (Jagielski 2020, as the paper tells it): what one encoding of two natural
images shows by itself.

    y = |λ₁x₁ + λ₂x₂|, no public part; encodings are not compared

    1  y ← |y|                     random signs go: large parts of both images can be seen
    2  z ← ±y, x₁ − x₂             where images of the same kind are given (`like`): the pairs
                                   a, b of them with |λ(a + b)| nearest to y tell the signs of the
                                   sum and how it splits, each with weight exp(−distance)
    3  x₁, x₂ ← z/2λ ± u           clipped to [−1, 1]

Without like images both come back as |y|/2λ, the published attack. Nothing is exact: all images are
unresolved. Cost per encoding: one pass over all pairs of at most 200 like images.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.checks import InputError, Rng, as_vectors, child, root
from unveil.encodings import Encodings
from unveil.engine.blocks import Stopwatch, must_fit
from unveil.engine.blocks import memory_limit as settle_limit
from unveil.records import UNRESOLVED, Progress, Recovery

NAME = "absolute"
Floats = NDArray[np.float32]


def absolute(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    like: ArrayLike | None = None,
    most_like: int = 200,
    kept: int = 32,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Two images for each encoding: 2i and 2i + 1 are those of encoding i.

    like: images of the same kind as the private ones, in [−1, 1]; most_like: how many of them are
    looked at; kept: pairs of them whose mean is taken
    """
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    if encodings.image_shape is None:
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
        raise InputError("signs='kept': nothing was hidden; use attack='mixing'")
    must_fit(8 * m * d, f"two images for each of {m:,} encodings", settle_limit(memory_limit))
    # Weights that differ are taken for equal ones.
    clock, weight = Stopwatch(), scheme.private_weight if scheme.fixed_weights else 0.5
    images = np.empty((m, 2, d), np.float32)
    sample = None if like is None else as_vectors(like, "like")
    if sample is not None:
        sample = sample[child(root(rng), "like").permutation(len(sample))[:most_like]]
    with clock("images"):
        for i in range(m):
            y = encodings.magnitudes(slice(i, i + 1))[0]
            h, u = y / np.float32(2 * weight), np.zeros(d, np.float32)
            if sample is not None and len(sample) > 1:
                total, u = _nearest_pairs(y, sample, weight, kept)
                h = np.copysign(h, total)
            images[i] = np.clip([h + u, h - u], -1, 1)
            if progress:
                progress("images", i + 1, m)
    how = "like images would tell the two of encoding {} apart"
    if sample is not None:
        how = "one of the two images of encoding {}, by pairs of like images"
    at = np.repeat(np.arange(m), 2), np.arange(2 * m)
    return Recovery(
        vectors=images.reshape(2 * m, d),
        status=np.full(2 * m, UNRESOLVED, dtype="<U10"),
        signed=sample is not None,
        members=sparse.csr_array((np.ones(2 * m, bool), at), shape=(m, 2 * m)),
        residual=np.ones(2 * m),
        reasons=tuple(how.format(i // 2) for i in range(2 * m)),
        attack=NAME,
        explanation=f"two images from each of {m} encodings by itself; none is exact",
        seconds=clock.seconds,
    )


def _nearest_pairs(y: Floats, like: Floats, weight: float, kept: int) -> tuple[Floats, Floats]:
    """The sum and half the difference of the pairs of like images whose mixture is nearest to y."""
    first, second = np.triu_indices(len(like), 1)
    off = (np.abs(np.float32(weight) * (a + like[i + 1 :])) - y for i, a in enumerate(like))
    miss = np.concatenate([np.einsum("ij,ij->i", rows, rows) for rows in off])
    best = np.argsort(miss, kind="stable")[:kept]
    # Distances in units of the least one, per pixel: pairs much farther off count for nothing.
    w = np.exp(-0.5 * (miss[best] / max(float(miss[best[0]]), 1e-12) - 1) * 20)
    a, b = like[first[best]], like[second[best]]
    # Which of the two is which is open: each pair the way round that agrees with the first.
    turn = np.where(((a - b) @ (a[0] - b[0])) < 0, -1.0, 1.0)
    w /= w.sum()
    return (w @ (a + b)).astype(np.float32), ((w * turn) @ (a - b) / 2).astype(np.float32)
