"""Originals, encodings and recoveries of images side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.release import Release
from unveil.auditing.result import Pictures
from unveil.auditing.trial import Trial


def draw_pictures(
    release: Release, trial: Trial, names: tuple[str, ...], most: int = 100, pixels: int = 1 << 20
) -> Pictures:
    """Those that came back first, the best first.

    most, pixels : int    Images shown, and pixels of them in all.
    """
    shape = release.shape
    if shape is None:
        return Pictures()
    values, truth = release.draw(trial.draw).values, trial.yard.truth
    count = min(most, len(truth), max(1, pixels // truth.shape[1]))
    right = np.abs(np.nan_to_num(trial.outcome.values, nan=np.inf) - truth).mean(axis=1)
    order = np.lexsort((right, -trial.outcome.record))[:count]
    # One encoding that uses each record; where that is not known, just the first ones.
    incidence = release.draw(trial.draw).incidence(len(release.private))
    using = np.arange(count) % len(values)
    if incidence is not None:
        by_record = incidence.tocsc()[:, trial.rows[order]]
        using = np.array(
            [
                by_record.indices[a] if b > a else 0
                for a, b in zip(by_record.indptr[:-1], by_record.indptr[1:], strict=True)
            ]
        )
    mixed = np.abs(values[using])
    span = float(truth.min()), float(truth.max())

    def image(part: NDArray[np.float32]) -> NDArray[np.float32]:
        scaled = (part - span[0]) / max(span[1] - span[0], 1e-30)
        return np.asarray(np.clip(scaled, 0, 1), np.float32).reshape(count, *shape)

    # Black stands for what did not come back: a grey square would look like a result.
    shown = np.nan_to_num(trial.outcome.values[order], nan=span[0])
    return Pictures(
        originals=image(truth[order].astype(np.float32)),
        encodings=(mixed / max(float(mixed.max(initial=0)), 1e-30)).reshape(count, *shape),
        recoveries=image(shown),
        names=tuple(names[i] for i in order),
    )
