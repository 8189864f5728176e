"""What one trial of an audit is, and what came of it; `auditing.trials` runs them.

An `Arm` is one way to attack: who attacks, by which attack, and what the encodings are taken for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.risks import EXACT, NOT
from unveil.scheme import Scheme

Key = Literal["blind", "public", "told", "insider"]
COMPLETE = 0.99
"""Share of encodings that an attack explains, from which on another can add nothing."""


@dataclass(frozen=True)
class Arm:
    """who: the kind of attacker; scheme: what the encodings are taken for; words: how that differs
    from what was stated, empty where it does not; view: what is done to them first
    (`as_found.VIEWS`)."""

    who: Key
    attack: str
    scheme: Scheme
    words: str = ""
    view: str = ""

    @property
    def title(self) -> str:
        return f"{self.attack} ({self.words})" if self.words else self.attack


@dataclass(frozen=True, eq=False)
class Trial:
    """What one attack got: outcome, error, correlation, status and reason per record; shown (n, d):
    the recovery of each record (zero where there is none), kept for the trial that is reported in
    full.

    signed: signs are known, not up to one per pixel; explained: share of the encodings the attack
    explains; control, values, guessed_values: as in
    `risks`; linked, falsely: share of pairs of encodings with a common record that it links, and of
    those without; NaN: not known; stopped: it was cut short by the clock
    """

    m: int
    draw: int
    who: Key
    attack: str
    explanation: str
    outcome: NDArray[np.int8]
    error: NDArray[np.float64]
    correlation: NDArray[np.float64]
    status: tuple[str, ...]
    reasons: tuple[str, ...]
    wrong: int
    verified: int
    seconds: Mapping[str, float]
    signed: bool = False
    explained: float = 0.0
    control: float = 0.0
    values: float = 0.0
    guessed_values: float = 0.0
    linked: float = float("nan")
    falsely: float = float("nan")
    shown: NDArray[np.float32] | None = None
    stopped: bool = False

    @property
    def exact(self) -> float:
        return float((self.outcome == EXACT).mean())

    @property
    def recovered(self) -> float:
        return float((self.outcome > NOT).mean())

    @property
    def worth(self) -> tuple[int, int, float]:
        """What counts between two trials: records exactly, records at all, single values."""
        return int((self.outcome == EXACT).sum()), int((self.outcome > NOT).sum()), self.values

    @property
    def complete(self) -> bool:
        """Whether nothing is left for another attack."""
        explained = self.explained >= COMPLETE and self.verified > 0 and not self.wrong
        return bool((self.outcome == EXACT).all()) or explained


def packed(trial: Trial) -> dict[str, NDArray[Any]]:
    """As it is kept on disk."""
    arrays: dict[str, NDArray[Any]] = {
        name: getattr(trial, name) for name in ("outcome", "error", "correlation")
    }
    if trial.shown is not None:
        # Only of the trial that is drawn: the others would fill the disk.
        arrays["shown"] = trial.shown
    about = {name: value for name, value in vars(trial).items() if name not in (*arrays, "shown")}
    return {**arrays, "about": np.array(json.dumps(about))}


def unpacked(kept: dict[str, Any]) -> Trial | None:
    """None where the fields are not those of a trial: it was kept by other code."""
    try:
        about = json.loads(str(kept.pop("about")))
        return Trial(
            **{
                **kept,
                **about,
                "status": tuple(about["status"]),
                "reasons": tuple(about["reasons"]),
            }
        )
    except (ValueError, TypeError, KeyError):
        return None
