"""What if there were more noise, more records in an encoding, or fewer encodings? The same data,
attacked again, and what the encodings are then worth.

    noise   standard deviations relative to the rms of the data
    k       records per encoding
    m       encodings

The attacker has what is released and public, and the usual attacks. From noise to noise and from k
to k the search stops at the first point where nothing comes back: beyond, nothing was measured and
nothing is shown.

Of more than `MOST_RECORDS` records, or `MOST_PIXELS` pixels, a part is attacked, with as many
encodings for each record; worth and ε are those of the whole.

Worth: where labels are given, the share of records that a ridge classifier names right which was
trained on the encodings and their mixed labels. Else one minus the relative error of the magnitudes
of a record, when an encoding that mixes it stands in for it, on the best common scale.

Differential privacy: ε of the Gaussian mechanism with this noise, for all encodings together, at δ
= 10⁻⁵ (B. Balle and Y.-X. Wang, ICML 2018, theorem 8). Sensitivity: one record is replaced by
another of the data, so that each of its u encodings moves by at most w·‖x − x′‖, and all together
by √u times that; taking absolute values moves them no further. u is the largest number of uses, ‖x
− x′‖ the largest distance of two records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from unveil.attacks.choose import LAST, situation_of, usual
from unveil.auditing.intervals import over_draws
from unveil.auditing.release import Release
from unveil.auditing.result import WhatIf
from unveil.auditing.risks import NOT
from unveil.auditing.trial import Arm, Key
from unveil.auditing.trials import Laboratory
from unveil.checks import InputError
from unveil.records import Progress

NOISES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Half a decade apart: from nothing to as much as there is to see."""
RECORDS = (2, 3, 4, 6, 8)
"""Records per encoding that are tried."""
SHARES = (1 / 8, 1 / 4, 1 / 2, 1, 2)
"""Of the encodings that were audited."""
DRAWS = 2
"""Draws for each point: one gives no idea of the scatter, more cost as much again."""
DELTA = 1e-5
"""δ of the differential-privacy line; usual for data sets of less than 10⁵ records."""
LARGEST = 700.0
"""Beyond its exponential floating point ends."""
PRECISE = 1e-6
"""Relative width of the last interval of the bisection."""
MOST_RECORDS, MOST_PIXELS = 40, 768
"""Records and pixels that are attacked, of more: a point then takes seconds. Under noise fewer
pixels give a little less away; what comes back without noise is the same."""
RIDGE = 1e-2
"""Regularisation of the classifier, relative to the mean power of a feature."""


@dataclass(frozen=True, eq=False)
class _Point:
    """release: as it would be; part: what of it is attacked."""

    axis: str
    value: float
    release: Release
    part: Release


