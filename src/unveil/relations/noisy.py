"""Relations under rounding and noise: candidates by similarity, then a likelihood ratio, then the
size of what is left.

    1  pairs ← most similar encodings, by whitened energies (`gram.energies`): a guide, no more;
       wrong pairs cost time only
    2  relations ← every two of these pairs, Gaussian residuals against chance, pixel by pixel
       (`relations.among`)
    3  relations ← those with the least residual on many more pixels: a relation that nearly holds,
       because two vectors are alike, leaves more than noise does; and that least residual is the
       noise

Under noise hashing finds nothing: a cell wide enough for noise holds most pairs of encodings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.gram.energies import whitened_energies
from unveil.records import Progress
from unveil.relations.among import find_among
from unveil.relations.find import Relations
from unveil.relations.sketch import Index, Sketch, sketch

PIXELS = 256
"""Pixels of the likelihood ratio: under noise of 5% one says half a nat."""
MORE_PIXELS = 1536
"""Pixels on which the residual is measured, to one part in thirty."""
PER_ROW = (3, 8, 30)
"""Candidate pairs per encoding: few where similarity tells much, as for images; more where few
relations were found."""
NEXT_TO_NONE = 0.005
"""Relations per encoding below which more pairs are not worth their time: ten times the pairs have
a hundred times the relations at most, and one per encoding is the least that is of use."""
ENOUGH = 3
"""Relations per encoding with which the search ends."""
SHARP = 5.0
"""Standard deviations by which a residual may exceed the least ones."""
CENTRES, TOGETHER = 1024, 12
"""Pixels around which others are gathered, and how many: two by two with three colours, or a little
more of a grey image."""
ALIKE = 0.85
"""Correlation over the encodings from which on pixels go together."""
SLACK = 1.6
"""Room for signs that change among pixels that go together, as a factor of the noise of their
mean."""
LEAST = 0.1
"""The share of relations, those with the smallest residuals, that measure the noise."""


def find_noisy(
    y: NDArray[np.float32],
    noise: float,
    limit: int,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> tuple[Sketch, Relations]:
    """(a sketch, relations among its rows) of |Σx| = y (m, d), unit weights, with noise of about
    `noise`, or less."""
    m = len(y)
    smooth, less = blurred(y, noise, rng)
    view = sketch(smooth, None, less, rng, PIXELS)
    found = Relations(np.empty((0, 4), np.int64), True, 0)
    if 24 * m * m > limit or m < 4:
        return view, found
    gram = whitened_energies(y).gram
    size = np.sqrt(np.maximum(np.diag(gram), 1e-30))
    i, j = np.triu_indices(m, 1)
    similarity = gram[i, j] / (size[i] * size[j])
    for per_row in PER_ROW:
        most = min(per_row * m, len(i))
        best = np.argpartition(-similarity, most - 1)[:most]
        found = find_among(view, np.column_stack([i[best], j[best]]), progress=progress)
        if not found.possible:
            break
        quads = _sharpest(y, found.quads, noise, rng)
        found = Relations(quads, True, 0)
        if len(quads) >= ENOUGH * m or len(quads) < NEXT_TO_NONE * m:
            break
    return view, found


def blurred(
    y: NDArray[np.float32], noise: float, rng: np.random.Generator
) -> tuple[NDArray[np.float32], float]:
    """(means of pixels that go together (m, p), the noise of such a mean); the pixels themselves
    where none do.

    Neighbouring pixels of an image have the same sign in nearly every encoding, so that their mean
    magnitude is the magnitude of their mean, with less noise. Which pixels are neighbours is seen
    in their correlation: no shape needs to be known.
    """
    d = y.shape[1]
    centres = rng.permutation(d)[:CENTRES]
    z = y - y.mean(axis=0)
    z /= np.maximum(np.linalg.norm(z, axis=0), 1e-30)
    alike = z[:, centres].T @ z
    group = np.argsort(-alike, axis=1)[:, :TOGETHER]
    together = np.take_along_axis(alike, group, axis=1).min(axis=1) > ALIKE
    if together.sum() < PIXELS or d < CENTRES:
        return y, noise
    group = group[together]
    mean = np.stack([y[:, g].mean(axis=1) for g in group], axis=1)
    return np.ascontiguousarray(mean, dtype=np.float32), noise * SLACK / np.sqrt(TOGETHER)


def _sharpest(
    y: NDArray[np.float32], quads: Index, noise: float, rng: np.random.Generator
) -> Index:
    """Relations whose residuals are no larger than noise makes them, by the smallest there are."""
    if len(quads) < 20:
        return quads
    d = y.shape[1]
    pixels = rng.permutation(d)[:MORE_PIXELS]
    z = y[:, pixels].astype(np.float64)
    residual = np.empty(len(quads))
    for start in range(0, len(quads), 512):
        a, b, c, e = (z[quads[start : start + 512, i]] for i in range(4))
        one, two = (a + b, np.abs(a - b)), (c + e, np.abs(c - e))
        apart = np.minimum.reduce([np.abs(u - v) for u in one for v in two]) / (2 * noise)
        residual[start : start + 512] = np.mean(np.minimum(apart, 3.0) ** 2, axis=1)
    least = float(np.quantile(residual, LEAST))
    return np.asarray(quads[residual <= least * (1 + SHARP * np.sqrt(2 / len(pixels)))])
