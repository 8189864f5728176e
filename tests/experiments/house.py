"""The package with more attacks in it: what a contributor has after adding a file, for tests that start processes."""

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "unveil"


def build(folder, attacks):
    """`folder`/unveil: links to everything there is, and the `attacks` given, file name to source."""
    house = folder / "unveil"
    (house / "attacks").mkdir(parents=True)
    for path in (*SOURCE.iterdir(), *(SOURCE / "attacks").iterdir()):
        place = house / path.relative_to(SOURCE)
        if path.name != "__pycache__" and not place.exists():
            place.symlink_to(path)
    for name, source in attacks.items():
        (house / "attacks" / name).write_text(source)
    return folder


def run(folder, *command, code="from unveil.cli import main; main()", **environment):
    """The command line, or `code`, in the house."""
    variables = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    call = [sys.executable, "-c", code, *map(str, command)]
    return subprocess.run(call, cwd=folder, env=variables, capture_output=True, text=True, timeout=120)