def what_if(
    release: Release,
    axes: Sequence[str],
    m: int,
    *,
    relative_tolerance: float,
    labels: NDArray[np.int64] | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> tuple[WhatIf, ...]:
    """Points of every axis, in order; `release`: as it was audited, `m` encodings of it."""
    # The scheme makes the encodings here: an encoder or a file has no noise, k or m to change.
    base = replace(release, make=None, draws=None, top=m, _drawn={})
    out: list[WhatIf] = []
    for axis in axes:
        for point in _points(base, axis):
            # No folder: these trials belong to no release that somebody would ask for again.
            lab = Laboratory(point.part, relative_tolerance, None, None, memory_limit)
            found = _measured(lab, point, labels)
            out.append(found)
            if progress:
                progress("what if", len(out), len(out) + 1)
            if not found.recovered and axis != "m":
                break
    return tuple(out)


def _points(base: Release, axis: str) -> Iterator[_Point]:
    rms = float(np.sqrt(np.mean(np.square(base.private, dtype=np.float64))))
    if axis == "noise":
        for share in NOISES:
            yield _point(axis, share, replace(base, noise=share * rms, _drawn={}))
    elif axis == "k":
        for k in RECORDS:
            if 2 * k <= min(len(base.private), MOST_RECORDS):
                scheme = replace(base.scheme, k_private=k)
                yield _point(axis, float(k), replace(base, scheme=scheme, _drawn={}))
    else:
        for share in SHARES:
            top = max(base.scheme.k_private + 2, round(share * base.top))
            yield _point(axis, float(top), replace(base, top=top, _drawn={}))


def _point(axis: str, value: float, release: Release) -> _Point:
    """With the part of the release that is attacked: records and pixels evenly spaced, and as many
    encodings for each record as there are in all."""
    n, d = release.private.shape
    rows = np.linspace(0, n - 1, min(n, MOST_RECORDS)).astype(np.int64)
    pixels = np.linspace(0, d - 1, min(d, MOST_PIXELS)).astype(np.int64)
    part = release
    if len(rows) < n or len(pixels) < d:
        part = replace(
            release,
            private=np.ascontiguousarray(release.private[rows][:, pixels]),
            public=None if release.public is None else release.public[:, pixels],
            top=max(release.scheme.k_private + 2, round(release.top * len(rows) / n)),
            shape=release.shape if len(pixels) == d else None,
            _drawn={},
        )
    return _Point(axis, value, release, part)


def _measured(lab: Laboratory, point: _Point, labels: NDArray[np.int64] | None) -> WhatIf:
    release, m = point.release, point.part.top
    rows = lab.groups[0]
    arms = usual_arms(lab, m)
    shares = []
    for number in range(DRAWS):
        try:
            trial = lab.best(m, number, arms)
        except InputError:
            break
        shares.append(float((trial.outcome[rows] > NOT).mean()))
        if shares[-1] in (0.0, 1.0):
            break  # all or nothing: a second draw says the same
    shares = shares or [0.0]
    low, high = over_draws(shares, len(rows))
    private_noise = point.axis == "noise" and release.noise > 0
    return WhatIf(
        axis=point.axis,
        value=point.value,
        recovered=float(np.mean(shares)),
        low=low,
        high=high,
        utility=worth(release, labels),
        epsilon=epsilon(release) if private_noise else None,
    )


def usual_arms(lab: Laboratory, m: int) -> tuple[Arm, ...]:
    """The usual attacks of whoever has what is released and public; the last resorts only where
    there are no others."""
    release = lab.release
    who: Key = "public" if release.scheme.k_public else "blind"
    encodings = lab.encodings(0, m)
    names = usual(situation_of(encodings, release.public))
    quick = tuple(name for name in names if name not in LAST) or names
    return tuple(Arm(who, name, release.scheme) for name in quick)


def worth(release: Release, labels: NDArray[np.int64] | None = None) -> float | None:
    """What the encodings of draw 0 are good for."""
    drawn = release.draw(0)
    if drawn.chosen is None:
        return None
    Y, X = np.abs(drawn.values).astype(np.float64), np.abs(release.private).astype(np.float64)
    if labels is not None:
        return _accuracy(Y, drawn.chosen, X, labels)
    # One of the records it mixes: by symmetry any of them says the same.
    record = X[drawn.chosen[:, 0]]
    scale = float((Y * record).sum()) / max(float((Y * Y).sum()), 1e-30)
    miss = float(np.linalg.norm(scale * Y - record)) / max(float(np.linalg.norm(record)), 1e-30)
    return max(0.0, 1 - miss)


def _accuracy(
    Y: NDArray[np.float64],
    chosen: NDArray[np.int64],
    X: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> float:
    """Ridge regression from magnitudes to mixed labels, asked about the magnitudes of records."""
    classes = int(labels.max()) + 1
    target = np.eye(classes)[labels[chosen]].mean(axis=1)
    mean, level = Y.mean(axis=0), target.mean(axis=0)
    A = Y - mean
    gram = A @ A.T
    gram[np.diag_indices_from(gram)] += RIDGE * float(np.trace(gram))
    weights = A.T @ np.linalg.solve(gram, target - level)
    scores = (X - X.mean(axis=0)) @ weights + level
    return float((scores.argmax(axis=1) == labels).mean())


def sensitivity(release: Release) -> float:
    """How far all encodings together can move when one record is replaced by another."""
    drawn = release.draw(0)
    assert drawn.chosen is not None
    uses = int(np.bincount(drawn.chosen.ravel()).max())
    X = release.private.astype(np.float64)
    power = np.einsum("ij,ij->i", X, X)
    far = float(np.sqrt(max(0.0, float((power[:, None] + power - 2 * X @ X.T).max()))))
    scheme = release.scheme
    # Where weights are drawn, one record may have all of it.
    weight = scheme.private_weight if scheme.fixed_weights else 1.0
    return weight * sqrt(uses) * far


def epsilon(release: Release) -> float:
    """ε of the Gaussian mechanism with the noise of this release, at δ = `DELTA`."""
    return gaussian_epsilon(release.noise / max(sensitivity(release), 1e-30))


def gaussian_epsilon(ratio: float, delta: float = DELTA) -> float:
    """The smallest ε of noise with standard deviation `ratio` times the sensitivity: Φ(1/2r − εr) −
    e^ε·Φ(−1/2r − εr) ≤ δ, by bisection."""

    def excess(eps: float) -> float:
        tail = norm.logcdf(-1 / (2 * ratio) - eps * ratio)
        return float(norm.cdf(1 / (2 * ratio) - eps * ratio) - exp(min(LARGEST, eps + tail)))

    low, high = 0.0, 1.0
    if excess(0.0) <= delta:
        return 0.0
    while excess(high) > delta:
        low, high = high, 2 * high
    while high - low > PRECISE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > delta else (low, middle)
    return high
