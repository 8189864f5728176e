"""Corners of which there are more than pixels: y = Σ λ_j·x_j, k of them each, weights unknown and
new in every encoding, signs kept. `solve.simplex` has the case of at most d + 1 corners.

With n > d + 1 the rank says nothing, and neither do coordinates in the corners. What is left is
sparse coding with an overcomplete dictionary (Aharon, Elad, Bruckstein, IEEE TSP 54, 2006), with
three things that mixtures have and dictionaries in general have not: weights are positive, those
of an encoding sum to 1, and without noise encodings are explained to rounding or not at all.

  1 whiten  encodings in units of their own covariance. Corners spread evenly over all directions
            then, whatever they were: real features lie near a few directions and look alike
  2 start   an encoding that is nearly one corner is longer than others. From the longest on: each
            that is unlike all before is a corner
  3 turns   members ← orthogonal matching pursuit with positive weights; weights ← least squares,
            sum 1; corners ← least squares in which rows count by how well they are explained, a
            step further than that
            corners that are alike or hardly used go; what rows in common leave unexplained comes
  4 exact   rows that are explained to rounding alone say what the corners are

Corners may be known in part (a public list): they stay as they are.

Cost: m·n·d for each of some dozen turns. Nothing here proves anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from unveil.records import Progress
from unveil.solve.codes import RIDGE, matrix_of, members_of, mixed, weights_of
from unveil.solve.model import PIXEL, Members, rms
from unveil.solve.simplex import Corners

TURNS = 80
"""Turns of step 3 at most: errors fall by a fifth in each, once members are right."""
STARTS = 8
"""Turns before steps go further than least squares: corners still come and go."""
ANEW = 5
"""Turns after which members of all rows are looked for; else only of those explained worse than
the median, once no corners come or go."""
FURTHER = 0.7
"""How much further a step goes: alternating least squares falls short of the goal."""
UNLIKE = 0.6
"""Correlation below which a long encoding is a corner of its own; the mean of two corners has 0.7
with each."""
PURE = 0.42
"""Squared length, in units of a corner's, from which on an encoding is nearly one: its largest
weight is 0.6 and more then, or it has two of 0.46."""
SHARP = 0.1
"""Rows explained better than this share of the median residual count all the same."""
ALIKE = 0.9
"""Correlation of two corners that are one."""
RARELY, CLEARLY = 3, 0.1
"""A corner that fewer rows use with more weight than this is none."""
LONGEST = 3.0
"""In units of the usual length: no corner is longer."""
LEFT, SURELY, TIMES, MANY = 0.15, 0.02, 3.0, 10.0
"""A residual tells of a corner not counted yet if it is above the first, in units of a corner, and
TIMES the median; or above the second and MANY times the median."""
MOST_LEFT = 2000
"""Rows whose residuals are compared at a time."""
TOGETHER = 0.5
"""Correlation of residuals that belong to the same corner."""
DONE = 0.999
"""Share of rows explained to rounding at which turns end."""
MOSTLY, PATIENCE = 0.9, 10
"""Share of rows explained from which on turns end after so many that explained no more."""
FINE = 1e-4
"""Residual, in units of a corner, from which on a row has the right members."""
POLISH = 12
"""Rounds of step 4 at most."""
FLAT = 1e-10
"""Directions with less of the variance than this share of the most are left out of step 1."""
HALF = 0.5
"""Share of encodings that must be reproduced for corners to be exact."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Guess:
    """values (n, d): corners, those known first; members, weights (m, k); left (m,): what they
    leave of each encoding, in units of a corner."""

    values: Floats
    members: Members
    weights: Floats
    left: Floats

    def mixed(self) -> Floats:
        """(m, d) the encodings as the corners make them."""
        return mixed(self.values, self.members, self.weights)


