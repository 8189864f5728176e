"""Every example runs, and prints what the documents say it prints."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PRINTS = {
    "own_encodings.py": ("30 of 30 private vectors verified", "verified: 30", "one sign per pixel"),
    "own_report.py": ("report.html", "report.json"),
    "paper_attack.py": ("are all pairs of four vectors", "exact 4, wrong 0"),
    "public_vectors.py": ("certain and wrong: 0", "exact 30, wrong 0, missing 0, signs known"),
    "quickstart.py": ("40 of 40 private vectors verified", "exact 40, wrong 0, missing 0"),
}


def test_every_example_is_tested():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(PRINTS)


@pytest.mark.parametrize("name", PRINTS)
def test_it_runs_and_says_so(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [text for text in PRINTS[name] if text not in done.stdout] == []
