"""Unveil: what can be recovered of private data from its InstaHide encodings?

Names load when first used, so that `import unveil` stays light; `__init__.pyi` says where each of
them lives, for type checkers and for `_homes`.
"""

import logging
from ast import ImportFrom, parse
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@cache
def _homes() -> dict[str, str]:
    """The module that each public name lives in, as the stub beside this file says."""
    lines = parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    imports = [line for line in lines if isinstance(line, ImportFrom)]
    return {name.name: f"unveil.{line.module}" for line in imports for name in line.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes())
    if name not in _homes():
        raise AttributeError(f"module 'unveil' has no attribute {name!r}")
    return getattr(import_module(_homes()[name]), name)


def __dir__() -> list[str]:
    return sorted(_homes())


# Silent until somebody listens: Python prints warnings of loggers without any handler.
logging.getLogger("unveil").addHandler(logging.NullHandler())
