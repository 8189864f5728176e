"""Corners of a simplex from points on its faces: y = Σ λ_j·x_j, k corners each, weights unknown.

Signs are kept and weights sum to 1, so that encodings Y = WX are points on the faces of the simplex
whose corners are the records. A column of ones is added to Y, whose records are ones too: n
corners have rank n then, also where they sum to zero.

  1 n        the rank of Y
  2 start    n encodings that span most: the longest, then the longest when those before are
             projected out (successive projection, Araújo et al. 2001)
  3 turns    w ← the k largest coordinates of every encoding in the corners; x ← least squares
  4 columns  U, an orthonormal basis of the columns of Y, spans the columns of W too. Column j of W
             is 0 in all rows without j, so that it is the leading left singular vector of U at the
             rows of j, with singular value 1. Right subsets give right weights at once, wherever
             the corners of step 3 were; and rows sum to 1, which gives each column its size
  5 noise    where encodings are not reproduced, turns again: step 4 is not least squares

Needs n ≤ d + 1 corners in general position. Cost: a spectrum of Y, then O(m·n²) for each turn.
Nothing here proves anything; `certify.own_weights` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from unveil.gram.whitened import ROUNDING, exact_rank, spectrum
from unveil.records import Progress
from unveil.solve.model import PIXEL, Members, rms

TURNS, MORE_TURNS = 15, 60
"""Turns of step 3 before step 4 may take over, and of step 5 at most; subsets are nearly all right
after the first, and the second end by themselves."""
COLUMNS = 10
"""Rounds of step 4: one is enough where all subsets are right, and each puts most others right."""
ENOUGH = 0.95
"""Share of encodings explained from which on no other number of corners is tried."""
FALLS, FALL, UPTO = 3, 2.0, 0.95
"""Falls of the spectrum that are tried, by which factor at least, and up to which part of it: the
smallest eigenvalues of noise fall by large factors as well."""
HALF = 0.5
"""Share of encodings that must be reproduced to rounding for the rest to be damage, not noise."""
STILL = 1e-7
"""Relative change of the corners from which on turns change nothing."""
RIDGE = 1e-12
"""Added to the diagonal of a Gram matrix, relative to its mean: far below what single precision
leaves of the encodings."""
SIGMAS = 5.0
"""Standard deviations of chi-square within which an encoding is explained up to noise."""
USED = 1e-9
"""A weight below it is none: rows of it would not change a column."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Corners:
    """values (n, d): the corners; members, weights (m, k): what each encoding mixes, by falling
    weight; fits (m,): it is explained, exactly or up to noise; exact: to rounding; noise: standard
    deviation per pixel, by what is left, or the largest residual where that is rounding."""

    values: Floats
    members: Members
    weights: Floats
    fits: NDArray[np.bool_]
    noise: float
    exact: bool

    @property
    def matrix(self) -> sparse.csr_array:
        """W (m, n)."""
        m, k = self.members.shape
        at = np.repeat(np.arange(m), k), self.members.ravel()
        return sparse.csr_array((self.weights.ravel(), at), shape=(m, len(self.values)))


def find_corners(
    Y: Floats, k: int, n: int | None = None, *, progress: Progress | None = None
) -> Corners | None:
    """The corners that explain most encodings as mixtures of k; None: there are none.

    n: how many there are, where that is known
    """
    m = len(Y)
    size = float(np.sqrt(np.mean(np.einsum("ij,ij->i", Y, Y))))
    if size == 0:
        return None
    lifted = np.column_stack([Y, np.full(m, size)])
    values, vectors = spectrum(lifted)
    best: Corners | None = None
    for count in _counts(values, n):
        if not k < count < m:
            continue
        found = _corners(lifted, values, vectors[:, :count], k, progress)
        if found is not None and (best is None or _better(found, best)):
            best = found
        if best is not None and best.exact and best.fits.sum() >= ENOUGH * m:
            break
    return best


def _better(one: Corners, other: Corners) -> bool:
    """What is exact, then what explains enough, then what leaves less noise."""

    def worth(found: Corners) -> tuple[bool, bool, float]:
        return found.exact, bool(found.fits.mean() >= ENOUGH), -found.noise

    return worth(one) > worth(other)


