"""Tensor decomposition: every private vector, by decomposing T_abc = |S_a ∩ S_b ∩ S_c| (Chen, Song,
Tao, Zhang: "Symmetric Sparse Boolean Matrix Factorization and Applications", ITCS 2022).

S_a is the set of private vectors that encoding a mixes, W ∈ {0,1}^{m×n} who mixes whom.

    1  M = WWᵀ                        LearnPublic, GramExtract
    2  T(·,·,v) = Σ_c v_c T_··c       for a few random v, from pairwise overlaps alone
    3  W ← Jennrich(M, T), rounded    W = BQ with M = BBᵀ and Q orthogonal, B from the eigenvectors
                                      of M; B⁺T(·,·,v)B⁺ᵀ = Q·diag(Wᵀv)·Qᵀ for every v: Q
                                      diagonalises all of them, nearly (Jacobi rotations, Cardoso
                                      and Souloumiac 1996)
    4  W ← M·W(WᵀW)⁻¹, rounded        as long as that brings WWᵀ nearer to M
    5  x ← every value from W         with its status (`exact.from_members`); the authors stop at W

*Step 2.* A random k-subset avoids S_a ∪ S_b ∪ S_c with probability C(n−u, k)/C(n, k), u the size of
the union, and u = 3k − M_ab − M_ac − M_bc + T_abc. So the number of encodings that share nothing
with the three tells T_abc. To round that one count takes many encodings; here each other encoding
falls into one of eight cells, by which of a, b, c it meets, and T_abc is the value of the largest
likelihood, within max(0, M_ab + M_ac − k, …) ≤ T_abc ≤ min(M_ab, M_ac, M_bc).

Columns of W must be independent, which takes more encodings than vectors; a few overlaps may be
wrong. Cost: cubic in the number of encodings decomposed (up to 3,000; the others are read off
them). Memory: 97 bytes for each pair of those.
"""

from __future__ import annotations

from math import ceil, log
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from unveil.checks import InputError, Rng, child, root
from unveil.encodings import Encodings
from unveil.engine.blocks import Stopwatch, one_blas_thread
from unveil.engine.blocks import memory_limit as settle_limit
from unveil.exact.from_members import from_subsets, read_overlaps
from unveil.paper.floral import estimate_n_private
from unveil.records import Overlaps, Progress, Recovery
from unveil.scheme import FIXED_WEIGHTINGS

NAME = "tensor"
Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]


