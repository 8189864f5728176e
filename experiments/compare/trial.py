"""One attack on instances, in a process of its own: what came back, how long it took, how much
memory it needed.

The process is forked from a server that has loaded the package and nothing else, so that one
attack's memory, threads and crashes are no other's. It draws each instance itself, says when the
attack starts, and reports. Who waits has a clock, which stands still while code is compiled for the
first time on a machine; an attack over the limit is ended, and the next trial gets a new process.
BLAS has one thread, for all alike: more of them wait for each other on a machine that does
something else too.

Memory is the peak of the process during the attack beyond what it held before, the instance
included. Linux counts a process's own pages, and the count is set back before each attack, after
memory that was freed is given back: pages an earlier attack has left would hide what the next one
needs. (ru_maxrss, the peak over the life of a process, takes over what its parent once held. It is
the second best, for other systems.)

Loading compiled code takes about a second and some tens of MiB, once in a process: the first trial
is marked `cold`.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import re
import resource
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from inspect import signature
from math import inf
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from experiments.cells import LOST, Facts
from experiments.compare.families import Family, Instance, instance
from experiments.compare.sources import code_fingerprint
from unveil.attacks import ATTACKS, recover
from unveil.auditing.outcome import Yardstick, assess
from unveil.checks import InputError
from unveil.encode import simulate
from unveil.engine.blocks import one_blas_thread
from unveil.records import Recovery
from unveil.scoring import score
from unveil.scoring.images import image_scores

SAME = 1e-4
"""Largest difference of a pixel to the public vector it is said to be: those are returned as they
were given."""
PATIENCE = 10.0
"""Seconds that a process which fell silent is given to end."""
RAN, REFUSED, LIMIT, CRASHED = "ran", "refused", "limit", "crashed"
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

Trial = tuple[Family, int]


def run_trials(
    attack: str, trials: Sequence[Trial], limit: float, *, stop: Sequence[str] = ()
) -> list[Facts]:
    """Facts of each trial (family, seed), in order; those after an outcome named in `stop` are left
    out.

    outcome  ran: with the scores, seconds and peak memory in MiB; refused: reason is the attack's
             own sentence; limit: it took more than `limit` seconds; crashed: reason says how, and
             `lost` is set where it was killed
    """
    # Forked from a server that has loaded the package: no attack inherits another's memory.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    found: list[Facts] = []
    while len(found) < len(trials):
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, attack, trials[len(found) :]), daemon=True
        )
        process.start()
        theirs.close()
        alive = True
        while alive and len(found) < len(trials):
            facts, alive = _wait(ours, limit)
            if facts["outcome"] == CRASHED and not alive:
                process.join(PATIENCE)
                facts["reason"] = f"the process ended with exit code {process.exitcode}"
                # By a user, or a system out of memory: another time it may run.
                if process.exitcode == -signal.SIGKILL:
                    facts[LOST] = True
            found.append(facts)
            if facts["outcome"] in stop:
                trials = trials[: len(found)]
        process.kill()
        process.join()
        ours.close()
    return found


@cache
def code_of(attack: str) -> str:
    """A name for all the code that decides what a trial of this attack finds, families aside."""
    return code_fingerprint(ATTACKS[attack], simulate, score)


def _wait(pipe: Connection, limit: float) -> tuple[Facts, bool]:
    """What the next trial came to, and whether the process is still there."""
    ends, left = inf, limit  # no clock while the instance is drawn
    while True:
        if not pipe.poll(None if ends == inf else max(0.0, ends - time.monotonic())):
            return {"outcome": LIMIT, "reason": f"over the limit of {limit:g} s"}, False
        try:
            kind, facts = pipe.recv()
        except (EOFError, ConnectionResetError):
            return {"outcome": CRASHED}, False
        if kind == "start":
            ends = time.monotonic() + limit
        elif kind == "compiling":
            left, ends = ends - time.monotonic(), inf
        elif kind == "compiled":
            ends = time.monotonic() + left
        else:
            return facts, True


def _work(pipe: Connection, attack: str, trials: Sequence[Trial]) -> None:
    """The process's own part. Ctrl-C is for who waits, and stdout is theirs too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    with one_blas_thread(), _compilation(pipe) as compiled:
        for number, (family, seed) in enumerate(trials):
            drawn = instance(family, seed)
            facts = _attempt(pipe, attack, family, drawn, seed, compiled)
            pipe.send(("done", {**facts, "cold": number == 0}))


