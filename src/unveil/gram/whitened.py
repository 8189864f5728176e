"""Overlaps where signs are kept: y = Wx is linear, and products of encodings say who mixes whom
without any folding.

Two statistics, both in units in which one shared vector counts 1:

    plain      ⟨y_i, y_j⟩/d, divided by what one vector brings to ⟨y, y⟩/d. Its noise is 1/√d per
               vector, and vectors that look alike count as shared. Any size: blocks of rows,
               rounded, kept sparse
    whitened   a·UUᵀ + c, U the leading left singular vectors of Y, n of them. With n ≤ d
               independent vectors the columns of Y span what the columns of W span, so that
               UUᵀ = W(WᵀW)⁻¹Wᵀ, whatever the vectors are: no noise from finite d, none from
               vectors that are alike. Dense, m×m

n is where the singular values fall off: the rank of Y, which noise only blurs. If there are as many
vectors as pixels they fall off nowhere; then ones in the span of the columns tell that n is the
rank all the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from unveil.paper.overlap_levels import Floats
from unveil.parallel import rows_per_block
from unveil.records import Overlaps, Progress

FALL = 4.0
"""Factor by which eigenvalues of YYᵀ must fall for the rank to be taken from there."""
ROUNDING = 1e-11
"""Eigenvalues below this share of the largest are rounding: falls among them mean nothing."""
ROUNDED = 1e-13
"""Eigenvalues below so much of the largest one are rounding: that of float32, squared, leaves 1e-15
at most."""
IN_SPAN = 1e-5
"""What may be left of ones, rms: rounding leaves 1e-9 to 4e-7 on tables and images, hidden signs
6e-3 and more."""
SPREAD = 1e-4
"""Weights below so much of the largest one count as none: columns whose signs were hidden get about
1e-7."""


def spectrum(Y: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues of YYᵀ, falling, and its eigenvectors (m, min(m, d)): from the smaller of the two
    Gram matrices."""
    m, d = Y.shape
    if m <= d:
        values, vectors = eigh(np.asarray(Y @ Y.T, np.float64))
        return values[::-1], vectors[:, ::-1]
    # Left singular vectors from the right ones: Y·v/σ, σ not below rounding.
    wide = Y.astype(np.float64)
    values, right = eigh(wide.T @ wide)
    values, right = values[::-1], right[:, ::-1]
    return values, (wide @ right) / np.sqrt(
        np.maximum(values, 1e-12 * max(float(values[0]), 1e-300))
    )


def rank_of(values: NDArray[np.float64]) -> int | None:
    """Where falling eigenvalues fall most, or None where they fall nowhere by more than chance."""
    safe = np.maximum(values, ROUNDING * max(float(values[0]), 1e-300))
    last = int(0.95 * len(safe))  # the smallest eigenvalues of noise fall by large factors as well
    if last < 2:
        return None
    # The largest fall; elsewhere eigenvalues of noise fall slowly.
    falls = safe[: last - 1] / safe[1:last]
    best = int(falls.argmax())
    return best + 1 if falls[best] > FALL else None


def exact_rank(values: NDArray[np.float64]) -> int:
    """Falling eigenvalues that are no rounding."""
    return int((values > ROUNDED * values[0]).sum()) if values[0] > 0 else 0


def ones_in_span(
    Y: NDArray[np.floating], values: NDArray[np.float64], vectors: NDArray[np.float64]
) -> bool:
    """Whether some combination β of most columns is 1 in every row; from the r leading eigenvalues
    and eigenvectors of YYᵀ.

    Rows of W sum to k, so that Y = WX has one where its vectors are independent: Xβ = 1/k. This
    tells sums from magnitudes even if there are as many vectors as columns, where the rank says
    nothing. Columns whose signs were hidden have no part in β.
    """
    if len(values) >= len(Y):
        return False
    rest, weights = np.ones(len(Y)), np.zeros(Y.shape[1])
    for _ in range(2):  # once more, for what rounding left
        step = Y.T @ (vectors @ (vectors.T @ rest / values))
        weights += step
        rest = rest - Y @ step
    size = np.abs(weights)
    most = 2 * np.count_nonzero(size > SPREAD * size.max()) > len(size)
    return bool(np.sqrt(np.mean(rest**2)) < IN_SPAN and most)


def whitened_similarity(vectors: NDArray[np.float64], n: int, k: int) -> NDArray[np.float64]:
    """(m, m) from the first n eigenvectors.

    Of m random subsets WᵀW is about a + b·J, J all ones, so that UUᵀ = W(WᵀW)⁻¹Wᵀ is (WWᵀ − b·k²/(a
    + n·b)) / a."""
    U = vectors[:, :n]
    b = len(U) * k * (k - 1) / (n * (n - 1))
    a = len(U) * k / n - b
    return np.asarray(a * (U @ U.T) + b * k**2 / (a + n * b), np.float64)


def plain_similarity(Y: Floats, k: int) -> NDArray[np.float64]:
    """(m, m) as measured, not rounded."""
    S = np.asarray(Y @ Y.T, np.float64)
    return S * (k / max(float(np.trace(S)) / len(S), 1e-30))


def rounded(S: NDArray[np.float64], k: int) -> Overlaps:
    """Similarities as overlaps."""
    shared = np.clip(np.rint(S), 0, k).astype(np.int8)
    np.fill_diagonal(shared, k)
    return Overlaps(sparse.csr_array(np.maximum(shared, shared.T)), k)


def plain_overlaps(Y: Floats, k: int, limit: int, progress: Progress | None = None) -> Overlaps:
    """Rounded, in blocks of rows; what all encodings have in common is taken off first, since it
    makes all pairs alike."""
    m, d = Y.shape
    centre = Y.mean(axis=0)
    one = sum(float(np.square(y - centre, dtype=np.float64).sum()) for y in Y) / m / k
    step = rows_per_block(16 * m + 4 * d, limit // 4, most=1024)
    parts = []
    for start in range(0, m, step):
        shared = np.rint(
            (Y[start : start + step] - centre) @ (Y - centre).T / np.float32(max(one, 1e-30))
        )
        # An encoding shares all of its vectors with itself, whatever noise says.
        here = np.arange(len(shared))
        shared[here, start + here] = k
        parts.append(sparse.csr_array(np.clip(shared, 0, k).astype(np.int8)))
        if progress:
            progress("overlaps", min(start + step, m), m)
    return Overlaps(sparse.csr_array(sparse.vstack(parts)), k)
