"""The package with more attacks in it: what a contributor has after adding a file, for tests that
start processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "unveil"


class House:
    """`folder`/unveil: links to everything there is, and the attacks given, file name to source."""

    def __init__(self, folder, attacks):
        self.folder, self.attacks = folder, folder / "unveil" / "attacks"
        self.attacks.mkdir(parents=True)
        for path in (*SOURCE.iterdir(), *(SOURCE / "attacks").iterdir()):
            place = folder / "unveil" / path.relative_to(SOURCE)
            if path.name != "__pycache__" and not place.exists():
                place.symlink_to(path)
        for name, source in attacks.items():
            (self.attacks / name).write_text(source)

    def run(self, *command, code="from unveil.cli import main; main()", **environment):
        """The command line, or `code`, with this package."""
        own = {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
        call = [sys.executable, "-c", code, *map(str, command)]
        variables = {**os.environ, **own, **environment}
        return subprocess.run(
            call, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=600
        )


@pytest.fixture(scope="session")
def house():
    return House