def guess_corners(
    Y: Floats,
    k: int,
    squares: float,
    known: Floats | None = None,
    *,
    start: Floats | None = None,
    turns: int = TURNS,
    progress: Progress | None = None,
) -> Guess | None:
    """Corners that explain the encodings as well as `turns` let them; None: there are none.

    squares: mean of Σ λ² of an encoding
    known (q, d): corners that are known
    start (n, d): corners to begin with, those known not among them; None: long encodings
    """
    # 1. Whitened, with lengths in units of a corner's.
    centre = Y.mean(axis=0)
    sizes, axes = np.linalg.eigh(np.cov(Y.T))
    axes = axes[:, sizes > FLAT * sizes[-1]]
    axes = axes / np.sqrt(sizes[sizes > FLAT * sizes[-1]])
    axes = axes * np.sqrt(squares / axes.shape[1])
    Z = (Y - centre) @ axes
    known = np.empty((0, Y.shape[1])) if known is None else known
    fixed = (known - centre) @ axes
    # 2. Start, then turns.
    first = _start(Z, fixed) if start is None else (start - centre) @ axes
    state = _State(Z, k, fixed, first, Z.astype(np.float32) @ fixed.astype(np.float32).T)
    best, last = 0.0, 0
    for turn in range(turns):
        if not len(state.corners):
            return None
        done = _turn(state, turn)
        if progress:
            progress("corners", turn + 1, turns)
        if done > best:
            best, last = done, turn
        if done >= DONE or (best >= MOSTLY and turn - last >= PATIENCE):
            break
    # 3. As vectors of pixels.
    return _settled(Y, known, state)


def find_many_corners(
    Y: Floats,
    k: int,
    squares: float,
    known: Floats | None = None,
    *,
    start: Floats | None = None,
    progress: Progress | None = None,
) -> Corners | None:
    """The corners that reproduce the encodings, those known first; None: less than half of the
    encodings are reproduced. Arguments as those of `guess_corners`."""
    guess = guess_corners(Y, k, squares, known, start=start, progress=progress)
    return None if guess is None else _polished(Y, guess, 0 if known is None else len(known))


@dataclass(eq=False)
class _State:
    """Z (m, r): whitened encodings; fixed (q, r) and corners (n, r): known and found; products
    (m, q): those of encodings with the known; members and weights (m, k) of the last turn, over
    both; left (m,): length of the residuals; moved: corners came or went."""

    Z: Floats
    k: int
    fixed: Floats
    corners: Floats
    products: NDArray[np.float32]
    members: Members = None  # type: ignore[assignment]
    weights: Floats = None  # type: ignore[assignment]
    left: Floats = None  # type: ignore[assignment]
    moved: bool = True

    @property
    def all(self) -> Floats:
        return np.concatenate([self.fixed, self.corners])


def _start(Z: Floats, fixed: Floats) -> Floats:
    """Long encodings that are unlike all before them, at the length of a corner."""
    length = np.linalg.norm(Z, axis=1)
    order = np.argsort(-length, kind="stable")
    order = order[length[order] ** 2 >= PURE]
    unit = (Z[order] / length[order, None]).astype(np.float32)
    taken = fixed / np.maximum(np.linalg.norm(fixed, axis=1, keepdims=True), 1e-30)
    found = taken.astype(np.float32)
    step = 256  # a block against all before it, then one by one within
    for start in range(0, len(unit), step):
        block = unit[start : start + step]
        block = block[(block @ found.T).max(axis=1, initial=-1.0) <= UNLIKE]
        kept: list[int] = []
        alike = block @ block.T
        for i in range(len(block)):
            if not kept or alike[i, kept].max() <= UNLIKE:
                kept.append(i)
        found = np.concatenate([found, block[kept]])
    return np.asarray(found[len(fixed) :], np.float64)


def _turn(state: _State, turn: int) -> float:
    """Members, weights and corners once more; the share of rows that are explained."""
    Z, q = state.Z, len(state.fixed)
    # 1. Members and weights. Those of rows that are explained well rarely change.
    A = state.all
    if turn < STARTS or turn % ANEW == 0 or state.moved:
        state.members = members_of(Z, A, state.k, state.products)
    else:
        rows = np.flatnonzero(state.left > np.median(state.left))
        state.members[rows] = members_of(Z[rows], A, state.k, state.products[rows])
    state.weights = weights_of(Z, A, state.members)
    rest = Z - mixed(A, state.members, state.weights)
    state.left = np.linalg.norm(rest, axis=1)
    usual = float(np.median(state.left))
    # 2. Corners; a row that is explained badly may have the wrong members.
    trust = 1 / np.maximum(state.left, max(SHARP * usual, 1e-12))
    W = matrix_of(state.members, state.weights, len(A))
    own = sparse.csr_array(W[:, q:])
    new = _least_squares(own, Z - W[:, :q] @ state.fixed, trust)
    if new is None:
        return 0.0
    # 3. Those that are none, and those not counted yet.
    use = np.asarray((own > CLEARLY).sum(axis=0)).ravel()
    good = _different(new, use)
    if turn >= STARTS:
        new = new + FURTHER * (new - state.corners)
    least = max(SURELY, min(LEFT, MANY * usual), TIMES * usual)
    fresh = _fresh(rest, state.left, least)
    state.moved = not good.all() or len(fresh) > 0
    state.corners = np.concatenate([new[good], fresh])
    return float((state.left < FINE).mean())


