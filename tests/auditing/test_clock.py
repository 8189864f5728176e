"""The clock: what outruns it is stopped, named, and tried again next time."""

import time

import numpy as np
import pytest

from unveil.auditing.clock import LEAST, OVER, PATIENCE, Clock, OutOfTime, clock_for
from unveil.auditing.release import Release
from unveil.auditing.threats import attack_all
from unveil.auditing.trial import Arm
from unveil.auditing.trials import Laboratory
from unveil.scheme import Scheme


@pytest.fixture
def lab(tmp_path):
    x = np.random.default_rng(0).standard_normal((12, 30)).astype(np.float32)
    release = Release(x, None, Scheme(2), 84, 0.0, 0)
    return Laboratory(release, folder=tmp_path / "trials", clock=Clock(-1.0))


def test_the_callback_ends_what_outruns_the_clock():
    seen = []
    Clock(1000.0).bounding(lambda *what: seen.append(what))("stage", 1, 2)
    assert seen == [("stage", 1, 2)]
    with pytest.raises(OutOfTime):
        Clock(-1.0).bounding(None)("stage", 1, 2)


def test_waiting_for_the_processor_does_not_count(monkeypatch):
    clock = Clock(10.0)
    later = time.monotonic() + 1000
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert not clock.over
    worked = time.process_time() + 1000
    monkeypatch.setattr(time, "process_time", lambda: worked)
    assert clock.over


def test_effort_sets_the_clock():
    assert clock_for(0.0)._seconds == LEAST
    assert clock_for(100.0)._seconds == 100 * PATIENCE


def test_what_was_stopped_is_said_and_not_kept(lab):
    arm = Arm("blind", "relations", Scheme(2))
    trial = lab.trial(84, 0, arm, bounded=True)
    assert trial.stopped
    assert not trial.recovered
    assert "stopped after" in trial.explanation
    assert not (lab.folder.exists() and list(lab.folder.glob("*.npz")))


def test_without_the_bound_the_clock_is_not_asked(lab):
    trial = lab.trial(84, 0, Arm("blind", "relations", Scheme(2)))
    assert not trial.stopped
    assert trial.recovered == 1.0


def test_after_the_first_attack_nothing_is_started(lab):
    runs = attack_all(lab, 84, 1000.0, lambda attack, scheme: 0.0)
    assert sum(len(run.trials) for run in runs) == 1
    assert all(why == OVER for run in runs for _, why in run.not_tried if "time" in why)
    assert any(why == OVER for run in runs for _, why in run.not_tried)