def _attempt(
    pipe: Connection, attack: str, family: Family, drawn: Instance, seed: int, compiled: list[float]
) -> Facts:
    known = signature(ATTACKS[attack]).parameters
    if family.told is not None and "overlaps" not in known:
        return {"outcome": REFUSED, "reason": "it takes no overlaps"}
    options = {name: value for name, value in drawn.options.items() if name in known}
    simulation = drawn.simulation
    # Only what the attack itself takes counts: garbage goes first, compilation is taken off.
    gc.collect()
    before = _reset_peak()
    pipe.send(("start", None))
    start, spent = time.perf_counter(), sum(compiled)
    try:
        recovery = recover(
            simulation.encodings, simulation.public, attack=attack, **options, rng=seed
        )
    except InputError as error:
        return {"outcome": REFUSED, "reason": str(error)}
    # Whatever an attack does wrong is a result, not the end of the comparison.
    except Exception as error:
        return {"outcome": CRASHED, "reason": f"{type(error).__name__}: {error}"}
    seconds = time.perf_counter() - start - (sum(compiled) - spent)
    mib = max(0.0, _peak() - before)
    return {"outcome": RAN, "seconds": seconds, "mib": mib, **scored(recovery, family, drawn)}


def scored(recovery: Recovery, family: Family, drawn: Instance) -> Facts:
    """share: what the family measures; exact, close: shares of private vectors; wrong: a count;
    explanation: the attack's."""
    simulation = drawn.simulation
    if family.measure == "public":
        exact, wrong = _public_scores(recovery, drawn)
        return {
            "share": exact,
            "exact": exact,
            "close": exact,
            "wrong": wrong,
            "explanation": recovery.explanation,
        }
    scores = score(recovery, simulation.private)
    out: Facts = {
        "exact": scores.exact / family.n,
        "wrong": scores.wrong,
        "explanation": recovery.explanation,
    }
    yard = Yardstick.of(simulation.private, 1e-2, images=True)
    out["close"] = float((assess(recovery, yard).record >= 2).mean())
    if family.measure == "ssim":
        assert simulation.encodings.shape is not None
        # Who returns two images for every encoding has no more guesses than the others: those that
        # fit best.
        surest = np.argsort(recovery.residual, kind="stable")[: family.n]
        out["ssim"] = image_scores(
            recovery.vectors[surest], simulation.private, simulation.encodings.shape
        ).mean_ssim
    return {"share": out[family.measure], **out}


def _public_scores(recovery: Recovery, drawn: Instance) -> tuple[float, int]:
    """Share of encodings whose verified members are just the public vectors they mix; how many have
    others."""
    public, chosen = drawn.simulation.public, drawn.simulation.selection.public
    assert public is not None
    distance = np.array([np.abs(public - x).max(axis=1) for x in recovery.vectors]).reshape(
        len(recovery.vectors), len(public)
    )
    names = np.where(
        distance.min(axis=1, initial=inf) <= SAME,
        distance.argmin(axis=1) if len(distance) else -1,
        -1,
    )
    members = recovery.members.tocsr()
    right = wrong = 0
    for row, truth in enumerate(chosen):
        found = members.indices[members.indptr[row] : members.indptr[row + 1]]
        if len(found) and recovery.verified[found].all():
            same = sorted(names[found].tolist()) == sorted(truth.tolist())
            right, wrong = right + same, wrong + (not same)
    return right / len(chosen), wrong


@contextmanager
def _compilation(pipe: Connection) -> Iterator[list[float]]:
    """Seconds spent on compiling, one number for each time; who waits is told as well."""
    from numba.core import event

    seconds: list[float] = []

    class Listener(event.Listener):
        depth, start = 0, 0.0

        def on_start(self, event: Any) -> None:
            self.depth += 1
            if self.depth == 1:
                self.start = time.perf_counter()
                pipe.send(("compiling", None))

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                seconds.append(time.perf_counter() - self.start)
                pipe.send(("compiled", None))

    with event.install_listener("numba:compile", Listener()):
        yield seconds


def _reset_peak() -> float:
    """MiB the process holds now; from here on the peak is counted anew, where the system can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        RESET.write_text("5")  # Linux: set the peak back to what is held now
    return _pages("VmRSS")


def _peak() -> float:
    return _pages("VmHWM")


def _pages(name: str) -> float:
    try:
        found = re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text())
    except OSError:
        found = None
    return (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024
