"""Blocks of work: in parallel, here or on a cluster, within the memory, and resumed where they
stopped.

    with using(workers=4, scheduler="tcp://…", checkpoint=folder, memory_limit=2 << 30):
        for item, result in results(work, shared, items):
            …

A task is `work(shared, item)`, a function of a module, with one BLAS thread. It is the same
everywhere, so that results do not depend on where or how many. On a cluster `shared` is sent to
every worker once; arrays in a memory-mapped file that the workers can see are opened there instead.
A worker that dies takes unfinished tasks with it: Dask runs them again elsewhere, and where the
last copy of the data died too, it is sent again. Threads suffice on one machine (products and
kernels release Python's lock); processes are for more machines than one.

`kept` remembers finished results (`engine.files.Kept`): a run that was killed goes on where it
stood and ends with the same bytes.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from unveil.checks import InputError, mapping_of

SharedT = TypeVar("SharedT")
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_log = logging.getLogger(__name__)


# ---- Where, how many, how much.


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
    said = {
        "workers": workers,
        "scheduler": scheduler,
        "checkpoint": checkpoint,
        "memory_limit": memory_limit,
    }
    said = {name: value for name, value in said.items() if value is not None}
    # A context variable: threads that a caller starts do not see each other's settings.
    token = _where.set(Where(**{**vars(where()), **said}))
    try:
        yield
    finally:
        _where.reset(token)


def worker_count(workers: int | None) -> int:
    """How many threads: what was asked for, or one per core this process may use."""
    if workers is None:
        # Cores this process may use, not those the machine has: containers differ.
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if isinstance(workers, bool) or workers < 1:
        raise InputError(
            f"workers={workers!r}: give a whole number of 1 or more, or None for one per core"
        )
    return int(workers)


def free_memory(unknown: int = 4 << 30) -> int:
    """Bytes the system says are available to new work; unknown: where it does not say."""
    # What Linux itself recommends: free pages and those it can take back without swapping.
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return unknown


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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Parallel over tasks, not inside them: no more threads than workers, and sums in the same
    order for any number of them."""
    with threadpool_limits(1, user_api="blas"):
        yield


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


# ---- Tasks.


def results(
    work: Callable[[SharedT, ItemT], ResultT],
    shared: SharedT,
    items: Sequence[ItemT],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    kept: Any = None,
) -> Iterator[tuple[ItemT, ResultT]]:
    """Every item with work(shared, item), in the order of the items, so that what comes of it does
    not depend on which block ends first; who stops listening ends what has not begun.

    workers    threads; None: those of `using`, or one per core
    scheduler  "processes": a local Dask cluster; an address such as "tcp://host:8786": an existing
               one; None: that of `using`, or threads
    kept       where finished results are looked for first, and left (`engine.files.Kept`)
    """
    if kept is not None:
        left = []
        for item in items:
            found = kept.read(item)
            if found is None:
                left.append(item)
            else:
                yield item, found
        for item, result in results(work, shared, left, workers=workers, scheduler=scheduler):
            kept.write(item, result)
            yield item, result
        return
    scheduler = where().scheduler if scheduler is None else scheduler
    workers = where().workers if workers is None else workers
    if not items:
        return
    if scheduler is None:
        yield from _on_threads(work, shared, items, worker_count(workers))
    else:
        yield from _on_dask(work, shared, items, workers, scheduler)


def run_blocks(
    task: Callable[[ItemT], None],
    blocks: Sequence[ItemT],
    workers: int,
    done: Callable[[ItemT], None] | None = None,
) -> None:
    """task(block) for every block, on `workers` threads of this process; done(block) in the calling
    thread as each one ends."""
    for block, _ in _on_threads(lambda _, block: task(block), None, blocks, workers):
        if done:
            done(block)


def _on_threads(
    work: Callable[[Any, ItemT], ResultT], shared: Any, items: Sequence[ItemT], workers: int
) -> Iterator[tuple[ItemT, ResultT]]:
    with one_blas_thread():
        # No pool for one worker: errors and profiles then point at the task itself.
        if workers == 1 or len(items) <= 1:
            for item in items:
                yield item, work(shared, item)
            return
        pool = ThreadPoolExecutor(min(workers, len(items)), thread_name_prefix="unveil")
        try:
            # A short queue: an interrupted run stops soon, and a million tasks are not a million
            # futures.
            waiting = iter(items)
            running = deque(
                (item, pool.submit(work, shared, item)) for item in islice(waiting, 2 * workers)
            )
            while running:
                item, future = running.popleft()
                result = future.result()
                running += [(more, pool.submit(work, shared, more)) for more in islice(waiting, 1)]
                yield item, result
        finally:
            pool.shutdown(cancel_futures=True)


# ---- On a Dask cluster.


