"""How much of the machine a computation may use, and how long it took. Threads are BLAS's own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unveil.records import InputError

_FALLBACK = 2 << 30


def free_memory() -> int:
    """Bytes the system says are available to new work."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 2 * _FALLBACK


def memory_limit(limit: int | None) -> int:
    """The limit in bytes: what was asked for, or half of what is free."""
    if limit is None:
        return free_memory() // 2
    if limit <= 0:
        raise InputError(f"memory_limit={limit}: give a positive number of bytes, or None for half of what is free")
    return limit


def rows_per_block(bytes_per_row: int, limit: int, *, most: int) -> int:
    """How many rows of `bytes_per_row` fit the limit, between 1 and `most`."""
    return int(max(1, min(most, limit // max(1, bytes_per_row))))


class Stopwatch:
    """`with clock("stage"):` adds the seconds spent inside to clock.seconds["stage"]."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
