"""The same tasks on threads and on Dask: same bytes, also when a worker dies; one sentence when
there is no cluster."""

import os
import signal
import sys

import numpy as np
import pytest

from unveil import InputError, Scheme, gram_extract, simulate
from unveil.gram import overlap_engine
from unveil.gram.engine import executors
from unveil.gram.engine.executors import mapped_file, run_blocks

SMALL = {"memory_limit": 200_000}


@pytest.fixture(scope="module")
def sim():
    return simulate(Scheme(2), 15, m=100, d=400, rng=0)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "host": "127.0.0.1",
        "silence_logs": 50,
    }
    with distributed.LocalCluster(**options) as cluster:
        yield cluster


def same(a, b):
    return (
        a.matrix.indices.tobytes() == b.matrix.indices.tobytes()
        and a.matrix.data.tobytes() == b.matrix.data.tobytes()
        and a.confidence.tobytes() == b.confidence.tobytes()
        and a.expected_errors == b.expected_errors
    )


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_every_task_is_run_once(sim, workers):
    engine = overlap_engine(sim.encodings, **SMALL)
    done = [task for task, _ in run_blocks(engine, engine.plan.tasks, workers=workers)]
    assert sorted(done) == sorted(engine.plan.tasks)


def test_an_error_in_a_task_is_raised_and_the_threads_stop(sim, monkeypatch):
    def fail(*_):
        raise MemoryError("block")

    monkeypatch.setattr(executors.OverlapEngine, "block", fail)
    with pytest.raises(MemoryError, match="block"):
        gram_extract(sim.encodings, workers=2, **SMALL)


def test_a_cluster_gives_the_same_bytes_and_a_killed_worker_changes_nothing(sim, cluster):
    expected = gram_extract(sim.encodings, workers=1, **SMALL)
    assert same(gram_extract(sim.encodings, scheduler=cluster.scheduler_address, **SMALL), expected)
    killed = []

    def kill(_, done, total):
        if not killed and done >= total // 3:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    found = gram_extract(sim.encodings, scheduler=cluster.scheduler_address, progress=kill, **SMALL)
    assert killed
    assert same(found, expected)


def test_encodings_in_a_file_travel_as_its_name(tmp_path):
    np.save(tmp_path / "y.npy", np.ones((5, 3), np.float32))
    mapped = np.load(tmp_path / "y.npy", mmap_mode="r")
    name, offset, shape = mapped_file(mapped)
    assert (name, shape) == (str(tmp_path / "y.npy"), (5, 3))
    np.testing.assert_array_equal(np.memmap(name, np.float32, "r", offset, shape), mapped)
    assert mapped_file(mapped[1:]) is None
    assert mapped_file(np.ones((5, 3), np.float32)) is None


def test_a_shipment_of_a_file_opens_it_again(tmp_path):
    import pickle

    sim = simulate(Scheme(2), 15, m=40, d=100, rng=0)
    np.save(tmp_path / "y.npy", sim.encodings.values)
    mapped = np.load(tmp_path / "y.npy", mmap_mode="r")
    engine = overlap_engine(type(sim.encodings)(mapped, sim.encodings.scheme), **SMALL)
    sent = pickle.dumps(executors._Shipment(engine, mapped_file(engine.values)))
    assert len(sent) < mapped.nbytes
    block = pickle.loads(sent).engine.block(0, 1)
    assert block.margin.tobytes() == engine.block(0, 1).margin.tobytes()


def test_a_scheduler_that_is_not_there_is_named(sim, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "PATIENCE", 1)
    with pytest.raises(InputError, match="does not answer"):
        gram_extract(sim.encodings, scheduler="tcp://127.0.0.1:9", **SMALL)


def test_without_dask_the_extra_is_named(sim, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"unveil\[dask\]"):
        gram_extract(sim.encodings, scheduler="processes", **SMALL)
