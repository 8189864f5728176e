"""Trials: nested encodings, one result for one name, kept whole on disk."""

import io

import numpy as np
import pytest

from unveil.auditing.trials import Laboratory
from unveil.records import Scheme

PRIVATE = np.random.default_rng(0).standard_normal((20, 200)).astype(np.float32)


def laboratory(folder=None, **changes):
    facts = {
        "scheme": Scheme(2),
        "top": 140,
        "noise": 0.0,
        "tolerance": 1e-2,
        "seed": 3,
        "pixel_rms": 1.0,
    }
    return Laboratory(folder=folder, **{"private": PRIVATE, "public": None, **facts, **changes})


def test_fewer_encodings_are_the_first_of_many():
    lab = laboratory()
    many = lab.encodings(1, 140).values.copy()
    assert np.array_equal(lab.encodings(1, 50).values, many[:50])
    assert not np.array_equal(lab.encodings(0, 50).values, many[:50])
    assert np.array_equal(laboratory().encodings(1, 140).values, many)


def test_a_trial_is_kept_and_read_back(tmp_path, monkeypatch):
    first = laboratory(tmp_path).trial(140, 0, "blind", show=True)
    assert first.exact == 1.0
    assert first.verified == 20
    np.testing.assert_allclose(first.shown, PRIVATE, atol=1e-3)
    monkeypatch.setattr(Laboratory, "_attack", lambda *_: pytest.fail("attacked again"))
    again = laboratory(tmp_path).trial(140, 0, "blind", show=True)
    for name, value in vars(first).items():
        other = getattr(again, name)
        assert np.array_equal(value, other) if isinstance(value, np.ndarray) else value == other


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"top": 141},
        {"noise": 0.1},
        {"tolerance": 1e-3},
        {"pixel_rms": None},
        {"scheme": Scheme(3)},
        {"scheme": Scheme(2, pairing="epochs")},
        {"shape": (20, 10)},
        {"shape": (10, 20)},
        {"memory_limit": 1 << 30},
        {"public": PRIVATE[:3]},
        {"private": PRIVATE[::-1]},
        {"private": PRIVATE.reshape(40, 100)},
    ],
)
def test_what_changes_the_result_changes_the_name(change):
    assert laboratory(**change)._name(50, 0, "blind", False) != laboratory()._name(
        50, 0, "blind", False
    )


def test_where_it_is_kept_and_who_watches_change_nothing(tmp_path):
    told = laboratory(tmp_path, progress=print)
    told.draw(0)
    assert told._name(50, 0, "blind", False) == laboratory()._name(50, 0, "blind", False)


def test_another_trial_under_this_name_is_not_read(tmp_path):
    mine, other = laboratory(tmp_path / "mine"), laboratory(tmp_path / "other", seed=4)
    mine.trial(60, 0, "blind")
    other.trial(60, 0, "blind")
    (path,), (wrong,) = ((tmp_path / name).iterdir() for name in ("mine", "other"))
    right = path.read_bytes()
    path.write_bytes(wrong.read_bytes())
    again = laboratory(tmp_path / "mine").trial(60, 0, "blind")
    assert (again.m, again.draw) == (60, 0)
    with np.load(path) as kept, np.load(io.BytesIO(right)) as before:
        assert str(kept["kept as"]) == str(before["kept as"])


def test_a_damaged_file_is_made_again(tmp_path):
    lab = laboratory(tmp_path)
    lab.trial(60, 0, "blind")
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    assert lab.trial(60, 0, "blind").m == 60
    assert file.stat().st_size > 100


def test_the_told_attacker_gets_at_least_what_overlaps_give():
    smooth = np.cumsum(PRIVATE, axis=1) / 10
    lab = Laboratory(smooth, None, Scheme(2), 140, 0.0, 1e-2, 0, None)
    blind, told = lab.trial(140, 0, "blind"), lab.trial(140, 0, "told")
    assert told.recovered >= blind.recovered
    assert told.recovered > 0.8


def test_only_fixed_weights_can_be_told():
    assert laboratory().can_be_told(100)
    assert not laboratory(scheme=Scheme(2, weighting="half-normal")).can_be_told(100)
