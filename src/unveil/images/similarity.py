"""How alike encodings are, window by window, and the images that make them so.

In a small window z = Σ λx mostly has one sign, so that y = |z| = ±z there, and the square of a
product of two encodings does not ask which:

    K_ij = Σ_windows ⟨u_i, u_j⟩² − level_i − level_j,   u = C^½ (C + s·I)⁻¹ y in the window,
    C = E[y yᵀ],   s = shrink·tr C / pixels

in cosines, with a diagonal of zero; level is what a row has in common with all rows. Each image
adds λ²λ'² to two encodings that mix it, so that with l the length of each encoding

    K ≈ Q G Qᵀ + noise,   Q_ij = λ_ij²/l_i where row i mixes image j, else 0,   G diagonal.

The leading eigenvectors of K span the columns of Q. These are sparse and hardly depend on each
other: independent component analysis (Hyvärinen 1999) turns the eigenvectors into them.

Where images were mirrored at random, K' holds rows against the mirror images of others; an image
has two columns, j and n + j, and K ± K' are two problems. Where images were cropped, K_ij is the
best of all moves of one row against the other (`alignment`). K costs O(m²·d) for each of the four
layers of windows, and two bytes a pair: cosines are rounded by 0.00002, where those of pairs that
share nothing spread by 0.004.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.engine.blocks import run_blocks, where, worker_count
from unveil.images.alignment import Alignment, align
from unveil.images.fields import row_blocks
from unveil.images.model import Copies, Floats, mirror

WHOLE = 32767
"""The largest number of 16 bits, which stands for a cosine of one."""


@dataclass(frozen=True, eq=False)
class Similarity:
    """K (m, m) and, where images were mirrored, K' (m, m), as whole numbers of `unit`; lengths (m,)
    of encodings, one on average; the best move of every pair, where images were cropped."""

    K: NDArray[np.int16]
    across: NDArray[np.int16] | None
    length: Floats
    unit: float = 1 / WHOLE
    alignment: Alignment | None = None

    @property
    def columns(self) -> int:
        """Columns of an image: two where it may be mirrored, else one."""
        return 1 if self.across is None else 2

    def forget_within(self, blocks: list[slice]) -> None:
        """Rows of one block share public images, and no private ones that count: pairs within
        blocks are set to zero, in place."""
        for rows in blocks:
            self.K[rows, rows] = 0
            if self.across is not None:
                self.across[rows, rows] = 0

    def times(self, V: Floats, side: int = 1) -> Floats:
        """(m, c): (K ± K') V, converted block by block; side: the sign."""
        V = np.ascontiguousarray(V, np.float32)
        out = np.empty_like(V)

        def task(rows: slice) -> None:
            part = self.K[rows].astype(np.float32)
            if self.across is not None:
                part += np.float32(side) * self.across[rows]
            np.matmul(part, V, out=out[rows])

        run_blocks(task, row_blocks(len(V), 512), worker_count(where().workers))
        out *= np.float32(self.unit)
        return out

    def sides(self, Q: Floats) -> list[tuple[int, Floats]]:
        """Columns Q (m, columns·n), even and odd under mirroring."""
        if self.across is None:
            return [(1, Q)]
        plain, mirrored = np.hsplit(Q, 2)
        return [(1, plain + mirrored), (-1, plain - mirrored)]

    def scores(self, Q: Floats, *, ridge: float = 0.05) -> Floats:
        """(m, columns·n) ∝ λ²: l·K Q (QᵀQ + ridge)⁻¹, next to a level common to all rows."""
        parts = []
        for side, q in self.sides(Q):
            q = np.column_stack([q, 1 / self.length]).astype(np.float32)
            normal = (q.T @ q).astype(np.float64)
            n = len(normal) - 1
            normal[np.arange(n), np.arange(n)] += ridge * np.trace(normal[:n, :n]) / n
            parts.append(np.linalg.solve(normal, self.times(q, side).T).T[:, :-1])
        if len(parts) == 2:
            even, odd = parts
            parts = [(even + odd) / 2, (even - odd) / 2]
        return np.asarray(np.hstack(parts) * self.length[:, None], np.float32)

    def components(
        self,
        count: int,
        Q: Floats,
        rng: np.random.Generator,
        *,
        same: float = 0.3,
    ) -> Floats:
        """(m, columns·c): independent components, c ≤ count, of what the columns Q do not span.

        same: correlation from which on one component is another one mirrored.
        """
        # 1. Leading eigenvectors, even and odd ones.
        parts = []
        for side, q in self.sides(Q):
            basis = np.linalg.qr(q)[0]

            def times(V: Floats, side: int = side, basis: Floats = basis) -> Floats:
                V = self.times(V - basis @ (basis.T @ V), side)
                return np.asarray(V - basis @ (basis.T @ V))

            parts.append(leading_eigenvectors(times, len(self.K), count, rng)[1])
        if len(parts) == 1:
            return independent_components(parts[0], rng)
        # 2. An image is found both ways round: of its two components the more skewed one stays.
        even, odd = parts
        S = independent_components(np.block([[even, odd], [even, -odd]]), rng)
        m = len(self.K)
        alike = S.T @ np.roll(S, m, axis=0) / len(S) > same
        chosen: list[int] = []
        for c in np.argsort(-(S**3).mean(axis=0), kind="stable"):
            if not alike[c, chosen].any():
                chosen.append(int(c))
        return np.hstack([S[:m, chosen], S[m:, chosen]])

    def visible(self, rng: np.random.Generator, *, beyond: float = 1.2) -> int:
        """How many images stand out: eigenvalues of K `beyond` the edge 2σ√m of those of symmetric
        noise (Wigner 1955), σ the spread of its entries, most of which are noise."""
        m, count = len(self.K), 32
        edge = 2 * _noise(self.K) * self.unit * np.sqrt(m)
        while True:
            values = leading_eigenvectors(self.times, m, count, rng)[0]
            number = int((values > beyond * edge).sum())
            if number < count or count >= m // 4:
                return max(number, 1)
            count *= 2


def similarity(
    Y: Floats,
    copies: Copies,
    *,
    side: int = 8,
    step: int = 4,
    shrink: float = 0.003,
    kept: float = 0.995,
    largest: float = 10.0,
) -> Similarity:
    """Of magnitudes Y (m, d).

    side: pixels of a window's side. With 5 as much stands out, with 16 less.
    step: pixels from one window to the next. With 8 a tenth less stands out.
    shrink: s above, by the mean variance.
    kept: share of the variance of products that the components kept of a window have.
    largest: standard deviations of noise beyond which an entry of K says no more. Rows that share
        all their images are nearly the same; without a bound these few pairs fill the leading
        eigenvectors. Between 5 and 20 it hardly matters.
    """
    if copies.reach:
        return _aligned(Y, copies)
    # 1. Whitened windows; the product of each row with itself, and its mean with all rows.
    shape, m = copies.shape, len(Y)
    Z = mirror(Y, shape) if copies.flips else Y[:0]
    places = np.arange(Y.shape[1]).reshape(shape)
    windows, own, level = list[tuple[Floats, Floats]](), np.zeros(m), np.zeros(m)
    for top in window_starts(shape[0], side, step):
        for left in window_starts(shape[1], side, step):
            pixels = places[top : top + side, left : left + side].ravel()
            y, z = Y[:, pixels], Z[:, pixels]
            C = (y.T @ y + z.T @ z).astype(np.float64) / (m + len(z))
            B = _whitener(C, shrink, kept)
            u, v = y @ B, z @ B
            own += np.einsum("ij,ij->i", u, u).astype(np.float64) ** 2
            level += np.einsum("ij,ij->i", u @ ((u.T @ u + v.T @ v) / np.float32(m + len(z))), u)
            windows.append((u, v))
    # 2. Squared products over all windows less what is common, in cosines, tile by tile.
    length = np.sqrt(np.maximum(own - 2 * level + level.mean(), 1e-12)).astype(np.float32)
    common = (level - level.mean() / 2).astype(np.float32)
    K = np.empty((m, m), np.int16)
    across = np.empty((m, m), np.int16) if copies.flips else None

    def tile(corner: tuple[slice, slice]) -> None:
        down, right = corner
        for which, out in enumerate((K, across)):
            if out is None:
                continue
            total = -np.add.outer(common[down], common[right])
            product = np.empty_like(total)
            for pair in windows:
                np.matmul(pair[0][down], pair[which][right].T, out=product)
                total += np.square(product, out=product)
            total *= np.float32(WHOLE) / np.multiply.outer(length[down], length[right])
            whole = np.clip(np.rint(total), -WHOLE, WHOLE).astype(np.int16)
            out[down, right] = whole
            out[right, down] = whole.T

    blocks = row_blocks(m, 512)
    corners = [(a, b) for i, a in enumerate(blocks) for b in blocks[i:]]
    run_blocks(tile, corners, worker_count(where().workers))
    np.fill_diagonal(K, 0)
    bound = min(WHOLE, int(np.ceil(largest * _noise(K))))
    for part in (K, across):
        if part is not None:
            np.clip(part, -bound, bound, out=part)
    return Similarity(K, across, length / np.sqrt(np.mean(length**2)))


def _noise(K: NDArray[np.int16]) -> float:
    """The standard deviation of noise in K, of whose entries most are noise: by the median, of
    evenly spaced rows."""
    part = K[:: -(-len(K) // 500)].astype(np.float32)
    return 1.4826 * float(np.median(np.abs(part - np.median(part))))


def _aligned(Y: Floats, copies: Copies) -> Similarity:
    """Of images that were cropped: by the best move of one row against another."""
    found = align(Y, copies.shape, 2 * copies.reach, copies.flips)
    K = found.similarity - np.median(found.similarity)
    level = K.mean(axis=1)
    K -= np.add.outer(level, level - level.mean())
    np.fill_diagonal(K, 0)
    unit = float(np.abs(K).max()) / WHOLE + 1e-12
    whole = np.rint(K / np.float32(unit)).astype(np.int16)
    return Similarity(whole, None, np.ones(len(K), np.float32), unit / float(K.std()), found)


def _whitener(C: NDArray[np.float64], shrink: float, kept: float) -> Floats:
    """(pixels, components): u = y @ whitener."""
    values, vectors = np.linalg.eigh(C)
    values = np.maximum(values, 0)
    gain = np.sqrt(values) / (values + shrink * values.mean() + 1e-30)
    variance = (gain**2 * values) ** 2
    order = np.argsort(variance)
    keep = order[np.cumsum(variance[order]) > (1 - kept) * variance.sum()]
    return np.asarray(vectors[:, keep] * gain[keep], np.float32)


def window_starts(length: int, side: int, step: int) -> NDArray[np.int64]:
    """Where windows start along a side, about `step` apart, the last at the end."""
    last = max(length - side, 0)
    return np.unique(np.linspace(0, last, -(-last // step) + 1).round().astype(np.int64))


def leading_eigenvectors(
    times: Callable[[Floats], Floats],
    m: int,
    count: int,
    rng: np.random.Generator,
    *,
    sweeps: int = 6,
    spare: int = 8,
) -> tuple[NDArray[np.float64], Floats]:
    """The `count` largest eigenvalues of a symmetric matrix and their vectors (m, count), from
    products with blocks of vectors: subspace iteration, then Rayleigh–Ritz. Single products with a
    vector would read K from memory too often.

    sweeps: products with the block before the last.
    spare: vectors of the block beyond those asked for, which make these converge.
    """
    V = rng.standard_normal((m, min(count + spare, m))).astype(np.float32)
    for _ in range(sweeps):
        V = np.linalg.qr(times(V))[0]
    values, turn = np.linalg.eigh((V.T @ times(V)).astype(np.float64))
    order = np.argsort(-values)[:count]
    return values[order], np.asarray(V @ turn[:, order], np.float32)


def independent_components(
    V: Floats, rng: np.random.Generator, *, turns: int = 100, tolerance: float = 1e-3
) -> Floats:
    """(m, c) of unit variance, their long tails positive, from a basis V (m, c) of their span:
    FastICA (Hyvärinen 1999), all components at once, with g = tanh."""
    # 1. White coordinates.
    centred = V - V.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    X = left[:, size > 1e-6 * size[0]] * np.float32(np.sqrt(len(V)))

    def decorrelated(W: NDArray[np.float64]) -> Floats:
        u, _, v = np.linalg.svd(W)
        return np.asarray(u @ v, np.float32)

    # 2. Newton steps towards directions along which values are least Gaussian.
    W = decorrelated(rng.standard_normal((X.shape[1], X.shape[1])))
    for _ in range(turns):
        G = np.tanh(X @ W.T)
        slope = 1 - np.mean(G**2, axis=0)
        new = decorrelated(G.T @ X / np.float32(len(X)) - slope[:, None] * W)
        change = np.abs(np.abs(np.einsum("ij,ij->i", new, W)) - 1).max()
        W = new
        if change < tolerance:
            break
    S = X @ W.T
    return np.asarray(S * np.sign((S**3).mean(axis=0)), np.float32)
