"""Could the encodings of one vector be those of another one, under other labels?

Let z be a recovered vector, O_r the other vectors of its encoding r, private and public. Vectors in
general position, and k private and k_public public ones per encoding, leave two ways to read all
encodings of z without z:

  swap    z' = z + v_j − v_l, where every O_r holds v_j and none holds v_l, both private or both
          public: v_l takes the place of v_j. (Were nothing taken out of every O_r, z' could only be
          z.) A public vector that was learned wrongly for the few encodings of a vector makes just
          such a z, whether the true one is known from elsewhere or not
  twins   the same with a v_l that is not known: x and x', which are together in all these
          encodings, are read as z = x + x' − v_j and v_j, for any v_j of others. Its pixels have
          three times the variance, so that a z that is clearly shorter is none of these
  mirror  z' = −(z + Σ_K v), where O_r and its complement in K change places: for k = 2 the
          encodings za, zb are z'b, z'a. It takes at most 2k−2 private and 2·k_public public vectors
          in all O_r together; where they are fewer, K holds any others besides

Both give the same encodings at every pixel, however many there are, so that only the size of z'
speaks: pixels of a private vector are N(0, σ²), so that the true one has a size that such a vector
can have, all but once in e^`SURE` times. All other readings must have a size that none has. It does
not count which is shorter: a public list that holds a private vector among fainter ones makes wrong
vectors that are shorter than the true one. Where several exchanges at once are possible, z is in
doubt.

Two such vectors may lean on each other: in an encoding of both, x + p − q and x' − p + q need
neither p nor q. So encodings of a vector in doubt say nothing of the others in them, until no
further one is in doubt; and whatever gets shorter by `SURE` nats when a public vector of its
encodings is exchanged for another one is in doubt from the start.

O(vectors · d) for each z that allows a swap, which few do: those of few encodings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.solve.model import PublicPart

SURE = 12.0
"""A size that fewer than one in e^12 private vectors have is none of theirs."""

TWINS = 3
"""The variance of a pixel of x + x' − v, by that of one."""

FEW = 4
"""Public vectors looked at on either side: one exchange that shortens a vector is among those most
along it, but for chance."""

EQUAL = 1e-5
"""‖v_j − v_l‖²/‖v_j‖² of vectors that are one and the same: to swap them changes nothing."""

Values = NDArray[np.float64] | NDArray[np.float32]


def relabelled(
    members: NDArray[np.int64],
    x: NDArray[np.float64],
    public: PublicPart | None,
    rms: float | None,
    *,
    kept: bool = False,
) -> NDArray[np.bool_]:
    """The vectors whose encodings may be those of another one: x (n, d) with the `members` (rows,
    k) of all encodings.

    `rms`: of a private pixel; None: nothing is known of it, and nothing excludes another reading.
    kept: signs were not hidden, and there are no mirror images
    """
    shortest = np.zeros(len(x)) if public is None else _most_shortened(x, public)
    plain = _relabelled(members, x, public, shortest, None, kept)
    if rms is None:
        return plain
    # What is known of the size must hold for those that are certain without it: a size that is
    # wrong for them proves nothing of others.
    sizes = np.einsum("ij,ij->i", x[~plain], x[~plain])
    if not all(_possible(np.array([size]), x.shape[1], rms**2) for size in sizes):
        return plain
    return _relabelled(members, x, public, shortest, rms, kept)


def _relabelled(
    members: NDArray[np.int64],
    x: NDArray[np.float64],
    public: PublicPart | None,
    shortest: NDArray[np.float64],
    rms: float | None,
    kept: bool,
) -> NDArray[np.bool_]:
    """The same, with a size that is believed; shortest: `_most_shortened`."""
    flat = members.ravel()
    order = np.argsort(flat, kind="stable")
    ends = np.searchsorted(flat[order], np.arange(len(x) + 1))
    variance = (
        rms**2 if rms is not None else float(np.einsum("ij,ij->", x, x)) / max(x.size, 1) or 1.0
    )
    # A vector that a public exchange makes far shorter holds one that is not its own.
    out = shortest < -2 * SURE * variance
    todo = np.flatnonzero(~out)
    # A vector in doubt takes its encodings with it: whoever stands beside it is asked again.
    while len(todo):
        before = out.copy()
        for i in todo:
            rows = order[ends[i] : ends[i + 1]] // members.shape[1]
            if not len(rows):
                continue
            theirs = members[rows]
            others = theirs[theirs != i].reshape(len(rows), -1)
            # Encodings of a vector in doubt say nothing.
            sure = ~before[others].any(axis=1)
            if not sure.any():
                out[i] = True
                continue
            kinds = [_Kind(others[sure], x, 1.0, int(i))] if members.shape[1] > 1 else []
            if public is not None:
                kinds.append(_Kind(public.names[rows[sure]], public.vectors, public.weight, None))
            out[i] = _doubtful(x[i], kinds, None if rms is None else variance, kept)
        new = np.flatnonzero(out & ~before)
        beside = np.unique(members[np.isin(members, new).any(axis=1)])
        todo = beside[~out[beside]]
    return out


