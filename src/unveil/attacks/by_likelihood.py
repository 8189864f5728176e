"""The full attack under loud noise, from a twentieth of the signal's power on.

    1  S ← similarity, L ← its mean     over pairs that share one vector by a first factorisation:
                                        noise lowers it from 1 to about the square of the share of
                                        the power that is signal
    2  n, W ← FactorOverlaps(S/L)       once more, where the noise had made n seem too large
                                        (`factor.all_vectors`)
    3  W ← the likeliest subsets        on a few hundred pixels (`solve.grow.likely`)
    4  x ← every pixel                  by eigenvectors, then by likely signs (`solve.pixels.loud`)
    5  more than chance?                rows predicted by vectors made without them

Pooled over all pairs the similarities survive noise that hides every single equation: with 20
encodings for each vector and 1,024 pixels all subsets come out right at noise of half the signal.
Nothing is verified; every vector comes with its standard error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.finish_noisy import approximate
from unveil.attacks.units import Task
from unveil.encodings import Encodings
from unveil.factor.all_vectors import Factorisation, factor_overlaps
from unveil.folded import information, signed
from unveil.gram.similarity import estimate_vectors
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.records import Progress, Recovery
from unveil.seeds import child
from unveil.solve.grow.likely import likely_subsets
from unveil.solve.model import LOUDEST, renamed, touched_by_null
from unveil.solve.pixels.left_out import beyond_chance
from unveil.solve.pixels.loud import Design, solve_loud
from unveil.solve.pixels.noisy import NoisySolution

LOUD = 0.97
"""The level of shared pairs below which noise is taken to be loud: 0.98 at noise of a tenth of the
signal, which the exact route still stands, 0.92 at a fifth. Wrong rows lower it as well."""
MORE = 1.1
"""Columns beyond the estimated number of vectors: too many cost little, one too few costs the rows
that use it."""
FEWER = 0.85
"""Share of the first estimate below which the factorisation is worth repeating."""
PIXELS = 384
"""Pixels on which subsets are found: each says a quarter of a nat at noise of six tenths."""
COMPLETE = 0.99
"""The share of encodings from which no vector is taken to be missing."""
ENOUGH = 0.5
"""The share of encodings that must be explained: a fit of fewer may be anything."""
LEAST, MOST = 0.02, 0.8
"""Bounds of the first guess at the noise's share of the power."""


def shared_level(S: NDArray[np.float64], W: NDArray[np.float64]) -> float:
    """The mean similarity of pairs that share one vector by W; 1 without noise, 0: no such pair."""
    shared = W @ W.T == 1
    np.fill_diagonal(shared, False)
    return float(S[shared].mean()) if shared.any() else 0.0


def by_likelihood(
    encodings: Encodings,
    name: str,
    task: Task,
    S: NDArray[np.float64],
    first: Factorisation,
    seed: np.random.SeedSequence,
    clock: Stopwatch,
    progress: Progress | None,
) -> Recovery | None:
    """Every private vector up to noise, from similarities S and their first factorisation. None:
    less than half is explained, or no better than by chance."""
    m, k = encodings.m, encodings.scheme.k_private
    # 1–2. The level, and the number of vectors that goes with it.
    level = shared_level(S, first.W)
    if level <= 0:
        return None
    n = round(MORE * estimate_vectors(S / level, k))
    with clock("factor"), one_blas_thread():
        if n < FEWER * first.W.shape[1]:
            first = factor_overlaps(S, k, n, rounds=2)
            level = shared_level(S, first.W)
    guess = np.clip(1 - np.sqrt(max(level, 0.0)), LEAST, MOST)
    # 3. Subsets, on some of the pixels; where rows are left, once more with more columns.
    draw = child(seed, "likely")
    some = np.sort(draw.permutation(encodings.d)[:PIXELS])
    noise = float(np.sqrt(k * guess))
    y = np.ascontiguousarray(task.y[:, some])
    likely = None
    for turn in range(2):
        start = np.argsort(-first.W, axis=1, kind="stable")[:, :k].astype(np.int64)
        with clock("subsets"), one_blas_thread():
            found = likely_subsets(y, start, first.W.shape[1], noise, draw, progress=progress)
        if likely is None or (found and found.explained.sum() > likely.explained.sum()):
            likely = found
        if turn or likely is None or not ENOUGH <= likely.explained.mean() < COMPLETE:
            break
        with clock("factor"), one_blas_thread():
            first = factor_overlaps(S, k, round(MORE * first.W.shape[1]) + 1, rounds=2)
    # What is exact after all is for the exact route, which proves it.
    if likely is None or likely.explained.sum() < ENOUGH * m or likely.noise < LOUDEST * k**0.5:
        return None
    # 4. More than chance, then every pixel.
    rows = np.flatnonzero(likely.explained)
    used, members = renamed(likely.members[rows])
    n = len(used)
    if len(rows) <= n:
        return None
    y = np.ascontiguousarray(task.y[rows])
    with clock("chance"), one_blas_thread():
        spare = beyond_chance(y, members, n, likely.noise, draw)
    if spare < 0:
        return None
    with clock("pixels"), one_blas_thread():
        loud = solve_loud(y, members, n, likely.noise, draw, progress=progress)
    # 5. How well each vector is known: hidden signs take a part of what an encoding says.
    design = Design(members, n)
    x = loud.x.astype(np.float32)
    fit = np.asarray(design.W @ x)
    likely_y = signed(y, fit, np.float32(loud.noise**2))
    told = information(y, *design.others(x, likely_y, loud.noise))
    error = loud.noise * np.sqrt(np.diag(design.C) / max(told, LEAST))
    determined = ~touched_by_null((design.W.T @ design.W).toarray().astype(np.float64))
    nats = spare / max(1, len(rows))
    noisy = NoisySolution(loud.x, rows, members, loud.noise, error, determined, nats, spare)
    facts = {"estimated_n_private": n, "level_of_shared_pairs": level}
    return approximate(encodings, name, noisy, task.unit, False, clock, facts)
