"""Could the encodings of one vector be those of another one, under other labels?

Let z be a recovered vector, O_r the other vectors of its encoding r, private and public. Vectors in general position, and k
private and k_public public ones per encoding, leave two ways to read all encodings of z without z:

  swap    z' = z + v_j − v_l, where every O_r holds v_j and none holds v_l, both private or both public: v_l takes the place
          of v_j. (Were nothing taken out of every O_r, z' could only be z.) A public vector that was learned wrongly for the
          few encodings of a vector makes just such a z, whether the true one is known from elsewhere or not
  mirror  z' = −(z + Σ_K v), where O_r and its complement in K change places: for k = 2 the encodings za, zb are z'b, z'a.
          It takes at most 2k−2 private and 2·k_public public vectors in all O_r together

Both give the same encodings at every pixel, however many there are, so that only the size of z' speaks: pixels of a private
vector are N(0, σ²), and the true reading is the shortest. The nats by which z is likelier than all others together are
compared with `SURE`. Of a z that is a swap, one swap taken back is shorter, so that single ones are enough to look at.

Two such vectors may lean on each other: in an encoding of both, x + p − q and x' − p + q need neither p nor q. So encodings of
a vector in doubt say nothing of the others in them, until no further one is in doubt; and whatever gets shorter by `SURE` nats
when a public vector of its encodings is exchanged for another one is in doubt from the start.

O(vectors · d) for each z that allows a swap, which few do: those of few encodings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

SURE = 12.0
"""Nats by which a vector must beat all other readings of its encodings."""

FEW = 4

EQUAL = 1e-5
"""‖v_j − v_l‖²/‖v_j‖² of vectors that are one and the same: to swap them changes nothing."""

Values = NDArray[np.float64] | NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PublicPart:
    """names (rows, k_public): the public vectors of each explained encoding; `vectors` (n_public, d), times `weight`, are in
    units in which private ones have weight 1."""

    names: NDArray[np.int64]
    vectors: NDArray[np.float32]
    weight: float


def relabelled(
    members: NDArray[np.int64], x: NDArray[np.float64], public: PublicPart | None, rms: float | None
) -> NDArray[np.bool_]:
    """The vectors whose encodings may be those of another one: x (n, d) with the `members` (rows, k) of all encodings.

    `rms`: of a private pixel; None: nothing is known of it, and nothing excludes a swap.
    """
    flat = members.ravel()
    order = np.argsort(flat, kind="stable")
    ends = np.searchsorted(flat[order], np.arange(len(x) + 1))
    variance = rms**2 if rms is not None else float(np.einsum("ij,ij->", x, x)) / max(x.size, 1) or 1.0
    out = np.zeros(len(x), bool) if public is None else _shortened(x, public, variance)
    todo = np.flatnonzero(~out)
    while len(todo):
        before = out.copy()
        for i in todo:
            rows = order[ends[i] : ends[i + 1]] // members.shape[1]
            if not len(rows):
                continue
            theirs = members[rows]
            others = theirs[theirs != i].reshape(len(rows), -1)
            sure = ~before[others].any(axis=1)
            if not sure.any():
                out[i] = True
                continue
            kinds = [_Kind(others[sure], x, 1.0, int(i))] if members.shape[1] > 1 else []
            if public is not None:
                kinds.append(_Kind(public.names[rows[sure]], public.vectors, public.weight, None))
            out[i] = _doubtful(x[i], kinds, variance, rms is not None)
        new = np.flatnonzero(out & ~before)
        beside = np.unique(members[np.isin(members, new).any(axis=1)])
        todo = beside[~out[beside]]
    return out


@dataclass(frozen=True, eq=False)
class _Kind:
    """The private or the public vectors beside x[itself]: names (rows, per row) into `vectors`, which count `weight` times."""

    names: NDArray[np.int64]
    vectors: Values
    weight: float
    itself: int | None


def _doubtful(z: NDArray[np.float64], kinds: list[_Kind], variance: float, known: bool) -> bool:
    """`known`: the variance is, and not just measured."""
    for kind in kinds:
        common = _common(kind.names)
        if not len(common):
            continue
        absent = np.ones(len(kind.vectors), bool)
        absent[kind.names] = False
        if kind.itself is not None:
            absent[kind.itself] = False
        if absent.any() and (not known or _nats_of_swaps(z, kind, common, absent, variance) < SURE):
            return True
    return bool(_nats_of_mirror(z, kinds, variance) < SURE)


def _shortened(x: NDArray[np.float64], public: PublicPart, variance: float) -> NDArray[np.bool_]:
    """Vectors z with ‖z + v_j − v_l‖² far below ‖z‖² for public v_j and v_l: of the few that lie most along −z and z."""
    V, w = public.vectors, public.weight
    along = w * (x @ V.T)
    few = min(FEW, len(V))
    out = np.zeros(len(x), bool)
    for i, products in enumerate(along):
        order = np.argsort(products)
        low, high = order[:few, None], order[None, -few:]
        apart = w**2 * np.square(V[low] - V[high]).sum(axis=2, dtype=np.float64)
        out[i] = (apart + 2 * (products[low] - products[high])).min() < -2 * SURE * variance
    return out


def _common(names: NDArray[np.int64]) -> NDArray[np.int64]:
    """The vectors that all rows hold."""
    return np.array([j for j in names[0] if (names == j).any(axis=1).all()], dtype=np.int64)


def _nats_of_swaps(
    z: NDArray[np.float64], kind: _Kind, common: NDArray[np.int64], absent: NDArray[np.bool_], variance: float
) -> float:
    """(‖z + v_j − v_l‖² − ‖z‖²)/2σ² for every v_j in common and v_l absent, as one number for all of them together."""
    V, w = kind.vectors, kind.weight
    size = w**2 * np.einsum("ij,ij->i", V, V, dtype=np.float64)
    along = w * (V @ z)
    nats = []
    for j in common:
        apart = size[j] + size - 2 * w**2 * (V @ V[j])
        really = absent & (apart > EQUAL * size[j])
        nats.append((apart + 2 * (along[j] - along))[really] / (2 * variance))
    return -float(logsumexp(-np.concatenate([*nats, [np.inf]])))


def _nats_of_mirror(z: NDArray[np.float64], kinds: list[_Kind], variance: float) -> float:
    """(‖z + Σ_K v‖² − ‖z‖²)/2σ², infinite where the rows hold too many vectors for a K."""
    total = np.zeros_like(z)
    for kind in kinds:
        used = np.unique(kind.names)
        if len(used) > 2 * kind.names.shape[1]:
            return np.inf
        total += kind.weight * kind.vectors[used].sum(axis=0, dtype=np.float64)
    return float((total @ total + 2 * (total @ z)) / (2 * variance))
