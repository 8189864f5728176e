"""Records from mixtures that keep their signs, as many as the encodings have dimensions.

    Y = ΛX,   Λ (m, n) sparse and not negative, X (n, d) independent after a column of ones is added

  count     n is the rank of Y with a column of ones; under noise a fall of the spectrum
  columns   U (m, n), an orthonormal basis of the columns of Y, spans the columns of Λ too. These
            are the skewest vectors in the span: nearly all of their entries are zero and the rest
            positive. V ← UᵀV of (UV)² made orthonormal finds all n at once (FastICA with the
            skewness as contrast, Hyvärinen 1999), from n encodings that span most (successive
            projection, which is QR with pivoting)
  weights   column j of Λ is zero in all rows without j, so it is the leading left singular vector
            of U at the rows with j. Right members give right weights at once, whatever X is; and
            rows sum to 1, which gives each column its size. Fixed weights need no such step
  records   least squares, then codes of all rows in them, until members stay as they are
  noise     where encodings are not reproduced, codes and least squares in turn instead

The law of the weights plays no part, and equal weights are one of them. Cost: a spectrum of Y and
m·n² for each of some twenty turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse
from scipy.linalg import qr

from unveil.mixing.codes import alternate, sparse_codes
from unveil.mixing.model import (
    Floats,
    Members,
    Mixture,
    judge,
    judge_noise,
    least_squares,
    rank,
    rms,
    spectrum,
    weight_matrix,
)


def find_corners(
    Y: Floats,
    k: int,
    n: int | None = None,
    *,
    weight: float | None = None,
    enough: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> Mixture | None:
    """The records that explain most encodings as mixtures of k; None: there are none.

    n : int            How many records there are; None: found out.
    weight : float     The weight of every member; None: own weights that sum to 1.
    enough : float     Share of encodings explained to rounding from which on no other count is
                       tried.
    """
    m, d = Y.shape
    size = float(np.sqrt(np.mean(np.einsum("ij,ij->i", Y, Y))))
    if size == 0:
        return None
    sizes, vectors = spectrum(np.column_stack([Y, np.full(m, size)]))
    best: Mixture | None = None
    for count in [n] if n is not None else _counts(sizes):
        if not k < count < m:
            continue
        # As many records as dimensions: what is not exact at once is noise, or more records.
        full = n is None and count == min(m, d + 1)
        noise = np.sqrt(max(float(sizes[count:].sum()), 0.0) / max(1, (m - count) * (d - count)))
        found = _corners(
            Y, sizes, vectors[:, :count], k, weight, None if full else float(noise), progress
        )
        if found is not None and (best is None or _worth(found, enough) > _worth(best, enough)):
            best = found
        if best is not None and best.exact and best.fits.mean() >= enough:
            break
    return best


def skewest_columns(U: Floats, *, turns: int = 60, still: float = 1e-6) -> Floats:
    """V (n, n) orthonormal, such that the columns of UV are as skew as can be; U (m, n) has
    orthonormal columns.

    still : float    Change of a column, 1 − cosine, below which turns end.
    """
    Z = np.sqrt(len(U)) * U
    V = _orthonormal(Z[qr(Z.T, mode="r", pivoting=True)[1][: Z.shape[1]]].T)
    for _ in range(turns):
        new = _orthonormal(Z.T @ np.square(Z @ V))
        change = 1 - float(np.einsum("ij,ij->j", new, V).min())
        V = new
        if change < still:
            break
    return V


def _orthonormal(V: Floats) -> Floats:
    """The nearest matrix with orthonormal columns."""
    left, _, right = np.linalg.svd(V, full_matrices=False)
    return np.asarray(left @ right)


def _counts(
    sizes: Floats, *, falls: int = 3, fall: float = 2.0, upto: float = 0.95
) -> Iterator[int]:
    """How many records there may be: the rank, then the largest `falls` of the spectrum by a factor
    `fall` at least. The last eigenvalues of noise fall by large factors as well, and the part
    beyond `upto` is not looked at."""
    whole = rank(sizes)
    yield whole
    safe = np.maximum(sizes, 1e-11 * max(float(sizes[0]), 1e-300))
    last = max(2, int(upto * len(safe)))
    ratio = safe[: last - 1] / safe[1:last]
    for at in np.argsort(-ratio, kind="stable")[:falls]:
        if ratio[at] > fall and at + 1 != whole:
            yield int(at) + 1


def _worth(found: Mixture, enough: float) -> tuple[bool, bool, float]:
    return found.exact, bool(found.fits.mean() >= enough), -found.noise


def _corners(
    Y: Floats,
    sizes: Floats,
    U: Floats,
    k: int,
    weight: float | None,
    noise: float | None,
    progress: Callable[[int, int], None] | None,
    *,
    rounds: int = 12,
    attempts: int = 3,
) -> Mixture | None:
    """The rest for a given number of records, the columns of U.

    noise : float             Standard deviation per value, by the spectrum; None: exact or nothing.
    rounds, attempts : int    Rounds of weights and records until members stay as they are; and how
                              often that is begun again after some turns of the alternation, where
                              not all rows are explained.
    """
    n = U.shape[1]
    # Coordinates of the encodings in the space they span; noise has one size in all of them.
    Z = U * np.sqrt(np.maximum(sizes[:n], 0.0))
    columns = U @ skewest_columns(U)
    members = np.argpartition(-columns, k - 1, axis=1)[:, :k].astype(np.int64)
    weights, x, best = np.ones(members.shape), Z, None
    # Where nothing lies beyond the n directions, rows that still differ are wrong, not noisy.
    exact = noise is not None and noise < 1e-5 * rms(Y)
    for attempt in range(attempts if exact else 1):
        for step in range(rounds):
            before = np.sort(members, axis=1)
            W = (
                _weights_from_members(U, members, weights)
                if weight is None
                else weight_matrix(members, np.full(members.shape, weight), n)
            )
            new = None if W is None else least_squares(W, Z)
            if new is None:
                return best
            x = new
            members, weights = sparse_codes(Z, x, k, weight=weight)
            if progress:
                progress(attempt * rounds + step + 1, attempts * rounds)
            if (before == np.sort(members, axis=1)).all():
                break
        found = judge(Y, members, weights, n)
        if found is not None and (best is None or found.fits.sum() > best.fits.sum()):
            best = found
        if best is not None and (best.fits.all() or (best.exact and not exact)):
            return best
        if noise is None:
            return None
        fit = alternate(Z, x, k, weight=weight, robust=exact, turns=30 if exact else 60)
        if fit is None:
            return best
        members, weights = fit.members, fit.weights
    if noise is None or (best is not None and best.exact):
        return best
    noisy = judge_noise(Y, members, weights, n, noise)
    if best is None or noisy is None:
        return best or noisy
    return noisy if noisy.fits.sum() >= best.fits.sum() else best


def _weights_from_members(U: Floats, members: Members, weights: Floats) -> sparse.csr_array | None:
    """Λ from members alone: every column a singular vector of U at its rows, then all columns sized
    so that rows sum to 1."""
    m, n = U.shape
    used = weights.ravel() > 1e-9
    rows, names = np.repeat(np.arange(m), members.shape[1])[used], members.ravel()[used]
    order = np.argsort(names, kind="stable")
    rows, names = rows[order], names[order]
    starts = np.searchsorted(names, np.arange(n + 1))
    entries = np.zeros(len(rows))
    for j in range(n):
        part = slice(starts[j], starts[j + 1])
        if starts[j] == starts[j + 1]:
            return None
        some = U[rows[part]]
        column = np.linalg.eigh(some @ some.T)[1][:, -1]
        entries[part] = column if column.sum() >= 0 else -column
    W = sparse.csr_array((entries, (rows, names)), shape=(m, n))
    factor = least_squares(W, np.ones((m, 1)))
    return None if factor is None else sparse.csr_array(W.multiply(factor[:, 0][None, :]))
