"""Regions that are inverted in all images at once: where neighbours differ in nearly every image.

Turn one pixel in every private image, and only the public part tells the difference. Of drawings in
black and white even smoothness does not: all images turned where one of them is black have edges as
clean as before. But then all images have that edge. As images are, two neighbours agree in most of
them, wherever single ones have their edges. So let

    J_pq = Σ_i x_ip x_iq / (‖x_p‖·‖x_q‖)

for neighbours p, q, in a row, a column, or the channels of one pixel. Signs of pixels follow the
spanning tree with the largest |J|, J < 0 turns them. A region of one sign is turned back if J is
clearly negative on the mean along its edge. O(n·d).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

CLEAR = 0.3
"""−J on the mean along the edge of a region that is turned. A drawing's inverted regions had 0.76;
what looks like a region in half-found photographs, clothes and digits at most 0.15."""
FEWEST = 8
"""Pixels of a region that is turned: fewer are noise, and repair themselves."""
EMPTY = 1e-9
"""Guards divisions and keeps edges of weight zero: a pixel may be zero in all images."""


def inverted_regions(images: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """(d,) pixels of images (n, d) that are the wrong way round in all of them, against the largest
    region, which stays as it is."""
    # 1. J of all neighbours.
    d = images.shape[1]
    places = np.arange(d).reshape(shape)
    p, q = (
        np.concatenate([np.delete(places, end, axis).ravel() for axis, end in ends])
        for ends in ([(a, -1) for a in range(len(shape))], [(a, 0) for a in range(len(shape))])
    )
    energy = np.einsum("ip,ip->p", images, images, dtype=np.float64)
    J = np.einsum("ie,ie->e", images[:, p], images[:, q], dtype=np.float64)
    J /= np.sqrt(energy[p] * energy[q]) + EMPTY
    # 2. Signs along the spanning tree. Every pixel is there twice, as it is and turned; a negative
    #    J joins one with the other, so that two trees come out.
    length = coo_array((1 + EMPTY - np.minimum(np.abs(J), 1), (p, q)), shape=(d, d))
    ordinal = coo_array((np.arange(1, len(p) + 1), (p, q)), shape=(d, d)).tocsr()
    tree = minimum_spanning_tree(length).tocoo()
    a, b = tree.row, tree.col
    turns = d * (J[np.asarray(ordinal[a, b]).ravel() - 1] < 0)
    twice = _joined(np.concatenate([a, a + d]), np.concatenate([b + turns, b + d - turns]), 2 * d)
    side = twice[:d] == twice[0]
    # 3. Regions of one sign, and the mean of J along the edge of each.
    same = side[p] == side[q]
    region = _joined(p[same], q[same], d)
    edge = np.concatenate([region[p[~same]], region[q[~same]]])
    number = region.max() + 1
    length_of = np.bincount(edge, minlength=number)
    mean = np.bincount(edge, np.tile(J[~same], 2), minlength=number) / np.maximum(length_of, 1)
    # 4. Those on the other side of the largest are turned, where that is clear.
    largest = np.bincount(region, energy).argmax()
    other = side != side[np.argmax(region == largest)]
    clear = (mean < -CLEAR) & (np.bincount(region) >= FEWEST)
    return np.asarray(other & clear[region])


def _joined(p: NDArray[np.int64], q: NDArray[np.int64], d: int) -> NDArray[np.int32]:
    """Which connected part each of d pixels is in, joined by pairs (p, q)."""
    pairs = coo_array((np.ones(len(p)), (p, q)), shape=(d, d))
    return np.asarray(connected_components(pairs, directed=False)[1])
