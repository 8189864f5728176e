"""The user's own encoder from a file: a function, or an object with a method `encode`."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def load_encoder(text: str) -> Callable[..., Any]:
    """NAME of FILE.py as encoder(private, public, rng); the file is run, as any program of the
    user's."""
    from unveil.checks import InputError

    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file or path.suffix != ".py":
        raise InputError(f"--encoder {text}: give FILE.py:NAME, a file and a function in it")
    if not path.is_file():
        raise InputError(f"--encoder {text}: no file {file}; check the path")
    found = getattr(_module(path, text), name, None)
    # A class stands for the object it makes: nobody wants to write an instance into the file for
    # our sake.
    if inspect.isclass(found):
        try:
            found = found()
        except Exception as error:
            raise InputError(
                f"--encoder {text}: making a {name} failed with {type(error).__name__}: {error}; "
                "give an object that is ready, or a function"
            ) from error
    encode = getattr(found, "encode", found)
    if not callable(encode):
        raise InputError(
            f"--encoder {text}: {path.name} has no function {name}, and no object of that name "
            "with a method encode(private, public, rng)"
        )
    return _quietly(encode)


def _quietly(encoder: Callable[..., Any]) -> Callable[..., Any]:
    """What the encoder prints goes to stderr: stdout holds the verdict, or one JSON object."""

    @functools.wraps(encoder)
    def quiet(*args: Any, **named: Any) -> Any:
        with contextlib.redirect_stdout(sys.stderr):
            return encoder(*args, **named)

    return quiet


def _module(path: Path, text: str) -> Any:
    from unveil.checks import InputError

    spec = importlib.util.spec_from_file_location(f"_encoder_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Known by name while it runs: dataclasses and pickles in it look themselves up.
    sys.modules[spec.name] = module
    try:
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(
            f"--encoder {text}: running the file failed with {type(error).__name__}: {error}"
        ) from error
    return module
