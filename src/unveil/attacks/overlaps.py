"""The first two steps of attacks that read overlaps: the public part of every encoding, and how
many vectors each two share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.encodings import Encodings
from unveil.paper.gram_extract import gram_extract
from unveil.paper.learn_public import learn_public
from unveil.parallel import Stopwatch
from unveil.records import Overlaps, Progress, Supports


def read_overlaps(
    encodings: Encodings,
    public: NDArray[np.float32] | None,
    given: Overlaps | None,
    clock: Stopwatch,
    *,
    memory_limit: int | None,
    progress: Progress | None,
) -> tuple[Overlaps, Supports | None]:
    """LearnPublic, where the scheme has a public part, and GramExtract, where overlaps are not
    given."""
    # The public part first: overlaps of private parts are read with it taken off.
    supports = None
    if public is not None:
        with clock("learn public"):
            supports = learn_public(encodings, public, memory_limit=memory_limit, progress=progress)
    with clock("overlaps"):
        if given is not None:
            return given.of(encodings), supports
        return gram_extract(
            encodings, public, supports=supports, memory_limit=memory_limit, progress=progress
        ), supports
