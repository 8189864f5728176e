"""How large the house is: bounds that may only fall. Who makes it smaller lowers them."""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest
from tools import walks

SOURCE = Path(__file__).resolve().parents[1] / "src" / "unveil"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_FILES = 118
MOST_CONSTANTS = 54
CODE_LINES = {
    "(top)": 1429,
    "auditing": 2222,
    "certificate": 1932,
    "cli": 1316,
    "data": 691,
    "encode": 626,
    "engine": 811,
    "exact": 3723,
    "images": 1820,
    "mixing": 1217,
    "paper": 2343,
    "report": 397,
    "rivals": 997,
    "scoring": 270,
}
FILES_ENTERED = {
    "`recover` on Gaussian vectors": 20,
    "`recover` on a table": 18,
    "the paper's attack": 19,
}
"""The walk of an audit is not here: it takes a minute (`python -m tools.walks`)."""
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
SILENT |= {tokenize.ENDMARKER, tokenize.ENCODING}


def code_lines(text):
    """Lines with code on them: no comments, no docstrings."""
    documents = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in SILENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - documents)


def constants(text):
    """Names in capital letters at the top of a module that stand for numbers."""
    count = 0
    for node in ast.parse(text).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
            parts = [part for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            if any(type(part.value) in (int, float) for part in parts):
                count += sum(name.isupper() for name in names)
    return count


def test_no_room_grows():
    lines = Counter()
    for file in FILES:
        parts = file.relative_to(SOURCE).parts
        lines[parts[0] if len(parts) > 1 else "(top)"] += code_lines(file.read_text())
    assert {room: count for room, count in lines.items() if count > CODE_LINES.get(room, 0)} == {}


def test_there_are_no_more_files_and_constants():
    assert len(FILES) <= MOST_FILES
    assert sum(constants(file.read_text()) for file in FILES) <= MOST_CONSTANTS


@pytest.mark.parametrize("name", FILES_ENTERED)
def test_an_everyday_call_enters_few_files(name):
    entered = walks.files_entered(walks.WALKS[name])
    assert len(entered) <= FILES_ENTERED[name], entered


def test_the_counts_are_right():
    text = '"""Two\nlines."""\n\nA = 3  # why\nB: int = 4\nc = 5\nD = "x"\nE, F = 1, 2\n'
    assert code_lines(text) == 5
    assert constants(text) == 4
