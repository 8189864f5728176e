"""Private images that were cropped, or cropped and mirrored, at random before they were mixed.

    1  u ← windows, whitened wherever they lie     (`gram.moved_windows`)
    2  s, moves ← the best move of each pair       who may share an image (`gram.aligned`)
    3  clusters ← pairs whose moves agree          (`images.moved_clusters`, `images.votes`)
       p, λ, copies ← templates                    who mixes what (`images.cropped_memberships`)
    4  signs, images, weights in turn              (`images.cropped_rounds`)

Images come back where most copies have them in the middle; which way round, where they were
mirrored too, is not in the encodings.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.encode.copies import Copies
from unveil.gram.aligned import align
from unveil.gram.moved_windows import moved_windows
from unveil.images.cropped_memberships import copy_columns, copy_memberships
from unveil.images.cropped_rounds import Seen, alternate_cropped
from unveil.images.cropping import Cropping
from unveil.images.memberships import expected_weights
from unveil.images.task import ImageTask, RoundState
from unveil.parallel import Stopwatch
from unveil.records import Progress

Floats = NDArray[np.float32]


def cropping_of(shape: tuple[int, ...], reach: int, flips: bool, black: Floats) -> Cropping:
    """black (d,): a black image."""
    copies = Copies(shape, reach, flips)
    return Cropping(copies, black[: copies.sides[2]].astype(np.float32))


def from_crops(
    task: ImageTask,
    n: int | None,
    clock: Stopwatch,
    progress: Progress | None,
) -> tuple[ImageTask, RoundState] | None:
    """Images as far as they are found, of `task.cropping`, and the task with its epochs, where rows
    come so; None: no two encodings look alike."""
    cropping, k = task.cropping, task.scheme.k_private
    assert cropping is not None
    copies = cropping.copies
    # 1. Which encodings are alike, and by which move.
    with clock("similarity"):
        windows = moved_windows(task.Y, copies.shape)
        alignment = align(windows, 2 * copies.reach, copies.flips)
    # 2. Who mixes which copy of whom.
    with clock("memberships"):
        found = copy_memberships(
            windows, alignment, copies, k, n, task.law.sample, labels=task.labels,
            progress=progress,
        )  # fmt: skip
    del windows  # nothing else is as large
    if found is None:
        return None
    # 3. Signs and weights in turn.
    with clock("rounds"):
        soft = expected_weights(found.found, task.public)
        weights, squares = (copy_columns(part, found.copy, copies) for part in soft)
        task = replace(task, epochs=found.found.epochs)
        state = alternate_cropped(
            task, cropping, Seen(alignment, copies), weights, squares,
            n or found.copy.shape[1], progress,
        )  # fmt: skip
    return task, state