def _on_dask(
    work: Callable[[Any, ItemT], ResultT],
    shared: Any,
    items: Sequence[ItemT],
    workers: int | None,
    scheduler: str,
    attempts: int = 4,
) -> Iterator[tuple[ItemT, ResultT]]:
    """attempts: how often data lost with its last worker is sent again."""
    distributed = _distributed()
    lost = tuple(
        getattr(distributed, name)
        for name in ("KilledWorker", "FutureCancelledError", "CancelledError")
        if hasattr(distributed, name)
    )
    left = dict(enumerate(items))
    held, due = dict[int, tuple[ItemT, ResultT]](), 0
    with connected(scheduler, workers) as client:
        for _ in range(attempts):
            # 1. The data to every worker, then a task per item.
            sent = client.scatter(_Shipment(shared, _seen_by(client)), broadcast=True, hash=False)
            futures = {
                client.submit(_run, sent, work, item, pure=False, retries=2): number
                for number, item in left.items()
            }
            # 2. Results as they come, held until it is their turn; what was lost with a worker is
            # still among those left.
            for future in distributed.as_completed(list(futures), loop=client.loop):
                if future.status == "cancelled" or (
                    future.status == "error" and isinstance(future.exception(), lost)
                ):
                    continue
                number, result = futures[future], future.result()
                held[number] = left.pop(number), result
                future.release()
                while due in held:
                    yield held.pop(due)
                    due += 1
            if not left:
                return
            _log.info("%d tasks were lost with their workers; sent again", len(left))
            client.wait_for_workers(1, timeout=20)
    raise InputError(
        f"{len(left)} tasks were lost {attempts} times: the workers of {scheduler} keep dying; "
        "give them more memory"
    )


def _run(shipment: _Shipment, work: Callable[[Any, Any], Any], item: Any) -> Any:
    # And it stays: a worker's tasks may overlap, none may lift the limit of another.
    threadpool_limits(1, user_api="blas")
    with using(workers=1):
        return work(shipment.shared, item)


def _distributed() -> Any:
    """Imported only when asked for: it is an extra, and slow to load."""
    try:
        return import_module("distributed")
    except ImportError:
        raise InputError("scheduler= needs Dask: pip install 'unveil[dask]'") from None


_joined: ContextVar[tuple[str, Any] | None] = ContextVar("joined", default=None)


@contextmanager
def connected(scheduler: str | None, workers: int | None = None) -> Iterator[Any]:
    """One client of a cluster for everything inside; None is no cluster, and no client."""
    joined = _joined.get()
    if scheduler is None:
        yield None
    elif joined is not None and joined[0] == scheduler:
        yield joined[1]
    else:
        with _client(scheduler, workers) as client:
            token = _joined.set((scheduler, client))
            try:
                yield client
            finally:
                _joined.reset(token)


@contextmanager
def _client(scheduler: str, workers: int | None, patience: float = 20) -> Iterator[Any]:
    """patience: seconds to wait for a scheduler to answer."""
    distributed = _distributed()
    if scheduler == "processes":
        # No daemons: what is compared runs in a process of its own, and daemons may have none. One
        # thread each: tasks are the unit of work. memory_limit 0: the plan keeps to the limit. What
        # fails in a task is raised here; what workers log while they are stopped helps nobody.
        with (
            import_module("dask").config.set({"distributed.worker.daemon": False}),
            distributed.LocalCluster(
                host="127.0.0.1",
                n_workers=worker_count(workers),
                threads_per_worker=1,
                processes=True,
                memory_limit=0,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=patience, set_as_default=False)
        client.wait_for_workers(1, timeout=patience)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"scheduler={scheduler!r} does not answer or has no workers ({type(error).__name__}): "
            "start `dask scheduler` and `dask worker`, or use scheduler='processes'"
        ) from None
    with client:
        yield client


def _seen_by(client: Any) -> Callable[[str], bool]:
    """Whether all workers see a file of the same size under the same name: then it is the same
    file."""
    return lambda name: all(size == _bytes(name) for size in client.run(_bytes, name).values())


class _Shipment:
    """What tasks share, on its way: arrays in files that the workers see travel as the names of
    those."""

    def __init__(self, shared: Any, seen: Callable[[str], bool]) -> None:
        # Packed here and now: workers cannot be asked for files while data is under way.
        self.packed: bytes | None = _packed(shared, seen)

    def __getstate__(self) -> bytes:
        # Workers hand it on to each other; what came as a name goes on as a name.
        return _packed(self.shared, lambda _: True) if self.packed is None else self.packed

    def __setstate__(self, state: bytes) -> None:
        self.packed, self.shared = None, pickle.loads(state)


def _packed(shared: Any, seen: Callable[[str], bool]) -> bytes:
    class Packer(pickle.Pickler):
        """Pickles, with names instead of the contents of files."""

        def reducer_override(self, value: Any) -> Any:
            file = mapped_file(value) if isinstance(value, np.ndarray) else None
            return (_opened, file) if file is not None and seen(file[0]) else NotImplemented

    box = io.BytesIO()
    Packer(box, protocol=pickle.HIGHEST_PROTOCOL).dump(shared)
    return box.getvalue()


def _opened(name: str, dtype: str, offset: int, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.memmap(name, dtype, "r", offset, shape)


def mapped_file(values: NDArray[Any]) -> tuple[str, str, int, tuple[int, ...]] | None:
    """(name, type of the numbers, offset, shape) of an array that is a whole memory-mapped file
    from its offset on; None for any other."""
    owner = mapping_of(values)
    if owner is None or owner.filename is None:
        return None
    name = os.path.abspath(owner.filename)
    same = values.ctypes.data == owner.ctypes.data and values.dtype == owner.dtype
    whole = values.flags.c_contiguous and values.nbytes == owner.nbytes
    if not same or not whole or _bytes(name) != owner.offset + owner.nbytes:
        return None
    return name, values.dtype.str, int(owner.offset), values.shape


def _bytes(name: str) -> int:
    return os.path.getsize(name) if os.path.exists(name) else -1
