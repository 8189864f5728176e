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
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from unveil.checks import InputError
from unveil.engine.files import must_be_file


def read_config(
    path: Path,
    options: Sequence[click.Parameter],
    paths: Collection[str] = (),
    largest: int = 1 << 20,
) -> dict[str, Any]:
    """What the file says of the options of a command, by their names. paths: those that name files;
    largest: bytes of a file, a thousand times what all options take."""
    must_be_file(path)
    # Data given by mistake for options would take minutes to refuse otherwise.
    if path.stat().st_size > largest:
        raise InputError(f"{path.name} has more than {largest:,} bytes: give a file of options")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text: save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path.name} is not valid TOML: {error}") from None
    # An option may have an older name: a file may say either.
    known = {text.lstrip("-").replace("-", "_"): one for one in options for text in one.opts}
    known.pop("config", None)
    out: dict[str, Any] = {}
    for key, value in content.items():
        written = key.replace("-", "_")
        if written not in known:
            close = difflib.get_close_matches(written, known, n=1, cutoff=0.5)
            others = f"choose from {', '.join(sorted(known))}"
            cure = f"did you mean {close[0]}?" if close else others
            raise InputError(f"{path.name} has no option {key!r}: {cure}")
        name, flag = str(known[written].name), getattr(known[written], "is_flag", False)
        if name in out:
            raise InputError(f"{path.name} says {name} twice: keep one of them")
        if not isinstance(value, (bool, int, float, str)):
            raise InputError(f"{path.name}: {key} must be one number, word, true or false")
        if isinstance(value, bool) != flag:
            kind = "true or false" if flag else "a number or a word"
            raise InputError(f"{path.name}: {key} must be {kind}")
        # Relative to the file, not to where the command was called: it travels with its data.
        # Names of bundled data stay as they are.
        if name in paths and isinstance(value, str):
            beside = path.parent / value
            value = beside if "/" in value or beside.exists() else value
        out[name] = value if flag else str(value)
    return out
