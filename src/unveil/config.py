"""Options of a command from one TOML file. Every option may stand there under its own name, with _
or - between words.

    k_private = 2
    m = "100:2000"
    private = "data/private.csv"      # paths are relative to the file

An option on the command line wins over the file. An unknown key is an error that names the one that
was probably meant.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Collection, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from unveil.checks import InputError
from unveil.engine.files import must_be_file

LARGEST = 1 << 20
"""Bytes of a file of options: a thousand times what all of them take."""
_WORDS: dict[type, str] = {
    bool: "true or false",
    float: "a finite number",
    int: "a whole number",
    str: "text in quotation marks",
}


def read_config(
    path: str | Path, known: Mapping[str, tuple[type, ...]], paths: Collection[str] = ()
) -> dict[str, Any]:
    """The options of the file by name. known: the types each may have; `paths` are those that name
    files."""
    path = Path(path)
    must_be_file(path)
    # Data given by mistake for options would take minutes to refuse otherwise.
    if path.stat().st_size > LARGEST:
        raise InputError(
            f"{path.name} has {path.stat().st_size:,} bytes: give a file of options, at most "
            f"{LARGEST:,}"
        )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path.name} is not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text: save it as UTF-8") from None
    out: dict[str, Any] = {}
    # Every key is judged by itself, so that the sentence names the one that is wrong.
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in known:
            raise InputError(_unknown(path, key, name, known))
        if name in out:
            raise InputError(f"{path.name} says {name} twice: keep one of them")
        if isinstance(value, (dict, list)):
            raise InputError(f"{path.name}: {key} must be one value, not a table or a list")
        if type(value) not in known[name] or (isinstance(value, float) and not isfinite(value)):
            kinds = " or ".join(
                _WORDS[kind] for kind in known[name] if kind is not int or float not in known[name]
            )
            raise InputError(f"{path.name}: {key} = {_as_written(value):.40} must be {kinds}")
        out[name] = _beside(path, value) if name in paths else value
    return out


def _unknown(path: Path, key: str, name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    cure = f"did you mean {close[0]}?" if close else f"choose from {', '.join(sorted(known))}"
    return f"{path.name} has no option {key!r}: {cure}"


def _as_written(value: Any) -> str:
    """As it stands in the file: text in quotation marks, true and false in small letters."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def _beside(path: Path, value: Any) -> Any:
    """A relative path is one beside the file; names of bundled data and functions stay as they
    are."""
    if not isinstance(value, str):
        return value
    # Relative to the file, not to where the command was called: a file of options travels with its
    # data.
    beside = path.parent / value
    return str(beside) if "/" in value or beside.exists() else value