def _counts(values: Floats, n: int | None) -> Iterator[int]:
    """How many corners there may be: the rank; the falls of the spectrum, which noise leaves."""
    if n is not None:
        yield n
        return
    rank = exact_rank(values)
    yield rank
    # The largest falls. The very first is that of what all records have in common.
    safe = np.maximum(values, ROUNDING * max(float(values[0]), 1e-300))
    last = max(2, int(UPTO * len(safe)))
    falls = safe[: last - 1] / safe[1:last]
    for at in np.argsort(-falls, kind="stable")[:FALLS]:
        if falls[at] > FALL and at + 1 != rank:
            yield int(at) + 1


def _corners(
    lifted: Floats, values: Floats, U: Floats, k: int, progress: Progress | None
) -> Corners | None:
    """Steps 2 to 5 for a given number of corners: the columns of U."""
    m, n = U.shape
    d = lifted.shape[1] - 1
    Y = lifted[:, :d]
    bound = PIXEL * rms(Y)
    # Coordinates of the encodings in the space they span. Noise has the same size in all of them.
    Z = U * np.sqrt(np.maximum(values[:n], 0.0))
    x = Z[_extreme(Z)]
    # 1. Turns, until subsets are nearly right.
    for turn in range(TURNS):
        new = _turn(Z, x, k)[0]
        if new is None:
            return None
        x = new
        if progress:
            progress("corners", turn + 1, TURNS + COLUMNS)
    # 2. Columns of W from the subsets alone.
    members, weights = _mixtures(Z, x, k)
    for step in range(COLUMNS):
        before = members
        W = _columns(U, members, weights, n)
        new = None if W is None else _least_squares(W, Z)
        if new is None:
            break
        x = new
        members, weights = _mixtures(Z, x, k)
        if progress:
            progress("corners", TURNS + step + 1, TURNS + COLUMNS)
        if step and (np.sort(before, axis=1) == np.sort(members, axis=1)).all():
            break
    # 3. Exact, or least squares under noise.
    found = _judged(Y, members, weights, n, bound)
    if found is not None and found.exact:
        return found
    for _ in range(MORE_TURNS):
        new, moved = _turn(Z, x, k)
        if new is None:
            break
        x = new
        if moved < STILL:
            break
    members, weights = _mixtures(Z, x, k)
    other = _judged(Y, members, weights, n, bound, _noise(values, n, m, d))
    if found is None or other is None:
        return found or other
    return other if other.fits.sum() >= found.fits.sum() else found


def _noise(values: Floats, n: int, m: int, d: int) -> float:
    """Standard deviation per pixel, by what the spectrum has beyond the rank."""
    rest = float(np.maximum(values[n:], 0.0).sum())
    return float(np.sqrt(rest / max(1, (m - n) * (d - n))))


def _judged(
    Y: Floats, members: Members, weights: Floats, n: int, bound: float, noise: float | None = None
) -> Corners | None:
    """Values at all pixels, and which encodings they explain: within `bound`, or up to `noise`."""
    m, d = Y.shape
    at = np.repeat(np.arange(m), members.shape[1]), members.ravel()
    W = sparse.csr_array((weights.ravel(), at), shape=(m, n))
    x = _least_squares(W, Y)
    if x is None:
        return None
    rest = Y - W @ x
    reproduced = np.abs(rest).max(axis=1) <= bound
    if noise is None:
        # Rows that are wrong pull on the others: once more without them.
        if HALF * m <= reproduced.sum() < m:
            again = _least_squares(sparse.csr_array(W[reproduced]), Y[reproduced])
            x = x if again is None else again
            rest = Y - W @ x
            reproduced = np.abs(rest).max(axis=1) <= bound
        largest = float(np.abs(rest[reproduced]).max(initial=0.0))
        exact = bool(reproduced.mean() >= HALF)
        return Corners(x, members, weights, reproduced, largest, exact)
    # Least squares leaves less than the noise: n and a weight or k − 1 of the unknowns per row.
    power = np.einsum("ij,ij->i", rest, rest)
    share = 1 - n / m
    fits = power <= noise**2 * share * (d + SIGMAS * np.sqrt(2 * d)) if share > 0 else reproduced
    left = power[fits].sum() / max(1, int(fits.sum()))
    found = float(np.sqrt(left / d / max(share, 1 / m)))
    return Corners(x, members, weights, fits, found, False)


