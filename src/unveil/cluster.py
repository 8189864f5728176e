"""The same work on many items: on threads of this process, or on the workers of a Dask cluster.

    for item, result in results(work, shared, items):
        …

A task is `work(shared, item)`, a function of a module, with one BLAS thread. It is the same
everywhere, so that results do not depend on where or how many. Where tasks run is said by the call,
or by `parallel.using` for all calls inside. On a cluster `shared` is sent to every worker once;
arrays in a memory-mapped file that the workers can see are opened there instead. A worker that dies
takes unfinished tasks with it: Dask runs them again elsewhere, and where the last copy of the data
died too, it is sent again. Threads suffice on one machine (products and kernels release Python's
lock); processes are for more machines than one.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.logs import logger
from unveil.mapped import mapping_of
from unveil.parallel import one_blas_thread, using, where, worker_count

PROCESSES = "processes"
PATIENCE = 20
"""Seconds to wait for a scheduler to answer."""
ATTEMPTS = 4
"""How often data lost with its last worker is sent again."""
_log = logger(__name__)

SharedT = TypeVar("SharedT")
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
File = tuple[str, str, int, tuple[int, ...]]
"""(name, type of the numbers, offset, shape) of an array in a file."""


def results(
    work: Callable[[SharedT, ItemT], ResultT],
    shared: SharedT,
    items: Sequence[ItemT],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Iterator[tuple[ItemT, ResultT]]:
    """Every item with work(shared, item), in the order they finish; who stops listening ends what
    has not begun.

    workers    threads; None: those of `parallel.using`, or one per core
    scheduler  "processes": a local Dask cluster; an address such as "tcp://host:8786": an existing
               one; None: that of `parallel.using`, or threads
    """
    scheduler = where().scheduler if scheduler is None else scheduler
    workers = where().workers if workers is None else workers
    if not items:
        return
    if scheduler is None:
        yield from _on_threads(work, shared, items, worker_count(workers))
    else:
        yield from _on_dask(work, shared, items, workers, scheduler)


def _on_threads(
    work: Callable[[SharedT, ItemT], ResultT],
    shared: SharedT,
    items: Sequence[ItemT],
    workers: int,
) -> Iterator[tuple[ItemT, ResultT]]:
    with one_blas_thread():
        # No pool for one worker: errors and profiles then point at the task itself.
        if workers == 1 or len(items) == 1:
            for item in items:
                yield item, work(shared, item)
            return
        pool = ThreadPoolExecutor(min(workers, len(items)), thread_name_prefix="unveil")
        try:
            # A short queue: an interrupted run stops soon, and a million tasks are not a million
            # futures.
            waiting = iter(items)
            running = {
                pool.submit(work, shared, item): item
                for _, item in zip(range(2 * workers), waiting, strict=False)
            }
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield running.pop(future), future.result()
                    for item in waiting:
                        running[pool.submit(work, shared, item)] = item
                        break
        finally:
            pool.shutdown(cancel_futures=True)


def _on_dask(
    work: Callable[[SharedT, ItemT], ResultT],
    shared: SharedT,
    items: Sequence[ItemT],
    workers: int | None,
    scheduler: str,
) -> Iterator[tuple[ItemT, ResultT]]:
    distributed = _distributed()
    left = dict(enumerate(items))
    with connected(scheduler, workers) as client:
        for attempt in range(ATTEMPTS):
            # 1. The data to every worker, then a task per item.
            sent = client.scatter(_Shipment(shared, _seen_by(client)), broadcast=True, hash=False)
            futures = {
                client.submit(_run, sent, work, item, pure=False, retries=2): number
                for number, item in left.items()
            }
            # 2. Results as they come; what was lost with a worker is still among those left.
            for future in distributed.as_completed(list(futures), loop=client.loop):
                if future.status == "cancelled" or (future.status == "error" and _was_lost(future)):
                    continue
                found = future.result()
                yield left.pop(futures[future]), found
                future.release()
            if not left:
                return
            _log.info(
                "%d tasks were lost with their workers; sent again (attempt %d)",
                len(left),
                attempt + 2,
            )
            client.wait_for_workers(1, timeout=PATIENCE)
    raise InputError(
        f"{len(left)} tasks were lost {ATTEMPTS} times: the workers of {scheduler} keep dying; "
        "give them more memory"
    )


def _run(shipment: _Shipment, work: Callable[[Any, Any], Any], item: Any) -> Any:
    from threadpoolctl import threadpool_limits

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
def _client(scheduler: str, workers: int | None) -> Iterator[Any]:
    distributed = _distributed()
    if scheduler == PROCESSES:
        # One thread each: tasks are the unit of work. memory_limit 0: the plan keeps to the limit.
        options = {
            "n_workers": worker_count(workers),
            "threads_per_worker": 1,
            "processes": True,
            "memory_limit": 0,
        }
        # No daemons: what is compared runs in a process of its own, and daemons may have none. What
        # fails in a task is raised here; what workers log while they are stopped helps nobody.
        with (
            import_module("dask").config.set({"distributed.worker.daemon": False}),
            distributed.LocalCluster(
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                **options,
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False)
        client.wait_for_workers(1, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"scheduler={scheduler!r} does not answer or has no workers ({type(error).__name__}): "
            "start `dask scheduler` and `dask worker`, or use scheduler='processes'"
        ) from None
    with client:
        yield client


def _was_lost(future: Any) -> bool:
    """Whether a task failed because of its worker or data, not of itself."""
    distributed = _distributed()
    lost = [distributed.KilledWorker]
    lost += [
        kind
        for name in ("FutureCancelledError", "CancelledError")
        if (kind := getattr(distributed, name, None))
    ]
    return isinstance(future.exception(), tuple(lost))


def _seen_by(client: Any) -> Callable[[str], bool]:
    """Whether all workers see a file of the same size under the same name: then it is the same
    file."""

    def seen(name: str) -> bool:
        return all(size == _size(name) for size in client.run(_size, name).values())

    return seen


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
    box = io.BytesIO()
    _Packer(box, seen).dump(shared)
    return box.getvalue()


class _Packer(pickle.Pickler):
    """Pickles, with names instead of the contents of files."""

    def __init__(self, box: io.BytesIO, seen: Callable[[str], bool]) -> None:
        super().__init__(box, protocol=pickle.HIGHEST_PROTOCOL)
        self.seen = seen

    def reducer_override(self, value: Any) -> Any:
        file = mapped_file(value) if isinstance(value, np.ndarray) else None
        return (_opened, file) if file is not None and self.seen(file[0]) else NotImplemented


def _opened(name: str, dtype: str, offset: int, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.memmap(name, dtype, "r", offset, shape)


def mapped_file(values: NDArray[Any]) -> File | None:
    """Where an array lies that is a whole memory-mapped file from its offset on; None for any
    other."""
    owner = mapping_of(values)
    if owner is None or owner.filename is None:
        return None
    same = values.ctypes.data == owner.ctypes.data and values.dtype == owner.dtype
    if not same or not values.flags.c_contiguous or values.nbytes != owner.nbytes:
        return None
    name = os.path.abspath(owner.filename)
    if _size(name) != owner.offset + owner.nbytes:
        return None
    return name, values.dtype.str, int(owner.offset), values.shape


def _size(name: str) -> int:
    return os.path.getsize(name) if os.path.exists(name) else -1
