"""How much of the machine a computation may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil import parallel
from unveil.parallel import Stopwatch, free_memory, memory_limit, rows_per_block
from unveil.records import InputError


def test_free_memory_is_plausible() -> None:
    assert 2**20 < free_memory() < 2**50


def test_free_memory_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", fail)
    assert free_memory() > 0


def test_limit_is_what_was_asked_for_or_half_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
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