def _different(corners: Floats, use: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which corners are used, not too long, and no second copy of one that is used more."""
    length = np.linalg.norm(corners, axis=1)
    good = (use >= RARELY) & (length < LONGEST)
    unit = corners / np.maximum(length, 1e-30)[:, None]
    for i, j in zip(*np.nonzero(np.triu(unit @ unit.T > ALIKE, 1)), strict=True):
        if good[i] and good[j]:
            good[j if use[i] >= use[j] else i] = False
    return np.asarray(good)


def _fresh(rest: Floats, left: Floats, least: float) -> Floats:
    """Corners that several residuals point to."""
    rows = np.argsort(-left, kind="stable")[:MOST_LEFT]
    rows = rows[left[rows] > least]
    unit = rest[rows] / left[rows, None]
    near = unit @ unit.T > TOGETHER
    count, done, out = near.sum(axis=1), np.zeros(len(rows), bool), []
    for i in np.argsort(-count, kind="stable"):
        if count[i] < RARELY:
            break
        if not done[near[i]].any():
            mean = unit[near[i]].mean(axis=0)
            out.append(mean / np.linalg.norm(mean))
            done |= near[i]
    return np.array(out).reshape(-1, rest.shape[1])


def _least_squares(W: sparse.csr_array, Z: Floats, trust: Floats) -> Floats | None:
    """x of Wx = Z, rows by their trust."""
    heavy = sparse.csr_array(W.multiply(trust[:, None]))
    gram = (W.T @ heavy).toarray()
    gram[np.diag_indices_from(gram)] += RIDGE * max(float(np.trace(gram)) / len(gram), 1e-300)
    try:
        return np.asarray(cho_solve(cho_factor(gram), heavy.T @ Z))
    except LinAlgError:
        return None


def _settled(Y: Floats, known: Floats, state: _State) -> Guess | None:
    """Members and weights in the last corners, and these as vectors of pixels."""
    A = state.all
    members = members_of(state.Z, A, state.k, state.products)
    weights = weights_of(state.Z, A, members)
    left = np.linalg.norm(state.Z - mixed(A, members, weights), axis=1)
    trust = 1 / np.maximum(left, max(SHARP * float(np.median(left)), 1e-12))
    x = _values(Y, members, weights, known, len(A), trust)
    return None if x is None else Guess(np.concatenate([known, x]), members, weights, left)


def _values(
    Y: Floats, members: Members, weights: Floats, known: Floats, n: int, trust: Floats
) -> Floats | None:
    """Corners beyond those known, by least squares."""
    W = matrix_of(members, weights, n)
    q = len(known)
    return _least_squares(sparse.csr_array(W[:, q:]), Y - W[:, :q] @ known, trust)


def _polished(Y: Floats, guess: Guess, q: int) -> Corners | None:
    """Corners at all pixels, from the rows that they reproduce; the first q are known."""
    known, members, weights = guess.values[:q], guess.members, guess.weights
    fine = guess.left < FINE
    bound = PIXEL * rms(Y)
    found: Corners | None = None
    for _ in range(POLISH):
        if fine.mean() < HALF:
            break
        x = _values(Y, members, weights, known, len(guess.values), fine.astype(np.float64))
        if x is None:
            break
        A = np.concatenate([known, x])
        weights = weights_of(Y, A, members)
        off = np.abs(Y - mixed(A, members, weights)).max(axis=1)
        fits = off <= bound
        largest = float(off[fits].max(initial=0.0))
        if found is not None and fits.sum() <= found.fits.sum() and largest >= found.noise:
            break
        found = Corners(A, members, weights, fits, largest, bool(fits.mean() >= HALF))
        fine = fits if fits.mean() >= HALF else fine
    return found if found is not None and found.exact else None
