"""Cells: measured once, resumed with the same bytes, measured again when damaged."""

import json

import pytest
from experiments.cells import LOST, Cells

SETTINGS = [{"n": n} for n in (3, 5, 7)]


class Counting:
    def __init__(self, stop_at=None):
        self.calls, self.stop_at = [], stop_at

    def __call__(self, n, seed):
        if n == self.stop_at:
            raise KeyboardInterrupt
        self.calls.append(n)
        return {"third": n / 3, "seed": seed, "pair": (n, n)}


def test_an_interrupted_run_goes_on_where_it_stopped_with_the_same_bytes(tmp_path):
    whole = Cells("item", 4, tmp_path / "whole").run(Counting(), SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        Cells("item", 4, tmp_path / "parts").run(Counting(stop_at=7), SETTINGS)
    again = Counting()
    resumed = Cells("item", 4, tmp_path / "parts").run(again, SETTINGS)
    assert again.calls == [7]
    assert resumed == whole == Cells("item", 4, None).run(Counting(), SETTINGS)
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert all(
        (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
        for name in names
    )


def test_seed_item_part_and_setting_each_have_cells_of_their_own(tmp_path):
    for item, seed, what, n in (
        ("a", 0, "", 3),
        ("b", 0, "", 3),
        ("a", 1, "", 3),
        ("a", 0, "x", 3),
        ("a", 0, "", 5),
    ):
        counting = Counting()
        Cells(item, seed, tmp_path).run(counting, [{"n": n}], what)
        assert counting.calls == [n]


def test_a_damaged_cell_is_measured_again(tmp_path):
    Cells("item", 0, tmp_path).run(Counting(), SETTINGS[:1])
    (path,) = tmp_path.iterdir()
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    counting = Counting()
    Cells("item", 0, tmp_path).run(counting, SETTINGS[:1])
    assert counting.calls == [3]
    assert path.read_bytes() == good
    assert json.loads(good)["facts"]["pair"] == [3, 3]


def test_a_cell_of_another_setting_is_not_read(tmp_path):
    for n in (3, 5):
        Cells("item", 0, tmp_path / str(n)).run(Counting(), [{"n": n}])
    (mine,), (other,) = ((tmp_path / name).iterdir() for name in "35")
    mine.write_bytes(other.read_bytes())
    counting = Counting()
    (found,) = Cells("item", 0, tmp_path / "3").run(counting, [{"n": 3}])
    assert counting.calls == [3]
    assert found["pair"] == [3, 3]


def test_what_a_lost_process_left_is_told_and_not_kept(tmp_path):
    found = Cells("item", 0, tmp_path).run(
        lambda n, seed: {"outcome": "crashed", LOST: True}, SETTINGS[:1]
    )
    assert found == [{"outcome": "crashed", LOST: True}]
    counting = Counting()
    Cells("item", 0, tmp_path).run(counting, SETTINGS[:1])
    assert counting.calls == [3]


def test_what_is_no_number_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        Cells("item", 0, tmp_path).run(lambda n, seed: {"value": float("nan")}, SETTINGS[:1])
    assert not list(tmp_path.iterdir())


def test_progress_is_told():
    told = []
    Cells("item", 0, None, lambda *what: told.append(what)).run(Counting(), SETTINGS)
    assert told == [("item", 0, 3), ("item", 1, 3), ("item", 2, 3), ("item", 3, 3)]
