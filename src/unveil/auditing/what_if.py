"""What if there were more noise, more records in an encoding, or fewer encodings? Every attacker
again, on the same data; a cure must hold against all of them.

    noise   standard deviations relative to the rms of the data
    k       records per encoding
    m       encodings

A sample of `records` records and `columns` columns is attacked, with as many encodings per record;
worth and ε are those of the whole.

Worth: where labels are given, the share of records that a ridge classifier names right which was
trained on the encodings and their mixed labels. Else one minus the relative error of the magnitudes
of a record, when an encoding that mixes it stands in for it, on the best common scale.

ε: of the Gaussian mechanism with this noise, for all encodings together, at δ = 10⁻⁵ (B. Balle and
Y.-X. Wang, ICML 2018, theorem 8). One record is replaced by another of the data: each of its u
encodings moves by at most w·‖x − x′‖, all together by √u times that, and taking absolute values
moves them no further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from unveil.auditing.attacker import ATTACKERS, Clock
from unveil.auditing.release import Release
from unveil.auditing.result import WhatIf
from unveil.auditing.trial import Trial, run_trial
from unveil.auditing.verdict import share_interval
from unveil.records import Progress


def what_if(
    release: Release,
    axes: Sequence[str],
    *,
    tolerance: float,
    labels: NDArray[np.int64] | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
    records: int = 40,
    columns: int = 768,
) -> tuple[WhatIf, ...]:
    """Points of every axis: one for each value and each attacker, the strongest first.

    records, columns : int    Attacked of more: a point then takes seconds. Under noise fewer
                              columns give a little less away.
    """
    n, d = release.private.shape
    rows = np.linspace(0, n - 1, min(n, records)).astype(np.int64)
    some = np.linspace(0, d - 1, min(d, columns)).astype(np.int64)
    out: list[WhatIf] = []
    for axis in axes:
        for value, whole in _values(release, axis, len(rows)):
            part = whole.sample(rows)
            part = part.changed(
                private=np.ascontiguousarray(part.private[:, some]),
                public=None if part.public is None else part.public[:, some],
                shape=part.shape if len(some) == d else None,
            )
            worth = utility(whole, labels)
            spent = epsilon(whole) if axis == "noise" and whole.noise > 0 else None
            best: Trial | None = None
            points = []
            for attacker in ATTACKERS:
                trial = run_trial(
                    part, attacker, tolerance=tolerance, clock=clock, progress=progress, best=best
                )
                if not trial.tried and best is None:
                    continue
                best = trial if trial.tried else best
                # An attacker whose own attack cannot be run has what those before have.
                count = max(1, trial.records)
                share = trial.back(2) / count
                low, high = share_interval([share], count)
                shares = share, low, high, trial.share()
                points.append(WhatIf(axis, value, attacker.key, *shares, worth, spent))
            if not release.scheme.k_public:
                points = [point for point in points if point.attacker != "public"]
            out += points[::-1]
            if progress:
                progress(f"what if {axis} = {value:g}", len(out), len(out) + 1)
    return tuple(out)


def _values(release: Release, axis: str, n: int) -> Iterator[tuple[float, Release]]:
    """Half a decade apart for noise; published schemes mix 2 to 8; halves and doubles for m."""
    if axis == "noise":
        rms = float(np.sqrt(np.mean(np.square(release.private, dtype=np.float64))))
        for share in (0.0, 0.01, 0.03, 0.1, 0.3, 1.0):
            yield share, release.changed(noise=share * rms)
    elif axis == "k":
        for k in (2, 3, 4, 6, 8):
            if 2 * k <= n:
                yield float(k), release.changed(scheme=replace(release.scheme, k_private=k))
    else:
        for share in (1 / 8, 1 / 4, 1 / 2, 1, 2):
            m = max(release.scheme.k_private + 2, round(share * release.m))
            yield float(m), release.changed(m=m)


def utility(
    release: Release, labels: NDArray[np.int64] | None = None, ridge: float = 1e-2
) -> float | None:
    """What the encodings of draw 0 are good for; ridge: of the classifier, relative to the power of
    a feature."""
    drawn = release.draw(0)
    if drawn.members is None:
        return None
    Y, X = (np.abs(part).astype(np.float64) for part in (drawn.values, release.private))
    if labels is None:
        # One of the records it mixes: by symmetry any of them says the same.
        record = X[drawn.members[:, 0]]
        scale = float((Y * record).sum()) / max(float((Y * Y).sum()), 1e-30)
        miss = float(np.linalg.norm(scale * Y - record)) / max(float(np.linalg.norm(record)), 1e-30)
        return max(0.0, 1 - miss)
    target = np.eye(int(labels.max()) + 1)[labels[drawn.members]].mean(axis=1)
    A, level = Y - Y.mean(axis=0), target.mean(axis=0)
    gram = A @ A.T
    gram[np.diag_indices_from(gram)] += ridge * float(np.trace(gram))
    weights = A.T @ np.linalg.solve(gram, target - level)
    scores = (X - X.mean(axis=0)) @ weights + level
    return float((scores.argmax(axis=1) == labels).mean())


def epsilon(release: Release, delta: float = 1e-5) -> float | None:
    """ε of the Gaussian mechanism with the noise of this release."""
    drawn = release.draw(0)
    if drawn.members is None:
        return None
    uses = int(np.bincount(drawn.members.ravel()).max())
    X = release.private.astype(np.float64)
    power = np.einsum("ij,ij->i", X, X)
    far = sqrt(max(0.0, float((power[:, None] + power - 2 * X @ X.T).max())))
    # Where weights are drawn, one record may have all of it.
    weight = release.scheme.private_weight if release.scheme.fixed_weights else 1.0
    return gaussian_epsilon(release.noise / max(weight * sqrt(uses) * far, 1e-30), delta)


def gaussian_epsilon(ratio: float, delta: float = 1e-5) -> float:
    """The smallest ε of noise with standard deviation `ratio` times the sensitivity:
    Φ(1/2r − εr) − e^ε·Φ(−1/2r − εr) ≤ δ."""

    def excess(eps: float) -> float:
        tail = norm.logcdf(-1 / (2 * ratio) - eps * ratio)
        return float(norm.cdf(1 / (2 * ratio) - eps * ratio) - exp(min(700.0, eps + tail)) - delta)

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, rtol=1e-6))
