"""The distribution 𝓓 over selection vectors (`defn:select_distribution`).

Each encoding draws a uniform k_public-subset T₁ of the public and a uniform k_private-subset T₂ of
the private vectors. The printed entries 1/√k_public and 1/√k_private do not give a unit vector when
both parts are present; `Scheme.weighting` says which of three readings is meant, or that every
encoding draws weights of its own (`encode.weights`).

`Scheme.pairing` "epochs" draws as a training run does (Huang et al., `train_cross.py`): each epoch
uses every private vector once per slot. The public set is permuted in every epoch, and its first n
vectors, n the number of private ones, are used once per public slot: a public vector may be in two
slots of one encoding. With fewer public vectors than private ones the released code stops; here
they are used again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.checks import BLOCK, InputError
from unveil.encode.weights import draw_weights
from unveil.encodings import Selection
from unveil.scheme import Scheme


def draw_selection(
    scheme: Scheme,
    n_private: int,
    n_public: int,
    m: int,
    private_rng: np.random.Generator,
    public_rng: np.random.Generator,
    weight_rng: np.random.Generator | None = None,
) -> Selection:
    """m draws of (T₁, T₂), each sorted; and of weights, where the scheme does not fix them."""
    # 1. Who is mixed.
    k = scheme.k_private
    epochs = scheme.pairing != "independent"
    if epochs and n_private:
        private = _draw_epochs(n_private, k, m, private_rng, scheme.pairing == "epochs-in-order")
        public = _draw_public_epochs(n_public, scheme.k_public, m, n_private, public_rng)
    else:
        private = _draw_subsets(n_private, k, m, private_rng, "private")
        public = _draw_subsets(n_public, scheme.k_public, m, public_rng, "public")
    if scheme.fixed_weights:
        return Selection(np.sort(private, axis=1), np.sort(public, axis=1))
    # 2. With which weights.
    if weight_rng is None:
        raise InputError(f"weighting={scheme.weighting!r}: drawing weights needs weight_rng=")
    weights = draw_weights(scheme, m, weight_rng)
    own, others = weights[:, :k], weights[:, k:]
    # Subsets come sorted by index. Where a law treats slots differently, weights are shuffled, or
    # small indices would get large ones. Private slots of epochs have an order of their own.
    if scheme.weighting in ("sorted", "dominant") or (scheme.weighting == "released" and k != 2):
        own = own if epochs else weight_rng.permuted(own, axis=1)
        others = others if epochs else weight_rng.permuted(others, axis=1)
    # Sorted subsets, weights along with them.
    order, place = (np.argsort(part, axis=1, kind="stable") for part in (private, public))
    return Selection(
        private=np.take_along_axis(private, order, axis=1),
        public=np.take_along_axis(public, place, axis=1),
        weights=np.take_along_axis(own, order, axis=1),
        public_weights=np.take_along_axis(others, place, axis=1) if scheme.k_public else None,
    )


def selection_matrix(indices: NDArray[np.int64], n: int, weight: float = 1.0) -> sparse.csr_array:
    """W: row i has `weight` at the chosen indices."""
    m, k = indices.shape
    data = np.full(m * k, weight, dtype=np.float64)
    return sparse.csr_array((data, indices.ravel(), np.arange(m + 1) * k), shape=(m, n))


def _draw_epochs(
    n: int, k: int, m: int, rng: np.random.Generator, in_order: bool
) -> NDArray[np.int64]:
    """Slot 0 has every vector once, in order or shuffled, the others are permutations, new in every
    epoch; the last epoch is cut."""
    _must_suffice(n, k, "private")
    if k == 0:
        return np.empty((m, 0), dtype=np.int64)
    counting = np.tile(np.arange(n), (-(-m // n), 1))
    further = [rng.permuted(counting, axis=1) for _ in range(k - 1)]
    slots = [counting if in_order else rng.permuted(counting, axis=1), *further]
    return np.stack([slot.ravel()[:m] for slot in slots], axis=1)


def _draw_public_epochs(
    n_public: int, k: int, m: int, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Each epoch of n rows has n public vectors of its own, each once per slot."""
    _must_suffice(n_public, k, "public")
    if k == 0:
        return np.empty((m, 0), dtype=np.int64)
    epochs = -(-m // n)
    times = -(-n // n_public)
    chosen = np.stack(
        [
            np.concatenate([rng.permutation(n_public) for _ in range(times)])[:n]
            for _ in range(epochs)
        ]
    )
    slots = [rng.permuted(chosen, axis=1).ravel()[:m] for _ in range(k)]
    return np.stack(slots, axis=1)


def _must_suffice(n: int, k: int, part: str) -> None:
    if k > n:
        raise InputError(
            f"k_{part}={k} of only {n} {part} vectors: lower k_{part} or raise n_{part}"
        )


def _draw_subsets(n: int, k: int, m: int, rng: np.random.Generator, part: str) -> NDArray[np.int64]:
    _must_suffice(n, k, part)
    chosen = np.empty((m, k), dtype=np.int64)
    # Draw with replacement, and redraw the rows that hold a repeat until none does: uniform over
    # subsets, all rows at once. When k is a large part of n almost every row holds a repeat; then
    # rank random keys instead.
    if k * k > n:
        step = max(1, BLOCK // max(1, n))
        for start in range(0, m, step):
            keys = rng.random((min(step, m - start), n))
            chosen[start : start + step] = (
                np.argpartition(keys, k - 1, axis=1)[:, :k] if k < n else np.arange(n)
            )
    else:
        todo = np.arange(m)
        while todo.size:
            chosen[todo] = np.sort(rng.integers(0, n, size=(todo.size, k)), axis=1)
            todo = todo[(np.diff(chosen[todo], axis=1) == 0).any(axis=1)]
    return np.sort(chosen, axis=1)
