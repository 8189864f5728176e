"""How an audit is to be made: options that are checked once, when they are given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unveil.auditing.seed_lint import Encoder
from unveil.checks import DataLike, InputError
from unveil.data import Dataset
from unveil.parallel import memory_limit as settle_limit
from unveil.parallel import where
from unveil.records import Progress
from unveil.scheme import Scheme
from unveil.seeds import Rng, root

Data = DataLike | Dataset
AXES = ("noise", "k", "m")
"""What can be changed in "what if"."""
MOST_DRAWS = 1000
"""Independent draws: more of them say nothing new."""


@dataclass(frozen=True, eq=False)
class Options:
    """How the audit is to be made; checked when made."""

    scheme: Scheme
    m: int | tuple[int, int] | None
    noise: float
    seeds: int
    seed: int
    relative_tolerance: float
    effort: float
    what_if: tuple[str, ...]
    sensitive: int | str | None
    encoder: Encoder | None
    encodings: Data | None
    labels: DataLike | None
    out: Path | None
    memory_limit: int | None
    progress: Progress | None

    def __post_init__(self) -> None:
        scheme = self.scheme
        if not isinstance(scheme, Scheme):
            raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
        if self.encoder is not None and self.encodings is not None:
            raise InputError("encoder and encodings: give what makes them, or what was made")
        made = self.encoder is not None or self.encodings is not None
        if not scheme.k_private or (scheme.k_private + scheme.k_public < 2 and not made):
            raise InputError(
                f"k_private={scheme.k_private}, k_public={scheme.k_public}: nothing private is "
                "mixed with anything; use k_private of 2 or more"
            )
        if isinstance(self.seeds, bool) or not 1 <= self.seeds <= MOST_DRAWS:
            raise InputError(
                f"seeds={self.seeds!r}: give how many independent draws to make, 1 or more"
            )
        if not self.relative_tolerance > 0:
            raise InputError(
                f"relative_tolerance={self.relative_tolerance!r}: give a positive number"
            )
        if not self.effort >= 0:
            raise InputError(f"effort={self.effort!r}: give seconds, 0 or more")

    @property
    def limit(self) -> int:
        """Bytes of memory to stay below."""
        return settle_limit(self.memory_limit)


def options_of(scheme: Scheme | None, what_if: str | None, rng: Rng, **others: Any) -> Options:
    """The options of an audit, defaults filled in."""
    others["out"] = None if others["out"] is None else Path(others["out"])
    if others["memory_limit"] is None:
        others["memory_limit"] = where().memory_limit
    return Options(
        scheme=Scheme() if scheme is None else scheme,
        seed=_seed(rng),
        what_if=_axes(what_if),
        **others,
    )


def _axes(what_if: str | None) -> tuple[str, ...]:
    if what_if is None:
        return ()
    if what_if == "all":
        return AXES
    if what_if not in AXES:
        raise InputError(f"what_if={what_if!r}: choose one of {', '.join(AXES)}, all")
    return (what_if,)


def _seed(rng: Rng) -> int:
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        # Refuses what is no seed, with the words that every command uses.
        root(rng)
        return int(rng)
    return int(np.random.default_rng(root(rng)).integers(1 << 62))
