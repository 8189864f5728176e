"""Names load when first used: importing the package and asking for help stay quick."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import unveil

HEAVY = ("numpy", "numba", "scipy", "matplotlib", "PIL", "jinja2")


def loaded_after(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after `code`."""
    tell = "import sys; print('\\n' + ' '.join({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{tell}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.splitlines()[-1].split())


def test_the_package_is_light() -> None:
    assert not loaded_after("import unveil").intersection(HEAVY)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_command_line_is_light(option: str) -> None:
    code = (
        f"from unveil.cli import main\ntry:\n    main(['{option}'])\nexcept SystemExit:\n    pass"
    )
    loaded = loaded_after(code)
    assert "unveil" in loaded
    assert not loaded.intersection(HEAVY)


@pytest.mark.parametrize("name", unveil.__all__)
def test_every_name_resolves(name: str) -> None:
    assert getattr(unveil, name) is not None
    assert name in dir(unveil)


def test_type_checkers_see_the_names_that_there_are() -> None:
    stub = Path(unveil.__file__).with_suffix(".pyi").read_text()
    told = next(node for node in ast.parse(stub).body if isinstance(node, ast.Assign))
    assert unveil.__all__ == sorted(ast.literal_eval(told.value))


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        unveil.nonsense  # noqa: B018
