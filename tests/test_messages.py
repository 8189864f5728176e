"""What errors say: the library's own words, and the line that installs what is missing."""

import ast
import re
import sys
from pathlib import Path

import pytest

from unveil.checks import InputError
from unveil.engine.blocks import results

SOURCE = Path(__file__).resolve().parents[1] / "src" / "unveil"
LIBRARY = [f for f in sorted(SOURCE.rglob("*.py")) if "cli" not in f.relative_to(SOURCE).parts]
FLAG = re.compile(r"(?<![\w-])--[a-z]")


def is_error(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InputError"


def flags(text, errors_only=False):
    """Flags of a command line in string literals that are no docstrings; or in errors only."""
    tree = ast.parse(text)
    if errors_only:
        tree = ast.Module([ast.Expr(node) for node in ast.walk(tree) if is_error(node)], [])
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documents
        and FLAG.search(node.value)
        and "pip install" not in node.value
    ]


@pytest.mark.parametrize("file", LIBRARY, ids=lambda f: str(f.relative_to(SOURCE)))
def test_no_message_of_the_library_names_a_flag(file):
    # The schema describes what the command line prints.
    assert flags(file.read_text(), file.name == "schema.py") == []


def test_a_flag_would_be_seen():
    assert flags("raise InputError(f'{n} records: use --sample')") == [" records: use --sample"]
    assert flags("x = '--a'; raise InputError('--b')", errors_only=True) == ["--b"]
    assert flags('"""--upper in the released code"""') == []


def test_what_is_not_installed_is_named_with_the_line_that_installs_it(monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "distributed"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    items = [0, 1]
    with pytest.raises(InputError, match=r"pip install 'unveil\[dask\]'"):
        list(results(lambda shared, item: item, None, items, scheduler="processes"))
