"""Is the house readable? Part of `make lint`: prints every place that breaks one of these rules,
and exits 1.

    long       a function of more than 40 lines (without its docstring) numbers its steps or says
               why: one comment per 20 lines at least
    constant   a constant in capital letters has a sentence with its reason below it, or a comment
    number     a float inside a function is a named constant, or has a comment on its line or above;
               plain ones (0, ½, 1, 2, …) and powers of ten that only guard a division are free
    columns    no line is longer than 100 columns

`python tools/check_house.py [FILE or FOLDER …]`; without arguments all of src/unveil.
`--figures`: instead, comments, docstrings and long lines per room.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "unveil"
LONG = 40
"""Lines of a function above which a reader needs signposts."""
PER_COMMENT = 20
"""Lines of a long function that one comment may stand for."""
COLUMNS = 100
"""Two files fit side by side on a laptop's screen."""
PLAIN = {0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 10.0, 100.0}
"""Floats that explain themselves in a formula."""
GUARDS = {1e-300, 1e-30, 1e-12}
"""Added to a denominator, or the least it may be: too small to change any result."""


def comments(text: str) -> dict[int, str]:
    """Line number → comment."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function below its signature and docstring."""
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        first = node.body[1] if len(node.body) > 1 else first
    return (node.end_lineno or node.lineno) - first.lineno + 1


def long_functions(tree: ast.Module, said: dict[int, str]) -> list[tuple[int, str]]:
    out = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = body_lines(node)
            inside = sum(node.lineno <= line <= (node.end_lineno or 0) for line in said)
            if length > LONG and inside * PER_COMMENT < length:
                out.append(
                    (node.lineno, f"long: {node.name} has {length} lines, {inside} comments")
                )
    return out


def constants(tree: ast.Module, said: dict[int, str]) -> list[tuple[int, str]]:
    """Capital names that hold a number somewhere, without a sentence below or a comment."""
    out = []
    for place, node in enumerate(tree.body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)] if target else []
        if not names or not all(name.isupper() for name in names):
            continue
        numbers = [n for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
        if not any(isinstance(n.value, int | float) and n.value is not True for n in numbers):
            continue
        below = tree.body[place + 1] if place + 1 < len(tree.body) else None
        sentence = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        lines = range(node.lineno - 1, (node.end_lineno or node.lineno) + 1)
        if not sentence and not any(line in said for line in lines):
            out.append((node.lineno, f"constant: {', '.join(names)} has no reason"))
    return out


def numbers(tree: ast.Module, said: dict[int, str]) -> list[tuple[int, str]]:
    """Floats in functions that nothing explains."""
    out = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        defaults = {id(n) for d in function.args.defaults for n in ast.walk(d)}
        defaults |= {id(n) for d in function.args.kw_defaults if d for n in ast.walk(d)}
        for node in ast.walk(function):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, float):
                continue
            if id(node) in defaults or node.value in PLAIN or node.value in GUARDS:
                continue
            if node.lineno not in said and node.lineno - 1 not in said:
                out.add((node.lineno, f"number: {node.value!r} has no name and no comment"))
    return sorted(out)


def columns(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.split("\n"), 1)
    return [(at, f"columns: {len(line)}") for at, line in lines if len(line) > COLUMNS]


def check(path: Path) -> list[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    tree, said = ast.parse(text), comments(text)
    rules = (long_functions, constants, numbers)
    return sorted([found for rule in rules for found in rule(tree, said)] + columns(text))


def figures(files: list[Path]) -> None:
    """Files, lines, comments per 100 lines, share of docstrings, lines over 88 columns, per
    room."""
    rows: dict[str, list[int]] = defaultdict(lambda: [0] * 5)
    for path in files:
        text = path.read_text(encoding="utf-8")
        parts = path.resolve().relative_to(SOURCE).parts
        documented = 0
        for node in ast.walk(ast.parse(text)):
            value = getattr(node, "value", None)
            if isinstance(node, ast.Expr) and isinstance(value, ast.Constant):
                documented += (node.end_lineno or node.lineno) - node.lineno + 1
        lines = text.split("\n")[:-1]
        wide = sum(len(line) > 88 for line in lines)
        for room in (parts[0] if len(parts) > 1 else "(top)", "total"):
            for i, count in enumerate((1, len(lines), len(comments(text)), documented, wide)):
                rows[room][i] += count
    print("| room | files | lines | comments per 100 lines | docstrings | over 88 columns |")
    print("|---|---|---|---|---|---|")
    for room, (count, lines, said, documented, wide) in rows.items():
        shares = f"{100 * said / lines:.1f} | {documented / lines:.0%} | {wide / lines:.1%}"
        print(f"| {room} | {count} | {lines:,} | {shares} |")


def main(arguments: list[str]) -> int:
    names = [Path(name) for name in arguments if not name.startswith("--")] or [SOURCE]
    files = [f for name in names for f in (sorted(name.rglob("*.py")) if name.is_dir() else [name])]
    if "--figures" in arguments:
        figures(files)
        return 0
    found = [(path, line, what) for path in files for line, what in check(path)]
    for path, line, what in found:
        print(f"{path.resolve().relative_to(ROOT)}:{line}: {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
