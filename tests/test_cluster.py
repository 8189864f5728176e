"""The same tasks on threads and on Dask: same bytes, also when a worker dies; one sentence when
there is no cluster."""

import os
import signal
import sys

import numpy as np
import pytest
from experiments.cells import Cells

import unveil
from unveil import InputError, Scheme, gram_extract, simulate
from unveil import cluster as clusters
from unveil.cluster import connected, mapped_file, results
from unveil.paper.gram_extract import overlap_engine
from unveil.parallel import using, where

SMALL = {"memory_limit": 200_000}


@pytest.fixture(scope="module")
def sim():
    return simulate(Scheme(2), 15, m=100, d=400, rng=0)


def same(a, b):
    return (
        a.matrix.indices.tobytes() == b.matrix.indices.tobytes()
        and a.matrix.data.tobytes() == b.matrix.data.tobytes()
        and a.confidence.tobytes() == b.confidence.tobytes()
        and a.expected_errors == b.expected_errors
    )


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_every_item_is_worked_on_once(workers):
    found = dict(results(divmod, 100, range(1, 20), workers=workers))
    assert found == {item: divmod(100, item) for item in range(1, 20)}
    assert list(results(divmod, 100, [], workers=workers)) == []


def test_who_stops_listening_ends_what_has_not_begun():
    begun = []

    def work(_, item):
        begun.append(item)
        return item

    for _, _ in results(work, None, range(1000), workers=2):
        break
    assert len(begun) < 100


def test_an_error_in_a_task_is_raised_and_the_threads_stop(sim, monkeypatch):
    def fail(*_):
        raise MemoryError("block")

    monkeypatch.setattr(type(overlap_engine(sim.encodings, **SMALL)), "block", fail)
    with pytest.raises(MemoryError, match="block"):
        gram_extract(sim.encodings, workers=2, **SMALL)


def test_workers_of_a_cluster_have_one_thread_and_no_cluster_of_their_own(cluster):
    def work(shared, item):

        return shared + item, where().workers, where().scheduler

    with using(scheduler=cluster.scheduler_address):
        assert dict(results(work, 1, [1, 2])) == {1: (2, 1, None), 2: (3, 1, None)}


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


def bytes_of(recovery):
    return recovery.vectors.tobytes(), recovery.status.tobytes(), recovery.explanation


@pytest.mark.parametrize(("attack", "k"), [("relations", 2), ("full", 3)])
def test_every_stage_of_an_attack_gives_the_same_bytes_on_a_cluster(cluster, attack, k):
    sim = simulate(Scheme(k), 10, m=80, d=500, rng=1)
    expected = unveil.recover(sim.encodings, attack=attack, rng=0)
    assert expected.verified.sum() == 10
    address = cluster.scheduler_address
    with using(scheduler=address), connected(address):
        found = unveil.recover(sim.encodings, attack=attack, rng=0)
    assert bytes_of(found) == bytes_of(expected)


def test_the_public_search_gives_the_same_bytes_on_a_cluster(cluster):
    sim = simulate(Scheme(2, 2), 10, n_public=40, m=70, d=200, rng=2)
    expected = unveil.learn_public(sim.encodings, sim.public)
    with using(scheduler=cluster.scheduler_address):
        found = unveil.learn_public(sim.encodings, sim.public)
    assert found.indices.tobytes() == expected.indices.tobytes()
    assert found.confidence.tobytes() == expected.confidence.tobytes()


def test_cells_of_an_experiment_come_in_order_from_a_cluster(cluster, tmp_path):
    settings = [{"x": x} for x in (5, 1, 3)]
    expected = [{"x": x, "seed": 7} for x in (5, 1, 3)]
    with using(scheduler=cluster.scheduler_address):
        assert Cells("facts", seed=7, folder=tmp_path).run(dict, settings) == expected
    assert len(list(tmp_path.iterdir())) == 3


def test_one_client_serves_everything_inside(cluster):
    address = cluster.scheduler_address
    with connected(address) as first, connected(address) as second:
        assert first is second
    with connected(None) as nobody:
        assert nobody is None


def test_arrays_in_a_file_travel_as_its_name(tmp_path):
    np.save(tmp_path / "y.npy", np.arange(15, dtype=np.float32).reshape(5, 3))
    mapped = np.load(tmp_path / "y.npy", mmap_mode="r")
    for values in (mapped, np.asarray(mapped)):
        name, dtype, offset, shape = mapped_file(values)
        assert (name, shape) == (str(tmp_path / "y.npy"), (5, 3))
        np.testing.assert_array_equal(np.memmap(name, dtype, "r", offset, shape), mapped)
    assert mapped_file(mapped[1:]) is None
    assert mapped_file(np.ones((5, 3), np.float32)) is None


@pytest.mark.parametrize("seen", [True, False])
def test_what_is_shipped_opens_a_file_again_where_it_is_seen(tmp_path, seen):
    import pickle

    sim = simulate(Scheme(2), 15, m=40, d=100, rng=0)
    np.save(tmp_path / "y.npy", sim.encodings.values)
    mapped = np.load(tmp_path / "y.npy", mmap_mode="r")
    engine = overlap_engine(type(sim.encodings)(mapped, sim.encodings.scheme), **SMALL)
    sent = pickle.dumps(clusters._Shipment(engine, lambda name: seen))
    assert (len(sent) < mapped.nbytes) == seen
    block = pickle.loads(sent).shared.block(0, 1)
    assert block.margin.tobytes() == engine.block(0, 1).margin.tobytes()


def test_a_scheduler_that_is_not_there_is_named(sim, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(clusters, "PATIENCE", 1)
    with pytest.raises(InputError, match="does not answer"):
        gram_extract(sim.encodings, scheduler="tcp://127.0.0.1:9", **SMALL)


def test_without_dask_the_extra_is_named(sim, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"unveil\[dask\]"):
        gram_extract(sim.encodings, scheduler="processes", **SMALL)
