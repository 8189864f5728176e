"""Options of a command from one TOML file. Every option may stand there under its own name, with _
or - between words.

    k_private = 2
    m = "100:2000"
    private = "data/private.csv"      # paths are relative to the file

An option on the command line wins over the file. Values are checked as those of the command line
are. An unknown key is an error that names the one that was probably meant.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from unveil.checks import InputError
from unveil.engine.files import must_be_file


def read_config(
    path: str | Path, known: Collection[str], paths: Collection[str] = (), largest: int = 1 << 20
) -> dict[str, Any]:
    """The options of the file by name. known: all there are; `paths` are those that name files;
    largest: bytes of a file, a thousand times what all options take."""
    path = Path(path)
    must_be_file(path)
    # Data given by mistake for options would take minutes to refuse otherwise.
    if path.stat().st_size > largest:
        raise InputError(f"{path.name} has more than {largest:,} bytes: give a file of options")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path.name} is not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text: save it as UTF-8") from None
    out: dict[str, Any] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            others = f"choose from {', '.join(sorted(known))}"
            cure = f"did you mean {close[0]}?" if close else others
            raise InputError(f"{path.name} has no option {key!r}: {cure}")
        if name in out:
            raise InputError(f"{path.name} says {name} twice: keep one of them")
        if not isinstance(value, (bool, int, float, str)):
            raise InputError(f"{path.name}: {key} must be one number, word, true or false")
        # Relative to the file, not to where the command was called: it travels with its data.
        # Names of bundled data stay as they are.
        if name in paths and isinstance(value, str):
            beside = path.parent / value
            value = str(beside) if "/" in value or beside.exists() else value
        out[name] = value
    return out
