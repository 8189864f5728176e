"""Run directories: what is written is read back, complete or absent, and damage is told."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from unveil.checks import InputError
from unveil.encode import simulate
from unveil.encodings import Encodings
from unveil.engine import runs
from unveil.engine.files import read_array, read_json, write_json
from unveil.records import Recovery
from unveil.scheme import Scheme


@pytest.fixture
def simulation():
    scheme = Scheme(2, 3, "released", "random", "epochs")
    labels = np.arange(6) % 3
    return simulate(scheme, 6, n_public=5, m=8, d=12, image_shape=(2, 2, 3), labels=labels, rng=0)


@pytest.fixture
def recovery():
    rng = np.random.default_rng(0)
    members = sparse.csr_array(rng.integers(0, 2, (5, 3)).astype(bool))
    return Recovery(
        vectors=rng.standard_normal((3, 7), dtype=np.float32),
        status=np.array(["verified", "ambiguous", "unresolved"]),
        signed=True,
        members=members,
        residual=np.array([0.0, 1e-7, np.inf]),
        reasons=("all agree", "two fit: Σx/k − x", ""),
        attack="paper",
        explanation="one of three",
        seconds={"overlaps": 0.5},
        evidence={"rows": [1, 2], "nats": 12.5},
        weights=sparse.csr_array(members.toarray() * rng.random((5, 3))),
        doubtful=rng.random((3, 7)) < 0.3,
        explained=4,
        exact=True,
        columns=tuple("abcdefg"),
    )


def test_a_simulation_comes_back(simulation, tmp_path):
    run = tmp_path / "run"
    runs.write_simulation(run, simulation, {"seed": 0})
    back = runs.read_encodings(run)
    assert (back.scheme, back.image_shape) == (simulation.encodings.scheme, (2, 2, 3))
    for name in ("values", "labels"):
        assert np.array_equal(getattr(back, name), getattr(simulation.encodings, name))
    assert np.array_equal(read_array(run / "public.npy"), simulation.public)
    private, mixed = runs.read_truth(run / "truth.npz")
    assert np.array_equal(private, simulation.private)
    assert np.array_equal(mixed, simulation.selection.private)
    for name in ("public", "weights", "public_weights"):
        expected = getattr(simulation.selection, name)
        assert np.array_equal(read_array(run / "truth.npz", f"selection_{name}"), expected)
    assert read_json(run / "manifest.json") == {"seed": 0}
    with pytest.raises(InputError, match="choose another name"):
        runs.write_simulation(run, simulation, {})
    # Runs of earlier versions say less.
    old = {k: v for k, v in read_json(run / "scheme.json").items() if k not in ("pairing", "shape")}
    write_json(run / "scheme.json", old)
    assert runs.read_encodings(run).image_shape is None


@pytest.mark.parametrize("writer", ["write_array", "write_scheme", "write_arrays", "write_json"])
def test_a_run_is_complete_or_absent(writer, simulation, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(runs, writer, fail)
    with pytest.raises(OSError, match="disk"):
        runs.write_simulation(tmp_path / "run", simulation, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pixel_rms", [0.25, None])
def test_a_scheme_comes_back(pixel_rms, tmp_path):
    scheme = Scheme(k_private=3, k_public=2, weighting="paper", signs="kept")
    runs.write_scheme(tmp_path / "s.json", Encodings(np.ones((2, 3)), scheme, pixel_rms))
    assert runs.read_scheme(tmp_path / "s.json") == (scheme, pixel_rms)
    (tmp_path / "s.json").write_text('{"k_private": 4}')
    assert runs.read_scheme(tmp_path / "s.json") == (Scheme(k_private=4), 1.0)
    (tmp_path / "s.json").write_text('{"k_privat": 4}')
    with pytest.raises(InputError, match="k_privat: the scheme has k_private"):
        runs.read_scheme(tmp_path / "s.json")


def test_a_recovery_comes_back(recovery, tmp_path):
    path = tmp_path / "recovery.npz"
    empty = Recovery.empty(Encodings(np.ones((5, 7)), Scheme()), "paper", "nothing", {})
    for given in (recovery, replace(recovery, weights=None, doubtful=None), empty):
        runs.write_recovery(path, given)
        back = runs.read_recovery(path)
        for name in ("vectors", "status", "residual"):
            assert np.array_equal(getattr(back, name), getattr(given, name)), name
        for name in ("members", "weights"):
            ours, theirs = getattr(back, name), getattr(given, name)
            assert (ours is None) == (theirs is None)
            assert ours is None or np.array_equal(ours.toarray(), theirs.toarray())
        assert np.array_equal(back.doubtful, given.doubtful)
        for name in (
            "signed",
            "reasons",
            "attack",
            "explanation",
            "seconds",
            "evidence",
            "columns",
        ):
            assert getattr(back, name) == getattr(given, name), name
        assert (back.explained, back.exact) == (given.explained, given.exact)


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
def test_parts_that_do_not_fit_are_damage(name, value, recovery, tmp_path):
    runs.write_recovery(tmp_path / "recovery.npz", recovery)
    with np.load(tmp_path / "recovery.npz") as archive:
        parts = dict(archive)
    np.savez(tmp_path / "recovery.npz", **{**parts, name: value})
    with pytest.raises(InputError, match="damaged: run `unveil attack` again"):
        runs.read_recovery(tmp_path / "recovery.npz")
    np.savez(tmp_path / "recovery.npz", x=np.ones(3))
    with pytest.raises(InputError, match="right file"):
        runs.read_recovery(tmp_path / "recovery.npz")


def test_the_manifest_says_how_to_repeat_the_run():
    manifest = runs.manifest("attack", seed=3)
    assert {"unveil", "python", "numpy", "scipy", "numba", "hardware", "peak_memory_bytes"} <= set(
        manifest
    )
    assert (manifest["command"], manifest["seed"]) == ("attack", 3)
    json.dumps(manifest, allow_nan=False)
