"""One trial of an audit: take the first m encodings of a draw, attack, hold against the truth. Kept
on disk, so that it runs once.

Encodings of a draw are nested: fewer are the first m of many, so that more encodings are more
information, never other ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil._version import __version__
from unveil.attacks import recover
from unveil.auditing.as_found import COPIES, VIEWS, copies
from unveil.auditing.clock import Clock, OutOfTime
from unveil.auditing.disguised import disguised
from unveil.auditing.insider import NAME as SUBSTITUTION
from unveil.auditing.insider import substitution
from unveil.auditing.release import Release
from unveil.auditing.risks import NOT, Risks, Yardstick, assess, distinct
from unveil.auditing.trial import Arm, Trial, packed, unpacked
from unveil.checks import InputError
from unveil.encode.selection import selection_matrix
from unveil.encodings import Encodings
from unveil.kept import keep_arrays, kept_arrays, name_of
from unveil.records import Overlaps, Progress, Recovery
from unveil.scheme import Scheme

MOST_LINKED = 3000
"""Encodings whose pairs are compared: a matrix of nine million entries."""


@dataclass(frozen=True, eq=False)
class Laboratory:
    """Everything trials share. `folder`: where finished ones are kept, or None; `clock`: what ends
    a trial that is bounded by it."""

    release: Release
    relative_tolerance: float = 1e-2
    pixel_rms: float | None = None
    folder: Path | None = None
    memory_limit: int | None = None
    progress: Progress | None = None
    clock: Clock | None = None
    _done: dict[str, Trial] = field(default_factory=dict)

    @cached_property
    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first of every set of equal records, and the set of each record."""
        return distinct(self.release.private)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """The records an insider knows: every second one of those that differ."""
        return np.asarray(self.groups[1] % 2 == 0)

    def encodings(
        self, number: int, m: int, scheme: Scheme | None = None, view: str = ""
    ) -> Encodings:
        """The first m of a draw, taken for encodings of this scheme; view: what is done to them
        first, where that makes sense."""
        values = self.release.draw(number).values[:m]
        if view:
            seen = VIEWS[view](values)
            values = values if seen is None else seen
        stated = scheme is None or scheme == self.release.scheme
        # The size of a pixel is part of the scheme: for another scheme it is not known.
        rms = self.pixel_rms if stated and self.release.stated else None
        return Encodings(values, scheme or self.release.scheme, rms, self.release.shape)

    def best(self, m: int, number: int, arms: Iterable[Arm], *, show: bool = False) -> Trial:
        """The best of several arms; those after one that leaves nothing over are not tried."""
        best: Trial | None = None
        for arm in arms:
            trial = self.trial(m, number, arm, show=show)
            best = trial if best is None or trial.worth > best.worth else best
            # Only one that leaves nothing over ends the search: fewer records exactly may be worse
            # than more nearly.
            if best.complete:
                break
        assert best is not None
        return best

    def trial(
        self, m: int, number: int, arm: Arm, *, show: bool = False, bounded: bool = False
    ) -> Trial:
        """The trial, from memory or disk where it was done before; bounded: the clock may end
        it."""
        name = self._name(m, number, arm, show)
        if name not in self._done:
            self._done[name] = self._kept(name, m, number, arm, show, bounded)
        return self._done[name]

    @property
    def made(self) -> dict[str, Trial]:
        """All trials so far, under names that all that decides them is part of."""
        return dict(self._done)

    def take(self, made: dict[str, Trial]) -> None:
        """Trials that were made elsewhere, as if they had been made here."""
        for name, trial in made.items():
            self._done[name] = trial
            self._keep(name, trial)

    def _kept(self, name: str, m: int, number: int, arm: Arm, show: bool, bounded: bool) -> Trial:
        path = self._path(name)
        kept = None if path is None else kept_arrays(path, name)
        done = None if kept is None else unpacked(kept)
        if done is None:
            done = self._attack(m, number, arm, show, bounded)
            self._keep(name, done)
        return done

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{name[:24]}.npz"

    def _keep(self, name: str, trial: Trial) -> None:
        path = self._path(name)
        # What was cut short depends on the machine: it is tried again next time.
        if path is not None and not trial.stopped:
            path.parent.mkdir(parents=True, exist_ok=True)
            keep_arrays(path, name, packed(trial))

    def _attack(self, m: int, number: int, arm: Arm, show: bool, bounded: bool) -> Trial:
        encodings = self.encodings(number, m, arm.scheme, arm.view)
        progress, stopped = self.progress, False
        if bounded and self.clock is not None:
            progress = self.clock.bounding(progress)
        try:
            recovery, risks = self.recovery(encodings, number, arm, progress)
        except OutOfTime:
            assert self.clock is not None
            words = f"stopped after {self.clock.spent:.0f} s of this audit: beyond the effort"
            stopped, recovery = True, Recovery.empty(encodings, arm.attack, words, {})
            risks = assess(
                recovery, self.release.private, relative_tolerance=self.relative_tolerance
            )
        if arm.who == "insider":
            # What was known beforehand is no finding.
            risks = replace(risks, outcome=np.where(self.known, NOT, risks.outcome).astype(np.int8))
        seen = risks.which >= 0
        private = self.release.private
        shown = np.zeros_like(private) if show else None
        if shown is not None:
            shown[seen] = risks.vectors[risks.which[seen]]
        # Links are counted on all pairs, so that a recovery of few records cannot look complete.
        linked, falsely = _links(recovery, self._groups_of(number, m))
        explained = recovery.explained / encodings.m
        return Trial(
            m=m,
            draw=number,
            who=arm.who,
            attack=recovery.attack,
            explanation=recovery.explanation,
            outcome=risks.outcome,
            error=risks.error,
            correlation=risks.correlation,
            status=tuple(str(recovery.status[i]) if i >= 0 else "" for i in risks.which),
            reasons=tuple(recovery.reasons[i] if i >= 0 else "" for i in risks.which),
            # A wrong vector is a fault of the attack only where the scheme it was told is the true
            # one.
            wrong=risks.wrong if self.release.stated else 0,
            verified=int(recovery.verified.sum()),
            seconds=dict(recovery.seconds),
            signed=recovery.signed,
            explained=float(explained),
            control=risks.control,
            values=risks.values,
            guessed_values=risks.guessed_values,
            linked=linked,
            falsely=falsely,
            shown=shown,
            stopped=stopped,
        )

    def recovery(
        self, encodings: Encodings, number: int, arm: Arm, progress: Progress | None
    ) -> tuple[Recovery, Risks]:
        """What the attack returns, and what it is worth."""
        private, public = self.release.private, self.release.public
        # 1. Attacks that only an audit has.
        if arm.attack == COPIES:
            recovery, risks = copies(encodings, private, relative_tolerance=self.relative_tolerance)
            return self._undisguised(recovery, risks, encodings.values[: 2 * len(private)])
        chosen = self.release.chosen(number, encodings.m)
        if arm.attack == SUBSTITUTION:
            assert chosen is not None
            recovery = substitution(encodings, chosen, private, self.known)
            return recovery, assess(recovery, private, relative_tolerance=self.relative_tolerance)
        # 2. Those of `unveil.recover`, with what this attacker knows.
        options: dict[str, Any] = {}
        if arm.who == "told":
            assert chosen is not None
            W = selection_matrix(chosen, len(private)).astype(np.int64)
            options["overlaps"] = Overlaps.from_array(W @ W.T, arm.scheme.k_private)
        elif arm.attack == "natural":
            options["n_private"] = len(self.groups[0])
        # A blind attacker gets no pool, even where the audit has it.
        pool = public if arm.who != "blind" and arm.scheme.k_public else None
        try:
            recovery = recover(
                encodings,
                pool,
                attack=arm.attack,
                rng=self.release.seed,
                memory_limit=self.memory_limit,
                progress=progress,
                **options,
            )
        except InputError as error:
            # What one attack refuses, a limit of memory or a make of data, is its own result.
            recovery = Recovery.empty(encodings, arm.attack, f"refused: {error}", {})
        free = not self.release.stated or arm.scheme != self.release.scheme
        risks = assess(
            recovery,
            private,
            relative_tolerance=self.relative_tolerance,
            public=public,
            free_scale=free,
        )
        return self._undisguised(recovery, risks, recovery.vectors)

    def _undisguised(
        self, recovery: Recovery, risks: Risks, vectors: NDArray[np.float32]
    ) -> tuple[Recovery, Risks]:
        """Also with what vectors show up to something that all have in common, where an encoder may
        have hidden them so."""
        if self.release.stated or (risks.outcome > NOT).all():
            return recovery, risks
        first, group = self.groups
        yard = Yardstick.of(self.release.private[first], self.relative_tolerance)
        words, outcome = disguised(vectors, yard)
        if not words or (outcome > NOT).sum() <= (risks.outcome[first] > NOT).sum():
            return recovery, risks
        said = f"{int((outcome > NOT).sum())} of {len(first)} records are there {words}"
        return replace(recovery, explanation=said), replace(
            risks, outcome=np.maximum(risks.outcome, outcome[group])
        )

    def _groups_of(self, number: int, m: int) -> NDArray[np.int64] | None:
        """The records of each encoding, equal ones under one name."""
        chosen = self.release.chosen(number, m)
        return None if chosen is None else self.groups[1][chosen]

    def _name(self, m: int, number: int, arm: Arm, show: bool) -> str:
        who = {**vars(arm), "scheme": vars(arm.scheme)}
        return name_of([self._identity, m, number, who, show])

    @cached_property
    def _identity(self) -> str:
        """All that decides what a trial finds: every field but those that are known not to."""
        facts = [__version__, self.release.identity, self.relative_tolerance, self.pixel_rms]
        return name_of([*facts, self.memory_limit])


def _links(recovery: Recovery, chosen: NDArray[np.int64] | None) -> tuple[float, float]:
    """Share of pairs of encodings with a common record that the recovery links, and of those
    without."""
    m = recovery.members.shape[0]
    if chosen is None or not 2 <= m <= MOST_LINKED:
        return float("nan"), float("nan")
    rows = np.repeat(np.arange(m), chosen.shape[1])
    W = sparse.csr_array((np.ones(chosen.size, np.int32), (rows, chosen.ravel())))
    above = np.triu_indices(m, 1)
    truth = ((W @ W.T).toarray() > 0)[above]
    members = recovery.members.astype(np.int32)
    found = ((members @ members.T).toarray() > 0)[above] if len(recovery) else np.zeros_like(truth)
    share = [float(found[rows].mean()) if rows.any() else float("nan") for rows in (truth, ~truth)]
    return share[0], share[1]
