"""GramExtract (`alg:private_attack`, `lem:gramextract`): from encodings to the overlaps of their private subsets.

The covariance of |y_i| and |y_j| over the pixels is Ψ of the correlation z of the two selection vectors. With p shared
public and q shared private vectors

    z(p, q) = (p·a_pub² + q·a_priv²) / (k_pub·a_pub² + k_priv·a_priv²),

a lattice in q once p is known from the supports. The paper inverts Ψ entry by entry, rounds to multiples of 1/k and
subtracts the public part afterwards, which is right only for k_pub = k_priv; we round to the lattice that belongs to p.
Since Ψ increases, rounding z is comparing the covariance with fixed thresholds: no entry is ever inverted, and a block
is one matrix product followed by one pass of comparisons.

Two places for the thresholds between neighbouring q:
  "paper"     Ψ of the midpoint, i.e. z rounded to the nearest lattice point;
  "balanced"  where both errors are equally likely, given the noise of the covariance (`psi_noise`). At overlap 0
              Ψ is flat, and the paper's midpoint lies far too close to it: balanced needs about a third of the pixels.

Cost m²d/2 multiplications (symmetric blocks once), memory two blocks and the sparse result.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import norm

from unveil.gram.psi import psi, psi_noise
from unveil.parallel import memory_limit as settle_limit
from unveil.parallel import rows_per_block
from unveil.records import Encodings, InputError, Overlaps, Progress, Scheme, Supports, as_public
from unveil.supports import learn_public

Rounding = Literal["balanced", "paper"]
ROUNDINGS: tuple[Rounding, ...] = ("balanced", "paper")


def gram_extract(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    supports: Supports | None = None,
    rounding: Rounding = "balanced",
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Overlaps:
    """How many private vectors each two encodings share; the public part is subtracted by way of `supports`."""
    scheme = encodings.scheme
    if scheme.k_private < 1:
        raise InputError("k_private=0: encodings without a private part have no private overlaps")
    if rounding not in ROUNDINGS:
        raise InputError(f"rounding={rounding!r}: choose one of {', '.join(ROUNDINGS)}")
    if supports is None and scheme.k_public:
        supports = learn_public(encodings, public, memory_limit=memory_limit, progress=progress)
    if supports is not None and supports.indices.shape != (encodings.m, scheme.k_public):
        raise InputError(
            f"supports of shape {supports.indices.shape} for {encodings.m} encodings with k_public={scheme.k_public}: "
            "learn them from these encodings"
        )
    vectors = as_public(public, encodings) if public is not None else None
    n_public = len(vectors) if vectors is not None else (int(supports.indices.max(initial=-1)) + 1 if supports else 0)
    V = supports.incidence(n_public) if supports is not None and scheme.k_public else None

    thresholds = overlap_thresholds(scheme, encodings.d, rounding)
    matrix = _blocked_overlaps(encodings, V, thresholds, settle_limit(memory_limit), progress)
    return Overlaps(matrix, scheme.k_private, _expected_errors(matrix, scheme, encodings.d, thresholds))


def lattice(scheme: Scheme) -> NDArray[np.float64]:
    """z(p, q), shape (k_public+1, k_private+1): the correlation of encodings that share p public and q private vectors."""
    p = np.arange(scheme.k_public + 1)[:, None] * scheme.public_weight**2
    q = np.arange(scheme.k_private + 1)[None, :] * scheme.private_weight**2
    return np.minimum((p + q) / (scheme.public_variance + scheme.private_variance), 1.0)


def overlap_thresholds(scheme: Scheme, d: int, rounding: Rounding) -> NDArray[np.float64]:
    """(k_public+1, k_private): the covariance from which on, given p, the private overlap is at least q = 1, 2, …"""
    z = lattice(scheme)
    low, high = z[:, :-1], z[:, 1:]
    if rounding == "paper":
        return psi((low + high) / 2)
    below, above = psi_noise(low), psi_noise(high)
    return (psi(low) * above + psi(high) * below) / (below + above)


def standardise(magnitudes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows (|y| − mean)/(rms·√d), so that a product of two rows is their folded covariance."""
    d = magnitudes.shape[1]
    mean = magnitudes.mean(axis=1, dtype=np.float64)
    rms = np.sqrt(np.einsum("ij,ij->i", magnitudes, magnitudes, dtype=np.float64) / d)
    Z = magnitudes - mean[:, None].astype(np.float32)
    Z *= np.divide(1.0, rms * np.sqrt(d), out=np.zeros_like(rms), where=rms > 0)[:, None].astype(np.float32)
    return np.asarray(Z)


