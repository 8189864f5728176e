"""Records from mixtures that keep their signs, where there are more records than values.

    Y = ΛX,   Λ (m, n) with k entries that are not negative in each row, X (n, d), n > d + 1

The rank says nothing then. What is left is sparse coding with an overcomplete dictionary (Aharon,
Elad, Bruckstein, IEEE TSP 54, 2006), with three things that dictionaries in general have not:
weights are positive, they sum to 1, and without noise rows are explained to rounding or not at all.

  whiten   encodings in units of their own covariance. Records are then spread over all directions,
           whatever they were: real features lie near a few directions and look alike
  start    an encoding that is nearly one record is longer than others. From the longest on, each
           that is unlike all before is a record
  turns    the alternation of `codes`, in which records come and go
  exact    rows that are explained to rounding alone say what the records are

Cost: m·n·d for each of some dozen turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unveil.mixing.codes import Fit, alternate
from unveil.mixing.model import Floats, Mixture, judge, least_squares, weight_matrix


def sketch_dictionary(
    Y: Floats,
    k: int,
    squares: float,
    *,
    known: Floats | None = None,
    start: Floats | None = None,
    turns: int = 80,
    settled: int = 3,
    flat: float = 1e-10,
    progress: Callable[[int, int], None] | None = None,
) -> Fit | None:
    """Records (known ones first), members and weights after `turns` of the alternation, and
    `settled` times half as many with the number of records held. `left` is in units of a record.

    squares : float  Mean of Σ λ² of an encoding: it tells the length of a record from that of an
                     encoding.
    known (q, d)     Records that are known.
    start (n, d)     Records to begin with, known ones not among them; None: long encodings.
    flat : float     Directions with less variance than this share of the most are left out.
    """
    if len(Y) <= Y.shape[1] + 1:
        return None
    centre = Y.mean(axis=0)
    sizes, axes = np.linalg.eigh(np.cov(Y.T))
    keep = sizes > flat * sizes[-1]
    axes = axes[:, keep] * np.sqrt(squares / keep.sum() / sizes[keep])
    Z = (Y - centre) @ axes
    fixed = np.empty((0, Y.shape[1])) if known is None else known
    there = (fixed - centre) @ axes
    first = _long_rows(Z, there) if start is None else (start - centre) @ axes
    fit = alternate(Z, first, k, known=there, adapt=True, turns=turns, progress=progress)
    for _ in range(settled):
        if fit is not None:
            own = fit.values[len(there) :]
            fit = alternate(Z, own, k, known=there, turns=turns // 2, progress=progress)
    if fit is None:
        return None
    trust = 1 / np.maximum(fit.left, max(float(np.median(fit.left)) / 10, 1e-12))
    x = least_squares(weight_matrix(fit.members, fit.weights, len(fit.values)), Y, trust, fixed)
    return None if x is None else replace(fit, values=x)


def _long_rows(
    Z: Floats, known: Floats, *, pure: float = 0.42, unlike: float = 0.6, block: int = 256
) -> Floats:
    """Long encodings that are unlike all before them and all known records, at length 1.

    pure : float      Squared length from which on an encoding is nearly one record: its largest
                      weight is 0.6 or more then.
    unlike : float    Cosine below which it is a record of its own; the mean of two has 0.7 with
                      each.
    """
    length = np.linalg.norm(Z, axis=1)
    order = np.argsort(-length, kind="stable")
    order = order[length[order] ** 2 >= pure]
    unit = (Z[order] / length[order, None]).astype(np.float32)
    chosen = (known / np.maximum(np.linalg.norm(known, axis=1, keepdims=True), 1e-30)).astype(
        np.float32
    )
    for start in range(0, len(unit), block):
        part = unit[start : start + block]
        part = part[(part @ chosen.T).max(axis=1, initial=-1.0) <= unlike]
        alike, kept = part @ part.T, list[int]()
        for i in range(len(part)):
            if not kept or alike[i, kept].max() <= unlike:
                kept.append(i)
        chosen = np.concatenate([chosen, part[kept]])
    return np.asarray(chosen[len(known) :], np.float64)


def reproduced(
    Y: Floats, fit: Fit | None, known: Floats | None = None, *, fine: float = 1e-3, rounds: int = 30
) -> Mixture | None:
    """Records at all values from the rows they reproduce, the known ones first; None: no more are
    reproduced than chance leaves.

    fine : float    Residual, in units of a record, of rows to begin with.
    """
    if fit is None:
        return None
    found = judge(
        Y, fit.members, fit.weights, len(fit.values), known=known, trusted=fit.left < fine,
        refit=True, rounds=rounds,
    )  # fmt: skip
    return found if found is not None and found.exact else None
