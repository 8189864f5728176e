"""Trials: what came back is scored by the family, each attack has its own process, and whatever it
does is a result."""

import multiprocessing
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from experiments.cells import LOST
from experiments.compare.families import FAMILIES, instance
from experiments.compare.trial import CRASHED, LIMIT, RAN, REFUSED, run_trials, scored
from scipy import sparse

from experiments.compare import trial
from unveil.attacks import ATTACKS
from unveil.checks import InputError
from unveil.records import Recovery

SMALL = replace(FAMILIES["mixup"], n=12, m=60, d=40)


class Silent:
    def __init__(self):
        self.said = []

    def send(self, message):
        self.said.append(message[0])


def claimed(vectors, m, members=None, signed=True):
    r = len(vectors)
    members = sparse.csr_array(np.ones((m, r), bool)) if members is None else members
    status = np.full(r, "verified", "<U10")
    return Recovery(vectors, status, signed, members, np.zeros(r), ("",) * r, "fake", "told", {})


def attempt(monkeypatch, attack, family=SMALL):
    monkeypatch.setitem(ATTACKS, "fake", attack)
    return trial._attempt(Silent(), "fake", family, instance(family, 0), 0, [])


def test_right_and_wrong_vectors_are_counted(monkeypatch):
    truth = instance(SMALL, 0).simulation.private

    def fake(encodings, public=None, *, rng=None, memory_limit=None, progress=None):
        return claimed(np.concatenate([truth[:6], truth[6:9] + 1]), encodings.m)

    found = attempt(monkeypatch, fake)
    assert (found["outcome"], found["share"], found["exact"], found["wrong"]) == (RAN, 0.5, 0.5, 3)
    assert found["seconds"] >= 0
    assert found["mib"] >= 0


def test_refusal_crash_and_overlaps_it_does_not_take(monkeypatch):
    def refuses(encodings, public=None, *, rng=None, memory_limit=None, progress=None):
        raise InputError("not for these: use another")

    def crashes(encodings, public=None, *, rng=None, memory_limit=None, progress=None):
        raise ZeroDivisionError("oh")

    assert attempt(monkeypatch, refuses) == {
        "outcome": REFUSED,
        "reason": "not for these: use another",
    }
    assert attempt(monkeypatch, crashes) == {"outcome": CRASHED, "reason": "ZeroDivisionError: oh"}
    assert attempt(monkeypatch, crashes, FAMILIES["told-k2"]) == {
        "outcome": REFUSED,
        "reason": "it takes no overlaps",
    }


def test_peak_memory_is_that_of_the_attack(monkeypatch):
    kept = []

    def hungry(encodings, public=None, *, rng=None, memory_limit=None, progress=None):
        kept.append(np.ones(5_000_000).sum())  # 38 MiB, given back at once
        return Recovery.empty(encodings, "fake", "nothing", {})

    if not trial.STATUS.exists():
        pytest.skip("this system does not count a process's pages")
    found = [attempt(monkeypatch, hungry)["mib"] for _ in range(3)]
    assert all(30 < mib < 60 for mib in found), found


def test_all_public_counts_encodings():
    family = FAMILIES["all-public"]
    drawn = instance(family, 0)
    sim = drawn.simulation
    W = np.zeros((family.m, 100), bool)
    np.put_along_axis(W, sim.selection.public, True, axis=1)
    W[0, sim.selection.public[0, 0]] = False  # one too few
    W[1] = False  # nothing said: missing, not wrong
    W[2, np.flatnonzero(~W[2])[0]] = True  # one too many
    found = scored(claimed(sim.public, family.m, sparse.csr_array(W)), family, drawn)
    assert (found["share"], found["wrong"]) == ((family.m - 3) / family.m, 2)
    nothing = scored(Recovery.empty(sim.encodings, "fake", "nothing", {}), family, drawn)
    assert (nothing["share"], nothing["wrong"]) == (0, 0)


def test_images_are_scored_by_likeness():
    family = FAMILIES["images-public"]
    drawn = instance(family, 0)
    recovery = replace(
        claimed(drawn.simulation.private, family.m), status=np.full(family.n, "unresolved")
    )
    found = scored(recovery, family, drawn)
    assert found["share"] == found["ssim"] == pytest.approx(1)
    assert (found["exact"], found["wrong"]) == (0, 0)


def test_close_counts_vectors_nobody_verified():
    family = FAMILIES["noise"]
    drawn = instance(family, 0)
    off = drawn.simulation.private + np.float32(0.1) * np.random.default_rng(0).standard_normal(
        (24, 512), np.float32
    )
    recovery = replace(claimed(off, family.m), status=np.full(24, "unresolved"))
    assert scored(recovery, family, drawn)["share"] == 1
    assert scored(recovery, family, drawn)["exact"] == 0


def test_a_process_that_somebody_kills_is_told_from_one_that_crashed(monkeypatch):
    def killed(encodings, public=None, *, rng=None, memory_limit=None, progress=None):
        if rng == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(7)

    context = multiprocessing.get_context("fork")  # takes the attack along
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: context)
    monkeypatch.setitem(ATTACKS, "fake", killed)
    lost, crashed = run_trials("fake", [(SMALL, 1), (SMALL, 2)], 30)
    assert (lost["outcome"], lost[LOST]) == (CRASHED, True)
    assert lost["reason"] == "the process ended with exit code -9"
    assert crashed == {"outcome": CRASHED, "reason": "the process ended with exit code 7"}


class Pipe:
    """Says one thing after the other, each after some seconds; then nothing."""

    def __init__(self, *messages):
        self.messages = list(messages)

    def poll(self, seconds):
        wait = self.messages[0][0] if self.messages else 1e9
        if seconds is not None and wait > seconds:
            time.sleep(seconds)
            return False
        time.sleep(wait)
        return True

    def recv(self):
        message = self.messages.pop(0)[1]
        if message == "end":
            raise EOFError
        return message, {"outcome": RAN}


def test_the_clock_runs_during_the_attack_only():
    told = [(0.0, "start"), (0.05, "compiling"), (0.3, "compiled"), (0.05, "done")]
    patient = Pipe(*told)
    assert trial._wait(patient, 0.2) == ({"outcome": RAN}, True)
    late = Pipe((0.3, "start"), (0.05, "done"))
    assert trial._wait(late, 0.2)[0]["outcome"] == RAN
    slow = Pipe((0.0, "start"), (0.05, "compiling"), (0.1, "compiled"), (0.3, "done"))
    facts, alive = trial._wait(slow, 0.2)
    assert (facts["outcome"], facts["reason"], alive) == (LIMIT, "over the limit of 0.2 s", False)
    assert trial._wait(Pipe((0.0, "start"), (0.0, "end")), 0.2) == ({"outcome": CRASHED}, False)


def test_a_process_for_each_attack_gives_what_a_call_gives():
    trials = [(replace(FAMILIES["told-k2"], n=12, m=60, d=40), seed) for seed in (0, 1)]
    found = run_trials("full", trials, 60)
    assert [facts["outcome"] for facts in found] == [RAN, RAN]
    for (family, seed), facts in zip(trials, found, strict=True):
        here = trial._attempt(Silent(), "full", family, instance(family, seed), seed, [])
        assert [facts[name] for name in ("share", "wrong", "explanation")] == [
            here[name] for name in ("share", "wrong", "explanation")
        ]
    refused = run_trials("natural", trials, 60, stop=[REFUSED])
    assert [facts["outcome"] for facts in refused] == [REFUSED]
