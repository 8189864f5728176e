"""Commands that are killed, run out of disk, or run twice at once: nothing is lost, and no half of
a file is read as a whole.

Every child is forked. It dies at the n-th thing it does to the file system, for every
n there is; or in the middle of a file, at a size that the system sets; or when somebody kills it.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import unveil
from unveil import cli
from unveil.engine import files, runs
from unveil.engine.files import PART

CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "shutil.rmtree",
    "tempfile.mkstemp",
    "tempfile.mkdtemp",
}
SMALL = ["--n-private", 6, "--m", 20, "--d", 30, "--seed", 0]
QUICK = ["--attack", "paper"]
"""What an attack finds does not matter here, what it leaves on the disk does."""
PATIENCE = 60.0


def call(*args: object) -> int:
    return CliRunner().invoke(cli.main, [str(arg) for arg in args]).exit_code


def start(folder: Path, *args: object, die_at: int = 0, at_size: int = 0, full_at: int = 0) -> int:
    """A command in a process of its own.

    die_at: it dies at this change of the file system; at_size: at this many bytes of a file;
    full_at: no file gets more.
    """
    process = os.fork()
    if process == 0:
        try:
            _work(folder, args, die_at, at_size, full_at)
        finally:
            os._exit(99)
    return process


def end(process: int, within: float = PATIENCE) -> int:
    """Its exit code, or minus the signal that ended it; when time is up, it is killed."""
    limit = time.monotonic() + within
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > limit:
            os.kill(process, signal.SIGKILL)
            limit += PATIENCE
        time.sleep(0.002)


def _work(
    folder: Path | str, args: Sequence[object], die_at: int, at_size: int, full_at: int
) -> None:
    os.chdir(folder)
    done = 0

    def hook(event: str, values: tuple[Any, ...]) -> None:
        nonlocal done
        writes = (
            event == "open" and isinstance(values[2], int) and values[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if event in CHANGES or writes:
            done += 1
            if done == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    files._sweep.cache_clear()  # as in a new process
    if at_size or full_at:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if at_size else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (at_size or full_at,) * 2)
    elif die_at:
        sys.addaudithook(hook)
    os._exit(call(*args))


def contents(folder: Path) -> dict[str, bytes]:
    """What is there, parts aside: nobody reads those."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and PART not in str(p)
    }


def parts(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.name.endswith(PART)]


def is_whole(path: Path) -> None:
    if path.suffix == ".json":
        files.read_json(path)
    elif path.suffix == ".npy":
        files.read_array(path)
    elif path.name == "recovery.npz":
        runs.read_recovery(path)
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            assert all(archive[name] is not None for name in archive.files)
    elif path.suffix == ".html":
        assert path.read_text().rstrip().endswith("</html>")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    assert call("simulate", folder / "run", *SMALL) == 0
    assert call("attack", folder / "run", "--seed", 1, *QUICK) in (0, 3)
    assert call("score", folder / "run") in (0, 3)
    return folder / "run"


def killed_everywhere(folder: Path, before: Callable[[], None], *args: object) -> int:
    """Kill the command at every change it makes, and look; then let it through. How many there
    were."""
    for change in range(1, 200):
        before()
        old = contents(folder)
        code = end(start(folder, *args, die_at=change))
        for path in folder.rglob("*"):
            if path.is_file() and PART not in str(path):
                is_whole(path)
        if code != -signal.SIGKILL:
            assert code in (0, 3)
            assert not parts(folder)
            return change
        lost = old.keys() - contents(folder).keys()
        assert lost <= {"run/scores.json"}, f"killed at change {change}"
    raise AssertionError("it never came to an end")


def test_simulate_killed_at_every_change(tmp_path: Path) -> None:
    def nothing() -> None:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        assert not list(tmp_path.glob("run"))

    assert killed_everywhere(tmp_path, nothing, "simulate", "run", *SMALL) > 10
    assert {p.name for p in tmp_path.iterdir()} == {"run"}


