"""Images among public white noise, where rows come epoch by epoch: the noise that rows share tells
signs and members.

    repeat  o ← noise that other rows tell, x with it     (`images.white_shared`)
            columns are shared out again                  now and then (`images.white_columns`)
            o ← the same by magnitudes of products        which wrong signs do not change
            x ← a third of the images from nothing        next to the others and o, three times
            A ← pairs by the likelihood of magnitudes     next to o (`images.white_weights`)

Without |N| an image that starts again has the sign it had: members and offsets were found with it,
and vouch for it. With |N| it is turned: on seed 54000 four of thirty images were negatives, and all
came back the right way round after one round.

A region that is inverted in all images at once is not seen by rows: at any one pixel everything may
be turned. A start from weights alone may say otherwise (`images.white_start`). Then both go on for
two rounds, since members have followed the one and not the other, and the likelier is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.images.epochs import Epochs
from unveil.images.reweigh import Weighing
from unveil.images.task import ImageTask
from unveil.images.white_columns import split_columns
from unveil.images.white_fit import WhiteFit, smooth
from unveil.images.white_shared import shared_noise, without_shared_noise
from unveil.images.white_start import white_start
from unveil.images.white_weights import WhiteWeighing, weigh_pairs, with_unsure
from unveil.records import Progress

Floats = NDArray[np.float32]
ROUNDS = 8
"""Rounds: the last one gains 0.001 of SSIM."""
SHARED_OUT, ASKED = (2, 4, 6), (0, 2, 4)
"""Rounds in which columns are shared out again, which members must have had time for; and after
which a start from weights alone is asked for its signs."""
AHEAD, TURNED = 2, 0.03
"""Rounds that both go on where it says otherwise, and the share of energy from which on it does."""
FITS, SWEEPS = 2, 3
"""Times noise and images are found from each other in a round, and sweeps over the images."""
GROUPS = 3
"""Groups of images that start again one after another: with ten groups for three no more of them
came back right."""
SMOOTH, AGAIN, LAST, PLAIN = 0.93, (0.98, 0.97, 0.95, 0.93), 0.92, 0.95
"""Correlation of neighbouring pixels in a round, along a new start, of the last images, and of
those that columns are compared by."""
STARTS = 4
"""Sweeps at each smoothness of a new start."""


@dataclass(frozen=True, eq=False)
class Carried:
    """Images (n, d); expected weights and squares (m, n); the noise (m, d) that other rows tell,
    and the variance (m,) of what is left; the weighing they come from."""

    images: Floats
    weights: Floats
    squares: Floats
    offsets: Floats
    left: Floats
    found: WhiteWeighing | None = None

    @property
    def likelihood(self) -> float:
        return -np.inf if self.found is None else float(self.found.likelihood.mean())

    def fit(
        self, shape: tuple[int, ...], neighbours: float, more: Floats | float = 0.0
    ) -> WhiteFit:
        """The fit of images that are so smooth; more: noise besides."""
        noise = with_unsure(self.left, self.weights, self.squares) + more
        return WhiteFit.of(self.weights, noise.astype(np.float32), smooth(shape, neighbours))


def carry_on(
    task: ImageTask,
    images: Floats,
    A: Floats,
    noise: Floats,
    epochs: Epochs,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Carried:
    """Images (n, d), weights A (m, n) and noise (m,) as `images.white_rounds` found them, made
    better."""
    assert task.shape is not None
    state = Carried(images, A, A**2, np.zeros_like(task.Y), noise)
    for turn in range(ROUNDS):
        state = _round(task, state, epochs, rng, turn in SHARED_OUT)
        other = _turned(task, state, rng) if turn in ASKED else None
        if other is not None:
            rivals = [state, other]
            for _ in range(AHEAD):
                rivals = [_round(task, one, epochs, rng, False) for one in rivals]
            state = max(rivals, key=lambda one: one.likelihood)
        if progress:
            progress("shared noise", turn + 1, ROUNDS)
    # Fine detail at last.
    fine = WhiteFit.of(state.weights, noise, smooth(task.shape, LAST))
    images, offsets, left = without_shared_noise(task.Y, state.images, fine, epochs)
    return replace(state, images=images, offsets=offsets, left=left)


def _round(
    task: ImageTask, state: Carried, epochs: Epochs, rng: np.random.Generator, share_out: bool
) -> Carried:
    assert task.shape is not None
    # 1. Noise that rows share, and images next to it.
    Y, n = task.Y, len(state.images)
    for _ in range(FITS):
        offsets, left = shared_noise(
            Y, state.weights @ state.images, state.offsets, state.left, epochs
        )
        state = replace(state, offsets=offsets, left=left)
        fit = state.fit(task.shape, SMOOTH)
        state = replace(state, images=fit.settle(Y, state.images, SWEEPS, offsets))
    # 2. Columns are shared out again.
    if share_out and state.found is not None:
        state = _shared_out(task, state, fit, state.found.weighing)
    # 3. Images start again next to noise that wrong signs do not change.
    offsets, left = shared_noise(
        Y, state.weights @ state.images, state.offsets, state.left, epochs, sweeps=1, positive=True
    )
    state = replace(state, offsets=offsets, left=left)
    order, images = rng.permutation(n), state.images.copy()
    for group in range(min(GROUPS, n)):
        which = order[group::GROUPS]
        images[which] = _start_again(task, state, which)[which]
    # 4. Members, weights and noise next to the noise that is known.
    fit = state.fit(task.shape, SMOOTH)
    found = weigh_pairs(Y, images, fit, task.law.largest, epochs, offsets)
    weights, squares = found.calibrated(task.law.mean)
    return replace(state, images=images, weights=weights, squares=squares, found=found)


def _shared_out(task: ImageTask, state: Carried, fit: WhiteFit, weighing: Weighing) -> Carried:
    """Columns that stand for no image are given to images that share one."""
    assert task.shape is not None
    mixed = state.weights @ state.images
    left = fit.signed(task.Y, mixed, state.offsets) - mixed
    splits = split_columns(left, state.left, state.images, weighing, smooth(task.shape, PLAIN))
    if not splits:
        return state
    A, A2 = state.weights.copy(), state.squares.copy()
    for one in splits:
        for part in (A, A2):
            part[:, one.free] = 0
            part[one.rows, one.free] = part[one.rows, one.column]
            part[one.rows, one.column] = 0
    state = replace(state, weights=A, squares=A2)
    which = np.array([[one.column, one.free] for one in splits]).ravel()
    return replace(state, images=_start_again(task, state, which))


def _turned(task: ImageTask, state: Carried, rng: np.random.Generator) -> Carried | None:
    """The same with all images turned where a start from weights alone has them the other way
    round; None: hardly anywhere."""
    other = white_start(task, state.weights, state.squares, rng)
    sides = np.where((other * state.images).sum(axis=0) < 0, -1, 1).astype(np.float32)
    energy = (state.images**2).sum(axis=0)
    share = float(energy[sides < 0].sum() / energy.sum())
    if not TURNED < share < 1 - TURNED:
        return None
    return replace(state, images=state.images * sides, offsets=state.offsets * sides)


def _start_again(task: ImageTask, state: Carried, which: NDArray[np.int64]) -> Floats:
    """Images (n, d) of which some start again from zero, the others as they are. While they are not
    known, they are noise to their encodings."""
    assert task.shape is not None
    unknown = state.weights[:, which] ** 2 @ (state.images[which] ** 2).mean(axis=1)
    out = state.images.copy()
    out[which] = 0
    for value, heat in zip(AGAIN, np.linspace(1, 0, len(AGAIN)), strict=True):
        fit = state.fit(task.shape, value, heat * unknown)
        for _ in range(STARTS):
            out[which] = fit.settle(task.Y, out, 1, state.offsets)[which]
    return out
