"""Cells: measured once, and resumed with the same numbers."""

import pytest
from experiments.cells import Cells

SETTINGS = [{"n": n} for n in (3, 5, 7)]
CALLS, STOP = [], []


def third(n, seed):
    if n in STOP:
        raise KeyboardInterrupt
    CALLS.append(n)
    return {"third": n / 3, "seed": seed, "pair": (n, n)}


@pytest.fixture(autouse=True)
def fresh():
    CALLS.clear()
    STOP.clear()


def test_an_interrupted_run_goes_on_where_it_stopped_with_the_same_numbers(tmp_path):
    whole = Cells("item", 4, tmp_path / "whole").run(third, SETTINGS)
    STOP.append(7)
    with pytest.raises(KeyboardInterrupt):
        Cells("item", 4, tmp_path / "parts").run(third, SETTINGS)
    STOP.clear()
    CALLS.clear()
    resumed = Cells("item", 4, tmp_path / "parts").run(third, SETTINGS)
    assert CALLS == [7]
    assert resumed == whole == Cells("item", 4, None).run(third, SETTINGS)
    assert resumed[0]["pair"] == [3, 3]


def test_seed_item_and_setting_each_have_cells_of_their_own(tmp_path):
    for item, seed, n in (("a", 0, 3), ("b", 0, 3), ("a", 1, 3), ("a", 0, 5)):
        CALLS.clear()
        Cells(item, seed, tmp_path).run(third, [{"n": n}])
        assert [n] == CALLS


def test_a_damaged_cell_is_measured_again(tmp_path):
    (first,) = Cells("item", 0, tmp_path).run(third, SETTINGS[:1])
    (path,) = tmp_path.rglob("output.pkl")
    path.write_bytes(path.read_bytes()[:10])
    CALLS.clear()
    assert Cells("item", 0, tmp_path).run(third, SETTINGS[:1]) == [first]
    assert CALLS == [3]


def test_progress_is_told_by_cells():
    told = []
    Cells("item", progress=lambda *facts: told.append(facts)).run(third, SETTINGS, "florals")
    assert told == [("florals", number, 3) for number in range(3)]
