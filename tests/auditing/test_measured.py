"""What is reported of attackers: distinct records, nested outcomes, meanings beside a guess."""

import numpy as np
import pytest

from unveil.auditing.measured import meanings, outcomes, threat
from unveil.auditing.release import Release
from unveil.auditing.threats import Run
from unveil.auditing.trial import Arm, Trial
from unveil.auditing.trials import Laboratory
from unveil.scheme import Scheme

RECORDS = np.random.default_rng(0).standard_normal((8, 40)).astype(np.float32)
LAB = Laboratory(Release(np.vstack([RECORDS, RECORDS]), None, Scheme(2), 60, 0.0, 1))
ARM = Arm("blind", "full", Scheme(2))


def trial(outcome, who="blind", control=0.0, linked=float("nan")):
    both = np.array([*outcome, *outcome], np.int8)
    shown = np.where(both[:, None] > 0, LAB.release.private, 0)
    empty = np.zeros(16)
    words = ("",) * 16
    return Trial(
        60, 0, who, "full", "why", both, empty, empty, words, words, 0, 0, {"all": 2.0},
        control=control, linked=linked, falsely=0.1, shown=shown,
    )  # fmt: skip


SOME, MORE = [2, 2, 0, 0, 1, 0, 0, 0], [2, 2, 2, 2, 2, 2, 0, 0]


def test_equal_records_count_once_and_who_knows_more_has_no_less():
    runs = [
        Run("blind", (ARM, ARM), (trial(SOME), trial([0] * 8))),
        Run("told", (ARM,), (trial([1] + [0] * 7, "told"),)),
    ]
    blind, told = outcomes(LAB, runs)
    assert (blind.exact, blind.got, len(blind.rows)) == (2, 3, 8)
    assert told.got == 3
    found = threat(LAB, runs[0], blind, ())
    assert (found.exact, found.approximate, found.records) == (2, 1, 8)
    assert found.low < 3 / 8 < found.high
    assert [attempt.exact for attempt in found.tried] == [2, 0]
    assert found.tried[0].seconds == 2.0


def test_the_insider_is_measured_on_the_records_it_does_not_know():
    runs = [Run("blind", (ARM,), (trial(MORE),)), Run("insider")]
    insider = outcomes(LAB, runs)[1]
    assert len(insider.rows) == 4
    assert insider.exact == 3


def test_control_is_taken_off_and_draws_are_joined():
    run = Run("blind", (ARM,), (trial(SOME, control=0.25),))
    best = outcomes(LAB, [run])[0]
    one = threat(LAB, run, best, ())
    assert one.residual == pytest.approx((3 / 8 - 0.25) / 0.75)
    assert one.residual_low < 0 < one.residual_high
    more = threat(LAB, run, best, (trial(MORE, control=0.25),))
    assert more.residual > one.residual


def test_meanings():
    run = Run("blind", (ARM,), (trial(MORE, linked=0.8),))
    best = outcomes(LAB, [run])[0]
    found = {m.kind: m for m in meanings(LAB, best, threat(LAB, run, best, ()), 3)}
    assert found["singling out"].rate == 6 / 8
    assert (found["linkability"].rate, found["linkability"].control) == (0.8, 0.1)
    assert found["inference"].rate >= 6 / 8
    assert found["inference"].control < found["inference"].rate
