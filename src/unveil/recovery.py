"""What an attack gives back: private vectors with the evidence for each, and how they hold against
the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encodings import Encodings
from unveil.rooms import Pictured, Shown

VERIFIED, AMBIGUOUS, UNRESOLVED = STATUSES = "verified", "ambiguous", "unresolved"


@dataclass(frozen=True, eq=False)
class Recovery(Pictured):
    """Private vectors with the evidence for each.

    Attributes
    ----------
    vectors : array of shape (r, d)
        The recovered vectors.
    status : array of str of shape (r,)
        "verified": re-encoding reproduces every encoding known to mix these vectors only, from
        more equations than unknowns, and no other labelling does.
        "ambiguous": the equations hold, but another solution does as well as this one.
        "unresolved": the equations do not hold.
    signed : bool
        False: one sign per pixel, common to all vectors, is not determined.
    members : sparse array of bool of shape (m, r)
        Which encodings mix which vectors.
    residual : array of shape (r,)
        How far re-encoding is from the encodings, per vector.
    reasons : tuple of str
        Why each vector has its status.
    attack, explanation : str
        Which attack this is, and what it found, in a sentence.
    seconds : mapping
        Time per stage.
    evidence : mapping
        Further facts of the attack, for reports.
    weights : sparse array of shape (m, r), or None
        What each encoding gives to each vector, at the places of `members`; None when the scheme
        fixes them.
    doubtful : array of bool of shape (r, d), or None
        Values that the encodings leave open, though the rest of the vector is determined; None:
        there are none.
    explained : int
        How many encodings the vectors reproduce, exactly or up to noise; 0 where the attack does
        not say.
    exact : bool
        They are reproduced to rounding, so that there is no noise to allow for.
    columns, image_shape
        What the encodings call their values, and the shape of an image, where they say so.

    References
    ----------
    `alg:private_attack2`, `thm:main`, `remark:ambiguity` of the paper; docs/certificate.md.

    Examples
    --------
    >>> import unveil
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=12, m=100, d=200, rng=0)
    >>> recovery = unveil.recover(sim.encodings, rng=0)
    >>> len(recovery), int(recovery.verified.sum()), recovery.signed
    (12, 12, False)
    """

    vectors: NDArray[np.float32]
    status: NDArray[np.str_]
    signed: bool
    members: sparse.csr_array
    residual: NDArray[np.float64]
    reasons: tuple[str, ...]
    attack: str
    explanation: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    weights: sparse.csr_array | None = None
    doubtful: NDArray[np.bool_] | None = None
    explained: int = 0
    exact: bool = False
    columns: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None

    @classmethod
    def empty(
        cls,
        encodings: Encodings,
        attack: str,
        explanation: str,
        seconds: Mapping[str, float],
        evidence: Mapping[str, Any] | None = None,
        *,
        exact: bool = False,
    ) -> Recovery:
        """Nothing was found, and `explanation` says why; `exact`: relations hold to rounding, so
        that there is no noise to allow for."""
        # Of the right shapes: who counts, scores or saves needs no special case for nothing.
        return cls(
            vectors=np.empty((0, encodings.d), np.float32),
            status=np.empty(0, dtype="<U10"),  # "unresolved" has ten letters
            signed=False,
            members=sparse.csr_array((encodings.m, 0), dtype=bool),
            residual=np.empty(0),
            reasons=(),
            attack=attack,
            explanation=explanation,
            seconds=seconds,
            evidence={} if evidence is None else evidence,
            exact=exact,
        )

    def about(self, encodings: Encodings) -> Recovery:
        """The same, with the names of columns and the shape of images that the encodings have."""
        return replace(self, columns=encodings.columns, image_shape=encodings.image_shape)

    @property
    def verified(self) -> NDArray[np.bool_]:
        """Which vectors are verified."""
        return np.asarray(self.status == VERIFIED)

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True, eq=False)
class Scores(Shown):
    """A recovery held against the truth.

    Attributes
    ----------
    exact : int
        Distinct private vectors returned as verified with every pixel within tolerance.
    wrong : int
        Verified vectors equal to no private vector.
    missing : int
        Private vectors not returned exactly.
    matches : array of shape (r,)
        The private vector each recovered one equals, or −1.
    nearest : array of shape (r,)
        The private vector nearest to each recovered one.
    error : array of shape (r,)
        Largest pixel error to the nearest.
    tolerance : float
        Largest error of a pixel that counts as equal, in the units of the data.
    """

    exact: int
    wrong: int
    missing: int
    matches: NDArray[np.int64]
    nearest: NDArray[np.int64]
    error: NDArray[np.float64]
    tolerance: float
