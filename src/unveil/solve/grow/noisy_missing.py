"""Vectors that are missing under noise, among few columns: groups of encodings left over, one unknown
vector each, and its values from what is known of the others. Pairs only.

Encodings that known vectors do not explain hold a vector that is missing. Those that share it stand
out from each other in the overlaps, since hardly two of them share a known one:

    1  groups ← the overlaps of what is left, one vector each    (`factor.all_vectors`)
    2  v ← ±z_i − x_a                for every encoding i of a group and known vector a, z as signs
                                     are likely; the starts under which most of the group fits
    3  v ← mean of s∘y_i − x_a(i)    partner and signs as v has them, to a fixed point

`solve.grow.noisy_growth` compares any two encodings instead, at any signs, and wants columns by the
hundred.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.factor.all_vectors import factor_overlaps
from unveil.gram.folded_normal import Floats, Patterns
from unveil.records import Progress
from unveil.solve.grow.noisy_growth import grow
from unveil.solve.grow.noisy_start import agreeing, alternate, row_weights
from unveil.solve.pixels.noisy import NoisySolution, solve_noisy

TURNS = 5
"""Rounds: a vector that is found explains encodings that were in the way of others."""
MORE = 1.5
"""Groups that are looked for, relative to the number that the encodings left over make."""
FEWEST = 3
"""Encodings of a vector: any two can be explained by one made for the purpose."""
STARTS = 4
"""Of step 3, the best of step 2."""
SHARE = 0.4
"""The share of a group that a start must suit: the others may be in it by mistake."""
ROUNDS = 30
"""Of step 3: partners stop to change after ten."""
BLOCK = 64


def with_missing(
    y: NDArray[np.float32],
    patterns: Patterns,
    overlaps: Floats,
    noisy: NoisySolution,
    rng: np.random.Generator,
    progress: Progress | None,
) -> NoisySolution:
    """The solution with vectors that groups of encodings left over reveal, y (m, d) = |Σx|."""
    for _ in range(TURNS):
        left = np.setdiff1d(np.arange(len(y)), noisy.rows)
        if len(left) < FEWEST:
            break
        new = _new_vectors(y, patterns, overlaps, noisy, left)
        if not len(new):
            break
        x, members, miss = alternate(y, np.vstack([noisy.values, new]), noisy.noise)
        rows = np.flatnonzero(miss <= (2 * noisy.noise) ** 2)
        used, names = np.unique(members[rows], return_inverse=True)
        named = names.reshape(-1, 2).astype(np.int64)
        if len(rows) <= len(used):
            break
        solved = solve_noisy(
            y, None, rows, named, len(used), noisy.noise, rng, start=x[used], progress=progress
        )
        solved = grow(y, solved, rng, progress)
        if solved is None or len(solved.rows) <= len(noisy.rows):
            break
        noisy = solved
    return noisy


def _new_vectors(
    y: NDArray[np.float32],
    patterns: Patterns,
    overlaps: Floats,
    noisy: NoisySolution,
    left: NDArray[np.int64],
) -> Floats:
    """(q, d) vectors that explain at least `FEWEST` of the encodings `left`, each with known ones."""
    # 1. Likely signs up to one for each pixel: as the solution has it.
    total = noisy.values[noisy.members].sum(axis=1)
    product = patterns.z[noisy.rows] * total
    turn = np.where(np.linalg.eigh(product.T @ product)[1][:, -1] < 0, -1.0, 1.0)
    z = turn * patterns.z[left]
    white = turn * (patterns.z[left] @ np.linalg.inv(patterns.C))
    # 2. Groups of one unknown vector each.
    groups = round(MORE * len(left) * len(noisy.values) / (2 * len(noisy.rows)))
    W = factor_overlaps(overlaps[np.ix_(left, left)], 1, max(groups, 2), rounds=2).W
    out: list[Floats] = []
    for group in (np.flatnonzero(column) for column in W.T):
        if len(group) < FEWEST:
            continue
        signed = agreeing(z[group], white[group])
        part = y[left[group]].astype(np.float64)
        # 3. The best of a few starts, by how many encodings fit.
        ends = [
            _refined(part, noisy.values, start, noisy.noise)
            for start in _starts(part, signed, noisy.values)
        ]
        fits = [int((miss <= (2 * noisy.noise) ** 2).sum()) for _, miss in ends]
        best = max(range(len(ends)), key=lambda e: (fits[e], -float(np.median(ends[e][1]))))
        if fits[best] >= FEWEST:
            out.append(ends[best][0])
    return np.array(out).reshape(-1, y.shape[1])


def _starts(y: Floats, z: Floats, x: Floats) -> Floats:
    """The vectors ±z_i − x_a, and the mean of z, under which most rows y (r, d) are near to some
    |v + x_b|."""
    d = y.shape[1]
    mean = z.mean(axis=0)[None]
    candidates = np.concatenate(
        [mean, -mean, *((s * z[:, None] - x).reshape(-1, d) for s in (1.0, -1.0))]
    )
    size = np.einsum("ij,ij->i", y, y)
    score = np.empty(len(candidates))
    for begin in range(0, len(candidates), BLOCK):
        sums = np.abs(candidates[begin : begin + BLOCK, None] + x)
        cost = np.einsum("cnp,cnp->cn", sums, sums)[:, :, None] - 2 * sums @ y.T
        score[begin : begin + BLOCK] = np.quantile(cost.min(axis=1) + size, SHARE, axis=1)
    return np.asarray(candidates[np.argsort(score, kind="stable")[:STARTS]])


def _refined(y: Floats, x: Floats, v: Floats, noise: float) -> tuple[Floats, Floats]:
    """(v, mean squared residuals of the rows y (r, d)): every row with its best partner of x."""
    size = np.einsum("ij,ij->i", y, y)
    miss = size
    for _ in range(ROUNDS):
        sums = v + x
        cost = np.einsum("np,np->n", sums, sums) - 2 * y @ np.abs(sums).T
        partner = cost.argmin(axis=1)
        miss = np.maximum(cost.min(axis=1) + size, 0.0) / y.shape[1]
        weight, typical = row_weights(miss, noise)
        z = y * np.tanh(y * sums[partner] / typical) - x[partner]
        new = weight @ z / max(float(weight.sum()), 1e-30)
        if np.allclose(new, v, rtol=0, atol=1e-3 * noise):
            break
        v = new
    return v, miss