@dataclass(frozen=True, eq=False)
class _Kind:
    """The private or the public vectors beside x[itself]: names (rows, per row) into `vectors`,
    which count `weight` times."""

    names: NDArray[np.int64]
    vectors: Values
    weight: float
    itself: int | None

    def absent(self) -> NDArray[np.bool_]:
        """Vectors that none of the rows holds."""
        out = np.ones(len(self.vectors), bool)
        out[self.names] = False
        if self.itself is not None:
            out[self.itself] = False
        return out


def _doubtful(
    z: NDArray[np.float64], kinds: list[_Kind], variance: float | None, kept: bool
) -> bool:
    """Whether another reading has a size that a private vector can have, or z itself has not; any
    has, where the variance is not known."""
    if variance is not None and not _possible(np.array([z @ z]), len(z), variance):
        variance = None
    if any(kind.itself is not None and len(_common(kind.names)) for kind in kinds) and (
        variance is None or not _shorter_than_twins(z, variance)
    ):
        return True
    swaps = [_swaps(z, kind) for kind in kinds]
    # 1. Swaps. Two at once are too many to look at one by one.
    found = [sizes for sizes in swaps if len(sizes)]
    if found and (
        variance is None or sum(map(len, found)) > 1 or _possible(found[0][0], len(z), variance)
    ):
        return True
    # 2. The mirror image, with one vector more where the rows hold one too few.
    short = [2 * kind.names.shape[1] - len(np.unique(kind.names)) for kind in kinds]
    if kept or min(short, default=-1) < 0:
        return False
    if variance is None or sum(short) > 1:
        return True
    return _possible(_mirrored(z, kinds, short), len(z), variance)


def _possible(size: NDArray[np.float64], d: int, variance: float) -> bool:
    """Whether one of these ‖z'‖² is that of d pixels N(0, variance): bounds of Laurent and Massart
    (2000) for χ²."""
    excess = size / variance - d
    spread = 2 * np.sqrt(d * SURE)
    return bool(((excess >= -spread) & (excess <= spread + 2 * SURE)).any())


def _shorter_than_twins(z: NDArray[np.float64], variance: float) -> bool:
    """Whether ‖z‖² is below that of d pixels N(0, 3·variance), by the same bounds."""
    d = len(z)
    return bool(z @ z < TWINS * variance * (d - 2 * np.sqrt(d * SURE)))


def _most_shortened(x: NDArray[np.float64], public: PublicPart) -> NDArray[np.float64]:
    """(n,) the least ‖z + v_j − v_l‖² − ‖z‖² of each z, for public v_j and v_l of the few that lie
    most along −z and z."""
    # It is ‖v_j − v_l‖² + 2⟨z, v_j − v_l⟩: lowest where v_j lies along −z, and v_l along z.
    V, w = public.vectors, public.weight
    few = min(FEW, len(V))
    size = np.sqrt(np.einsum("ij,ij->i", x, x))
    unit = (x / np.maximum(size, 1e-30)[:, None]).astype(np.float32)
    ends = np.argpartition(unit @ V.T, (few - 1, len(V) - few), axis=1)
    out = np.empty(len(x))
    for i, order in enumerate(ends):
        low, high = (V[some].astype(np.float64) for some in (order[:few], order[-few:]))
        apart = np.square(low[:, None] - high[None]).sum(axis=2)
        out[i] = (w**2 * apart + 2 * w * ((low @ x[i])[:, None] - high @ x[i])).min()
    return out


def _common(names: NDArray[np.int64]) -> NDArray[np.int64]:
    """The vectors that all rows hold."""
    return np.array([j for j in names[0] if (names == j).any(axis=1).all()], dtype=np.int64)


def _swaps(z: NDArray[np.float64], kind: _Kind) -> list[NDArray[np.float64]]:
    """‖z + v_j − v_l‖² for each v_j that all rows hold, and all v_l that none holds and that are
    not equal to it."""
    V, w = kind.vectors, kind.weight
    common = _common(kind.names)
    absent = kind.absent()
    if not len(common) or not absent.any():
        return []
    # All ‖v_j − v_l‖² of one j from products: no difference is ever formed.
    size = w**2 * np.einsum("ij,ij->i", V, V, dtype=np.float64)
    along = w * (V @ z)
    out = []
    for j in common:
        apart = size[j] + size - 2 * w**2 * (V @ V[j])
        really = absent & (apart > EQUAL * size[j])
        if really.any():
            out.append((z @ z + apart + 2 * (along[j] - along))[really])
    return out


def _mirrored(z: NDArray[np.float64], kinds: list[_Kind], short: list[int]) -> NDArray[np.float64]:
    """‖z + Σ_K v‖² for every K: all vectors of the rows, and any one more of the kind that is one
    short."""
    total = z.copy()
    for kind in kinds:
        total += kind.weight * kind.vectors[np.unique(kind.names)].sum(axis=0, dtype=np.float64)
    for kind, lacking in zip(kinds, short, strict=True):
        if lacking:
            may = kind.absent()
            may[_common(kind.names)] = True
            V = kind.weight * kind.vectors[may]
            return np.asarray(
                total @ total + 2 * (V @ total) + np.einsum("ij,ij->i", V, V), np.float64
            )
    return np.array([total @ total])
