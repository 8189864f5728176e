"""The house itself: rooms import one way, no global generator, no print."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOURCE = ROOT / "src" / "unveil"
FILES = sorted(SOURCE.rglob("*.py"))
ROOM_FILES = [
    f for f in FILES if f.parent not in (SOURCE, SOURCE / "cli") and f.name != "__init__.py"
]
"""The command line is tested from outside, whole: tests/test_cli.py and its neighbours."""

GENERATORS = {"Generator", "SeedSequence", "default_rng", "BitGenerator", "PCG64"}
"""What of numpy.random may be named: everything else draws from, or seeds, the global generator."""


def name(path):
    return str(path.relative_to(ROOT))


def dotted(node):
    """a.b.c of nested attributes, or None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return base and f"{base}.{node.attr}"
    return None


def global_random(tree):
    """Uses of numpy's global generator, or of the module `random`, in a syntax tree."""
    found = []
    for node in ast.walk(tree):
        parts = (dotted(node) or "").split(".") if isinstance(node, ast.Attribute) else []
        if (
            len(parts) >= 3
            and parts[0] in ("np", "numpy")
            and parts[1] == "random"
            and parts[2] not in GENERATORS
        ):
            found.append((node.lineno, ".".join(parts)))
        if isinstance(node, ast.Import):
            found += [(node.lineno, a.name) for a in node.names if a.name == "random"]
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            found.append((node.lineno, "random"))
        if isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            found += [(node.lineno, a.name) for a in node.names if a.name not in GENERATORS]
        if (
            isinstance(node, ast.Call)
            and (dotted(node.func) or "").endswith("default_rng")
            and not node.args
        ):
            found.append((node.lineno, "default_rng() without a seed"))
    return found


def prints(tree):
    return [
        n.lineno
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and dotted(n.func) in ("print", "pprint", "sys.stdout.write")
    ]


def lint_imports(folder, config):
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))",
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        command, cwd=config, env=environment, capture_output=True, text=True, timeout=120
    )


def test_data_flows_one_way_through_the_rooms():
    done = lint_imports(ROOT / "src", ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_an_import_against_the_flow_would_be_seen(tmp_path):
    package = tmp_path / "src" / "unveil"
    for file in FILES:
        copy = package / file.relative_to(SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.touch()  # who imports whom is all that counts
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    # The one import that the contract excuses is there; and one that it does not.
    (package / "paper" / "learn_public.py").write_text("import unveil.rivals.phase_retrieval\n")
    (package / "engine" / "folded.py").write_text("from unveil.paper import floral\n")
    done = lint_imports(tmp_path / "src", tmp_path)
    assert done.returncode != 0
    assert "unveil.engine.folded" in done.stdout
    assert "unveil.paper" in done.stdout


def test_every_room_is_part_of_the_flow():
    rooms = {f.relative_to(SOURCE).parts[0] for f in ROOM_FILES}
    config = (ROOT / "pyproject.toml").read_text()
    named = set(re.findall(r"unveil\.([a-z_]+)", config))
    assert rooms - named == set()


@pytest.mark.parametrize("file", FILES, ids=name)
def test_no_file_uses_a_global_random_generator(file):
    assert global_random(ast.parse(file.read_text())) == []


@pytest.mark.parametrize("file", FILES, ids=name)
def test_no_file_of_the_library_prints(file):
    assert prints(ast.parse(file.read_text())) == []


@pytest.mark.parametrize(
    "line",
    [
        "np.random.seed(0)",
        "x = numpy.random.standard_normal(3)",
        "np.random.mtrand._rand",
        "from numpy.random import rand",
        "import random",
        "from random import choice",
        "rng = np.random.default_rng()",
    ],
)
def test_the_search_for_global_generators_finds_them(line):
    assert global_random(ast.parse(line))


def test_the_search_for_prints_finds_them_and_spares_generators():
    assert prints(ast.parse("def f():\n    print('x')\n")) == [2]
    assert global_random(ast.parse("rng = np.random.default_rng(np.random.SeedSequence(3))")) == []
