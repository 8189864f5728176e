"""One trial of an audit: draw encodings, take the first m, attack, hold against the truth. Kept on
disk, so that it runs once.

Encodings of a draw are nested: fewer are the first m of many, so that more encodings are more
information, never other ones.

Two attackers:
  blind   has the release and the public vectors, and nothing else: the strongest attack of the package that applies
  told    also knows how many records each two encodings share. Published attacks on natural images learn just that from the
          encodings, with a network trained for it; an audit, which has the truth, can say what
          would follow
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil._version import __version__
from unveil.attacks import recover
from unveil.attacks.full import applies
from unveil.attacks.mixup import keeps_signs
from unveil.attacks.natural import is_natural
from unveil.auditing.risks import EXACT, NOT, assess
from unveil.encode import simulate
from unveil.encode.selection import selection_matrix
from unveil.kept import keep_arrays, kept_arrays, name_of
from unveil.records import Encodings, Overlaps, Progress, Scheme, Simulation

Attacker = Literal["blind", "told"]
KEPT = 1 << 26
"""Values of drawn encodings kept in memory."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What one attack got: outcome, error, correlation, status and reason per record; shown (n, d):
    the recovery of each record (zero where there is none), kept for the trial that is reported in
    full."""

    m: int
    draw: int
    attacker: Attacker
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
    shown: NDArray[np.float32] | None = None

    @property
    def exact(self) -> float:
        return float((self.outcome == EXACT).mean())

    @property
    def recovered(self) -> float:
        return float((self.outcome > NOT).mean())


@dataclass(frozen=True, eq=False)
class Laboratory:
    """Everything trials share. `folder`: where finished ones are kept, or None."""

    private: NDArray[np.float32]
    public: NDArray[np.float32] | None
    scheme: Scheme
    top: int
    noise: float
    tolerance: float
    seed: int
    pixel_rms: float | None
    shape: tuple[int, ...] | None = None
    folder: Path | None = None
    memory_limit: int | None = None
    progress: Progress | None = None
    _drawn: dict[int, Simulation] = field(default_factory=dict)

    def draw(self, number: int) -> Simulation:
        """The `top` encodings of a draw; a few are kept in memory."""
        if number not in self._drawn:
            if (len(self._drawn) + 1) * self.top * self.private.shape[1] > KEPT:
                self._drawn.clear()
            self._drawn[number] = simulate(
                self.scheme,
                private=self.private,
                public=self.public,
                m=self.top,
                noise=self.noise,
                shape=self.shape,
                rng=np.random.default_rng(np.random.SeedSequence([self.seed, number])),
            )
        return self._drawn[number]

    def encodings(self, number: int, m: int) -> Encodings:
        return Encodings(
            self.draw(number).encodings.values[:m], self.scheme, self.pixel_rms, self.shape
        )

    def can_be_told(self, m: int) -> bool:
        """Whether an attack on all vectors can start from given overlaps."""
        return self.scheme.fixed_weights and applies(
            Encodings(np.zeros((m, 1), np.float32), self.scheme)
        )

    def trial(self, m: int, number: int, attacker: Attacker, *, show: bool = False) -> Trial:
        """The trial, from disk where it was done before."""
        name = self._name(m, number, attacker, show)
        path = None if self.folder is None else self.folder / f"{name[:24]}.npz"
        kept = None if path is None else kept_arrays(path, name)
        done = None if kept is None else _unpacked(kept)
        if done is None:
            done = self._attack(m, number, attacker, show)
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                keep_arrays(path, name, _packed(done))
        return done

    def _attack(self, m: int, number: int, attacker: Attacker, show: bool) -> Trial:
        encodings = self.encodings(number, m)
        if attacker == "told":
            chosen = self.draw(number).selection.private[:m]
            W = selection_matrix(chosen, len(self.private)).astype(np.int64)
            shared = Overlaps.from_array(W @ W.T, self.scheme.k_private)
            recovery = recover(
                encodings,
                self.public,
                attack="mixup" if keeps_signs(encodings) else "full",
                overlaps=shared,
                rng=self.seed,
                memory_limit=self.memory_limit,
                progress=self.progress,
            )
        else:
            recovery = recover(
                encodings,
                self.public,
                n_private=len(self.private) if is_natural(encodings) else None,
                rng=self.seed,
                memory_limit=self.memory_limit,
                progress=self.progress,
            )
        risks = assess(recovery, self.private, relative_tolerance=self.tolerance)
        seen = risks.which >= 0
        shown = np.zeros_like(self.private) if show else None
        if shown is not None:
            shown[seen] = risks.vectors[risks.which[seen]]
        return Trial(
            m=m,
            draw=number,
            attacker=attacker,
            attack=recovery.attack,
            explanation=recovery.explanation,
            outcome=risks.outcome,
            error=risks.error,
            correlation=risks.correlation,
            status=tuple(str(recovery.status[i]) if i >= 0 else "" for i in risks.which),
            reasons=tuple(recovery.reasons[i] if i >= 0 else "" for i in risks.which),
            wrong=risks.wrong,
            verified=int(recovery.verified.sum()),
            seconds=dict(recovery.seconds),
            shown=shown,
        )

    def _name(self, m: int, number: int, attacker: Attacker, show: bool) -> str:
        return name_of([self._identity, m, number, attacker, show])

    @cached_property
    def _identity(self) -> str:
        """All that decides what a trial finds; every field counts but those that are known not
        to."""
        arrays, facts = [], {}
        for name, value in vars(self).items():
            if name in ("private", "public"):
                arrays.append(value)
            elif name not in _NO_MATTER:
                facts[name] = vars(value) if isinstance(value, Scheme) else value
        return name_of([__version__, facts], *arrays)


_NO_MATTER = ("folder", "progress", "_drawn", "_identity")
"""Fields of a laboratory that change no result."""


def _packed(trial: Trial) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {
        name: getattr(trial, name) for name in ("outcome", "error", "correlation")
    }
    if trial.shown is not None:
        arrays["shown"] = trial.shown
    about = {name: value for name, value in vars(trial).items() if name not in (*arrays, "shown")}
    return {**arrays, "about": np.array(json.dumps(about))}


def _unpacked(kept: dict[str, Any]) -> Trial | None:
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
