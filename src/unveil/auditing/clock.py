"""A bound on the attacks of an audit, by the clock.

Effort is counted in forecast seconds, so that the same call makes the same trials on every machine.
Forecasts can be far off, on data that no formula describes. So there is a second bound, `PATIENCE`
times as long: what is running when it ends is stopped, and nothing more is started. The report
names what was stopped, since an attack that was cut short is no evidence of safety.
"""

from __future__ import annotations

import time

from unveil.records import Progress

PATIENCE = 5.0
"""Seconds by the clock for one of effort: attacks on data that are not Gaussian take longer than
forecast, and machines differ; more than that is a forecast that is wrong."""
LEAST = 180.0
"""Seconds in any case: with no effort the usual attacks still run, and a first run compiles for up
to a minute before it attacks; on a machine three times slower it must not be cut short."""
OVER = "the time that this effort allows was over"
"""Why an attack was not started."""


class OutOfTime(Exception):
    """Raised from the progress callback of an attack that outran the clock."""


class Clock:
    """Starts when it is made; `seconds` later it is over."""

    def __init__(self, seconds: float) -> None:
        self._start = time.monotonic(), time.process_time()
        self._seconds = seconds

    @property
    def spent(self) -> float:
        """Seconds since it was made, less those in which others had the processor: a busy machine
        must not make an audit softer."""
        wall, work = self._start
        return min(time.monotonic() - wall, time.process_time() - work)

    @property
    def over(self) -> bool:
        return self.spent > self._seconds

    def bounding(self, progress: Progress | None) -> Progress:
        """The same callback, which ends the attack that calls it once the time is over."""

        def check(stage: str, done: int, total: int) -> None:
            if self.over:
                raise OutOfTime
            if progress is not None:
                progress(stage, done, total)

        return check


def clock_for(effort: float) -> Clock:
    """The clock of an audit with this effort."""
    return Clock(max(LEAST, PATIENCE * effort))
