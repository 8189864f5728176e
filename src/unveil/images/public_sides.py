"""Which way round each region of all images is, before signs are known: the public mean tells.

At the start every pixel has one sign that is common to all images, and neighbours have given it
(`images.pixel_signs`). Where private images have much in common a whole region can be inverted so:
of portraits the face, which is bright where the ground is dark. Only the mean of public images does
not turn with them. With a = Σ λx, b = (1 − Σ λ)·mean, and v the variance of all else, the evidence
of an encoding for a pixel as it is is

    log p(y | b + a) − log p(y | b − a) = log cosh(y(b + a)/v) − log cosh(y(b − a)/v) − 2ab/v

and neighbours p, q whose values correlate by r over n images speak for one sign, J = n·r²/(1 − r²).
The likeliest signs t maximise Σ h_p t_p + Σ J_pq t_p t_q. Where J is negative it is left out, so
that a minimum cut finds them exactly. O(m·d) and a cut of d pixels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from unveil.images.prior import ImagePrior
from unveil.images.regions import for_its_sign
from unveil.images.sign_fields import BLOCK, Mixture

Floats = NDArray[np.float32]
TOGETHER = 0.03
"""What one pixel's evidence is worth: public images are smooth, so that thirty pixels say one
thing. Between 0.01 and 0.1 the signs hardly differ (docs/natural_images_notes.md)."""
CLOSEST = 0.98
"""Largest correlation of neighbours that is believed: at one no region could turn."""
FINE = 1e6
"""Flows are whole numbers: the largest capacity in their unit."""
EMPTY = 1e-12
"""Guards divisions: a pixel may be zero in all images."""


def public_sides(
    Y: Floats, mixture: Mixture, images: Floats, prior: ImagePrior, shape: tuple[int, ...]
) -> Floats:
    """(d,) the sign by which each pixel of images (n, d) is likeliest; ones where nothing is known
    of the public mean."""
    if not prior.known:
        return np.ones(images.shape[1], np.float32)
    found = evidence(Y, mixture, images, prior).reshape(shape[0] * shape[1], -1)
    p, q, pull = neighbours(images, shape)
    signs = cut(TOGETHER * found.sum(axis=1), p, q, pull)
    return np.repeat(signs, found.shape[1]).astype(np.float32)


def evidence(Y: Floats, mixture: Mixture, images: Floats, prior: ImagePrior) -> NDArray[np.float64]:
    """(d,) how much likelier magnitudes Y (m, d) are with each pixel of all images as it is than
    with it turned."""
    weights = sparse.csr_array(mixture.weights)
    rest = 1 - np.asarray(weights.sum(axis=1)).ravel().astype(np.float32)
    total = np.zeros(Y.shape[1])
    for start in range(0, len(Y), BLOCK):
        rows = slice(start, start + BLOCK)
        variance = mixture.noise[rows, None] * prior.pixel
        own, public = weights[rows] @ images, rest[rows, None] * prior.mean
        found = for_its_sign(Y[rows] / variance, public, own, variance)
        total += found.sum(axis=0, dtype=np.float64)
    return total


def neighbours(
    images: Floats, shape: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Neighbouring places p, q of images (n, d), and how strongly each pair speaks for one sign."""
    height, width = shape[:2]
    values = images.reshape(len(images), height * width, -1).astype(np.float64)
    places = np.arange(height * width).reshape(height, width)
    p = np.concatenate([places[:, :-1].ravel(), places[:-1].ravel()])
    q = np.concatenate([places[:, 1:].ravel(), places[1:].ravel()])
    energy = np.einsum("npc,npc->p", values, values)
    r = np.einsum("npc,npc->p", values[:, p], values[:, q]) / np.sqrt(energy[p] * energy[q] + EMPTY)
    r = np.clip(r, 0, CLOSEST)
    return p, q, len(images) * r**2 / (1 - r**2)


def cut(
    field: NDArray[np.float64],
    p: NDArray[np.int64],
    q: NDArray[np.int64],
    pull: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The signs t (places,) that maximise Σ field·t + Σ pull·t_p·t_q, pull ≥ 0."""
    # 1. A graph: every place is joined to its neighbours, and to the side its field asks for.
    number = len(field)
    up, down = number, number + 1
    unit = FINE / max(float(np.abs(field).max(initial=0)), float(pull.max(initial=0)), EMPTY)
    pulls, fields = np.round(unit * pull).astype(np.int32), np.round(unit * field).astype(np.int32)
    plus, minus = np.flatnonzero(fields > 0), np.flatnonzero(fields < 0)
    rows = np.concatenate([p, q, np.full(len(plus), up), minus])
    columns = np.concatenate([q, p, plus, np.full(len(minus), down)])
    room = np.concatenate([pulls, pulls, fields[plus], -fields[minus]])
    graph: sparse.csr_array = sparse.csr_array(
        (room, (rows, columns)), shape=(number + 2, number + 2)
    )
    # 2. What the largest flow leaves reachable from above is the upper side of the least cut.
    left = sparse.csr_array(graph - maximum_flow(graph, up, down).flow)
    left.eliminate_zeros()
    reached = breadth_first_order(left, up, return_predecessors=False)
    signs = np.full(number + 2, -1.0)
    signs[reached] = 1
    return signs[:number]
