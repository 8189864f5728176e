"""`python -m unveil` is the command `unveil`."""

import subprocess
import sys

import unveil


def run(*arguments):
    command = [sys.executable, "-m", "unveil", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_it_answers_like_the_command():
    done = run("--version")
    assert done.returncode == 0
    assert unveil.__version__ in done.stdout
    assert "Usage: unveil" in run("--help").stdout


def test_bad_input_keeps_its_exit_code():
    done = run("attack", "no-such-folder")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
