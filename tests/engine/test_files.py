"""Files: written whole or not at all, nothing of a lost writer stays; arrays measured before they are
unpacked, and never a pickle."""

import errno
import io
import os
import pickle
import shutil
import signal
import socket
import threading
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy_format

from unveil.checks import InputError
from unveil.data import load_dataset, load_vectors
from unveil.encodings import Encodings
from unveil.engine import files
from unveil.engine.blocks import using
from unveil.engine.files import PART, alone, read_array, whole, whole_folder, whole_set
from unveil.scheme import Scheme


def make(kind, path):
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
def test_only_files_are_opened(kind, tmp_path):
    make(kind, tmp_path / "x")
    with pytest.raises(InputError, match=f"{kind}.*check the path"):
        files.must_be_file(tmp_path / "x")
    (tmp_path / "file").touch()
    for name in ("no", "a\0b", "a" * 300, "file/below"):
        with pytest.raises(InputError, match="check the path"):
            files.must_be_file(tmp_path / name)


def killed(work):
    """Runs `work` in a process that kills itself where it calls its argument."""
    process = os.fork()
    if process == 0:
        work(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    files._sweep.cache_clear()


def test_what_a_killed_writer_left_goes_with_the_next_file(tmp_path):
    def file(kill):
        with whole(tmp_path / "a.json") as out:
            out.write(b"half")
            out.flush()
            kill()

    def folder(kill):
        with whole_folder(tmp_path / "run") as part:
            (part / "x").touch()
            kill()

    for work in (file, folder):
        killed(work)
        assert all(path.name.endswith(PART) for path in tmp_path.iterdir())
    for name in (".a.part", "a" + PART):  # not ours
        (tmp_path / name).touch()
    with whole(tmp_path / "b.json") as out, whole_folder(tmp_path / "run") as part:
        out.write(b"{}")
        (part / "y").touch()
        files._sweep.cache_clear()
        with whole(tmp_path / "c"):  # what is being written stays
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [".a.part", "a" + PART, "b.json", "c", "run"]
    )
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["y"]


@pytest.mark.parametrize("fault", ["fsync", "write", "interrupt"])
def test_a_full_disk_or_an_interrupt_leaves_the_old_file_alone(fault, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def work():
        with whole(tmp_path / "a") as file:
            if fault == "interrupt":
                raise KeyboardInterrupt
            file.write(b"new")
            if fault == "write":
                full()

    (tmp_path / "a").write_bytes(b"old")
    if fault == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises((OSError, KeyboardInterrupt)):
        work()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_set_enters_together_or_not_at_all(tmp_path):
    for name in ("scores", "a"):
        (tmp_path / name).write_text("old")
    with pytest.raises(OSError, match="full"), whole_set(tmp_path, instead_of=("scores",)) as part:  # noqa: PT012
        (part / "a").write_text("new")
        raise OSError("disk full")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "scores"]
    with whole_set(tmp_path, instead_of=("scores", "not there")) as part:
        for name in "ab":
            (part / name).write_text("new")
        assert (tmp_path / "a").read_text() == "old"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "new", "b": "new"}


def test_two_writers(tmp_path):
    order = []

    def second():
        with alone(tmp_path):
            order.append("second")

    with alone(tmp_path):
        other = threading.Thread(target=second)
        other.start()
        time.sleep(0.05)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]
    # A folder that somebody else fills meanwhile stays theirs.
    with (  # noqa: PT012
        pytest.raises(InputError, match="choose another name"),
        whole_folder(tmp_path / "run") as part,
    ):
        (part / "mine").touch()
        (tmp_path / "run").mkdir()
        (tmp_path / "run/theirs").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i8", "?"])
