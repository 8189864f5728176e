"""The certificate is the only room that says "verified", and its documentation is its table."""

import ast
from pathlib import Path

import pytest

import unveil
from unveil.certificate.certify import documented_doubts

SOURCE = Path(unveil.__file__).parent
SHOWN = {"present/pictures.py", "verdict.py", "recovery.py"}
"""A colour, a count and the words themselves: none of them is anybody's status."""


def _status_set(tree):
    """Lines where VERIFIED or "verified" is a value: not compared with, not a key."""
    compared = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.Subscript):
            compared |= {id(x) for x in ast.walk(node)}
        if isinstance(node, ast.ImportFrom):
            compared |= {id(x) for x in ast.walk(node)}
    for node in ast.walk(tree):
        named = isinstance(node, ast.Name) and node.id == "VERIFIED"
        told = isinstance(node, ast.Constant) and node.value == "verified"
        if (named or told) and id(node) not in compared:
            yield node.lineno


def test_only_the_certificate_says_verified():
    found = []
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if not place.startswith("certificate/") and place not in SHOWN:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = [line for line in _status_set(tree) if place != "records.py"]
            found += [f"{place}:{line}" for line in names]
    assert not found


def test_a_status_that_is_set_would_be_seen():
    assert list(_status_set(ast.parse("status[i] = VERIFIED")))
    assert list(_status_set(ast.parse("x = f('verified')")))
    assert not list(_status_set(ast.parse("count = (status == VERIFIED).sum()")))


def test_the_documentation_holds_the_table_of_doubts():
    page = SOURCE.parents[1] / "docs" / "certificate.md"
    if not page.exists():
        pytest.skip("docs/ is not installed")
    assert documented_doubts() in page.read_text(encoding="utf-8")


def test_nothing_here_imports_a_solver():
    for path in (SOURCE / "certificate").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unveil."):
                room = node.module.split(".")[1]
                assert room in {"certificate", "checks", "encodings", "records"}, path.name
