"""docs/changing_a_threshold.md, followed to the letter: one line is changed, and what the page says
happens."""

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path("unveil/solve/model.py")
TEXT = (ROOT / "docs" / "changing_a_threshold.md").read_text()
[SOURCE] = re.findall(r"This is `try_it.py`:\n\n *```python\n(.*?)```", TEXT, re.S)
[(BEFORE, AFTER)] = re.findall(r"change `(\w+ = \S+)` into `(\w+ = \S+)`", TEXT)
SAID = re.findall(r"`(explained \d+, verified \d+, wrong \d+)`", TEXT)


def run(folder, *call):
    own = {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *map(str, call)],
        cwd=folder,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the package to change, with `try_it.py` beside it. Kernels that were compiled come
    along, as somebody who follows the page has them."""
    folder = tmp_path_factory.mktemp("house")

    def copy(source, target):
        # Another worker may be about to rename what it compiled.
        with suppress(FileNotFoundError):
            shutil.copy2(source, target)

    shutil.copytree(ROOT / "src" / "unveil", folder / "unveil", copy_function=copy)
    (folder / "try_it.py").write_text(textwrap.dedent(SOURCE))
    return folder


@pytest.fixture(scope="module")
def changed(house):
    """(what it said before the change, the house after it)."""
    before = run(house, "try_it.py")
    source = (house / TABLE).read_text()
    assert source.count(f"\n{BEFORE}\n") == 1
    (house / TABLE).write_text(source.replace(f"\n{BEFORE}\n", f"\n{AFTER}\n"))
    return before, house


def test_one_line_does_what_the_page_says(changed):
    before, house = changed
    assert before.stdout.splitlines() == [SAID[0]] * 3, before.stderr
    after = run(house, "try_it.py")
    assert after.stdout.splitlines() == [SAID[1]] * 3, after.stderr


def test_the_test_that_the_page_names_fails_and_no_other_of_its_file(changed):
    _, house = changed
    [name] = re.findall(r"One of them fails: `(\w+)`", TEXT)
    [place] = re.findall(r"fails: `\w+` in `(\S+)`", TEXT)
    call = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-rf")
    done = run(house, *call, f"--rootdir={house}", ROOT / place)
    assert [
        line.split("::")[1].split()[0] for line in done.stdout.splitlines() if "FAILED" in line
    ] == [name], done.stdout


def test_the_page_knows_every_threshold_and_names_only_those():
    tree = ast.parse((ROOT / "src" / TABLE).read_text())
    there = {
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for name in ast.walk(node.targets[0])
        if isinstance(name, ast.Name) and name.id.isupper()
    }
    named = set(re.findall(r"`([A-Z_]+)`", TEXT))
    assert named == there


def test_every_place_and_command_on_the_page_exists():
    for place in re.findall(r"`((?:src|tests|tools|solve|attacks)/[\w/.]+)`", TEXT):
        rooms = (ROOT, ROOT / "src" / "unveil")
        assert any((room / place).exists() for room in rooms), place
    for module in re.findall(r"python -m (benchmarks\.\w+)", TEXT):
        assert (ROOT / (module.replace(".", "/") + ".py")).exists(), module
