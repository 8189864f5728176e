"""Trials: nested encodings, one result for one name, kept whole on disk."""

import io

import numpy as np
import pytest

from unveil.auditing.release import Release
from unveil.auditing.trial import Arm
from unveil.auditing.trials import Laboratory
from unveil.scheme import Scheme

PRIVATE = np.random.default_rng(0).standard_normal((20, 200)).astype(np.float32)


BLIND = Arm("blind", "relations", Scheme(2))
OF_THE_LAB = ("relative_tolerance", "pixel_rms", "memory_limit", "progress")


def laboratory(folder=None, **changes):
    facts = {"scheme": Scheme(2), "top": 140, "noise": 0.0, "seed": 3}
    mine = {"pixel_rms": 1.0, **{key: changes.pop(key) for key in OF_THE_LAB if key in changes}}
    release = Release(**{"private": PRIVATE, "public": None, **facts, **changes})
    return Laboratory(release, folder=folder, **mine)


def test_fewer_encodings_are_the_first_of_many():
    lab = laboratory()
    many = lab.encodings(1, 140).values.copy()
    assert np.array_equal(lab.encodings(1, 50).values, many[:50])
    assert not np.array_equal(lab.encodings(0, 50).values, many[:50])
    assert np.array_equal(laboratory().encodings(1, 140).values, many)


def test_a_trial_is_kept_and_read_back(tmp_path, monkeypatch):
    first = laboratory(tmp_path).trial(140, 0, BLIND, show=True)
    assert first.exact == 1.0
    assert first.verified == 20
    np.testing.assert_allclose(first.shown, PRIVATE, atol=1e-3)
    monkeypatch.setattr(Laboratory, "_attack", lambda *_: pytest.fail("attacked again"))
    again = laboratory(tmp_path).trial(140, 0, BLIND, show=True)
    for name, value in vars(first).items():
        other = getattr(again, name)
        assert np.array_equal(value, other) if isinstance(value, np.ndarray) else value == other


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"top": 141},
        {"noise": 0.1},
        {"relative_tolerance": 1e-3},
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
    assert laboratory(**change)._name(50, 0, BLIND, False) != laboratory()._name(
        50, 0, BLIND, False
    )


def test_where_it_is_kept_and_who_watches_change_nothing(tmp_path):
    told = laboratory(tmp_path, progress=print)
    told.release.draw(0)
    assert told._name(50, 0, BLIND, False) == laboratory()._name(50, 0, BLIND, False)


def test_another_trial_under_this_name_is_not_read(tmp_path):
    mine, other = laboratory(tmp_path / "mine"), laboratory(tmp_path / "other", seed=4)
    mine.trial(140, 0, BLIND)
    other.trial(140, 0, BLIND)
    (path,), (wrong,) = ((tmp_path / name).iterdir() for name in ("mine", "other"))
    right = path.read_bytes()
    path.write_bytes(wrong.read_bytes())
    again = laboratory(tmp_path / "mine").trial(140, 0, BLIND)
    assert (again.m, again.draw) == (140, 0)
    with np.load(path) as kept, np.load(io.BytesIO(right)) as before:
        assert str(kept["kept as"]) == str(before["kept as"])


def test_a_damaged_file_is_made_again(tmp_path):
    lab = laboratory(tmp_path)
    lab.trial(140, 0, BLIND)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    assert laboratory(tmp_path).trial(140, 0, BLIND).m == 140
    assert file.stat().st_size > 100


def test_the_best_of_several_arms_and_none_after_a_complete_one(monkeypatch):
    ran = []
    honest = Laboratory._attack
    monkeypatch.setattr(
        Laboratory, "_attack", lambda self, *a: ran.append(a[2].attack) or honest(self, *a)
    )
    arms = [Arm("blind", name, Scheme(2)) for name in ("copies", "relations", "full")]
    lab = laboratory()
    assert lab.best(140, 0, arms).attack == "relations"
    assert ran == ["copies", "relations"]
    assert lab.best(140, 0, arms).exact == 1.0
    assert len(ran) == 2  # from memory


def test_the_told_attacker_reads_the_true_overlaps():
    smooth = np.cumsum(PRIVATE, axis=1) / 10
    lab = laboratory(private=smooth, pixel_rms=None)
    assert lab.trial(140, 0, Arm("told", "line-graph", Scheme(2))).recovered > 0.8


def test_what_an_insider_knew_is_no_finding():
    lab = laboratory()
    trial = lab.trial(60, 0, Arm("insider", "substitution", Scheme(2)))
    assert not (trial.outcome[lab.known] > 0).any()
    assert (trial.outcome[~lab.known] == 2).mean() > 0.8


def test_links_are_counted_against_the_truth():
    trial = laboratory().trial(140, 0, BLIND)
    assert trial.linked == 1.0
    assert trial.falsely == 0.0
    none = laboratory().trial(140, 0, Arm("blind", "copies", Scheme(2)))
    assert none.linked < 0.1


def test_what_an_attack_refuses_is_its_result():
    trial = laboratory().trial(60, 0, Arm("blind", "mixing", Scheme(2)))
    assert trial.recovered == 0
    assert trial.explanation.startswith("refused: ")
