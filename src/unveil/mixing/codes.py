"""Sparse codes, and the alternation of codes and least squares that all schemes share.

    codes         min ‖z − Σ_j λ_j·x_j‖   over k entries λ ≥ 0 that sum to 1, or all equal w
    alternation   x ← argmin Σ_i t_i·‖(Λx − Z)_i‖²,  Λ ← codes of Z in x,  Z ← signs for Λx

Choosing the k entries is hard in general. With independent records (n ≤ d) the coordinates of z in
them are unique, and the k largest are the members. With more records than values optimised
orthogonal matching pursuit takes their place (Rebollo-Neira, Lowe, IEEE Signal Processing Letters
9, 2002).

Without noise a row is explained to rounding or not at all. So least squares trusts rows by how well
they fit, t = 1/max(residual, c), which is the sum of residuals instead of their squares. With c
small from the start a record would stay at the one encoding that is nearest to it, since that fits
best. So c falls from the mean residual on.

Cost of a turn: m·n·d products, m·n·k² for the pursuit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.mixing.model import (
    Flags,
    Floats,
    Members,
    least_squares,
    mixed,
    simplex_weights,
    weight_matrix,
)


@dataclass(frozen=True, eq=False)
class Fit:
    """Records (n, d), members and weights (m, k), and the length of what is left of each row."""

    values: Floats
    members: Members
    weights: Floats
    left: Floats


def sparse_codes(
    Z: Floats, x: Floats, k: int, *, weight: float | None = None
) -> tuple[Members, Floats]:
    """Members and weights (m, k) of every row, by falling weight.

    weight : float    The weight of every member; None: weights of their own that sum to 1.
    """
    members = _members(Z, x, k, weight)
    if weight is not None:
        return members, np.full(members.shape, weight)
    return by_weight(members, simplex_weights(Z, x, members))


def by_weight(members: Members, weights: Floats) -> tuple[Members, Floats]:
    """The same with the largest weight of each row first."""
    order = np.argsort(-weights, axis=1, kind="stable")
    return np.take_along_axis(members, order, 1), np.take_along_axis(weights, order, 1)


def alternate(
    rows: Floats,
    start: Floats,
    k: int,
    *,
    weight: float | None = None,
    known: Floats | None = None,
    signs: Callable[[Floats], Floats] | None = None,
    first_fit: Floats | None = None,
    adapt: bool = False,
    robust: bool = True,
    turns: int = 80,
    still: float = 1e-7,
    fine: float = 1e-4,
    cooling: float = 0.9,
    further: float = 0.7,
    progress: Callable[[int, int], None] | None = None,
) -> Fit | None:
    """Codes and least squares in turn, from records `start` (n, d).

    weight : float       The weight of every member; None: own weights that sum to 1.
    known : (q, d)       Records that are known and stay as they are; they come first in the result.
    signs : function     Given the fit (m, d), the rows with signs put on them; None: rows have
                         theirs. `first_fit` (m, d) is the fit to begin with.
    adapt : bool         Records may come and go: duplicates and those hardly used are dropped, and
                         what several residuals point to is added. For rows in units in which a
                         record has length about 1.
    robust : bool        Trust rows by how well they fit; else plain least squares, as for noise.
    turns, still         Turns at most, and the relative change of the records that ends them.
    fine : float         Residual, in units of a record, of a row that is explained; turns end when
                         999 of 1,000 are.
    cooling : float      Factor by which c falls in each turn.
    further : float      How much further than least squares a step goes after some turns, since
                         alternating falls short; only with `adapt`, where hundreds of turns would
                         be needed.
    """
    if not len(start):
        return None
    fixed = np.empty((0, rows.shape[1])) if known is None else known
    q, own = len(fixed), start
    Z = rows if signs is None or first_fit is None else signs(first_fit)
    size = max(float(np.sqrt(np.mean(np.einsum("ij,ij->i", start, start)))), 1e-300)
    bar, fit = np.inf, None
    for turn in range(turns):
        if not len(own) or q + len(own) < k:
            return None
        # 1. Codes, and signs by them.
        x = np.concatenate([fixed, own])
        members, weights = sparse_codes(Z, x, k, weight=weight)
        total = mixed(x, members, weights)
        if signs is not None:
            Z = signs(total)
        rest = Z - total
        left = np.sqrt(np.einsum("ij,ij->i", rest, rest))
        fit = Fit(x, members, weights, left)
        if progress:
            progress(turn + 1, turns)
        if (left < fine * size).mean() >= 0.999 and turn:
            break
        # 2. Least squares, rows by trust.
        usual = float(np.median(left))
        bar = min(bar * cooling, float(np.sqrt(np.mean(left**2))))
        trust = 1 / np.maximum(left, max(bar, usual / 10, 1e-12 * size)) if robust else None
        W = weight_matrix(members, weights, len(x))
        new = least_squares(W, Z, trust, fixed, ridge=1e-10)
        if new is None:
            return fit
        idle = np.asarray(W.sum(axis=0)).ravel() <= 1e-9
        new[idle] = x[idle]
        new = new[q:]
        moved = float(np.linalg.norm(new - own)) / max(float(np.linalg.norm(own)), 1e-300)
        # 3. Records that come and go.
        if adapt:
            keep = _worth_keeping(new, np.asarray((W[:, q:] > 0.1).sum(axis=0)).ravel())
            if turn >= 8:
                new = new + further * (new - own)
            least = max(0.02, min(0.15, 10 * usual), 3 * usual)
            own = np.concatenate([new[keep], _pointed_to(rest, left, least)])
        else:
            own = new
            if moved < still and turn > 2:
                break
    return fit


def _worth_keeping(
    x: Floats, use: NDArray[np.int64], *, rarely: int = 3, longest: float = 3.0, alike: float = 0.9
) -> Flags:
    """Which records are used by `rarely` rows at least, not far longer than usual (1), and not a
    copy (cosine above `alike`) of one that is used more."""
    length = np.linalg.norm(x, axis=1)
    keep = (use >= rarely) & (length < longest)
    unit = x / np.maximum(length, 1e-30)[:, None]
    for i, j in zip(*np.nonzero(np.triu(unit @ unit.T > alike, 1)), strict=True):
        if keep[i] and keep[j]:
            keep[j if use[i] >= use[j] else i] = False
    return np.asarray(keep)


def _pointed_to(
    rest: Floats, left: Floats, least: float, *, together: float = 0.5, most: int = 2000
) -> Floats:
    """Records of length 1 that three residuals at least point to: those longer than `least` with a
    cosine above `together` to one another. The `most` longest are compared."""
    rows = np.argsort(-left, kind="stable")[:most]
    rows = rows[left[rows] > least]
    unit = rest[rows] / left[rows, None]
    near = unit @ unit.T > together
    count, done, new = near.sum(axis=1), np.zeros(len(rows), bool), []
    for i in np.argsort(-count, kind="stable"):
        if count[i] < 3:
            break
        if not done[near[i]].any():
            mean = unit[near[i]].mean(axis=0)
            new.append(mean / np.linalg.norm(mean))
            done |= near[i]
    return np.array(new).reshape(-1, rest.shape[1])


def _members(Z: Floats, x: Floats, k: int, weight: float | None, *, block: int = 4000) -> Members:
    """(m, k) the records that each row mixes, `block` rows at a time."""
    n, d = x.shape
    out = np.empty((len(Z), k), np.int64)
    gram = x @ x.T
    if n <= d:
        gram[np.diag_indices_from(gram)] += 1e-12 * max(float(np.trace(gram)) / n, 1e-300)
        to_coordinates = np.linalg.solve(gram, x).T
        for start in range(0, len(Z), block):
            part = slice(start, start + block)
            coordinates = Z[part] @ to_coordinates
            out[part] = np.argpartition(-coordinates, k - 1, axis=1)[:, :k]
        return out
    if weight is not None:
        return matching_pursuit(Z, x, k, weight)
    single, inner = x.astype(np.float32), gram.astype(np.float32)
    for start in range(0, len(Z), block):
        part = slice(start, start + block)
        _orthogonal_pursuit(Z[part].astype(np.float32) @ single.T, inner, out[part])
    return out


def matching_pursuit(
    Z: Floats, x: Floats, k: int, weight: float, *, sweeps: int = 3, block: int = 1024
) -> Members:
    """(m, k) sorted: which k of the records x (n, d), all with the same known weight, come nearest
    to each row.

    Greedy; then each choice is taken back and made again with the others in place, `sweeps` times.
    """
    single, out = x.astype(np.float32), np.empty((len(Z), k), np.int64)
    w = np.float32(weight)
    price = w * w / 2 * np.einsum("ij,ij->i", single, single)
    for start in range(0, len(Z), block):
        rest = Z[start : start + block].astype(np.float32)
        rows = np.arange(len(rest))
        chosen = np.full((len(rest), k), -1, np.int64)
        for turn in range((1 + sweeps) * k):
            slot = turn % k
            if turn >= k:
                rest += w * single[chosen[:, slot]]
            gain = w * (rest @ single.T) - price
            for column in np.delete(chosen, slot, axis=1).T:
                gain[rows[column >= 0], column[column >= 0]] = -np.inf
            chosen[:, slot] = gain.argmax(axis=1)
            rest -= w * single[chosen[:, slot]]
        out[start : start + block] = np.sort(chosen, axis=1)
    return out


@njit(cache=True, nogil=True)
def _orthogonal_pursuit(
    inner: NDArray[np.float32], gram: NDArray[np.float32], members: NDArray[np.int64]
) -> None:
    """Fills members (m, k): again and again the record that lowers the residual most, all weights
    anew with it."""
    m, n = inner.shape
    for i in range(m):
        for j in range(members.shape[1]):
            # What is left of the row and of every record beside the span of those before.
            others = members[i, :j]
            among, row = np.empty((j, j)), np.empty(j)
            for s in range(j):
                row[s] = inner[i, others[s]]
                for t in range(j):
                    among[s, t] = gram[others[s], others[t]] * (1 + 1e-6 * (s == t))
            inverse = np.linalg.inv(among)
            w, top = inverse @ row, -np.inf
            for a in range(n):
                along, size = float(inner[i, a]), float(gram[a, a])
                least = 1e-4 * size
                for s in range(j):
                    along -= w[s] * gram[others[s], a]
                    for t in range(j):
                        size -= gram[others[s], a] * inverse[s, t] * gram[others[t], a]
                gain = max(along, 0.0) ** 2 / size if size > least else -1.0
                if gain > top:
                    members[i, j], top = a, gain
