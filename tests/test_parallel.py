"""How much of the machine a computation may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil import parallel
from unveil.checks import InputError
from unveil.parallel import (
    Stopwatch,
    count_rows,
    free_memory,
    memory_limit,
    one_blas_thread,
    rows_per_block,
    run_blocks,
    using,
    where,
    worker_count,
)


def test_free_memory_is_plausible() -> None:
    assert 2**20 < free_memory() < 2**50


def test_free_memory_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", fail)
    assert free_memory() > 0


def test_limit_is_what_was_asked_for_or_half_of_what_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parallel, "free_memory", lambda: 1000)
    assert memory_limit(None) == 500
    assert memory_limit(123) == 123


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_must_be_positive(limit: int) -> None:
    with pytest.raises(InputError, match="positive number of bytes"):
        memory_limit(limit)


@given(st.integers(1, 2**40), st.integers(1, 2**40), st.integers(1, 10_000))
def test_blocks_fit_the_limit(row: int, limit: int, most: int) -> None:
    rows = rows_per_block(row, limit, most=most)
    assert 1 <= rows <= most
    assert rows == 1 or rows * row <= limit
    assert rows == most or (rows + 1) * row > limit


def test_stopwatch_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 1.0, 10.0, 12.0, 20.0, 20.5])
    monkeypatch.setattr(parallel.time, "perf_counter", lambda: next(ticks))
    clock = Stopwatch()
    with clock("a"):
        pass
    with clock("a"):
        pass
    with pytest.raises(KeyError), clock("b"):
        raise KeyError
    assert clock.seconds == {"a": 3.0, "b": 0.5}


def test_workers_are_what_was_asked_for_or_one_per_core() -> None:
    assert worker_count(3) == 3
    assert worker_count(None) >= 1
    with pytest.raises(InputError, match="workers=0"):
        worker_count(0)


@pytest.mark.parametrize("workers", [1, 3])
def test_every_block_runs_once_and_is_reported(workers: int) -> None:
    ran: list[int] = []
    done: list[int] = []
    run_blocks(ran.append, range(20), workers, done.append)
    assert sorted(ran) == sorted(done) == list(range(20))


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_in_a_block_comes_out(workers: int) -> None:
    def fail(block: int) -> None:
        if block == 5:
            raise KeyError(block)

    with pytest.raises(KeyError):
        run_blocks(fail, range(20), workers)


@pytest.mark.parametrize("workers", [0, -1, True])
def test_workers_must_be_a_positive_number(workers: int) -> None:
    with pytest.raises(InputError, match="1 or more"):
        worker_count(workers)


def test_where_tasks_run_is_set_for_a_block_and_no_longer(tmp_path: Path) -> None:
    with using(workers=3, scheduler="tcp://x", checkpoint=tmp_path):
        assert (where().workers, where().scheduler, where().checkpoint) == (3, "tcp://x", tmp_path)
        with using(workers=1):
            assert (where().workers, where().scheduler) == (1, "tcp://x")
        with using():
            assert where().workers == 3
    assert where().checkpoint is None


def test_blas_is_held_to_one_thread() -> None:
    from threadpoolctl import threadpool_info

    with one_blas_thread():
        assert all(
            pool["num_threads"] == 1 for pool in threadpool_info() if pool["user_api"] == "blas"
        )


def test_rows_are_counted_as_blocks_of_them_end():
    told = []
    done = count_rows(lambda *facts: told.append(facts), "stage", 4, 10)
    for start in (4, 8, 0):
        done(start)
    assert told == [("stage", 4, 10), ("stage", 6, 10), ("stage", 10, 10)]
    count_rows(None, "stage", 4, 10)(0)


@pytest.mark.parametrize("workers", [1, 2])
def test_no_blocks_are_no_work(workers):
    ran = []
    run_blocks(ran.append, range(0), workers)
    assert ran == []