def tensor(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector whose encodings the decomposition explains.

    overlaps: those to decompose, where they are known from elsewhere; some may be wrong
    """
    scheme, m, k = encodings.scheme, encodings.m, encodings.scheme.k_private
    if not 2 <= k <= 24:  # the likelihoods of three overlaps are tables of (k+1)⁴ entries
        raise InputError(
            f"k_private={k}: the tensor attack takes 2 to 24 private vectors per encoding; "
            "use attack='exact'"
        )
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    seed, clock = root(rng), Stopwatch()
    how: dict[str, Any] = {"memory_limit": memory_limit, "progress": progress}
    with clock("overlaps"):
        M, part = read_overlaps(encodings, public, overlaps, how)
    with clock("decomposition"), one_blas_thread():
        W = boolean_factor(M, child(seed, "tensor"), limit=settle_limit(memory_limit))
    if W is None:
        why = (
            f"the overlaps of {m} encodings cannot be decomposed: it takes more than {k + 1} "
            "vectors, and more encodings than these"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    # Rows of k ones most of whose overlaps are in M; half of the encodings or more, since a
    # decomposition of chance explains a few as well.
    fit = np.empty(m)
    for i, row in enumerate(W):
        made = W[:, row].sum(axis=1)
        fit[i] = np.minimum(made, M.matrix[[i]].toarray()[0]).sum() / max(made.sum(), 1)
    rows = np.flatnonzero((W.sum(axis=1) == k) & (fit >= 0.75))
    if 2 * len(rows) < m:
        why = (
            f"the decomposition explains {len(rows)} of {m} encodings: too few encodings, too many "
            "wrong overlaps, or columns of the selection matrix that depend on each other"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    members = np.nonzero(W[rows])[1].reshape(len(rows), k).astype(np.int64)
    facts = {"estimated_n_private": W.shape[1], "overlaps_reproduced": float(fit[rows].mean())}
    draw = child(seed, "pixels")
    return from_subsets(encodings, NAME, rows, members, draw, clock, facts=facts, **part, **how)


def boolean_factor(
    overlaps: Overlaps,
    rng: np.random.Generator,
    *,
    limit: int = 8 << 30,
    count: int = 8,
    most: int = 3000,
    fewest: int = 500,
    enough: int = 30,
) -> Flags | None:
    """W (m, n) up to the order of its columns; None where the overlaps do not look like those of
    k-subsets.

    count: random contractions, diagonalised together; most, fewest: rows decomposed; enough:
    encodings per vector beyond which more rows are not needed
    """
    m, k, n = overlaps.m, overlaps.k_private, estimate_n_private(overlaps)
    most = min(m, most, int(np.sqrt(limit / (33 + 8 * count))))
    if not k + 1 < n < most:
        return None
    size = min(most, max(fewest, ceil(enough * n / k)))
    chosen = np.sort(rng.permutation(m)[:size])
    M = np.clip(overlaps.matrix[chosen][:, chosen].toarray(), 0, k).astype(np.int8)
    np.fill_diagonal(M, k)
    # As many eigenvalues are not 0 as there are vectors, and with wrong overlaps more: all of them,
    # or those before the widest gap in proportion. Too many make columns of a few rows.
    r = min(len(M), ceil(2 * n) + 2)
    values, vectors = eigh(M.astype(np.float64), subset_by_index=[len(M) - r, len(M) - 1])
    kept = np.flatnonzero(values > 1e-3)[::-1]
    values, vectors, least = values[kept], vectors[:, kept], max(1, int(n / 2))
    ranks = {len(values)}
    if least < len(values):
        ranks.add(least + int(np.argmax(values[least - 1 : -1] / values[least:])))
    T = contractions(M, k, n, rng.standard_normal((count, len(M))))
    best, shortest = None, np.inf
    for rank in sorted(ranks):
        W = _at_most(jennrich(values[:rank], vectors[:, :rank], T) > 0.5, k)
        wrong = _wrong(M, W)
        for _ in range(6):
            new = _at_most(_rounded(M.astype(np.float32), W), k) if wrong else W
            if _wrong(M, new) >= wrong:
                break
            W, wrong = new, _wrong(M, new)
        # What it takes to write M down: the k columns of each row, and each wrong overlap.
        nats = len(M) * k * log(max(W.shape[1], 1)) + wrong * log(len(M))
        if W.shape[1] > k and (wrong > 0) * 1e9 + nats < shortest:
            best, shortest = W, (wrong > 0) * 1e9 + nats
    if best is None or size == m:
        return best
    whole = _rounded(overlaps.matrix[:, chosen].astype(np.float32), best)
    whole &= np.cumsum(whole, axis=1) <= k
    whole[chosen] = best
    return whole


def _at_most(W: Flags, k: int) -> Flags:
    """Each column once, the largest first, and the k largest of each row: a wrong overlap looks
    like one more vector, shared by two rows only."""
    W = W[:, np.sort(np.unique(W, axis=1, return_index=True)[1])]
    W = W[:, np.argsort(-W.sum(axis=0), kind="stable")]
    W = W & (np.cumsum(W, axis=1) <= k)
    return W[:, W.any(axis=0)]


def _rounded(M: Any, W: Flags) -> Flags:
    """The rows whose overlaps with W are nearest to M; columns may depend on each other."""
    V = W.astype(np.float32)
    gram = (V.T @ V).astype(np.float64) + 1e-3 * np.eye(V.shape[1])
    return np.asarray(np.linalg.solve(gram, np.asarray(M @ V, np.float64).T).T > 0.5)


def _wrong(M: NDArray[np.int8], W: Flags) -> int:
    V = W.astype(np.float32)
    return int(np.count_nonzero(V @ V.T != M))


# --- Step 3: Jennrich's algorithm ----------------------------------------------------------------


def jennrich(values: Matrix, vectors: Matrix, T: Matrix) -> Matrix:
    """W (m, r), columns in any order, from the r largest eigenvalues and eigenvectors of M, and
    contractions T (count, m, m)."""
    size = np.sqrt(values)
    whiten = vectors / size
    A = np.stack([whiten.T @ contraction @ whiten for contraction in T])
    # One contraction is enough if all is right; eigenvalues that are close in one are not in all.
    Q = np.linalg.eigh(A[0])[1]
    rotated, turned = np.ascontiguousarray(np.moveaxis(Q.T @ A @ Q, 0, -1)), Q.T.copy()
    _rotate(rotated, turned, 30, 1e-6)
    W: Matrix = (vectors * size) @ turned.T
    return W * np.where(W.sum(axis=0) < 0, -1.0, 1.0)


@njit(cache=True, nogil=True)
def _rotate(A, Q, sweeps, still):  # type: ignore[no-untyped-def]
    """Sweeps over all planes in place: A (r, r, count), Q (r, r) with a vector in each row."""
    r, count = A.shape[0], A.shape[2]
    for _ in range(sweeps):
        moved = False
        for p in range(r - 1):
            for q in range(p + 1, r):
                on = off = 0.0
                for s in range(count):
                    gap, cross = A[p, p, s] - A[q, q, s], 2 * A[p, q, s]
                    on += gap * gap - cross * cross
                    off += 2 * gap * cross
                # The angle that makes the (p, q) entries of all matrices smallest together.
                angle = 0.5 * np.arctan2(off, on + np.sqrt(on * on + off * off))
                if abs(angle) <= still:
                    continue
                moved = True
                co, si = np.cos(angle), np.sin(angle)
                for i in range(r):
                    for s in range(count):
                        x, y = A[p, i, s], A[q, i, s]
                        A[p, i, s], A[q, i, s] = co * x + si * y, co * y - si * x
                    x, y = Q[p, i], Q[q, i]
                    Q[p, i], Q[q, i] = co * x + si * y, co * y - si * x
                for i in range(r):
                    for s in range(count):
                        x, y = A[i, p, s], A[i, q, s]
                        A[i, p, s], A[i, q, s] = co * x + si * y, co * y - si * x
        if not moved:
            break


# --- Step 2: what three encodings share ----------------------------------------------------------


def contractions(M: NDArray[np.int8], k: int, n: float, directions: Matrix) -> Matrix:
    """T(·,·,v) (count, m, m) for each v of `directions` (count, m)."""
    m = len(M)
    meets = (M > 0).astype(np.float32)
    both, table, out = meets @ meets, log_cells(n, k), np.zeros((len(directions), m, m))
    for c in range(m):
        near = np.flatnonzero(M[c])
        after = near[near > c]
        part = meets[np.ix_(near, after)]
        _add_slice(c, after, part.T @ part, M, both, table, directions, out)
    # Entries on a diagonal are exact: T_aab = M_ab.
    for matrix, v in zip(out, directions, strict=True):
        matrix += matrix.T + M * (v[:, None] + v[None, :])
        np.fill_diagonal(matrix, M @ v)
    return out


def log_cells(n: float, k: int, slip: float = 1e-3) -> Matrix:
    """(k+1, k+1, k+1, k+1, 8), by M_ab, M_ac, M_bc and T_abc: logarithms of the probability that a
    random k-subset of n meets, of a, b and c, exactly: none; a; b; c; a and b; a and c; b and c;
    all three. slip: share of encodings in any cell, since an overlap may be misread."""
    M_ab, M_ac, M_bc, T = np.indices((k + 1,) * 4).astype(np.float64)
    steps = np.arange(k)

    def avoids(size: Matrix) -> Matrix:
        left = np.maximum(n - size[..., None] - steps, 0)
        return np.asarray(np.prod(left / np.maximum(n - steps, 1), axis=-1))

    a = 1 - avoids(np.full(T.shape, float(k)))
    ab, ac, bc = (2 * a - 1 + avoids(2 * k - shared) for shared in (M_ab, M_ac, M_bc))
    none = avoids(3 * k - M_ab - M_ac - M_bc + T)
    abc = 1 - 3 * a + ab + ac + bc - none
    single = a - ab - ac + abc, a - ab - bc + abc, a - ac - bc + abc
    cells = np.stack([none, *single, ab - abc, ac - abc, bc - abc, abc], axis=-1)
    return np.asarray(np.log((1 - slip) * np.clip(cells, 0, 1) + slip / 8))


@njit(cache=True, nogil=True)
def _add_slice(c, after, common, M, both, table, directions, out):  # type: ignore[no-untyped-def]
    """The triples c < a < b: T_abc from the number of encodings that meet all three, `common`, and
    those that meet two; into the upper triangle of every contraction. The three themselves do not
    count."""
    m, k = len(M), table.shape[0] - 1
    meets_c = both[c, c] - 3
    for i in range(len(after)):
        a = after[i]
        ca, meets_a, ac = M[c, a], both[a, a] - 3, both[c, a] - 3
        for j in range(i + 1, len(after)):
            b = after[j]
            mab, cb = M[a, b], M[c, b]
            if mab == 0:
                continue
            t = max(0, mab + ca - k, mab + cb - k, ca + cb - k)
            high = min(mab, ca, cb)
            if t < high:
                abc, ab, bc, meets_b = (
                    common[i, j] - 3, both[a, b] - 3, both[c, b] - 3, both[b, b] - 3
                )  # fmt: skip
                best = -np.inf
                for guess in range(t, high + 1):
                    cell = table[mab, ca, cb, guess]
                    score = (m - 3 - meets_a - meets_b - meets_c + ab + ac + bc - abc) * cell[0]
                    score += (meets_a - ab - ac + abc) * cell[1]
                    score += (meets_b - ab - bc + abc) * cell[2]
                    score += (meets_c - ac - bc + abc) * cell[3]
                    score += (ab - abc) * cell[4] + (ac - abc) * cell[5]
                    score += (bc - abc) * cell[6] + abc * cell[7]
                    if score > best:
                        best, t = score, guess
            if t:
                for q in range(len(directions)):
                    out[q, a, b] += t * directions[q, c]
                    out[q, c, a] += t * directions[q, b]
                    out[q, c, b] += t * directions[q, a]
