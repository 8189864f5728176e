"""Files as such: what a path is, written whole or not at all, and nothing of a lost writer
stays."""

from __future__ import annotations

import errno
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from unveil import files
from unveil.files import PART, alone, must_be_file, whole, whole_folder, whole_set
from unveil.records import InputError


def lost_part(folder: Path, name: str) -> Path:
    """What a killed writer leaves, made by killing one."""
    process = os.fork()
    if process == 0:
        with whole(folder / name) as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    files._sweep.cache_clear()
    (part,) = [p for p in folder.iterdir() if p.name.endswith(PART)]
    assert part.read_bytes() == b"half"
    return part


def make(kind: str, path: Path) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        place = os.getcwd()
        os.chdir(path.parent)  # the name of a socket must be short
        socket.socket(socket.AF_UNIX).bind(path.name)
        os.chdir(place)
    elif kind == "folder":
        path.mkdir()
    else:
        os.symlink({"device": "/dev/zero", "itself": path.name, "nothing": "nowhere"}[kind], path)


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device", "itself", "nothing"])
def test_only_files_are_opened(kind: str, tmp_path: Path) -> None:
    make(kind, tmp_path / "x")
    with pytest.raises(InputError, match=f"{kind}.*check the path"):
        must_be_file(tmp_path / "x")


def test_names_that_cannot_be(tmp_path: Path) -> None:
    for name in ("no", "a\0b", "a" * 300, "file/below"):
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match="check the path"):
            must_be_file(tmp_path / name)
    must_be_file(tmp_path / "file")


class TestParts:
    def test_a_lost_writers_part_goes_with_the_next_file(self, tmp_path: Path) -> None:
        lost_part(tmp_path, "a.json")
        with whole(tmp_path / "b.json") as file:
            file.write(b"{}")
        assert [p.name for p in tmp_path.iterdir()] == ["b.json"]

    def test_a_lost_folder_goes_too(self, tmp_path: Path) -> None:
        process = os.fork()
        if process == 0:
            with whole_folder(tmp_path / "run") as part:
                (part / "x").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(process, 0)
        assert not (tmp_path / "run").exists()
        assert len(list(tmp_path.iterdir())) == 1
        files._sweep.cache_clear()
        with whole_folder(tmp_path / "run") as part:
            (part / "y").touch()
        assert [p.name for p in tmp_path.iterdir()] == ["run"]
        assert [p.name for p in (tmp_path / "run").iterdir()] == ["y"]

    def test_what_is_being_written_stays(self, tmp_path: Path) -> None:
        with whole(tmp_path / "a") as one, whole_folder(tmp_path / "run") as folder:
            one.write(b"one")
            (folder / "x").write_bytes(b"two")
            files._sweep.cache_clear()
            with whole(tmp_path / "b") as other:
                other.write(b"three")
        assert (tmp_path / "a").read_bytes() == b"one"
        assert (tmp_path / "run/x").read_bytes() == b"two"
        assert (tmp_path / "b").read_bytes() == b"three"

    def test_other_hidden_files_are_left_alone(self, tmp_path: Path) -> None:
        for name in (".a.part", ".a.json-x", "a" + PART):
            (tmp_path / name).touch()
        with whole(tmp_path / "b"):
            pass
        assert len(list(tmp_path.iterdir())) == 4

    def test_a_disk_that_is_full_at_the_end_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        (tmp_path / "a").write_bytes(b"old")
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"), whole(tmp_path / "a") as file:
            file.write(b"new")
        assert [p.name for p in tmp_path.iterdir()] == ["a"]
        assert (tmp_path / "a").read_bytes() == b"old"


class TestSets:
    def test_all_enter_together_and_what_no_longer_holds_goes(self, tmp_path: Path) -> None:
        (tmp_path / "scores").write_text("old")
        (tmp_path / "a").write_text("old")
        with whole_set(tmp_path, instead_of=("scores", "not there")) as part:
            for name in "ab":
                (part / name).write_text("new")
            assert (tmp_path / "a").read_text() == "old"
        assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "new", "b": "new"}

    def test_none_enters_when_one_fails(self, tmp_path: Path) -> None:
        (tmp_path / "scores").write_text("old")

        def fail() -> None:
            with whole_set(tmp_path, instead_of=("scores",)) as part:
                (part / "a").write_text("new")
                raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            fail()
        assert [p.name for p in tmp_path.iterdir()] == ["scores"]

    def test_one_at_a_time(self, tmp_path: Path) -> None:
        order: list[str] = []

        def second() -> None:
            with alone(tmp_path):
                order.append("second")

        with alone(tmp_path):
            other = threading.Thread(target=second)
            other.start()
            time.sleep(0.05)
            order.append("first")
        other.join(10)
        assert order == ["first", "second"]


def test_a_folder_that_somebody_else_fills_meanwhile(tmp_path: Path) -> None:
    def work() -> None:
        with whole_folder(tmp_path / "run") as part:
            (part / "mine").touch()
            (tmp_path / "run").mkdir()
            (tmp_path / "run/theirs").touch()

    with pytest.raises(InputError, match="choose another name"):
        work()
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["theirs"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
