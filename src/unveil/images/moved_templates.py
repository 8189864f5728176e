"""Templates of images that were moved: window by window what the encodings of an image share.

The windows of an image's members, each taken where its copy has them (`gram.moved_windows`), are
±(weight·window of the image) and noise: the leading component of their products is the window of
the image, and how far its variance is beyond that of noise says how much it tells. The score of an
encoding and a copy is the least-squares coefficient of that in the products of its windows,

    Σ_q e_q·[(t_q·u_q)² − 1/r] / (Σ_q e_q² + ridge),     e_q: what window q tells, t_q of length one

about λ² where it mixes that copy. A template fits its own members by chance too, so encodings come
in folds, and each is scored by templates of the others. Squares of pixels, averaged, did the same
before: of the 60 best encodings of an image 53 to 98% mixed it, of windows 83 to 100%, from the
same clusters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.encode.copies import Copies
from unveil.gram.moved_windows import MovedWindows

Floats = NDArray[np.float32]
STEP = 4
"""Pixels from one window of a template to the next, as in `gram.windows`."""
FOLDS = 4
"""Parts of the encodings: a template is made of three quarters of an image's members."""
FEWEST = 3
"""Members that show a window at least, for it to tell anything."""
LEAST = 0.02
"""Least share of a variance that counts where it is not beyond that of noise: a template that tells
nothing could not become better."""
WEAK = 0.1
"""Ridge, by the mean over copies: few windows of the outermost copies lie in the image."""
EMPTY = 1e-12
"""Guards divisions: a template may have no members."""


def score_copies(
    windows: MovedWindows, copies: Copies, expected: Floats, copy: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores (m, n) of the best copy of every image, and which it is; expected, copy (m, n): what
    is expected of λ² so far, and the copy."""
    # 1. Folds are stretches of rows: those of one epoch share public images.
    m, n = expected.shape
    scores, best = np.zeros((m, n)), np.zeros((m, n), np.int64)
    fold = np.arange(m) * FOLDS // m
    grid = _grid(windows, copies)
    for f in range(FOLDS):
        # 2. Templates of the other folds.
        T = np.zeros((n, len(grid), windows.values.shape[3]), np.float32)
        for j in range(n):
            rows = np.flatnonzero((expected[:, j] > 0) & (fold != f))
            T[j] = template(windows, copies, rows, copy[rows, j], expected[rows, j])
        # 3. Products with all copies; the best by how far it is beyond chance.
        rows = np.flatnonzero(fold == f)
        total, told, squares = _products(windows, copies, T, slice(rows[0], rows[-1] + 1))
        total -= told / windows.values.shape[3]
        squares += WEAK * squares.mean(axis=1, keepdims=True) + EMPTY
        at = (total / np.sqrt(squares)).argmax(axis=2)
        best[rows] = at
        scores[rows] = np.take_along_axis(total / squares, at[:, :, None], axis=2)[:, :, 0]
    return scores, best


def template(
    windows: MovedWindows,
    copies: Copies,
    rows: NDArray[np.int64],
    copy: NDArray[np.int64],
    weight: Floats,
) -> Floats:
    """(windows, r): of an image, from the copies that encodings `rows` show, weighted; the square
    of a window's length is what it tells."""
    grid = _grid(windows, copies)
    r = windows.values.shape[3]
    out = np.zeros((len(grid), r), np.float32)
    mirrored, down, across = copies.steps[copy].T
    height, width = windows.places
    for q, (top, left) in enumerate(grid):
        # 1. The members in which the window lies.
        y, x = top - down, left - across
        seen = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        if seen.sum() < FEWEST:
            continue
        turned = mirrored[seen] == 1
        x = np.where(turned, width - 1 - x[seen], x[seen])
        u = windows.values[y[seen], x, rows[seen]]
        u = np.where(turned[:, None], u * windows.parity, u)
        # 2. The leading component; of noise alone it would vary by the edge of its spectrum.
        w = weight[seen] / weight[seen].sum()
        u = u * np.sqrt(w)[:, None]
        wide = len(u) < r
        values, vectors = np.linalg.eigh(u @ u.T if wide else u.T @ u)
        t = u.T @ vectors[:, -1] if wide else vectors[:, -1]
        noise = (1 + np.sqrt(r * np.sum(w**2))) ** 2 / r
        told = max(values[-1] - noise, LEAST * values[-1])
        out[q] = np.sqrt(told) / (np.linalg.norm(t) + EMPTY) * t
    return out


def _grid(windows: MovedWindows, copies: Copies) -> list[tuple[int, int]]:
    """Where the windows of a template begin, in the padded image: those that lie in the image."""
    down, across = (range(copies.reach, copies.reach + length, STEP) for length in windows.places)
    return [(y, x) for y in down for x in across]


def _products(
    windows: MovedWindows, copies: Copies, T: Floats, rows: slice
) -> tuple[Floats, Floats, Floats]:
    """Squares of products of windows with templates T (n, windows, r), summed over the windows
    of each copy, (rows, n, count); and (n, count) what these windows tell, and its squares."""
    # 1. For every place of a window in an encoding, the copies that have some template's there.
    n, side = len(T), 2 * copies.reach + 1
    out = np.zeros((copies.count, rows.stop - rows.start, n), np.float32)
    told, squares = np.zeros((2, n, copies.count), np.float32)
    tells = np.einsum("jqr,jqr->jq", T, T)
    height, width = windows.places
    grid = _grid(windows, copies)
    for y, x in np.ndindex(height, width):
        for mirrored in range(1 + copies.flips):
            left = width - 1 - x if mirrored else x
            here = [
                (q, (mirrored * side + top - y) * side + across - left)
                for q, (top, across) in enumerate(grid)
                if 0 <= top - y < side and 0 <= across - left < side
            ]
            if not here:
                continue
            # 2. Their products, all at once.
            some = T[:, [q for q, _ in here]] * (windows.parity if mirrored else np.float32(1))
            product = windows.values[y, x, rows] @ some.reshape(-1, T.shape[2]).T
            product = (product * product).reshape(-1, n, len(here))
            for at, (q, t) in enumerate(here):
                out[t] += product[:, :, at]
                told[:, t] += tells[:, q]
                squares[:, t] += tells[:, q] ** 2
    return out.transpose(1, 2, 0), told, squares
