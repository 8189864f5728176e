"""Silent by default, and told to those who listen."""

import logging
import subprocess
import sys

import unveil

WARNING = "import logging, unveil; logging.getLogger('unveil.any').warning('look')"


def test_nothing_is_said_unasked():
    done = subprocess.run(
        [sys.executable, "-c", WARNING], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == done.stderr == ""


def test_who_listens_hears_what_each_attack_ended_with(caplog):
    caplog.set_level(logging.INFO, "unveil")
    sim = unveil.simulate(unveil.Scheme(2), 12, m=60, d=30, rng=0)
    recovery = unveil.recover(sim.encodings, rng=0)
    assert any(recovery.explanation in record.getMessage() for record in caplog.records)


def test_the_library_has_a_silent_handler():
    assert any(
        isinstance(handler, logging.NullHandler) for handler in logging.getLogger("unveil").handlers
    )