def test_arrays_come_back(dtype, tmp_path):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    files.write_array(tmp_path / "a.npy", array)
    files.write_arrays(tmp_path / "a.npz", {"x": array, "y": np.array("words")})
    for back in (read_array(tmp_path / "a.npy"), read_array(tmp_path / "a.npz", "x")):
        assert back.dtype == array.dtype
        assert np.array_equal(back, array)
        assert not isinstance(back, np.memmap)
    assert str(read_array(tmp_path / "a.npz", "y")) == "words"
    with pytest.raises(InputError, match="holds 2 arrays"):
        read_array(tmp_path / "a.npz")
    with pytest.raises(InputError, match="no array 'z'"):
        read_array(tmp_path / "a.npz", "z")
    np.save(tmp_path / "none.npy", array[:0])
    assert read_array(tmp_path / "none.npy").shape == (0, 4)
    mapped = read_array(tmp_path / "a.npy", map_from=1)
    assert isinstance(mapped, np.memmap)
    assert isinstance(Encodings(mapped, Scheme()).values, np.memmap) == (dtype == "f4")
    with pytest.raises(ValueError, match="allow_pickle"):
        files.write_array(tmp_path / "b.npy", np.array([{}], dtype=object))
    assert not (tmp_path / "b.npy").exists()


def test_a_small_archive_of_a_large_array_is_refused_before_it_is_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((4000, 4000), np.float32))
    assert (tmp_path / "a.npz").stat().st_size < 100_000
    tracemalloc.start()
    with using(memory_limit=10 << 20), pytest.raises(InputError) as caught:
        load_vectors(tmp_path / "a.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    for words in ("a.npz", "61.0 MiB", "10.0 MiB", "fewer rows", "memory_limit"):
        assert words in str(caught.value)
    with using(memory_limit=70 << 20):
        assert load_vectors(tmp_path / "a.npz").shape == (4000, 4000)


def test_the_copy_as_float32_counts(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((1000, 1000), "|u1"))
    with using(memory_limit=3 << 20):
        with pytest.raises(InputError, match=r"a\.npy as float32 would take 4\.8 MiB"):
            load_vectors(tmp_path / "a.npy")
        few = load_dataset(tmp_path / "a.npy", sample=10, rng=np.random.default_rng(0))
        assert few.values.shape == (10, 1000)


@pytest.mark.parametrize("shape", [(10**6, 10**6), (2**62, 4), (-1, 4), (2**70, 0), (10**5, 10)])
def test_a_header_that_promises_too_much(shape, tmp_path):
    header = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(header, about)
    (tmp_path / "a.npy").write_bytes(header.getvalue() + bytes(100))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue() + bytes(100))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(InputError, match="truncated or damaged"):
            read_array(tmp_path / name)


class Bomb:
    def __init__(self, trap):
        self.trap = str(trap)

    def __reduce__(self):
        return os.mkdir, (self.trap,)


def test_pickles_are_never_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([Bomb(tmp_path / "t")], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "b.npz", x=np.array([Bomb(tmp_path / "t")], object), allow_pickle=True)
    for name in ("c.npy", "c.npz"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb(tmp_path / "t")))
    for name, key in (("a.npy", None), ("b.npz", "x"), ("c.npy", None), ("c.npz", None)):
        with pytest.raises(InputError, match="pickle"):
            read_array(tmp_path / name, key)
    assert not (tmp_path / "t").exists()


