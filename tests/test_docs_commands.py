"""What README and docs tell a reader to type: every command is known, its options exist, and the
quick ones run as printed. The others run in `make commands`."""

import importlib.util
import re
import shlex

import click
import pytest
from click.testing import CliRunner
from tools.docs_commands import (
    ELSEWHERE,
    PAGES,
    QUICK,
    ROOT,
    all_commands,
    elsewhere,
    make_room,
    prepare,
    run,
)

from unveil.cli import main

FOUND = list(all_commands())
UNVEIL = sorted({command for _, command in FOUND if command.startswith("unveil")})
FAST = [command for command in dict.fromkeys(c for _, c in FOUND) if command.startswith(QUICK)]


def test_commands_are_found_where_they_are_printed():
    by_page = {page.name for page, _ in FOUND}
    assert {"README.md", "CONTRIBUTING.md", "audit.md", "quickstart.md"} <= by_page
    assert len(UNVEIL) >= 20


def test_nothing_is_excused_that_is_not_there():
    used = [start for start in ELSEWHERE if any(c.startswith(start) for _, c in FOUND)]
    assert used == list(ELSEWHERE)


@pytest.mark.parametrize("command", UNVEIL)
def test_its_options_exist(command):
    """Click reads the line as it would, and runs nothing."""
    words = shlex.split(command.split(" > ")[0])[1:]
    name, *arguments = words or ["--help"]
    chosen = main.commands[name]
    # The eager option that reads a file of options would open it.
    arguments = [word for word in arguments if word not in ("--config", "audit.toml")]
    chosen.make_context(name, arguments, parent=click.Context(main, obj={"json": False}))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_and_targets_that_a_page_names_exist(page):
    text = page.read_text()
    modules = set(re.findall(r"python -m ((?:benchmarks|examples|tools)\.[\w.]+)", text))
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    targets = set(re.findall(r"`make ([\w-]+)`|^    make ([\w-]+)", text, re.M))
    known = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    missing += [name for pair in targets for name in pair if name and name not in known]
    assert missing == []


def test_a_command_that_is_not_excused_is_run_here_or_by_make_commands():
    assert [c for c in FAST if elsewhere(c)] == [c for c in FAST if c.startswith(tuple(ELSEWHERE))]
    assert "make commands" in (ROOT / ".ci" / "run").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("reader")
    prepare(place)
    return place


@pytest.mark.parametrize("command", [command for command in FAST if not elsewhere(command)])
def test_a_quick_command_runs_as_printed(command, folder, monkeypatch):
    if not command.startswith("unveil"):
        assert run(command, folder) == 0
        return
    # In this process: loading the compiled kernels anew would take most of the time.
    monkeypatch.chdir(folder)
    make_room(command, folder)
    result = CliRunner().invoke(main, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
