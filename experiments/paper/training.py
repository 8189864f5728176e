"""The paper's 4-layer network, trained by plain SGD, many networks side by side.

    o = W₄σ(W₃σ(W₂σ(W₁x + b₁) + b₂) + b₃) + b₄,    σ = max(0, ·),    10 → 100 → 100 → 100 → 2,

softmax cross-entropy against soft labels t (the share of label 1), mean over a batch, W ← W −
rate·∇. Printed with b₄ ∈ R¹⁰⁰, which can only be R². Arrays are (networks, items, units), so W_l is
stored (networks, inputs, units): a step is a dozen stacked matrix products. Cost: 6 flop per weight
and example in training, 2 in asking: 1.4·10⁸ an epoch with the thousand originals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]
Init = Literal["he", "uniform", "printed"]
WIDTH = 100
"""Units of a hidden layer, as the paper has them."""


@dataclass(frozen=True, eq=False)
class Run:
    """One network to train.

    inputs (sets, m, d), share (sets, m): synthetic vectors and the share of label 1 in each; epoch
    e takes set e mod sets. originals: (vectors, labels) pairs on which accuracy is measured after
    every epoch.
    """

    inputs: Floats
    share: Floats
    originals: tuple[tuple[Floats, NDArray[np.bool_]], ...]
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    order: NDArray[np.int64]
    """(epochs, m): the order of examples in each epoch."""


def initial(
    init: Init, d: int, rng: np.random.Generator, alpha: float = 1.0
) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Weights and biases of the four layers.

    "he":      W ~ N(0, 2/inputs), b = 0, which keeps the size of activations from layer to layer
    "uniform": W, b ~ U(±1/√inputs), the default of common frameworks
    "printed": every entry of W_l and b_l ~ N(u_l, 1) with u_l ~ N(0, α)
    """
    weights, biases = [], []
    for inputs, units in ((d, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, 2)):
        if init == "he":
            W, b = rng.standard_normal((inputs, units)) * np.sqrt(2 / inputs), np.zeros(units)
        elif init == "uniform":
            W, b = (rng.uniform(-1, 1, size) / np.sqrt(inputs) for size in ((inputs, units), units))
        else:
            u = rng.standard_normal() * np.sqrt(alpha)
            W, b = (u + rng.standard_normal(size) for size in ((inputs, units), units))
        weights.append(W.astype(np.float32))
        biases.append(b.astype(np.float32))
    return tuple(weights), tuple(biases)


def train(runs: Sequence[Run], *, rate: float = 0.01, batch: int = 32) -> list[Counts]:
    """How many of the originals every run classifies right after each epoch, (epochs, originals).

    All runs have one shape; the networks given are not changed.
    """
    layers = [
        (
            np.stack([run.weights[place] for run in runs]),
            np.stack([run.biases[place] for run in runs]),
        )
        for place in range(4)
    ]
    originals = [
        (np.stack([x for x, _ in pairs]), np.stack([labels for _, labels in pairs]))
        for pairs in zip(*(run.originals for run in runs), strict=True)
    ]
    inputs, share, order = (
        np.stack([getattr(run, name) for run in runs]) for name in ("inputs", "share", "order")
    )
    each, right = np.arange(len(runs))[:, None], []
    # A network that leaves the numbers stays among the others, and answers nothing right.
    with np.errstate(over="ignore", invalid="ignore"):
        for epoch in range(order.shape[1]):
            now = epoch % inputs.shape[1]
            for start in range(0, order.shape[2], batch):
                rows = order[:, epoch, start : start + batch]
                descend(layers, inputs[each, now, rows], share[each, now, rows], rate)
            odds = [_odds(x, layers) for x, _ in originals]
            answers = zip(odds, (labels for _, labels in originals), strict=True)
            right.append([np.where(y, o > 0, o <= 0).sum(axis=1) for o, y in answers])
    return list(np.transpose(right, (2, 0, 1)))


def _hidden(x: Floats, layers: list[tuple[Floats, Floats]]) -> list[Floats]:
    """The input and the activations of the three hidden layers, each (networks, items, units)."""
    out = [x]
    for W, b in layers[:3]:
        out.append(np.maximum(out[-1] @ W + b[:, None], 0))
    return out


def _odds(x: Floats, layers: list[tuple[Floats, Floats]]) -> Floats:
    """o₁ − o₀ (networks, items)."""
    W, b = layers[3]
    o = _hidden(x, layers)[-1] @ W + b[:, None]
    return o[..., 1] - o[..., 0]


def descend(layers: list[tuple[Floats, Floats]], x: Floats, share: Floats, rate: float) -> None:
    """One step on one batch x (networks, items, d); layers change in place."""
    # With two classes softmax is one logistic; rate and mean go into the error at once.
    hidden, (W, b) = _hidden(x, layers), layers[3]
    o = hidden[3] @ W + b[:, None]
    off = (1 / (1 + np.exp(o[..., 0] - o[..., 1])) - share) * np.float32(rate / x.shape[1])
    error = np.stack([-off, off], axis=-1)
    for h, (W, b) in zip(hidden[::-1], layers[::-1], strict=True):
        # Back through the weights as they were, where the unit was on.
        back = (error @ W.transpose(0, 2, 1)) * (h > 0)
        W -= h.transpose(0, 2, 1) @ error
        b -= error.sum(axis=1)
        error = back
