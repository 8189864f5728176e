"""Vectors that are missing under noise, among few columns: groups of encodings left over, one
unknown vector each, and its values from what is known of the others. Pairs only.

Encodings that known vectors do not explain hold a vector that is missing. Those that share it stand
out from each other in the overlaps, since hardly two of them share a known one:

    1  groups ← the overlaps of what is left, one vector each    (`factor.all_vectors`)
    2  v ← ±z_i − x_a                for every encoding i of a group and known vector a, z as signs
                                     are likely; the starts under which most of the group fits
    3  v ← where most of s∘y_i − x_a(i) are, partners as v has them, to a fixed point

`solve.grow.noisy_growth` compares any two encodings instead, at any signs, and wants columns by the
hundred.

Two columns that are the same at most pixels are one vector, and a column that few encodings use may
be a part of one: they are taken out, and found again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.factor.all_vectors import factor_overlaps
from unveil.gram.folded_normal import Floats, Patterns
from unveil.records import Progress
from unveil.solve.grow.noisy_growth import hold_noisy
from unveil.solve.grow.noisy_start import agreeing, alternate, row_weights
from unveil.solve.pixels.noisy import NoisySolution

TURNS = 5
"""Rounds: a vector that is found explains encodings that were in the way of others."""
MORE = 1.5
"""Groups that are looked for, relative to the number that the encodings left over make."""
FEWEST = 3
"""Encodings of a vector: any two can be explained by one made for the purpose."""
ONE, SHARP = 0.8, 5.0
"""The share of pixels at which two columns must be the same to be one vector, up to so many
standard errors: a part of its encodings leaves another value at one pixel or two."""
FEW = 0.5
"""Encodings of a column, relative to what is usual, with which it may be a part of a vector."""
STARTS = 4
"""Of step 3, the best of step 2."""
SHARE = 0.4
"""The share of a group that a start must suit: the others may be in it by mistake."""
OFF = 4.0
"""Typical residuals beyond which a pixel is off: noise is there once in sixteen thousand."""
ROUNDS = 30
"""Of step 3: partners stop to change after ten."""
BLOCK = 64
"""Starts that are tried at a time, for memory: n × d times as many numbers."""


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
        # Without what is doubtful first: a part of a vector's encodings may be wrong somewhere.
        doubtful = _doubtful(noisy)
        for away in (doubtful, np.zeros_like(doubtful)) if doubtful.any() else (doubtful,):
            found = _turn(y, patterns, overlaps, _without(noisy, away), rng, progress)
            if found is not None and _worth(found) > _worth(noisy):
                break
        else:
            return noisy
        noisy = found
    return noisy


def _turn(
    y: NDArray[np.float32],
    patterns: Patterns,
    overlaps: Floats,
    noisy: NoisySolution,
    rng: np.random.Generator,
    progress: Progress | None,
) -> NoisySolution | None:
    """New vectors from what is left, and everything solved with them; None: there are none."""
    left = np.setdiff1d(np.arange(len(y)), noisy.rows)
    if len(left) < FEWEST or len(noisy.rows) < FEWEST:
        return None
    new = _new_vectors(y, patterns, overlaps, noisy, left)
    x, members, miss = alternate(y, np.vstack([noisy.values, new]), noisy.noise)
    rows = np.flatnonzero(miss <= (2 * noisy.noise) ** 2)
    return hold_noisy(y, rows, members[rows], noisy.noise, rng, start=x, progress=progress)


def _doubtful(noisy: NoisySolution) -> NDArray[np.bool_]:
    """(n,) columns that are one with another at most pixels, up to their errors, or that few
    encodings use."""
    x = noisy.values
    wide = SHARP * np.hypot(noisy.error[:, None], noisy.error)
    alike = np.stack(
        [(np.abs(x - v) <= w[:, None]).mean(axis=1) for v, w in zip(x, wide, strict=True)]
    )
    np.fill_diagonal(alike, 0.0)
    uses = np.bincount(noisy.members.ravel(), minlength=len(x))
    return np.asarray((alike >= ONE).any(axis=1) | (uses < FEW * np.median(uses)))


def _without(noisy: NoisySolution, away: NDArray[np.bool_]) -> NoisySolution:
    """The solution without some columns and the encodings that use them."""
    keep = ~away[noisy.members].any(axis=1)
    names = np.cumsum(~away) - 1
    return replace(
        noisy,
        values=noisy.values[~away],
        rows=noisy.rows[keep],
        members=names[noisy.members[keep]].astype(np.int64),
        error=noisy.error[~away],
        determined=noisy.determined[~away],
    )


def _worth(noisy: NoisySolution) -> tuple[int, int]:
    """More encodings, or as many by fewer vectors."""
    return len(noisy.rows), -len(noisy.values)


def _new_vectors(
    y: NDArray[np.float32],
    patterns: Patterns,
    overlaps: Floats,
    noisy: NoisySolution,
    left: NDArray[np.int64],
) -> Floats:
    """(q, d) vectors that explain at least `FEWEST` of the encodings `left`, each with known
    ones."""
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
    """(v, mean squared residuals of the rows y (r, d)): every row with its best partner of x.

    A pixel that is far off counts as `OFF` spreads, in the choice of partners and of values: or one
    wrong value would keep all partners wrong.
    """
    most = np.inf
    miss = np.mean(y * y, axis=1)
    for _ in range(ROUNDS):
        square = (np.abs(v + x)[None] - y[:, None]) ** 2
        cost = np.minimum(square, most).mean(axis=2)
        partner = cost.argmin(axis=1)
        miss = square[np.arange(len(y)), partner].mean(axis=1)
        weight, typical = row_weights(cost.min(axis=1), noise)
        most = OFF**2 * typical
        new = _consensus(y, x[partner], weight, most)
        # A thousandth of the noise says nothing more of v.
        if np.allclose(new, v, rtol=0, atol=1e-3 * noise):
            break
        v = new
    return v, miss


def _consensus(y: Floats, partner: Floats, weight: Floats, most: float) -> Floats:
    """(d,) at each pixel the value to which most rows are near, by one of ±y − partner (r, d)."""
    options = np.stack([y - partner, -y - partner])
    guesses = options.reshape(-1, y.shape[1])
    apart = np.abs(options[:, :, None] - guesses).min(axis=0) ** 2
    best = np.einsum("i,igp->gp", weight, np.minimum(apart, most)).argmin(axis=0)
    guess = np.take_along_axis(guesses, best[None], axis=0)[0]
    nearest = np.where(np.abs(options[0] - guess) < np.abs(options[1] - guess), *options)
    near = weight[:, None] * ((nearest - guess) ** 2 < most)
    return np.asarray((near * nearest).sum(axis=0) / np.maximum(near.sum(axis=0), 1e-30))
