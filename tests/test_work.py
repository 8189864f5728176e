"""Use at work: what the pages say of results, JSON, extras, files and the check before a release."""

import re
import subprocess
import sys
import tomllib
import typing
from inspect import isfunction

import matplotlib
import pytest
from tools.docs_commands import ROOT

import unveil
from unveil.cli import main
from unveil.cli.doctor import EXTRAS
from unveil.report.schema import audit_schema

DOCS = ROOT / "docs"
QUICK, API = ((DOCS / name).read_text() for name in ("quickstart.md", "api.md"))


def test_its_python_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    (code,) = (c for c in re.findall(r"```python\n(.*?)```", QUICK, re.S) if "to_frame" in c)
    exec(compile(code, "quickstart.md", "exec"), {})
    assert {path.name for path in tmp_path.iterdir()} == {"recovered.csv", "recovered.png"}


def test_every_field_of_the_json_is_explained():
    rows = re.findall(r"^\| (`.*?) \|", API, re.M)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    schema = audit_schema()
    fields = set(schema["$defs"]["Audit"]["properties"]) | set(schema["properties"])
    assert fields - told == set()


def test_every_extra_for_users_is_explained_and_examined():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = set(config["project"]["optional-dependencies"]) - {"bench", "docs", "dev"}
    assert extras == set(EXTRAS)
    assert [extra for extra in extras if f"'unveil[{extra}]'" not in QUICK] == []


def test_the_sample_file_has_options_that_exist():
    options = tomllib.loads((ROOT / "examples" / "audit.toml").read_text())
    known = {parameter.name for parameter in main.commands["audit"].params}
    assert set(options) <= known


def test_the_check_for_ci_is_ten_lines_and_valid():
    script = ROOT / "examples" / "prerelease.sh"
    assert len(script.read_text().splitlines()) <= 10
    subprocess.run(["sh", "-n", script], check=True, timeout=10)


@pytest.mark.parametrize(("audit", "check"), [(0, 0), (1, 1), (2, 1)])
def test_the_check_for_ci_stops_a_release_that_leaks_or_was_not_audited(audit, check, tmp_path):
    for name, code in {"unveil": audit, "python": 0}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    script = ROOT / "examples" / "prerelease.sh"
    done = subprocess.run(
        ["/bin/sh", script], cwd=tmp_path, env={"PATH": str(tmp_path)}, timeout=10
    )
    assert done.returncode == check


def test_completion_offers_the_commands():
    words = {"_UNVEIL_COMPLETE": "bash_complete", "COMP_WORDS": "unveil a", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "unveil"],
        env={**words, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stdout.split() == ["plain,attack", "plain,audit"]


@pytest.mark.parametrize("name", [n for n in unveil.__all__ if isfunction(getattr(unveil, n))])
def test_types_of_every_function_are_complete(name):
    function = getattr(unveil, name)
    hints = function.__annotations__
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    assert set(hints) == {*names, "return"}


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "src" / "unveil" / "py.typed").is_file()
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "examples/typed_use.py" in config["tool"]["mypy"]["files"]
    assert config["tool"]["mypy"]["strict"] is True
    assert typing.get_type_hints(unveil.Scheme)


def test_the_container_installs_without_the_network():
    text = (ROOT / "container" / "Containerfile").read_text()
    assert "--no-index --find-links=/wheels" in text
    assert "dist/wheels" in text
    assert "dist/wheels" in (ROOT / "Makefile").read_text()
    assert "--no-index" in (ROOT / "tools" / "check_wheel.sh").read_text()
