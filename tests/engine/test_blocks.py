"""Blocks of work: the same bytes on threads and on Dask, also when a worker dies; within the memory;
resumed."""

import os
import pickle
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

import unveil
from unveil import InputError, Scheme, gram_extract, simulate
from unveil.checks import let_go, mapping_of
from unveil.engine import blocks
from unveil.engine.blocks import (
    Stopwatch,
    connected,
    count_rows,
    free_memory,
    mapped_file,
    memory_limit,
    must_fit,
    one_blas_thread,
    results,
    rows_per_block,
    run_blocks,
    using,
    where,
    worker_count,
)
from unveil.engine.files import Kept

SMALL = {"memory_limit": 200_000}


def test_limits(monkeypatch):
    assert 2**20 < free_memory() < 2**50
    monkeypatch.setattr(blocks, "free_memory", lambda: 1000)
    assert (memory_limit(None), memory_limit(123)) == (500, 123)
    for limit in (0, -1):
        with pytest.raises(InputError, match="positive number of bytes"):
            memory_limit(limit)
    with pytest.raises(InputError, match=r"x would take 3\.0 MiB .* 1\.0 MiB .* lower m, or raise"):
        must_fit(3 << 20, "x", 1 << 20, "lower m")
    assert worker_count(3) == 3
    for workers in (0, -1, True):
        with pytest.raises(InputError, match="1 or more"):
            worker_count(workers)


@given(st.integers(1, 2**40), st.integers(1, 2**40), st.integers(1, 10_000))
def test_blocks_fit_the_limit(row, limit, most):
    rows = rows_per_block(row, limit, most=most)
    assert 1 <= rows <= most
    assert rows == 1 or rows * row <= limit
    assert rows == most or (rows + 1) * row > limit


def test_where_tasks_run_is_set_for_a_block_and_no_longer(tmp_path):
    with using(workers=3, scheduler="tcp://x", checkpoint=tmp_path):
        with using(workers=1):
            assert (where().workers, where().scheduler, where().checkpoint) == (
                1,
                "tcp://x",
                tmp_path,
            )
        assert where().workers == 3
    assert where() == blocks.Where()
    with one_blas_thread():
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        assert all(pool["num_threads"] == 1 for pool in pools)


