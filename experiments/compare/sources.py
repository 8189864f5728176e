"""What an attack is made of: a name for its code, and for all of the package that it stands on.

A result that is kept on disk is good as long as that code is the same. Found by reading the imports
of files, from the attack's own file on; other packages do not count.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from inspect import getsourcefile, unwrap
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[2]
"""The folder of the package, two above this one: code outside it does not count."""


def code_fingerprint(*functions: Callable[..., Any]) -> str:
    """The same as long as nothing changes in the files of these functions and in what they import
    of this package."""
    todo = [Path(getsourcefile(unwrap(function)) or __file__).resolve() for function in functions]
    seen: set[Path] = set()
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += _imported(path.read_text(encoding="utf-8"))
    digest = hashlib.sha256()
    for path in sorted(seen):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


# By the text, so that a change is seen: attacks share most of the package, which is read once.
@lru_cache(maxsize=1024)
def _imported(text: str) -> tuple[Path, ...]:
    """Files of this package that a file imports, also inside its functions."""
    return tuple(_named(ast.parse(text)))


def _named(tree: ast.AST) -> Iterator[Path]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            room, *parts = name.split(".")
            if room == PACKAGE.name and parts:
                path = PACKAGE.joinpath(*parts)
                yield from (
                    file
                    for file in (path.with_suffix(".py"), path / "__init__.py")
                    if file.is_file()
                )
