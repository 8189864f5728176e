"""How much of the machine a computation may use, and how long it took. Threads and clusters are
decided here.

Parallel over blocks, with BLAS held at one thread each: `run_blocks` for what stays in this
process, `cluster.results` for what may go to others. `with using(workers=…, scheduler=…,
checkpoint=…, memory_limit=…)` sets for everything inside where block tasks run, where they leave
what they have finished, and how much memory may be taken.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

from unveil.checks import InputError

_FALLBACK = 2 << 30
"""Half of what is taken for free where the system does not say: 2 GiB."""
BlockT = TypeVar("BlockT")


def free_memory() -> int:
    """Bytes the system says are available to new work."""
    # What Linux itself recommends: free pages and those it can take back without swapping.
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 2 * _FALLBACK


def memory_limit(limit: int | None) -> int:
    """The limit in bytes: what was asked for, here or by `using`, or half of what is free."""
    limit = where().memory_limit if limit is None else limit
    if limit is None:
        return free_memory() // 2
    if limit <= 0:
        raise InputError(
            f"memory_limit={limit}: give a positive number of bytes, or None for half of what is "
            "free"
        )
    return limit


def must_fit(
    needed: int, what: str, limit: int | None = None, cure: str = "take fewer rows"
) -> None:
    """Asked before `needed` bytes are taken; limit: what may be taken, None for `memory_limit`."""
    allowed = memory_limit(None) if limit is None else limit
    if needed > allowed:
        raise InputError(
            f"{what} would take {_size(needed)} of memory, more than the {_size(allowed)} it may "
            f"have: {cure}, or raise memory_limit, in bytes"
        )


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def rows_per_block(bytes_per_row: int, limit: int, *, most: int) -> int:
    """How many rows of `bytes_per_row` fit the limit, between 1 and `most`."""
    return int(max(1, min(most, limit // max(1, bytes_per_row))))


@dataclass(frozen=True)
class Where:
    """Where block tasks run and what they leave behind: the defaults for calls that are not
    told."""

    workers: int | None = None
    scheduler: str | None = None
    checkpoint: Path | None = None
    memory_limit: int | None = None


_where: ContextVar[Where] = ContextVar("where", default=Where())  # noqa: B039  frozen


def where() -> Where:
    return _where.get()


@contextmanager
def using(
    workers: int | None = None,
    scheduler: str | None = None,
    checkpoint: Path | None = None,
    memory_limit: int | None = None,
) -> Iterator[None]:
    """Defaults for every call inside the block; what an inner block does not say holds on."""
    outer = where()
    # A context variable: threads that a caller starts do not see each other's settings.
    token = _where.set(
        Where(
            outer.workers if workers is None else workers,
            outer.scheduler if scheduler is None else scheduler,
            outer.checkpoint if checkpoint is None else checkpoint,
            outer.memory_limit if memory_limit is None else memory_limit,
        )
    )
    try:
        yield
    finally:
        _where.reset(token)


def worker_count(workers: int | None) -> int:
    """How many threads: what was asked for, or one per core this process may use."""
    # Cores this process may use, not those the machine has: containers differ.
    if workers is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if isinstance(workers, bool) or workers < 1:
        raise InputError(
            f"workers={workers!r}: give a whole number of 1 or more, or None for one per core"
        )
    return int(workers)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Parallel over tasks, not inside them: no more threads than workers, and sums in the same
    order for any number of them."""
    with threadpool_limits(1, user_api="blas"):
        yield


def run_blocks(
    task: Callable[[BlockT], None],
    blocks: Sequence[BlockT],
    workers: int,
    done: Callable[[BlockT], None] | None = None,
) -> None:
    """task(block) for every block, `workers` at a time; done(block) in the calling thread as each
    one ends.

    BLAS has one thread meanwhile, for one worker too: small products do not wait for each other,
    and what a block computes does not depend on how many others run.
    """
    with one_blas_thread():
        # No pool for one worker: errors and profiles then point at the task itself.
        if workers == 1 or len(blocks) <= 1:
            for block in blocks:
                task(block)
                if done:
                    done(block)
            return
        with ThreadPoolExecutor(min(workers, len(blocks))) as pool:
            running = {pool.submit(task, block): block for block in blocks}
            try:
                for future in as_completed(running):
                    future.result()
                    if done:
                        done(running[future])
            # What has not begun is not worth finishing once one task has failed.
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def count_rows(
    progress: Callable[[str, int, int], None] | None, stage: str, block: int, m: int
) -> Callable[[int], None]:
    """To be called with the first row of every block that has ended: progress in rows."""
    ended = 0

    def done(start: int) -> None:
        nonlocal ended
        ended += min(block, m - start)
        if progress:
            progress(stage, ended, m)

    return done


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