KINDS = {
    "empty": (b"", "is empty"),
    "random": (np.random.default_rng(0).bytes(500), "no known format"),
    "like a pickle": (b"\x80\x99" + bytes(50), "no known format"),
    "page": (b"<!DOCTYPE html><html>404", "but text"),
    "table": ("größe,1\n2,3\n".encode(), "give it the suffix .csv"),
    "image": (b"\x89PNG\r\n\x1a\n" + bytes(30), "a PNG image"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_array_is_called_what_it_is(kind, tmp_path):
    content, words = KINDS[kind]
    for suffix in (".npy", ".npz", ".dat"):
        (tmp_path / f"a{suffix}").write_bytes(content)
        with pytest.raises(InputError, match=words) as caught:
            read_array(tmp_path / f"a{suffix}")
        assert "\n" not in str(caught.value)
        assert "pickle" not in str(caught.value)


@pytest.mark.parametrize("name", ["packed.npz", "stored.npz", "plain.npy"])
def test_damage_anywhere_is_told_in_one_sentence(name, tmp_path):
    array = np.random.default_rng(0).standard_normal((4, 5))
    np.savez_compressed(tmp_path / "packed.npz", x=array)
    np.savez(tmp_path / "stored.npz", x=array)
    np.save(tmp_path / "plain.npy", array)
    content = (tmp_path / name).read_bytes()
    for length in range(0, len(content) - 1, 9):
        (tmp_path / name).write_bytes(content[:length])
        with pytest.raises(InputError, match=name):
            read_array(tmp_path / name)
    rng, refused = np.random.default_rng(1), 0
    for place in range(0, len(content), 3):
        changed = bytearray(content)
        changed[place] ^= int(rng.integers(1, 256))
        (tmp_path / name).write_bytes(changed)
        try:
            read_array(tmp_path / name)
        except InputError:
            refused += 1
    assert refused > (35 if name == "packed.npz" else 13)


def test_json_and_tables(tmp_path):
    files.write_json(tmp_path / "a.json", {"b": [1, 2.5, None], "a": "Ψ"})
    assert files.read_json(tmp_path / "a.json") == {"a": "Ψ", "b": [1, 2.5, None]}
    for content in (b"", b"{", b"[1]", b"3", b"\xff\xfe{}", b"[" * 99999):
        (tmp_path / "b.json").write_bytes(content)
        with pytest.raises(InputError, match=r"b\.json"):
            files.read_json(tmp_path / "b.json")
    # What a spreadsheet would run is text; numbers stay numbers.
    for text in ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "="):
        files.write_csv(tmp_path / "a.csv", [{"=n": text, "n": -1.5}])
        assert (tmp_path / "a.csv").read_text() == f"'=n,n\n'{text},-1.5\n"
    files.write_csv(tmp_path / "a.csv", [{"a": -1, "b": "-1e-5", "c": None, "d": "x,y"}])
    assert (tmp_path / "a.csv").read_text() == 'a,b,c,d\n-1,-1e-5,,"x,y"\n'


def test_what_was_kept_comes_back_under_its_name_only(tmp_path):
    kept = files.Kept(tmp_path, "facts")
    kept.write((1, 2), {"x": np.arange(30)})
    assert kept.read((1, 2))["x"].tolist() == list(range(30))
    path = kept.folder / "block-1-2.npz"
    shutil.copy(path, kept.folder / "block-3-4.npz")
    assert kept.read((3, 4)) is None
    assert kept.read((5, 6)) is None
    content = path.read_bytes()
    for length in range(0, len(content) - 1, 7):
        path.write_bytes(content[:length])
        assert kept.read((1, 2)) is None


def test_everything_counts_for_the_name():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    other = array.copy()
    other[2, 3] += 1e-6
    inputs = [
        ({"a": 1}, array),
        ({"a": 2}, array),
        ({"a": "1"}, array),
        ({"a": 1}, other),
        ({"a": 1}, array.reshape(4, 3)),
        ({"a": 1}, array.view(np.int32)),
        ({"a": 1}, array, None),
        ({"a": 1}, None, array),
        ({"a": 1}, array[:2], array[2:]),
        ({"a": 1},),
    ]
    assert len({files.name_of(*given) for given in inputs}) == len(inputs)
    same = files.name_of({"b": 2, "a": 1}, np.asfortranarray(array))
    assert same == files.name_of({"a": 1, "b": 2}, array)


def test_readable_by_others_as_usual(tmp_path):
    files.write_text(tmp_path / "a", "x")
    with whole_folder(tmp_path / "run"):
        pass
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644
    assert Path(tmp_path / "run").stat().st_mode & 0o777 == 0o755
