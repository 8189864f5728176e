"""Where block tasks run: threads of this process, or the worker processes of a Dask cluster, local
or joined.

A task is `engine.block(i, j)`, the same everywhere and with one BLAS thread, so results do not
depend on where or how many. On a cluster the engine with its encodings is sent to every worker
once; encodings in a memory-mapped file that the workers can see are opened there instead. A worker
that dies takes unfinished tasks with it: Dask runs them again elsewhere, and where the last copy of
the data died too, it is sent again. Threads suffice on one machine (products and kernels release
Python's lock); processes are for more machines than one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.gram.engine.blocks import Block, OverlapEngine
from unveil.logs import logger
from unveil.parallel import one_blas_thread, worker_count

BlockPair = tuple[int, int]
PROCESSES = "processes"
PATIENCE = 20
"""Seconds to wait for a scheduler to answer."""
ATTEMPTS = 4
"""How often data lost with its last worker is sent again."""
_log = logger(__name__)


def run_blocks(
    engine: OverlapEngine,
    tasks: Sequence[BlockPair],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Iterator[tuple[BlockPair, Block]]:
    """Every task with its result, in the order they finish.

    scheduler  None: threads; "processes": a local Dask cluster; an address such as
               "tcp://host:8786": an existing one
    """
    if scheduler is None:
        yield from _on_threads(engine, tasks, worker_count(workers))
    else:
        yield from _on_dask(engine, tasks, workers, scheduler)


def _on_threads(
    engine: OverlapEngine, tasks: Sequence[BlockPair], workers: int
) -> Iterator[tuple[BlockPair, Block]]:
    with one_blas_thread():
        if workers == 1:
            for task in tasks:
                yield task, engine.block(*task)
            return
        pool = ThreadPoolExecutor(workers, thread_name_prefix="overlaps")
        try:
            # A short queue: an interrupted run stops soon, and a million tasks are not a million
            # futures.
            waiting = iter(tasks)
            running = {
                pool.submit(engine.block, *task): task
                for _, task in zip(range(2 * workers), waiting, strict=False)
            }
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield running.pop(future), future.result()
                    for task in waiting:
                        running[pool.submit(engine.block, *task)] = task
                        break
        finally:
            pool.shutdown(cancel_futures=True)


def _on_dask(
    engine: OverlapEngine, tasks: Sequence[BlockPair], workers: int | None, scheduler: str
) -> Iterator[tuple[BlockPair, Block]]:
    distributed = _distributed()
    left = dict.fromkeys(tasks)
    with _client(scheduler, workers) as client:
        for attempt in range(ATTEMPTS):
            # 1. The data to every worker, then a task per block.
            sent = client.scatter(_Shipment.of(engine, client), broadcast=True, hash=False)
            futures = {
                client.submit(_run, sent, *task, pure=False, retries=2): task for task in left
            }
            # 2. Results as they come; what was lost with a worker is still among those left.
            for future in distributed.as_completed(list(futures), loop=client.loop):
                if future.status == "cancelled" or (future.status == "error" and _was_lost(future)):
                    continue
                task = futures[future]
                del left[task]
                yield task, Block(*future.result())
                future.release()
            if not left:
                return
            _log.info(
                "%d blocks were lost with their workers; sent again (attempt %d)",
                len(left),
                attempt + 2,
            )
            client.wait_for_workers(1, timeout=PATIENCE)
    raise InputError(
        f"{len(left)} blocks were lost {ATTEMPTS} times: the workers of {scheduler} keep dying; "
        "give them more memory"
    )


def _distributed() -> Any:
    """Imported only when asked for: it is an extra, and slow to load."""
    try:
        return import_module("distributed")
    except ImportError:
        raise InputError("scheduler= needs Dask: pip install 'unveil[dask]'") from None


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
        with (
            distributed.LocalCluster(
                host="127.0.0.1", dashboard_address=None, **options
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


class _Shipment:
    """An engine on its way: encodings in a file that the workers see travel as the name of that
    file."""

    def __init__(
        self, engine: OverlapEngine, file: tuple[str, int, tuple[int, ...]] | None
    ) -> None:
        self.engine, self.file = engine, file

    @classmethod
    def of(cls, engine: OverlapEngine, client: Any) -> _Shipment:
        file = mapped_file(engine.values)
        # A file of the same size under the same name, seen by every worker, is the same file.
        if file is not None:
            sizes = client.run(_size, file[0])
            if any(size != _size(file[0]) for size in sizes.values()):
                file = None
        return cls(engine, file)

    def __getstate__(self) -> dict[str, Any]:
        if self.file is None:
            return {"engine": self.engine, "file": None}
        state = self.engine.__getstate__()
        state["values"] = None
        return {"engine": state, "file": self.file}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.file = state["file"]
        if self.file is None:
            self.engine = state["engine"]
            return
        name, offset, shape = self.file
        self.engine = OverlapEngine.__new__(OverlapEngine)
        state["engine"]["values"] = np.memmap(name, np.float32, "r", offset, shape)
        self.engine.__setstate__(state["engine"])


def mapped_file(values: NDArray[np.float32]) -> tuple[str, int, tuple[int, ...]] | None:
    """(file, offset, shape) of an array that is a whole memory-mapped file from its offset on, else
    None."""
    if (
        not isinstance(values, np.memmap)
        or values.filename is None
        or not values.flags.c_contiguous
    ):
        return None
    name = os.path.abspath(values.filename)
    if _size(name) != values.offset + values.nbytes:
        return None
    return name, int(values.offset), values.shape


def _size(name: str) -> int:
    return os.path.getsize(name) if os.path.exists(name) else -1


def _run(shipment: _Shipment, i: int, j: int) -> tuple[Any, ...]:
    from threadpoolctl import threadpool_limits

    # And it stays: a worker's tasks may overlap, none may lift the limit of another.
    threadpool_limits(1, user_api="blas")
    block = shipment.engine.block(i, j)
    return block.rows, block.columns, block.overlap, block.rival, block.margin, block.table