def test_attack_killed_at_every_change_leaves_old_or_new(run: Path, tmp_path: Path) -> None:
    def fresh() -> None:
        shutil.copytree(run, tmp_path / "run", dirs_exist_ok=True)

    assert killed_everywhere(tmp_path, fresh, "attack", "run", "--seed", 2, *QUICK) > 8
    assert json.loads((tmp_path / "run/manifest.json").read_text())["attack"]["seed"] == 2
    assert not (tmp_path / "run/scores.json").exists()


def test_score_killed_at_every_change(run: Path, tmp_path: Path) -> None:
    def fresh() -> None:
        shutil.copytree(run, tmp_path / "run", dirs_exist_ok=True)

    assert killed_everywhere(tmp_path, fresh, "score", "run") > 2


@pytest.mark.parametrize("target", ["t.csv", "t.html", "t.npz"])
def test_export_killed_at_every_change(target: str, run: Path, tmp_path: Path) -> None:
    def fresh() -> None:
        shutil.copytree(run, tmp_path / "run", dirs_exist_ok=True)

    assert killed_everywhere(tmp_path, fresh, "export", "run", target) > 2
    is_whole(tmp_path / target)


def test_audit_killed_at_every_change_leaves_old_or_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = unveil.audit(np.random.default_rng(0).standard_normal((8, 5)), m=40, seeds=1, rng=0)
    monkeypatch.setattr("unveil.auditing.audit.audit", lambda *_, **__: found)
    np.save(tmp_path / "x.npy", np.eye(8, 5))

    def fresh() -> None:
        shutil.rmtree(tmp_path / "new", ignore_errors=True)

    for before in (fresh, lambda: None):
        assert (
            killed_everywhere(tmp_path, before, "audit", "--private", "x.npy", "--out", "new") > 4
        )
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"audit.json", "report.html"}


@pytest.mark.parametrize("how", ["at_size", "full_at"])
@pytest.mark.parametrize("size", [1, 1000, 2500])
def test_a_file_cut_short_is_never_a_file(how: str, size: int, run: Path, tmp_path: Path) -> None:
    """The process dies at that byte, or the disk is full there."""
    shutil.copytree(run, tmp_path / "run")
    old = contents(tmp_path)
    cut = -signal.SIGXFSZ if how == "at_size" else 2
    for args in (
        ["simulate", "new", *SMALL],
        ["attack", "run", *QUICK],
        ["attack", "run", "--out", "found", *QUICK],
    ):
        if size < 2500 or args[0] == "simulate":
            assert end(start(tmp_path, *args, **{how: size})) == cut
            assert contents(tmp_path) == old
    if how == "full_at":
        assert not parts(tmp_path)
    assert call("attack", tmp_path / "run", *QUICK) in (0, 3)
    assert call("simulate", tmp_path / "new", *SMALL) == 0
    assert call("attack", tmp_path / "run", "--out", tmp_path / "found", *QUICK) in (0, 3)


def test_two_at_once_leave_one_of_the_two(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    jobs = [["attack", "run", "--seed", seed, *QUICK] for seed in (5, 6, 7, 8)] + [
        ["simulate", "new", *SMALL]
    ] * 4
    codes = [end(process) for process in [start(tmp_path, *args) for args in jobs]]
    assert set(codes[:4]) <= {0, 3}
    assert sorted(codes[4:]) == [0, 2, 2, 2]
    assert not parts(tmp_path)
    assert json.loads((tmp_path / "run/manifest.json").read_text())["attack"]["seed"] in (
        5,
        6,
        7,
        8,
    )
    runs.read_recovery(tmp_path / "run/recovery.npz")
    assert call("attack", tmp_path / "new", *QUICK) in (0, 3)


def test_an_attack_waits_while_the_run_is_scored(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    old = contents(tmp_path / "run")
    holder = os.fork()
    if holder == 0:
        with files.alone(tmp_path / "run"):
            (tmp_path / "held").touch()
            while not (tmp_path / "enough").exists():
                time.sleep(0.01)
        os._exit(0)
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    process = start(tmp_path, "attack", "run", "--seed", 9, *QUICK)
    time.sleep(1.0)  # it takes a tenth of that
    assert contents(tmp_path / "run") == old
    (tmp_path / "enough").touch()
    assert end(holder) == 0
    assert end(process) in (0, 3)
    assert json.loads((tmp_path / "run/manifest.json").read_text())["attack"]["seed"] == 9
