"""A core of vectors that have no other reading, because their columns are the lightest. See
`docs/certificate.md`, step 3.

Another reading is W' = D·W·T with T invertible. The entries of |WT| sum to k per row, as those of W
do. T has a permutation without zeros, T_(i, σ(i)) ≠ 0. Give the rows any weights ω > 0, let |u| = Σ
ω_r·|u_r| and deg(i) = |W e_i|. If every column t with t_i ≠ 0 is at least as heavy as e_i, |Wt| ≥
deg(i), then all are exactly as heavy. The same holds for any set of vectors with the rows inside
it. Certificates show that columns are heavy (`heavy`), whole ones and fractions:

  1. Where a vector has no certificate, the rows that were asked for too much get more weight, a few
     times.
  2. Up to `FEW` vectors, no repeats: better certificates and better weights (`flattest`,
     `fractions`). Where no weights do, a vector leaves the core, with its rows, and so on.
  3. More vectors, or repeats: the vector that shares most rows with one that has no certificate
     leaves, and so on until all that are left have one.

Cost: some sweeps over the rows per vector, and one dense eigenvalue problem, each time; step 2 at
n = 100, m = 200 a second. Pairs (k = 2) have exact certificates of their own, `pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.certify.flattest import Work, weighed
from unveil.certify.heavy import (
    even_weights,
    fractions_heavy,
    least_eigenvalue,
    reweighed,
    whole_columns_heavy,
)
from unveil.certify.pairs import disjoint_odd_walks, heavy_pairs, odd_components
from unveil.certify.rows import gram, linked, local_rows

Index = NDArray[np.int64]
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]

DENSE = 3000
"""Vectors up to which eigenvalues are computed: 70 MB and some seconds."""

FEWEST_ROWS = 3
"""A vector of two rows ties with its neighbours: e_j − e_i is as heavy as e_j. It can only join
later."""

AT_ONCE = 100
"""One vector in so many leaves at a time: those that fail often fail because of each other."""

FEW = 200
"""Vectors up to which several are tried before one leaves, milliseconds each; and up to which
certificates are made as flat as they can be."""

WORK = 4e10
"""Multiplications for the flattest certificates: five to ten seconds. At m = 2n with k = 3, 4 and 6
100 vectors need a tenth of them, 200 up to a half. Work is counted, not time: the answer must not
depend on what else the machine does."""

ROUNDS = 12
"""Rounds of leaving. More would be a core that falls apart."""

REWEIGHED, REWEIGHED_FIRST = 8, 25
"""How often the rows are weighed anew before a vector leaves. Most designs that can be cured are
after a few; at the first go, of up to `FEW` vectors, a round takes milliseconds."""


@dataclass(frozen=True, eq=False)
class _Trial:
    """A set of vectors, the rows inside it with names from 0, which have a certificate; whole:
    fractions are excluded."""

    inside: Flags
    rows: Index
    names: Index
    good: Flags
    whole: bool


def core(members: Index, n: int, among: Flags, *, repeats: bool) -> Flags:
    """Vectors whose rows of T are unit vectors up to one common sign, signs kept or hidden. W has
    full column rank.

    among: one class of `alike`
    repeats: another reading may hold a vector twice in a row
    """
    none = np.zeros(n, bool)
    trial = _trial(members, among, repeats, REWEIGHED_FIRST if n <= FEW else REWEIGHED)
    if trial is not None and len(trial.names) <= FEW and members.shape[1] > 2 and not repeats:
        shown = trial.good.all() and trial.whole
        return trial.inside if shown else _flat_core(members, trial.inside)
    for _ in range(ROUNDS):
        if trial is None:
            return none
        if trial.good.all():
            return trial.inside if trial.whole else none
        trial = _without_some(members, trial, repeats)
    return none


def _trial(members: Index, inside: Flags, repeats: bool, rounds: int = REWEIGHED) -> _Trial | None:
    """What can be shown of a set of vectors; None if nothing is left of it."""
    inside = _thinned(members, len(inside), inside)
    rows, names = local_rows(members, inside)
    count, k = len(names), members.shape[1]
    if not count or (count > DENSE and k > 2):
        return None
    if k == 2:
        # T has at least two columns of halves, since its rows sum to integers: they are compared
        # with a mean of degrees.
        enough = int(np.sort(np.bincount(rows.ravel(), minlength=count))[-2:].mean()) + 1
        walks = disjoint_odd_walks(rows, count, enough)
        return _Trial(
            inside, rows, names, heavy_pairs(rows, count, np.ones(count, bool)), walks >= enough
        )
    # Any positive weights are right: of several the first that shows everything, or the one that
    # leaves the fewest failures.
    weight = even_weights(rows, count)
    best: _Trial | None = None
    for _ in range(rounds):
        floor = least_eigenvalue(rows, count, weight)
        good, asked = whole_columns_heavy(rows, count, weight, floor, repeats)
        whole = fractions_heavy(rows, count, weight, floor, repeats)
        trial = _Trial(inside, rows, names, good, whole)
        if best is None or _failures(trial) < _failures(best):
            best = trial
        if good.all() and whole:
            break
        weight = reweighed(rows, count, weight, asked, even=not whole)
    return best


def _flat_core(members: Index, inside: Flags) -> Flags:
    """The set without those that light columns name, one by one, until all have certificates."""
    work = Work(WORK)
    while True:
        inside = _thinned(members, len(inside), inside)
        rows, names = local_rows(members, inside)
        if not len(names):
            return inside
        found = weighed(rows, len(names), work)
        if found.proved:
            return inside
        if found.blamed < 0:
            return np.zeros_like(inside)
        inside[names[found.blamed]] = False


def _without_some(members: Index, trial: _Trial, repeats: bool) -> _Trial | None:
    """Pairs: all that fail leave. Else e_i minus one that shares rows with i is what is too light:
    one of the two leaves."""
    count = len(trial.names)
    failed = np.flatnonzero(~trial.good)
    if members.shape[1] == 2:
        return _trial(members, _less(trial, failed), repeats)
    share = gram(trial.rows, count)
    share = share / np.diag(share)  # [i, b]: which part of the rows of b hold i
    np.fill_diagonal(share, 0.0)
    if count > FEW:
        return _trial(
            members,
            _less(trial, np.unique(share[failed[: 1 + count // AT_ONCE]].argmax(axis=1))),
            repeats,
        )
    near = np.argsort(-share[failed[:3]], axis=1)[:, :2].ravel()
    best: _Trial | None = None
    for b in np.union1d(failed[:3], near):
        other = _trial(members, _less(trial, np.array([b])), repeats)
        if other is not None and (best is None or _failures(other) < _failures(best)):
            best = other
    return best


def _less(trial: _Trial, leaving: Index) -> Flags:
    inside = trial.inside.copy()
    inside[trial.names[leaving]] = False
    return inside


def _failures(trial: _Trial) -> tuple[int, int]:
    return int((~trial.good).sum()), int(not trial.whole)


def _thinned(members: Index, n: int, inside: Flags) -> Flags:
    """Without vectors of too few rows, again and again; then the largest part that hangs together,
    for pairs by odd cycles."""
    inside = inside.copy()
    while True:
        rows = members[inside[members].all(axis=1)]
        few = inside & (np.bincount(rows.ravel(), minlength=n) < FEWEST_ROWS)
        if not few.any():
            break
        inside &= ~few
    if members.shape[1] == 2:
        inside &= odd_components(rows, n)[1]
    if not inside.any():
        return inside
    label = linked(rows, n)
    sizes = np.bincount(label[inside], minlength=int(label.max()) + 1)
    return np.asarray(inside & (label == sizes.argmax()))
