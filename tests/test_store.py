"""Files: what is written is read back, what is half-written never appears, what is dangerous is
refused."""

from __future__ import annotations

import csv
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from unveil import files, npy, store
from unveil.checks import InputError
from unveil.encode import simulate
from unveil.encodings import Encodings, Simulation
from unveil.records import Recovery
from unveil.scheme import Scheme


@pytest.fixture
def simulation() -> Simulation:
    scheme = Scheme(k_private=2, k_public=1, weighting="convex", signs="random")
    return simulate(scheme, 6, n_public=4, m=5, d=7, rng=0)


@pytest.fixture
def recovery() -> Recovery:
    rng = np.random.default_rng(0)
    return Recovery(
        vectors=rng.standard_normal((3, 7), dtype=np.float32),
        status=np.array(["verified", "ambiguous", "unresolved"]),
        signed=True,
        members=sparse.csr_array(rng.integers(0, 2, (5, 3)).astype(bool)),
        residual=np.array([0.0, 1e-7, np.inf]),
        reasons=("all agree", "two fit: Σx/k − x", ""),
        attack="paper",
        explanation="one of three",
        seconds={"overlaps": 0.5},
        evidence={"rows": [1, 2], "nats": 12.5},
        explained=4,
        exact=True,
    )


class TestArrays:
    @pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i8", "?"])
    def test_npy_round_trip(self, dtype: str, tmp_path: Path) -> None:
        array = np.arange(12).reshape(3, 4).astype(dtype)
        store.write_array(tmp_path / "a.npy", array)
        back = store.read_array(tmp_path / "a.npy")
        assert back.dtype == array.dtype
        assert np.array_equal(back, array)

    def test_npz_round_trip(self, tmp_path: Path) -> None:
        store.write_arrays(tmp_path / "a.npz", {"x": np.ones(3), "y": np.array("words")})
        assert np.array_equal(store.read_array(tmp_path / "a.npz", "x"), np.ones(3))
        assert str(store.read_array(tmp_path / "a.npz", "y")) == "words"

    def test_npz_of_one_array_needs_no_key(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", only=np.ones(3))
        assert np.array_equal(store.read_array(tmp_path / "a.npz"), np.ones(3))

    def test_npz_of_two_arrays_needs_a_key(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", x=np.ones(3), y=np.ones(3))
        with pytest.raises(InputError, match="holds 2 arrays"):
            store.read_array(tmp_path / "a.npz")
        with pytest.raises(InputError, match="no array 'z'"):
            store.read_array(tmp_path / "a.npz", "z")

    def test_large_files_stay_on_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.write_array(tmp_path / "a.npy", np.ones((8, 8), np.float32))
        assert not isinstance(store.read_array(tmp_path / "a.npy"), np.memmap)
        monkeypatch.setattr(npy, "_MAP_FROM", 1)
        mapped = store.read_array(tmp_path / "a.npy")
        assert isinstance(mapped, np.memmap)
        assert isinstance(Encodings(mapped, Scheme()).values, np.memmap)

    def test_an_archive_in_disguise(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", x=np.ones(3))
        (tmp_path / "a.npz").rename(tmp_path / "a.npy")
        with pytest.raises(InputError, match=r"suffix \.npz"):
            store.read_array(tmp_path / "a.npy")


class TestRefusals:
    def test_missing(self, tmp_path: Path) -> None:
        for name in ("a.npy", "a.npz"):
            with pytest.raises(InputError, match="check the path"):
                store.read_array(tmp_path / name)
        with pytest.raises(InputError, match="check the path"):
            store.read_array(tmp_path)

    def test_pickles_are_never_opened(self, tmp_path: Path) -> None:
        trap = tmp_path / "sprung"
        bomb = pickle.dumps(_Bomb(trap))
        np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
        np.savez(tmp_path / "b.npz", x=np.array([{}], dtype=object), allow_pickle=True)
        for name in ("c.npy", "c.npz"):
            (tmp_path / name).write_bytes(bomb)
        for name, key in (("a.npy", None), ("b.npz", "x"), ("c.npy", None), ("c.npz", None)):
            with pytest.raises(InputError, match="pickle"):
                store.read_array(tmp_path / name, key)
        assert not trap.exists()

    @pytest.mark.parametrize("mapped", [False, True])
    def test_truncated_npy(
        self, mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(npy, "_MAP_FROM", 1 if mapped else 1 << 40)
        np.save(tmp_path / "whole.npy", np.ones((4, 6)))
        whole = (tmp_path / "whole.npy").read_bytes()
        for length in (0, 4, 6, 9, 40, 127, 128, 200, len(whole) - 1):
            (tmp_path / "part.npy").write_bytes(whole[:length])
            with pytest.raises(InputError, match=r"part\.npy"):
                store.read_array(tmp_path / "part.npy")

    def test_truncated_npz(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "whole.npz", x=np.ones((4, 6)), y=np.zeros(3))
        whole = (tmp_path / "whole.npz").read_bytes()
        for length in (0, 3, 10, 100, len(whole) // 2, len(whole) - 1):
            (tmp_path / "part.npz").write_bytes(whole[:length])
            with pytest.raises(InputError, match=r"part\.npz"):
                store.read_array(tmp_path / "part.npz", "x")

    def test_damaged_npz(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", x=np.ones((4, 6)))
        content = bytearray((tmp_path / "a.npz").read_bytes())
        content[200] ^= 0xFF
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"numpy\.save"):
            store.read_array(tmp_path / "a.npz", "x")

    def test_objects_are_not_written(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="allow_pickle"):
            store.write_array(tmp_path / "a.npy", np.array([{}], dtype=object))
        assert list(tmp_path.iterdir()) == []


class TestJson:
    def test_round_trip(self, tmp_path: Path) -> None:
        store.write_json(tmp_path / "a.json", {"b": [1, 2.5, None], "a": "Ψ"})
        assert store.read_json(tmp_path / "a.json") == {"a": "Ψ", "b": [1, 2.5, None]}

    @pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"3", b"\xff\xfe{}"])
    def test_refusals(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.json"):
            store.read_json(tmp_path / "a.json")


class TestScheme:
    @pytest.mark.parametrize("pixel_rms", [1.0, 0.25, None])
    def test_round_trip(self, pixel_rms: float | None, tmp_path: Path) -> None:
        scheme = Scheme(k_private=3, k_public=2, weighting="paper", signs="kept")
        store.write_scheme(tmp_path / "scheme.json", Encodings(np.ones((2, 3)), scheme, pixel_rms))
        assert store.read_scheme(tmp_path / "scheme.json") == (scheme, pixel_rms)

    def test_what_is_left_out_takes_its_default(self, tmp_path: Path) -> None:
        (tmp_path / "scheme.json").write_text('{"k_private": 4}')
        assert store.read_scheme(tmp_path / "scheme.json") == (Scheme(k_private=4), 1.0)

    def test_unknown_keys(self, tmp_path: Path) -> None:
        (tmp_path / "scheme.json").write_text('{"k_privat": 4}')
        with pytest.raises(InputError, match="k_privat: the scheme has k_private"):
            store.read_scheme(tmp_path / "scheme.json")


class TestTables:
    def test_text_that_would_be_a_formula_is_text(self, tmp_path: Path) -> None:
        starts = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "\n=1", "=")
        for text in starts:
            store.write_csv(
                tmp_path / "a.csv", [{"=name": text, "n": -1.5}, {"=name": "plain -1", "n": -2}]
            )
            with (tmp_path / "a.csv").open(newline="") as file:
                assert list(csv.reader(file)) == [
                    ["'=name", "n"],
                    ["'" + text, "-1.5"],
                    ["plain -1", "-2"],
                ]

    def test_numbers_stay_numbers(self, tmp_path: Path) -> None:
        store.write_csv(
            tmp_path / "a.csv",
            [{"a": -1, "b": "-1e-5", "c": "+3", "d": None, "e": 0.1, "f": "x,y"}],
        )
        assert (tmp_path / "a.csv").read_text() == 'a,b,c,d,e,f\n-1,-1e-5,+3,,0.1,"x,y"\n'
        store.write_csv(tmp_path / "none.csv", [])
        assert (tmp_path / "none.csv").read_text().strip() == ""


class TestSimulation:
    def test_round_trip(self, simulation: Simulation, tmp_path: Path) -> None:
        store.write_simulation(tmp_path / "run", simulation, {"seed": 0})
        run = tmp_path / "run"
        assert np.array_equal(store.read_array(run / "encodings.npy"), simulation.encodings.values)
        assert simulation.public is not None
        assert np.array_equal(store.read_array(run / "public.npy"), simulation.public)
        assert np.array_equal(store.read_array(run / "truth.npz", "private"), simulation.private)
        assert np.array_equal(
            store.read_array(run / "truth.npz", "selection_private"), simulation.selection.private
        )
        assert np.array_equal(
            store.read_array(run / "truth.npz", "selection_public"), simulation.selection.public
        )
        assert store.read_scheme(run / "scheme.json") == (simulation.encodings.scheme, 1.0)
        assert store.read_json(run / "manifest.json") == {"seed": 0}

    def test_weights_are_part_of_the_truth(self, tmp_path: Path) -> None:
        simulation = simulate(Scheme(2, weighting="half-normal"), 6, m=5, d=7, rng=0)
        store.write_simulation(tmp_path / "run", simulation, {})
        assert simulation.selection.weights is not None
        back = store.read_array(tmp_path / "run" / "truth.npz", "selection_weights")
        assert np.array_equal(back, simulation.selection.weights)
        assert store.read_scheme(tmp_path / "run" / "scheme.json")[0] == simulation.encodings.scheme

    def test_images_come_back_with_shape_labels_and_public_weights(self, tmp_path: Path) -> None:
        scheme = Scheme(2, 3, "released", "random", "epochs")
        made = simulate(
            scheme, 6, n_public=5, m=8, d=12, shape=(2, 2, 3), labels=np.arange(6) % 3, rng=0
        )
        store.write_simulation(tmp_path / "run", made, {})
        back = store.read_encodings(tmp_path / "run")
        assert (back.scheme, back.shape) == (scheme, (2, 2, 3))
        assert back.labels is not None
        assert np.array_equal(back.labels, made.encodings.labels)
        assert np.array_equal(back.values, made.encodings.values)
        weights = store.read_array(tmp_path / "run" / "truth.npz", "selection_public_weights")
        assert np.array_equal(weights, made.selection.public_weights)
        assert store.read_json(tmp_path / "run" / "scheme.json")["pairing"] == "epochs"

    def test_runs_of_earlier_versions_load(self, simulation: Simulation, tmp_path: Path) -> None:
        store.write_simulation(tmp_path / "run", simulation, {})
        path = tmp_path / "run" / "scheme.json"
        old = {
            key: value
            for key, value in store.read_json(path).items()
            if key not in ("pairing", "shape")
        }
        store.write_json(path, old)
        back = store.read_encodings(tmp_path / "run")
        assert (back.scheme, back.shape, back.labels) == (simulation.encodings.scheme, None, None)

    def test_takes_an_empty_folder_only(self, simulation: Simulation, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        store.write_simulation(tmp_path / "empty", simulation, {})
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InputError, match="choose another name"):
            store.write_simulation(tmp_path / "empty", simulation, {})
        (tmp_path / "file").write_text("mine")
        with pytest.raises(InputError, match="choose another name"):
            store.write_simulation(tmp_path / "file", simulation, {})
        assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "file"])

    @pytest.mark.parametrize(
        "writer", ["write_array", "write_scheme", "write_arrays", "write_json"]
    )
    def test_complete_or_absent(
        self, writer: str, simulation: Simulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store, writer, _fail)
        with pytest.raises(OSError, match="disk"):
            store.write_simulation(tmp_path / "run", simulation, {})
        assert list(tmp_path.iterdir()) == []

    def test_readable_by_others_as_usual(self, simulation: Simulation, tmp_path: Path) -> None:
        store.write_simulation(tmp_path / "run", simulation, {})
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o755
        assert (tmp_path / "run/encodings.npy").stat().st_mode & 0o777 == 0o644


class TestRecovery:
    def test_round_trip(self, recovery: Recovery, tmp_path: Path) -> None:
        store.write_recovery(tmp_path / "recovery.npz", recovery)
        back = store.read_recovery(tmp_path / "recovery.npz")
        for name in ("vectors", "status", "residual"):
            assert np.array_equal(getattr(back, name), getattr(recovery, name)), name
        assert np.array_equal(back.members.toarray(), recovery.members.toarray())
        for name in ("signed", "reasons", "attack", "explanation", "seconds", "evidence"):
            assert getattr(back, name) == getattr(recovery, name), name
        assert (back.explained, back.exact) == (4, True)

    def test_weights_round_trip(self, recovery: Recovery, tmp_path: Path) -> None:
        weights = sparse.csr_array(
            recovery.members.toarray() * np.random.default_rng(1).random((5, 3))
        )
        store.write_recovery(tmp_path / "recovery.npz", replace(recovery, weights=weights))
        back = store.read_recovery(tmp_path / "recovery.npz").weights
        assert back is not None
        assert np.array_equal(back.toarray(), weights.toarray())
        store.write_recovery(tmp_path / "recovery.npz", recovery)
        assert store.read_recovery(tmp_path / "recovery.npz").weights is None

    def test_empty_round_trip(self, tmp_path: Path) -> None:
        empty = Recovery.empty(Encodings(np.ones((5, 7)), Scheme()), "paper", "nothing", {})
        store.write_recovery(tmp_path / "recovery.npz", empty)
        back = store.read_recovery(tmp_path / "recovery.npz")
        assert len(back) == 0
        assert back.vectors.shape == (0, 7)
        assert back.members.shape == (5, 0)

    def test_what_is_open_in_a_vector_is_kept(self, recovery: Recovery, tmp_path: Path) -> None:
        doubtful = np.random.default_rng(0).random((3, 7)) < 0.3
        store.write_recovery(tmp_path / "recovery.npz", replace(recovery, doubtful=doubtful))
        back = store.read_recovery(tmp_path / "recovery.npz").doubtful
        assert back is not None
        assert np.array_equal(back, doubtful)
        store.write_recovery(tmp_path / "recovery.npz", recovery)
        assert store.read_recovery(tmp_path / "recovery.npz").doubtful is None

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("status", np.array(["verified"] * 2)),
            ("status", np.array(["proved"] * 3)),
            ("residual", np.array(["a"] * 3)),
            ("vectors", np.ones(7, np.float32)),
            ("members_indices", np.full(40, 9)),
            ("members_shape", np.array([5, 4])),
            ("about", np.array("5")),
            ("about", np.array("{}")),
            ("doubtful", np.ones((2, 7), bool)),
        ],
    )
    def test_parts_that_do_not_fit_are_damage(
        self, name: str, value: Any, recovery: Recovery, tmp_path: Path
    ) -> None:
        store.write_recovery(tmp_path / "recovery.npz", recovery)
        with np.load(tmp_path / "recovery.npz") as archive:
            parts = dict(archive)
        np.savez(tmp_path / "recovery.npz", **{**parts, name: value})
        with pytest.raises(InputError, match="damaged: run `unveil attack` again"):
            store.read_recovery(tmp_path / "recovery.npz")

    def test_another_archive(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "recovery.npz", x=np.ones(3))
        with pytest.raises(InputError, match="right file"):
            store.read_recovery(tmp_path / "recovery.npz")


