"""Trials of several draws on a cluster, before they are asked for.

A trial depends on its own draw only, so that the draws of one point of the curve can be made side
by side. What comes back is what the laboratory would have made itself, and it is kept as such. An
encoder of the user's stays here: its file is not on the workers. Its attacks still compute there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unveil.auditing.trial import Arm, Trial
from unveil.auditing.trials import Laboratory
from unveil.cluster import results
from unveil.parallel import where

Point = tuple[int, Sequence[Arm], bool]
"""Encodings, arms, whether the trial of draw 0 is shown."""


def make_ahead(lab: Laboratory, m: int, arms: Sequence[Arm], draws: int, *, show: bool) -> None:
    """The best of the arms on the first m encodings of every draw, where there is a cluster."""
    if where().scheduler is None or draws < 2 or not lab.release.stated:
        return
    # Workers have neither our disk nor our terminal.
    sent = replace(lab, folder=None, progress=None, clock=None, _done={})
    for _, made in results(_made, (sent, (m, arms, show)), range(draws)):
        lab.take(made)


def _made(shared: tuple[Laboratory, Point], draw: int) -> dict[str, Trial]:
    """Every trial of the draw under its name."""
    lab, (m, arms, show) = shared
    own = replace(lab, _done={})
    own.best(m, draw, arms, show=show and draw == 0)
    return own.made