def test_time_and_rows_are_counted(monkeypatch):
    ticks = iter([0.0, 1.0, 10.0, 12.0, 20.0, 20.5])
    monkeypatch.setattr(blocks.time, "perf_counter", lambda: next(ticks))
    clock = Stopwatch()
    for _ in range(2):
        with clock("a"):
            pass
    with pytest.raises(KeyError), clock("b"):
        raise KeyError
    assert clock.seconds == {"a": 3.0, "b": 0.5}
    told = []
    done = count_rows(lambda *facts: told.append(facts), "stage", 4, 10)
    for start in (4, 8, 0):
        done(start)
    assert told == [("stage", 4, 10), ("stage", 6, 10), ("stage", 10, 10)]


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_every_item_is_worked_on_once(workers):
    found = dict(results(divmod, 100, range(1, 20), workers=workers))
    assert found == {item: divmod(100, item) for item in range(1, 20)}
    assert list(results(divmod, 100, [], workers=workers)) == []
    ran, done = [], []
    run_blocks(ran.append, range(20), workers, done.append)
    assert sorted(ran) == sorted(done) == list(range(20))
    with pytest.raises(ZeroDivisionError):
        run_blocks(lambda item: 1 // (item - 5), range(20), workers)


def test_who_stops_listening_ends_what_has_not_begun():
    begun = []
    for _, _ in results(lambda _, item: begun.append(item), None, range(1000), workers=2):
        break
    assert len(begun) < 100


def squares(shared, item):
    shared.append(item)
    return {"square": np.array(item[0] ** 2)}


def test_a_run_that_was_killed_goes_on_where_it_stood(tmp_path):
    items, begun = [(i, 0) for i in range(6)], []
    data = np.arange(4.0)
    running = results(squares, begun, items, workers=1, kept=Kept(tmp_path, {"k": 2}, data))
    first = [next(running) for _ in range(3)]
    running.close()
    (damaged,) = list(tmp_path.rglob("block-1-0.npz"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    again, kept = [], Kept(tmp_path, {"k": 2}, data)
    found = dict(results(squares, again, items, workers=2, kept=kept))
    assert {item: int(result["square"]) for item, result in found.items()} == {
        (i, 0): i * i for i in range(6)
    }
    assert sorted(again) == [(1, 0), (3, 0), (4, 0), (5, 0)]
    assert [item for item, _ in first] == items[:3]
    # Another input, another folder.
    assert Kept(tmp_path, {"k": 3}, data).read((0, 0)) is None
    assert Kept(tmp_path, {"k": 2}, data + 1).read((0, 0)) is None


@pytest.fixture(scope="module")
def sim():
    return simulate(Scheme(2), 15, m=100, d=400, rng=0)


def bytes_of(overlaps):
    matrix = overlaps.matrix
    return matrix.indices.tobytes(), matrix.data.tobytes(), overlaps.confidence.tobytes()


def threads_and_scheduler(shared, item):
    return shared + item, where().workers, where().scheduler


def test_a_cluster_gives_the_same_bytes_and_a_killed_worker_changes_nothing(sim, cluster):
    address = cluster.scheduler_address
    with using(scheduler=address):
        # Workers have one thread, and no cluster of their own.
        assert dict(results(threads_and_scheduler, 1, [1, 2])) == {1: (2, 1, None), 2: (3, 1, None)}
    expected = bytes_of(gram_extract(sim.encodings, workers=1, **SMALL))
    assert bytes_of(gram_extract(sim.encodings, scheduler=address, **SMALL)) == expected
    killed = []

    def kill(_, done, total):
        if not killed and done >= total // 3:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    found = gram_extract(sim.encodings, scheduler=address, progress=kill, **SMALL)
    assert killed
    assert bytes_of(found) == expected


def test_an_attack_and_the_public_search_give_the_same_bytes_on_a_cluster(cluster):
    address = cluster.scheduler_address
    plain = simulate(Scheme(2), 10, m=80, d=500, rng=1)
    public = simulate(Scheme(2, 2), 10, n_public=40, m=70, d=200, rng=2)

    def run():
        recovery = unveil.recover(plain.encodings, rng=0)
        supports = unveil.learn_public(public.encodings, public.public)
        return recovery.vectors.tobytes(), recovery.status.tobytes(), supports.indices.tobytes()

    expected = run()
    with using(scheduler=address), connected(address) as first:
        assert run() == expected
        with connected(address) as second:
            assert first is second
    with connected(None) as nobody:
        assert nobody is None


def test_arrays_in_a_file_travel_as_its_name(tmp_path):
    values = np.random.default_rng(0).standard_normal((50, 30)).astype(np.float32)
    np.save(tmp_path / "y.npy", values)
    mapped = np.load(tmp_path / "y.npy", mmap_mode="r")
    name, dtype, offset, shape = mapped_file(np.asarray(mapped))
    np.testing.assert_array_equal(np.memmap(name, dtype, "r", offset, shape), values)
    assert mapped_file(mapped[1:]) is None
    assert mapped_file(values) is None
    for seen in (True, False):
        sent = pickle.dumps(blocks._Shipment({"y": mapped}, lambda name, seen=seen: seen))
        assert (len(sent) < values.nbytes) == seen
        np.testing.assert_array_equal(pickle.loads(sent).shared["y"], values)


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="does not answer"):
        blocks._client("tcp://127.0.0.1:9", None, patience=1).__enter__()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"unveil\[dask\]"):
        list(results(divmod, 1, [1], scheduler="processes"))


def test_pages_that_were_read_are_given_back_and_read_again_the_same(tmp_path):
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system does not say what is mapped")
    np.save(tmp_path / "values.npy", np.arange(1 << 23, dtype=np.float32).reshape(1024, -1))
    values = np.asarray(np.load(tmp_path / "values.npy", mmap_mode="r"))

    def resident():
        return 1024 * int(re.search(r"RssFile:\s+(\d+)", status.read_text()).group(1))

    before = resident()
    total = values.sum(dtype=np.float64)
    assert resident() - before > 24 << 20
    let_go(values[3:5], large=1)
    assert resident() - before < 8 << 20
    assert values.sum(dtype=np.float64) == total
    own = np.load(tmp_path / "values.npy", mmap_mode="c")
    own[5, 5] = -1
    let_go(own, large=1)
    assert own[5, 5] == -1
    assert mapping_of(np.ones(3)) is None


def test_results_come_in_the_order_of_the_items():
    """Whatever ends first: growth from relations depends on the order in which they are read."""

    def work(start: float, item: int) -> int:
        time.sleep(0.05 if item % 4 == 0 else 0)
        return -item

    assert list(blocks.results(work, 0.0, range(20), workers=3)) == [(i, -i) for i in range(20)]