def _blocked_overlaps(
    encodings: Encodings,
    V: sparse.csr_array | None,
    thresholds: NDArray[np.float64],
    limit: int,
    progress: Progress | None,
) -> sparse.csr_array:
    m, d = encodings.m, encodings.d
    block = rows_per_block(8 * d + 16 * 2048, limit // 2, most=2048)
    starts = range(0, m, block)
    total, done = len(starts) * (len(starts) + 1) // 2, 0
    levels = thresholds.astype(np.float32)
    rows, columns, values = [], [], []
    for i in starts:
        left = standardise(encodings.magnitudes(slice(i, i + block)))
        for j in range(i, m, block):
            right = left if i == j else standardise(encodings.magnitudes(slice(j, j + block)))
            shared = None if V is None else (V[i : i + block] @ V[j : j + block].T).toarray().astype(np.int8)
            r, c, v = _round_block(left @ right.T, _NOTHING if shared is None else shared, levels, i == j)
            rows.append(r + np.int32(i))
            columns.append(c + np.int32(j))
            values.append(v)
            done += 1
            if progress:
                progress("overlaps", done, total)
    r, c, v = np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
    diagonal = np.arange(m, dtype=np.int32)
    k = np.full(m, thresholds.shape[1], dtype=np.int8)
    matrix = sparse.coo_array(
        (np.concatenate([v, v, k]), (np.concatenate([r, c, diagonal]), np.concatenate([c, r, diagonal]))),
        shape=(m, m),
    )
    csr = matrix.tocsr()
    csr.sort_indices()
    return csr


def _expected_errors(matrix: sparse.csr_array, scheme: Scheme, d: int, thresholds: NDArray[np.float64]) -> float:
    """Wrong pairs to expect, from the counts of each overlap as found and the noise at each (pairs with p = 0)."""
    m = matrix.shape[0]
    z = lattice(scheme)[0]
    centre, spread, t = psi(z), np.maximum(psi_noise(z), 1e-12) / np.sqrt(d), thresholds[0]
    upward = np.append(norm.sf((t - centre[:-1]) / spread[:-1]), 0.0)
    downward = np.insert(norm.cdf((t - centre[1:]) / spread[1:]), 0, 0.0)
    counts = np.bincount(matrix.data, minlength=len(z)).astype(np.float64)
    counts[-1] -= m
    counts[0] = m * (m - 1) - counts[1:].sum()
    return float(counts @ (upward + downward) / 2)


_NOTHING = np.empty((0, 0), dtype=np.int8)


@njit(cache=True, nogil=True)
def _round_block(C, shared, levels, upper):  # type: ignore[no-untyped-def]
    """Entries of C at or above the first threshold of their row of `levels`, with the level reached.

    `shared` holds the public overlaps of the block, or is empty when there are none; `upper` keeps columns beyond the row.
    """
    rows, columns = C.shape
    has_public = shared.shape[0] > 0
    count = 0
    for i in range(rows):
        for j in range(i + 1 if upper else 0, columns):
            p = shared[i, j] if has_public else 0
            count += C[i, j] >= levels[p, 0]
    r = np.empty(count, np.int32)
    c = np.empty(count, np.int32)
    v = np.empty(count, np.int8)
    at = 0
    for i in range(rows):
        for j in range(i + 1 if upper else 0, columns):
            p = shared[i, j] if has_public else 0
            if C[i, j] >= levels[p, 0]:
                q = 1
                while q < levels.shape[1] and C[i, j] >= levels[p, q]:
                    q += 1
                r[at] = i
                c[at] = j
                v[at] = q
                at += 1
    return r, c, v
