"""The paper's 4-layer network, trained by plain SGD: one compiled loop per run, runs side by side
on threads.

    o = W₄σ(W₃σ(W₂σ(W₁x + b₁) + b₂) + b₃) + b₄,    σ = max(0, ·),    10 → 100 → 100 → 100 → 2,

softmax cross-entropy against soft labels t (the share of label 1), mean over a batch, W ← W −
rate·∇. Printed with b₄ ∈ R¹⁰⁰, which can only be R². Arrays are (items, units), so W_l is stored
(inputs, units).

A run's weights and one batch fit a core's cache (85 + 100 kB). With batches of 32, 43 GFlop/s a
core where the bare products reach 63; stacks of 20 runs as (runs, batch, units) products in NumPy
reach 39, of 80 runs 34: their weights no longer fit. Cost: 6 flop per weight and example in
training, 2 in asking: 1.4·10⁸ an epoch with the thousand originals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.engine.blocks import run_blocks, worker_count

Floats = NDArray[np.float32]
Init = Literal["he", "uniform", "printed"]
WIDTH = 100
"""Units of a hidden layer, as the paper has them."""


@dataclass(frozen=True, eq=False)
class Run:
    """One network to train.

    inputs (m, d), share (m,): synthetic vectors and the share of label 1 in each; with several sets
    (sets, m, …) epoch e takes set e mod sets. originals: (vectors, labels) pairs on which accuracy
    is measured after every epoch.
    """

    inputs: Floats
    share: Floats
    originals: tuple[tuple[Floats, NDArray[np.bool_]], ...]
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    order: NDArray[np.int64]
    """(epochs, m): the order of examples in each epoch."""


@dataclass(frozen=True, eq=False)
class Trained:
    """right (epochs, originals): how many were classified right after each epoch; logit: largest
    |o₁ − o₀| on the first originals before training; finite: whether every weight is a number at
    the end; constant: one answer for all originals."""

    right: NDArray[np.int64]
    logit: float
    finite: bool
    constant: bool


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


def train(
    runs: Sequence[Run], *, rate: float = 0.01, batch: int = 32, workers: int | None = None
) -> list[Trained]:
    """Train every run; the networks given are not changed, and the result does not depend on
    `workers`."""
    # Threads, since the compiled loop gives the interpreter free.
    out: dict[int, Trained] = {}

    def one(number: int) -> None:
        out[number] = _train_one(runs[number], rate, batch)

    run_blocks(one, range(len(runs)), worker_count(workers))
    return [out[number] for number in range(len(runs))]


def _train_one(run: Run, rate: float, batch: int) -> Trained:
    inputs, share = (
        array if run.inputs.ndim == 3 else array[None] for array in (run.inputs, run.share)
    )
    layers = tuple(
        array.copy() for pair in zip(run.weights, run.biases, strict=True) for array in pair
    )
    first = _logits(run.originals[0][0], *layers)
    right = np.empty((len(run.order), len(run.originals)), dtype=np.int64)
    for epoch, order in enumerate(run.order):
        _epoch(
            inputs[epoch % len(inputs)],
            share[epoch % len(share)],
            order,
            batch,
            np.float32(rate),
            *layers,
        )
        for place, (vectors, labels) in enumerate(run.originals):
            # A network that has left the numbers answers nothing right.
            right[epoch, place] = _right(_logits(vectors, *layers), labels)
    last = _logits(run.originals[0][0], *layers)
    answers = last[:, 1] > last[:, 0]
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(np.abs(first[:, 1] - first[:, 0]).max())
    return Trained(
        right,
        largest,
        all(bool(np.isfinite(array).all()) for array in layers),
        bool(answers.all() or not answers.any()),
    )


@njit(cache=True, nogil=True)
def _epoch(  # type: ignore[no-untyped-def]
    X, share, order, batch, rate, W1, b1, W2, b2, W3, b3, W4, b4
):
    """One pass over the examples in the given order, in batches; the last one may be smaller.
    Layers change in place."""
    d, width = W1.shape
    grad, grad1, grad4 = np.empty_like(W2), np.empty_like(W1), np.empty_like(W4)
    for start in range(0, len(order), batch):
        size = min(batch, len(order) - start)
        x = np.empty((size, d), np.float32)
        room = np.empty((6, size, width), np.float32)
        h1, h2, h3, e1, e2, e3 = room[0], room[1], room[2], room[3], room[4], room[5]
        o = np.empty((size, 2), np.float32)
        for i in range(size):
            # Value by value: Numba takes seconds to compile one array written into another.
            for j in range(d):
                x[i, j] = X[order[start + i], j]
        # 1. Forward.
        np.dot(x, W1, h1)
        _rectify(h1, b1)
        np.dot(h1, W2, h2)
        _rectify(h2, b2)
        np.dot(h2, W3, h3)
        _rectify(h3, b3)
        np.dot(h3, W4, o)
        # 2. The error of the output. With two classes softmax is one logistic; the rate and the
        #    mean over the batch go into the error at once.
        step = rate / np.float32(size)
        for i in range(size):
            odds = np.exp((o[i, 0] + b4[0]) - (o[i, 1] + b4[1]))
            o[i, 1] = (np.float32(1) / (np.float32(1) + odds) - share[order[start + i]]) * step
            o[i, 0] = -o[i, 1]
        # 3. Backward, through the weights as they were.
        np.dot(o, W4.T, e3)
        _through(e3, h3)
        np.dot(e3, W3.T, e2)
        _through(e2, h2)
        np.dot(e2, W2.T, e1)
        _through(e1, h1)
        # 4. The step.
        np.dot(h3.T, o, grad4)
        _descend(W4, b4, grad4, o)
        np.dot(h2.T, e3, grad)
        _descend(W3, b3, grad, e3)
        np.dot(h1.T, e2, grad)
        _descend(W2, b2, grad, e2)
        np.dot(x.T, e1, grad1)
        _descend(W1, b1, grad1, e1)


@njit(cache=True, nogil=True)
def _logits(X, W1, b1, W2, b2, W3, b3, W4, b4):  # type: ignore[no-untyped-def]
    h = np.dot(X, W1)
    _rectify(h, b1)
    h = np.dot(h, W2)
    _rectify(h, b2)
    h = np.dot(h, W3)
    _rectify(h, b3)
    return np.dot(h, W4) + b4


@njit(cache=True, nogil=True)
def _right(logits, labels):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(len(labels)):
        if labels[i]:
            count += logits[i, 1] > logits[i, 0]
        else:
            count += logits[i, 0] >= logits[i, 1]
    return count


@njit(cache=True, nogil=True)
def _rectify(h, b):  # type: ignore[no-untyped-def]
    """h ← max(0, h + b)"""
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            value = h[i, j] + b[j]
            h[i, j] = value if value > 0 else np.float32(0)


@njit(cache=True, nogil=True)
def _through(error, h):  # type: ignore[no-untyped-def]
    """The error where the unit was on, zero elsewhere."""
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            error[i, j] = error[i, j] if h[i, j] > 0 else np.float32(0)


@njit(cache=True, nogil=True)
def _descend(W, b, grad, error):  # type: ignore[no-untyped-def]
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            W[i, j] -= grad[i, j]
    for i in range(error.shape[0]):
        for j in range(b.shape[0]):
            b[j] -= error[i, j]