def _extreme(Z: Floats) -> NDArray[np.int64]:
    """As many rows as columns, that span most: the longest, then the longest of what is left."""
    left, rows = Z.copy(), []
    for _ in range(Z.shape[1]):
        rows.append(int(np.einsum("ij,ij->i", left, left).argmax()))
        unit = left[rows[-1]] / max(float(np.linalg.norm(left[rows[-1]])), 1e-300)
        left -= np.outer(left @ unit, unit)
    return np.array(rows, np.int64)


def _turn(Z: Floats, x: Floats, k: int) -> tuple[Floats | None, float]:
    """One turn of mixtures and least squares; and how far corners moved."""
    members, weights = _mixtures(Z, x, k)
    at = np.repeat(np.arange(len(Z)), k), members.ravel()
    W = sparse.csr_array((weights.ravel(), at), shape=(len(Z), len(x)))
    new = _least_squares(W, Z)
    if new is None:
        return None, 0.0
    # A corner that nobody uses stays where it was.
    idle = np.asarray(W.sum(axis=0)).ravel() <= USED
    new[idle] = x[idle]
    return new, float(np.linalg.norm(new - x)) / max(float(np.linalg.norm(x)), 1e-300)


def _mixtures(Z: Floats, x: Floats, k: int) -> tuple[Members, Floats]:
    """(m, k) the corners with the largest coordinates, by falling weight, and weights that are not
    negative and sum to 1, by least squares on these corners."""
    gram = x @ x.T
    gram[np.diag_indices_from(gram)] += RIDGE * max(float(np.trace(gram)) / len(gram), 1e-300)
    inner = Z @ x.T
    coordinates = np.linalg.solve(gram, inner.T).T
    members = np.argpartition(-coordinates, k - 1, axis=1)[:, :k].astype(np.int64)
    # Least squares on the edges from the last corner of each row: weights sum to 1 by themselves.
    first, last = members[:, :-1], members[:, -1:]
    A = gram[first[:, :, None], first[:, None, :]] - gram[first, last][:, :, None]
    A += gram[last, last][:, :, None] - gram[first, last][:, None, :]
    right = np.take_along_axis(inner, first, 1) - np.take_along_axis(inner, last, 1)
    right -= gram[first, last] - gram[last, last]
    if k > 1:
        A += (RIDGE * np.einsum("ijj->i", A)[:, None, None] + 1e-300) * np.eye(k - 1)
        free = np.linalg.solve(A, right[:, :, None])[:, :, 0]
    else:
        free = np.empty((len(Z), 0))
    weights = np.maximum(np.column_stack([free, 1 - free.sum(axis=1)]), 0.0)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    order = np.argsort(-weights, axis=1, kind="stable")
    return np.take_along_axis(members, order, 1), np.take_along_axis(weights, order, 1)


def _columns(U: Floats, members: Members, weights: Floats, n: int) -> sparse.csr_array | None:
    """W from subsets alone: every column a singular vector, then all of them sized so that rows sum
    to 1."""
    m = len(U)
    used = weights.ravel() > USED
    rows, names = np.repeat(np.arange(m), members.shape[1])[used], members.ravel()[used]
    order = np.argsort(names, kind="stable")
    rows = rows[order]
    starts = np.searchsorted(names[order], np.arange(n + 1))
    entries = np.zeros(len(rows))
    for j in range(n):
        part = slice(starts[j], starts[j + 1])
        if starts[j] == starts[j + 1]:
            return None
        some = U[rows[part]]
        column = np.linalg.eigh(some @ some.T)[1][:, -1]
        entries[part] = column if column.sum() >= 0 else -column
    W = sparse.csr_array((entries, (rows, names[order])), shape=(m, n))
    sizes = _least_squares(W, np.ones((m, 1)))
    return None if sizes is None else sparse.csr_array(W.multiply(sizes[:, 0][None, :]))


def _least_squares(W: sparse.csr_array, Y: Floats) -> Floats | None:
    """x of Wx = Y; None where W leaves it open."""
    gram = (W.T @ W).toarray()
    gram[np.diag_indices_from(gram)] += RIDGE * max(float(np.trace(gram)) / len(gram), 1e-300)
    try:
        return np.asarray(cho_solve(cho_factor(gram), W.T @ Y))
    except LinAlgError:
        return None
