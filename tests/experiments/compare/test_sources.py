"""A name for an attack's code changes with it, with what it stands on, and with nothing else."""

import ast

import pytest
from experiments.compare.sources import code_fingerprint

from experiments.compare import sources
from unveil.attacks import ATTACKS


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A package of three files: a imports b inside a function, c stands alone."""
    house = tmp_path / "unveil"
    (house / "room").mkdir(parents=True)
    (house / "room" / "__init__.py").write_text("from unveil.room.b import g\n")
    (house / "room" / "b.py").write_text("import numpy\ng = 1\n")
    (house / "a.py").write_text("def f():\n    from unveil.room import g\n    return g\n")
    (house / "c.py").write_text("x = 1\n")
    monkeypatch.setattr(sources, "PACKAGE", house)
    return house


def name_of(house):
    space = {}
    exec(compile((house / "a.py").read_text(), str(house / "a.py"), "exec"), space)
    return code_fingerprint(space["f"])


def test_what_it_imports_counts_and_what_it_does_not_does_not(copy):
    first = name_of(copy)
    (copy / "c.py").write_text("x = 2\n")
    assert name_of(copy) == first
    (copy / "room" / "b.py").write_text("import numpy\ng = 2\n")
    second = name_of(copy)
    assert second != first
    (copy / "a.py").write_text((copy / "a.py").read_text() + "# changed\n")
    assert name_of(copy) not in (first, second)


def test_imports_are_read_in_all_their_forms(copy):
    text = "import unveil.c\nfrom unveil import c\nfrom unveil.room import b\nimport os\nfrom . import x\n"
    found = {path.relative_to(copy).as_posix() for path in sources._imported(ast.parse(text))}
    assert found == {"c.py", "room/__init__.py", "room/b.py"}


def test_every_attack_has_its_own_name():
    names = {attack: code_fingerprint(function) for attack, function in ATTACKS.items()}
    assert len(set(names.values())) == len(names)