class TestAtomicity:
    def test_a_writer_that_raises_leaves_nothing(self, tmp_path: Path) -> None:
        def interrupted() -> None:
            with files.whole(tmp_path / "a.npy") as file:
                file.write(b"half")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert list(tmp_path.iterdir()) == []

    def test_a_writer_that_raises_leaves_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.write_json(tmp_path / "a.json", {"old": 1})
        monkeypatch.setattr(json, "dumps", _fail)
        with pytest.raises(OSError, match="disk"):
            store.write_json(tmp_path / "a.json", {"new": 1})
        monkeypatch.undo()
        assert store.read_json(tmp_path / "a.json") == {"old": 1}
        assert [path.name for path in tmp_path.iterdir()] == ["a.json"]

    def test_a_rename_that_raises_leaves_nothing(
        self, simulation: Simulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Path, "rename", _fail)
        with pytest.raises(OSError, match="disk"):
            store.write_simulation(tmp_path / "run", simulation, {})
        assert list(tmp_path.iterdir()) == []


def test_manifest_says_how_to_repeat_the_run() -> None:
    manifest = store.manifest("attack", seed=3)
    assert {"unveil", "python", "numpy", "scipy", "numba", "hardware", "peak_memory_bytes"} <= set(
        manifest
    )
    assert (manifest["command"], manifest["seed"]) == ("attack", 3)
    json.dumps(manifest, allow_nan=False)


class _Bomb:
    def __init__(self, trap: Path) -> None:
        self.trap = str(trap)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.trap,)


def _fail(*_: object, **__: object) -> None:
    raise OSError("disk full")
