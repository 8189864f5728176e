"""docs/paper_map.md: every file exists, and every function it names stands in a file of its row."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    line
    for line in (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "`src/" in line
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:30])
def test_the_functions_of_a_row_stand_in_its_files(row):
    files = re.findall(r"`((?:src|tests|experiments|benchmarks)/[^`:]+\.py)`", row)
    assert [name for name in files if not (ROOT / name).is_file()] == []
    source = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in files)
    # Lower-case names in backticks are functions; labels have a colon, calls of methods a bracket.
    functions = re.findall(r"`([a-z]+(?:_[a-z0-9]+)+|psi|certify|identify|retrieve)`", row)
    missing = [name for name in functions if not re.search(rf"def {name}\b", source)]
    assert missing == []
