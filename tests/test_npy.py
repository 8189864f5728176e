"""Arrays in files: measured before they are unpacked, and called what they are. Round trips are in
test_store."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy_format

from unveil import npy
from unveil.data import load_dataset, load_vectors
from unveil.parallel import using
from unveil.records import InputError


def header(shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    out = io.BytesIO()
    npy_format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue()


def packed(path: Path, rows: int, columns: int, dtype: str = "<f4") -> None:
    np.savez_compressed(path, x=np.zeros((rows, columns), dtype))


def test_a_small_archive_of_a_large_array_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    packed(tmp_path / "a.npz", 4000, 4000)
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
    with pytest.raises(InputError, match="memory_limit"):
        load_dataset(tmp_path / "a.npz", limit=10 << 20, rng=np.random.default_rng(0))


def test_the_copy_as_float32_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapped file takes no memory, but bytes become four times as many."""
    monkeypatch.setattr(npy, "_MAP_FROM", 1)
    for dtype, fits in (("<f4", True), ("|u1", False), (">f4", False)):
        np.save(tmp_path / "a.npy", np.ones((1000, 1000), dtype))
        with using(memory_limit=3 << 20):
            if fits:
                assert load_vectors(tmp_path / "a.npy").shape == (1000, 1000)
            else:
                with pytest.raises(InputError, match=r"a\.npy as float32 would take 3\.8 MiB"):
                    load_vectors(tmp_path / "a.npy")
            few = load_dataset(
                tmp_path / "a.npy", sample=10, limit=1 << 20, rng=np.random.default_rng(0)
            )
            assert few.values.shape == (10, 1000)


@pytest.mark.parametrize(
    "shape", [(10**6, 10**6), (2**62, 4), (-1, 4), (2**70, 0), (1,) * 70, (10**5, 10)]
)
def test_a_header_that_promises_too_much(shape: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(header(shape) + bytes(100))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header(shape) + bytes(100))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(InputError, match="truncated or damaged"):
            npy.read_array(tmp_path / name)


KINDS = {
    "empty": (b"", "is empty"),
    "random": (np.random.default_rng(0).bytes(500), "no known format"),
    "zeros": (bytes(500), "no known format"),
    "like a pickle": (b"\x80\x99" + bytes(50), "no known format"),
    "pickle": (b"\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00]\x94K\x01a.", "is a pickle"),
    "page": (b"<!DOCTYPE html><html>404", "but text"),
    "table": ("größe,1\n2,3\n".encode(), "give it the suffix .csv"),
    "image": (b"\x89PNG\r\n\x1a\n" + bytes(30), "a PNG image"),
    "hdf": (b"\x89HDF\r\n\x1a\n" + bytes(30), "an HDF5 file"),
    "gzip": (b"\x1f\x8b\x08" + bytes(30), "a gzip file"),
}


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".dat"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_array_is_called_what_it_is(kind: str, suffix: str, tmp_path: Path) -> None:
    content, words = KINDS[kind]
    (tmp_path / f"a{suffix}").write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        npy.read_array(tmp_path / f"a{suffix}")
    assert "\n" not in str(caught.value)
    assert ("pickle" in str(caught.value)) == (kind == "pickle")


def test_an_array_in_disguise(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    with pytest.raises(InputError, match=r"give it the suffix \.npy"):
        npy.read_array(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["packed.npz", "stored.npz", "plain.npy"])
def test_damage_anywhere_is_told_in_one_sentence(name: str, tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal((4, 5))
    np.savez_compressed(tmp_path / "packed.npz", x=array)
    np.savez(tmp_path / "stored.npz", x=array)
    np.save(tmp_path / "plain.npy", array)
    content = (tmp_path / name).read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for place in range(0, len(content), 3):
        changed = bytearray(content)
        changed[place] ^= int(rng.integers(1, 256))
        (tmp_path / name).write_bytes(changed)
        try:
            npy.read_array(tmp_path / name)
        except InputError:
            refused += 1
    assert refused > (35 if name == "packed.npz" else 13)
