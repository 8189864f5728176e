"""The command line: verdicts, exit codes, JSON that parses, and bad input that leaves the disk as
it was."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from unveil import Scheme, cli, doctor, simulate
from unveil.cli import terminal
from unveil.engine import blocks

TINY = ["--n-private", "20", "--m", "120", "--d", "1024", "--seed", "1"]


def call(*args: object) -> Result:
    return CliRunner().invoke(cli.main, [str(arg) for arg in args])


def call_through(*args: object) -> Result:
    """Like `call`, but what is no SystemExit comes through."""
    return CliRunner().invoke(cli.main, [str(arg) for arg in args], catch_exceptions=False)


def listing(folder: Path) -> dict[str, bytes | None]:
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
    }


def one_sentence(result: Result, *words: str) -> None:
    """Exit code 2, silence or an error as JSON on stdout, and one line on stderr that holds the
    words."""
    assert result.exit_code == 2, result.output
    if result.stdout:  # with --json a program finds the same sentence there
        assert result.stderr == f"Error: {json.loads(result.stdout)['error']['message']}\n"
    assert re.fullmatch(r"Error: [^\n]+\n", result.stderr), result.stderr
    for word in words:
        assert word in result.stderr


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("cli") / "run"
    result = call("simulate", run, *TINY)
    assert result.exit_code == 0, result.output
    return run


@pytest.fixture(scope="module")
def attacked(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("cli") / "run"
    shutil.copytree(simulated, run)
    result = call("attack", run)
    assert result.exit_code == 0, result.output
    return run


@pytest.fixture
def run(simulated: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(simulated, tmp_path / "run"))


@pytest.fixture
def done(attacked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(attacked, tmp_path / "run"))


class TestSimulate:
    def test_writes_a_run_directory(self, simulated: Path) -> None:
        names = {path.name for path in simulated.iterdir()}
        assert names == {"encodings.npy", "scheme.json", "truth.npz", "manifest.json"}
        assert json.loads((simulated / "manifest.json").read_text())["seed"] == 1
        assert np.load(simulated / "encodings.npy").shape == (120, 1024)

    def test_same_seed_same_bytes(self, simulated: Path, tmp_path: Path) -> None:
        call("simulate", tmp_path / "again", *TINY)
        assert (tmp_path / "again/encodings.npy").read_bytes() == (
            simulated / "encodings.npy"
        ).read_bytes()

    def test_draws_and_notes_a_seed_when_none_is_given(self, tmp_path: Path) -> None:
        facts = [
            json.loads(call("simulate", tmp_path / str(i), "--m", 3, "--d", 5, "--json").stdout)
            for i in range(2)
        ]
        assert facts[0]["seed"] != facts[1]["seed"]
        again = call("simulate", tmp_path / "2", "--m", 3, "--d", 5, "--seed", facts[0]["seed"])
        assert again.exit_code == 0
        assert np.array_equal(
            np.load(tmp_path / "0/encodings.npy"), np.load(tmp_path / "2/encodings.npy")
        )

    def test_every_option_reaches_the_scheme(self, tmp_path: Path) -> None:
        scheme = [
            "--k-private",
            1,
            "--k-public",
            2,
            "--weighting",
            "paper",
            "--signs",
            "random",
            "--pairing",
            "epochs",
        ]
        result = call(
            "simulate",
            tmp_path / "run",
            *scheme,
            "--n-public",
            7,
            "--m",
            4,
            "--d",
            6,
            "--noise",
            0.1,
            "--json",
        )
        assert json.loads(result.stdout)["n_public"] == 7
        stored = json.loads((tmp_path / "run/scheme.json").read_text())
        expected = {
            "k_private": 1,
            "k_public": 2,
            "weighting": "paper",
            "signs": "random",
            "pairing": "epochs",
            "masks": 0,
            "alpha": 1.0,
        }
        assert stored == {**expected, "pixel_rms": 1.0, "shape": None}
        assert np.load(tmp_path / "run/public.npy").shape == (7, 6)
        assert (np.load(tmp_path / "run/encodings.npy") < 0).any()

    def test_masks_and_the_parameter_of_the_law_reach_the_scheme(self, tmp_path: Path) -> None:
        law = ["--weighting", "dirichlet", "--alpha", 0.5, "--signs", "masked", "--masks", 3]
        call("simulate", tmp_path / "run", *law, "--m", 4, "--d", 6)
        stored = json.loads((tmp_path / "run/scheme.json").read_text())
        assert (stored["alpha"], stored["signs"], stored["masks"]) == (0.5, "masked", 3)

    def test_encodes_the_users_arrays(self, tmp_path: Path) -> None:
        images = np.arange(5 * 2 * 3, dtype=np.uint8).reshape(5, 2, 3)
        np.save(tmp_path / "mine.npy", images)
        assert (
            call(
                "simulate", tmp_path / "run", "--private", tmp_path / "mine.npy", "--m", 4
            ).exit_code
            == 0
        )
        with np.load(tmp_path / "run/truth.npz") as truth:
            assert np.array_equal(truth["private"], images.reshape(5, 6))
        assert json.loads((tmp_path / "run/scheme.json").read_text())["pixel_rms"] is None

    def test_encodes_a_folder_of_images(self, tmp_path: Path) -> None:
        image = pytest.importorskip("PIL.Image")
        (tmp_path / "pictures").mkdir()
        for i in range(3):
            image.new("L", (4, 2), i).save(tmp_path / f"pictures/{i}.png")
        result = call(
            "simulate", tmp_path / "run", "--private", tmp_path / "pictures", "--m", 4, "--json"
        )
        facts = json.loads(result.stdout)
        assert (facts["n_private"], facts["d"]) == (3, 8)

    def test_fills_an_empty_folder(self, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        assert call("simulate", tmp_path / "run", "--m", 3, "--d", 5).exit_code == 0


class TestAttack:
    def test_verdict_first_then_evidence(self, run: Path) -> None:
        result = call("attack", run)
        assert result.exit_code == 0
        assert result.stdout.splitlines()[0].startswith(
            "20 private vectors recovered and verified, up to one sign per pixel"
        )
        for word in ("verified", "encodings", "reason", "Seconds:", "relations"):
            assert word in result.stdout

    def test_writes_recovery_and_manifest(self, attacked: Path) -> None:
        manifest = json.loads((attacked / "manifest.json").read_text())
        assert manifest["seed"] == 1
        assert manifest["attack"]["verified"] == 20
        assert set(manifest["attack"]["seconds"]) >= {"relations", "pixels"}
        with np.load(attacked / "recovery.npz", allow_pickle=False) as recovery:
            assert recovery["vectors"].shape == (20, 1024)

    def test_json_is_one_object(self, run: Path) -> None:
        result = call("attack", run, "--attack", "paper", "--json")
        facts = json.loads(result.stdout, parse_constant=pytest.fail)
        assert facts["verified"] == 4
        assert len(facts["encodings_used"]) == 4
        assert result.stderr == ""

    def test_a_large_run_keeps_its_blocks_until_it_is_done(
        self, run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paper = ("--attack", "paper")
        expected = call("attack", run, *paper, "--json", "--workers", 1).stdout
        monkeypatch.setattr(cli.attack, "WORTH_RESUMING", 1)
        monkeypatch.setattr("unveil.store.write_recovery", lambda *_: pytest.fail("stopped"))
        with pytest.raises(pytest.fail.Exception):
            call_through("attack", run, *paper)
        assert list((run / "overlaps").rglob("block-*.npz"))
        monkeypatch.undo()
        monkeypatch.setattr(cli.attack, "WORTH_RESUMING", 1)
        again = call("attack", run, *paper, "--json", "--workers", 2)
        assert not (run / "overlaps").exists()
        assert {**json.loads(again.stdout), "seconds": 0} == {**json.loads(expected), "seconds": 0}

    def test_a_scheduler_that_is_not_there_is_one_sentence(
        self, run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("distributed")
        monkeypatch.setattr(blocks._client.__wrapped__, "__defaults__", (1,))
        one_sentence(
            call("attack", run, "--attack", "paper", "--scheduler", "tcp://127.0.0.1:9"),
            "does not answer",
        )

    def test_replaces_scores_of_an_older_recovery(self, done: Path) -> None:
        assert call("score", done).exit_code == 0
        assert call("attack", done).exit_code == 0
        assert not (done / "scores.json").exists()

    def test_file_and_options_instead_of_a_run(self, run: Path, tmp_path: Path) -> None:
        result = call(
            "attack",
            run / "encodings.npy",
            "--k-private",
            2,
            "--weighting",
            "equal",
            "--out",
            tmp_path / "out",
        )
        assert result.exit_code == 0
        assert {p.name for p in (tmp_path / "out").iterdir()} == {
            "recovery.npz",
            "scheme.json",
            "manifest.json",
        }
        assert call("score", tmp_path / "out").exit_code == 2
        np.save(tmp_path / "truth.npy", np.load(run / "truth.npz")["private"])
        scored = call("score", tmp_path / "out", "--private", tmp_path / "truth.npy", "--json")
        assert json.loads(scored.stdout)["exact"] == 20

    def test_out_leaves_the_run_alone(self, run: Path, tmp_path: Path) -> None:
        before = listing(run)
        assert call("attack", run, "--out", tmp_path / "deep/out").exit_code == 0
        assert listing(run) == before
        assert (tmp_path / "deep/out/recovery.npz").exists()

    def test_public_vectors_give_signs(self, tmp_path: Path) -> None:
        options = [
            "--k-public",
            1,
            "--n-public",
            10,
            "--n-private",
            12,
            "--m",
            120,
            "--d",
            4096,
            "--seed",
            0,
        ]
        assert call("simulate", tmp_path / "run", *options).exit_code == 0
        result = call("attack", tmp_path / "run")
        assert result.exit_code == 0, result.output
        assert "with their signs" in result.stdout
        assert call("score", tmp_path / "run").exit_code == 0
        public = ["--public", tmp_path / "run/public.npy", "--k-public", 1]
        again = call(
            "attack", tmp_path / "run/encodings.npy", *public, "--out", tmp_path / "out", "--json"
        )
        assert json.loads(again.stdout)["signed"] is True

    def test_nothing_recovered_is_3_and_says_why(self, tmp_path: Path) -> None:
        call("simulate", tmp_path / "run", "--m", 30, "--d", 512, "--seed", 0)
        result = call("attack", tmp_path / "run")
        assert result.exit_code == 3
        assert result.stdout.startswith("No private vector verified: ")
        assert "floral" in result.stdout
        assert (tmp_path / "run/recovery.npz").exists()
        as_json = call("attack", tmp_path / "run", "--json")
        assert as_json.exit_code == 3
        assert json.loads(as_json.stdout, parse_constant=pytest.fail)["verified"] == 0
        assert call("score", tmp_path / "run").exit_code == 3

    def test_a_file_alone_is_found_out(self, tmp_path: Path) -> None:
        scheme = Scheme(2, weighting="dirichlet", signs="kept")
        sim = simulate(scheme, 12, m=120, d=40, rng=0)
        np.save(tmp_path / "released.npy", sim.encodings.values)
        answer = call("attack", tmp_path / "released.npy", "--json")
        assert answer.exit_code == 0
        told = json.loads(answer.stdout)
        assert told["verified"] == 12
        assert told["evidence"]["scheme"]["k_private"] == 2
        assert [path.name for path in tmp_path.iterdir()] == ["released.npy"]
        shown = call("attack", tmp_path / "released.npy")
        assert "Nothing was written" in shown.stdout

    def test_pixels_of_unknown_scale(self, run: Path, tmp_path: Path) -> None:
        """Of a stranger's file nothing is assumed; a size that is stated must fit."""
        np.save(tmp_path / "large.npy", 3 * np.load(run / "encodings.npy"))
        unsaid = call("attack", tmp_path / "large.npy", "--out", tmp_path / "a", "--json")
        assert unsaid.exit_code == 0
        assert json.loads(unsaid.stdout)["verified"] == 20
        wrong = ("--pixel-rms", 1, "--out", tmp_path / "b", "--json")
        unscaled = call("attack", tmp_path / "large.npy", *wrong)
        assert unscaled.exit_code == 3
        assert set(json.loads(unscaled.stdout)["status"]) == {"ambiguous"}
        for i, rms in enumerate(("3", "unknown")):
            assert (
                call(
                    "attack", tmp_path / "large.npy", "--pixel-rms", rms, "--out", tmp_path / str(i)
                ).exit_code
                == 0
            )

    def test_paths_are_not_markup(self, run: Path, tmp_path: Path) -> None:
        result = call("attack", run, "--out", tmp_path / "[bold]odd[/red]")
        assert result.exit_code == 0
        assert "[bold]odd[/red]" in result.stdout


class TestScore:
    def test_counts_and_writes(self, done: Path) -> None:
        result = call("score", done)
        assert result.exit_code == 0
        assert result.stdout.startswith("20 of 20 private vectors recovered exactly")
        scores = json.loads((done / "scores.json").read_text())
        assert (scores["exact"], scores["wrong"], scores["missing"]) == (20, 0, 0)
        assert json.loads(call("score", done, "--json").stdout)["matches"] == scores["matches"]

    def test_wrong_is_loud(self, done: Path) -> None:
        with np.load(done / "truth.npz") as truth:
            arrays = dict(truth)
        arrays["private"] = np.random.default_rng(0).permuted(arrays["private"], axis=1)
        np.savez(done / "truth.npz", **arrays)
        result = call("score", done)
        assert result.exit_code == 3
        assert result.stdout.startswith("WRONG: 20 of 20")
        assert json.loads(call("score", done, "--json").stdout)["wrong"] == 20

    def test_needs_a_recovery(self, run: Path) -> None:
        before = listing(run)
        one_sentence(call("score", run), "unveil attack")
        assert listing(run) == before

    def test_tolerance_must_be_positive(self, done: Path) -> None:
        one_sentence(call("score", done, "--tolerance", 0), "positive")
        assert not (done / "scores.json").exists()


class TestDoctor:
    def test_healthy(self) -> None:
        result = call("doctor")
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("Healthy.")

    def test_json(self) -> None:
        facts = json.loads(call("doctor", "--json").stdout)
        assert facts["healthy"]
        assert {"python", "numpy", "BLAS", "free memory", "numba cache", "self-test"} <= {
            c["check"] for c in facts["checks"]
        }

    def test_a_failing_line_names_its_cure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("unveil.engine.blocks.free_memory", lambda: 2**20)
        monkeypatch.setattr(doctor, "_self_test", lambda: "skipped")
        result = call("doctor")
        assert result.exit_code == 3
        assert "close other programs" in " ".join(result.stdout.split())
        checks = {c["check"]: c for c in json.loads(call("doctor", "--json").stdout)["checks"]}
        assert not checks["free memory"]["ok"]

    def test_versions_compare_as_numbers(self) -> None:
        assert doctor._at_least("2.10.1", "2.9") == "2.10.1"
        with pytest.raises(RuntimeError, match="older"):
            doctor._at_least("1.9.3", "1.26")
        with pytest.raises(RuntimeError, match="not installed"):
            doctor._package("no-such-package-at-all", "1")


def _save(path: Path, array: object) -> None:
    np.save(path, array)


def _pickle(path: Path) -> None:
    np.save(path, np.array([{"a": 1}, None], dtype=object), allow_pickle=True)


def _raw_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps([[1.0, 2.0]]))


def _truncated(path: Path) -> None:
    np.save(path, np.ones((4, 6), np.float32))
    path.write_bytes(path.read_bytes()[:-20])


BAD_ARRAYS = {
    "nan": (lambda p: _save(p, np.array([[1.0, np.nan], [0.0, 1.0]])), "NaN"),
    "infinite": (lambda p: _save(p, np.array([[1.0, np.inf], [0.0, 1.0]])), "infinite"),
    "beyond float32": (lambda p: _save(p, np.array([[1.0, 1e300], [0.0, 1.0]])), "float32"),
    "one dimension": (lambda p: _save(p, np.ones(6)), "(items, pixels)"),
    "no dimension": (lambda p: _save(p, np.float32(1)), "(items, pixels)"),
    "complex": (lambda p: _save(p, np.ones((4, 6), complex)), "real numbers"),
    "text": (lambda p: _save(p, np.full((4, 6), "a")), "real numbers"),
    "no items": (lambda p: _save(p, np.ones((0, 6))), "empty"),
    "no pixels": (lambda p: _save(p, np.ones((4, 0))), "empty"),
    "pickled array": (_pickle, "plain .npy"),
    "pickle": (_raw_pickle, "plain .npy"),
    "truncated": (_truncated, "numpy.save"),
    "not an array": (lambda p: p.write_text("hello"), ".npy"),
    "zero bytes": (lambda p: p.write_bytes(b""), "numpy.save"),
    "missing": (lambda p: None, "check the path"),
}


@pytest.fixture(params=BAD_ARRAYS, ids=lambda name: name.replace(" ", "-"))
def bad(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    make, cure = BAD_ARRAYS[request.param]
    make(tmp_path / "bad.npy")
    return tmp_path / "bad.npy", cure


class TestBadArrays:
    @pytest.mark.parametrize("option", ["--private", "--public"])
    def test_simulate(self, bad: tuple[Path, str], option: str, tmp_path: Path) -> None:
        before = listing(tmp_path)
        one_sentence(call("simulate", tmp_path / "run", option, bad[0], "--json"), bad[1])
        assert listing(tmp_path) == before

    def test_attack_a_file(self, bad: tuple[Path, str], tmp_path: Path) -> None:
        before = listing(tmp_path)
        one_sentence(call("attack", bad[0], "--out", tmp_path / "out"), bad[1])
        assert listing(tmp_path) == before

    def test_attack_a_run(self, bad: tuple[Path, str], run: Path, tmp_path: Path) -> None:
        if bad[0].exists():
            shutil.copy(bad[0], run / "encodings.npy")
        else:
            (run / "encodings.npy").unlink()
        before = listing(tmp_path)
        one_sentence(call("attack", run), bad[1])
        assert listing(tmp_path) == before


def _scheme_json(run: Path, **content: object) -> None:
    (run / "scheme.json").write_text(json.dumps(content))


BAD_RUNS = {
    "invalid JSON": (lambda run: (run / "scheme.json").write_text("{"), "not valid JSON"),
    "JSON of another kind": (lambda run: (run / "scheme.json").write_text("[]"), "one JSON object"),
    "unknown keys": (lambda run: _scheme_json(run, k_private=2, colour="red"), "colour"),
    "k as text": (lambda run: _scheme_json(run, k_private="2"), "whole number"),
    "negative k": (lambda run: _scheme_json(run, k_private=-1), "whole number"),
    "unknown weighting": (lambda run: _scheme_json(run, weighting="heavy"), "equal, paper, convex"),
    "pixel_rms of zero": (lambda run: _scheme_json(run, pixel_rms=0), "positive number"),
    "pixel_rms as text": (lambda run: _scheme_json(run, pixel_rms="one"), "positive number"),
    "no scheme": (lambda run: (run / "scheme.json").unlink(), "check the path"),
    "no public vectors": (lambda run: _scheme_json(run, k_private=2, k_public=1), "pass public="),
    "other pixels": (lambda run: np.save(run / "public.npy", np.ones((3, 5))), "same space"),
    "too few public vectors": (
        lambda run: (
            _scheme_json(run, k_private=2, k_public=4),
            np.save(run / "public.npy", np.ones((3, 1024))),
        ),
        "lower k_public",
    ),
    "invalid manifest": (
        lambda run: (run / "manifest.json").write_text("nonsense"),
        "not valid JSON",
    ),
}


class TestBadRuns:
    @pytest.mark.parametrize("name", BAD_RUNS)
    def test_attack(self, name: str, run: Path, tmp_path: Path) -> None:
        spoil, cure = BAD_RUNS[name]
        spoil(run)
        before = listing(tmp_path)
        one_sentence(call("attack", run), cure)
        assert listing(tmp_path) == before

    @pytest.mark.parametrize("name", ["truth.npz", "recovery.npz"])
    @pytest.mark.parametrize("keep", [0, 100, -40])
    def test_score_of_a_truncated_archive(
        self, name: str, keep: int, done: Path, tmp_path: Path
    ) -> None:
        (done / name).write_bytes((done / name).read_bytes()[:keep])
        before = listing(tmp_path)
        one_sentence(call("score", done), name)
        assert listing(tmp_path) == before

    def test_score_of_other_pixels(self, done: Path, tmp_path: Path) -> None:
        np.save(tmp_path / "other.npy", np.ones((20, 7)))
        one_sentence(call("score", done, "--private", tmp_path / "other.npy"), "7 pixels")
        assert not (done / "scores.json").exists()


BAD_CALLS = {
    "k larger than n": (["simulate", "new", "--k-private", 5, "--n-private", 4], "lower k_private"),
    "k_public larger than n": (
        ["simulate", "new", "--k-public", 2, "--n-public", 1],
        "lower k_public",
    ),
    "nothing mixed": (["simulate", "new", "--k-private", 0], "at least one"),
    "no encodings": (["simulate", "new", "--m", 0], "at least one encoding"),
    "no pixels": (["simulate", "new", "--d", 0], "positive"),
    "negative count": (["simulate", "new", "--m", -3], "--m"),
    "absurd count": (["simulate", "new", "--m", 10**30], "--m"),
    "no number": (["simulate", "new", "--m", "many"], "--help"),
    "unknown weighting": (["simulate", "new", "--weighting", "heavy"], "equal, paper, convex"),
    "unknown signs": (["simulate", "new", "--signs", "none"], "absolute, random, kept"),
    "negative noise": (["simulate", "new", "--noise", -1], "0 or more"),
    "noise that is no number": (["simulate", "new", "--noise", "nan"], "0 or more"),
    "negative seed": (["simulate", "new", "--seed", -1], "0 or more"),
    "contradiction": (
        ["simulate", "new", "--private", "run/encodings.npy", "--n-private", 7],
        "contradict",
    ),
    "different pixels": (
        ["simulate", "new", "--private", "run/encodings.npy", "--public", "small.npy"],
        "contradict",
    ),
    "simulate onto a folder": (["simulate", "run"], "choose another name"),
    "simulate onto a file": (["simulate", "small.npy"], "choose another name"),
    "simulate below a file": (["simulate", "small.npy/run", "--m", 2, "--d", 2], "check the path"),
    "folder without images": (["simulate", "new", "--private", "run"], "no images"),
    "unknown attack": (
        ["attack", "run", "--attack", "magic"],
        "choose one of absolute, cliques, full",
    ),
    "k_private of 1": (
        ["attack", "run/encodings.npy", "--k-private", 1, "--attack", "paper", "--out", "new"],
        "2 or more",
    ),
    "attack of nothing": (["attack", "nowhere", "--out", "new"], "check the path"),
    "attack onto a folder": (["attack", "run", "--out", "run"], "choose another name"),
    "options against a run": (
        ["attack", "run", "--k-private", 3, "--pixel-rms", 2],
        "--k-private, --pixel-rms",
    ),
    "public without k": (
        ["attack", "run/encodings.npy", "--public", "small.npy", "--out", "new"],
        "--k-public",
    ),
    "k without public": (
        ["attack", "run/encodings.npy", "--k-public", 1, "--out", "new"],
        "k_public=0",
    ),
    "public of other pixels": (
        ["attack", "run/encodings.npy", "--public", "small.npy", "--k-public", 1, "--out", "new"],
        "same space",
    ),
    "pixel_rms as text": (
        ["attack", "run/encodings.npy", "--pixel-rms", "big", "--out", "new"],
        "unknown",
    ),
    "negative pixel_rms": (
        ["attack", "run/encodings.npy", "--pixel-rms", -1, "--out", "new"],
        "positive",
    ),
    "score of nothing": (["score", "nowhere"], "unveil attack"),
    "plan with k larger than n": (["plan", "--k-private", 9, "--n-private", 8], "lower k_private"),
    "plan without encodings": (["plan", "--m", 0], "m=0"),
    "no such command": (["atack"], "attack"),
    "no such option": (["attack", "run", "--fast"], "--help"),
    "no argument": (["simulate"], "unveil simulate --help"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls(name: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args, cure = BAD_CALLS[name]
    np.save(tmp_path / "small.npy", np.ones((3, 5), np.float32))
    monkeypatch.chdir(tmp_path)
    before = listing(tmp_path)
    one_sentence(call(*args), cure)
    assert listing(tmp_path) == before


class TestTrouble:
    """What no input check can foresee: a full disk, too little memory, an impatient user, a bug."""

    @pytest.mark.parametrize(
        ("error", "code", "words"),
        [
            (
                PermissionError(13, "Permission denied", "/somewhere"),
                2,
                "/somewhere: Permission denied; check",
            ),
            (OSError(28, "No space left on device"), 2, "No space left"),
            (MemoryError(), 2, "not enough memory"),
            (KeyboardInterrupt(), 130, ""),
        ],
    )
    def test_becomes_one_sentence(
        self,
        error: BaseException,
        code: int,
        words: str,
        run: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def fail(*_: object) -> None:
            raise error

        before = listing(run)
        monkeypatch.setattr("unveil.store.write_recovery", fail)
        for extra in ([], ["--out", run.parent / "out"]):
            result = call("attack", run, *extra)
            assert result.exit_code == code
            assert words in result.stderr
            assert "Traceback" not in result.output
            assert listing(run) == before
            assert [p.name for p in run.parent.iterdir()] == ["run"]

    def test_a_bug_keeps_its_traceback(self, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("unveil.attacks.recover", lambda *_, **__: [][0])
        assert isinstance(call("attack", run).exception, IndexError)

    @pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
    )
    def test_a_run_that_may_not_be_written(self, run: Path) -> None:
        run.chmod(0o555)
        try:
            one_sentence(call("attack", run), "--out")
        finally:
            run.chmod(0o755)


class TestProcess:
    """The installed command, from outside."""

    def unveil(self, *args: object, **options: object) -> subprocess.CompletedProcess[str]:
        code = "from unveil.cli import main; main()"
        command = [sys.executable, "-c", code, *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload, no-any-return]

    def test_help_and_version(self) -> None:
        shown = self.unveil("--help")
        assert shown.returncode == 0
        for command in ("simulate", "attack", "score", "audit", "plan", "reproduce", "doctor"):
            assert command in shown.stdout
        assert self.unveil().stdout == shown.stdout
        assert re.fullmatch(r"unveil, version \S+\n", self.unveil("--version").stdout)

    def test_exit_codes(self, done: Path) -> None:
        assert self.unveil("score", done).returncode == 0
        assert self.unveil("score", done, "--tolerance", 1e-30).returncode == 3
        failed = self.unveil("score", done / "nowhere")
        assert (failed.returncode, failed.stdout) == (2, "")
        assert failed.stderr.startswith("Error: ")
        assert failed.stderr.count("\n") == 1

    def test_errors_are_json_where_json_is_asked_for(self, done: Path, tmp_path: Path) -> None:
        (tmp_path / "o.toml").write_text('json = true\nprivate = "nowhere.npy"\n')
        for args in (
            ("score", done / "nowhere", "--json"),
            ("score", done, "--no-such-option", "--json"),
            ("audit", "--config", tmp_path / "o.toml"),
        ):
            failed = self.unveil(*args)
            assert failed.returncode == 2
            fault = json.loads(failed.stdout)
            assert set(fault) == {"schema", "error"}
            assert fault["error"]["exit_code"] == 2
            assert failed.stderr == f"Error: {fault['error']['message']}\n"

    def test_a_terminal_without_unicode(self, run: Path) -> None:
        shown = self.unveil("attack", run, env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.startswith("20 private vectors")


class TestProgress:
    @pytest.mark.parametrize("wanted", [True, False])
    def test_lines_without_a_terminal(
        self, wanted: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """Also with --json: they go to stderr."""
        monkeypatch.setattr(terminal, "EVERY", 0.05)
        with terminal.progress_bar("work", wanted) as progress:
            assert progress is not None
            progress("overlaps", 3, 60)
            time.sleep(0.3)
        shown = capfd.readouterr()
        assert shown.out == ""
        assert "work: 0 s, overlaps 3 of 60\n" in shown.err

    def test_quick_work_needs_no_lines(self, capfd: pytest.CaptureFixture[str]) -> None:
        with terminal.progress_bar("work", True) as progress:
            assert progress is not None
            progress("overlaps", 3, 60)
        assert capfd.readouterr().err == ""

    @pytest.mark.parametrize(("patience", "seen"), [(0.0, True), (60.0, False)])
    def test_appears_only_after_a_while(
        self,
        patience: float,
        seen: bool,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(terminal, "PATIENCE", patience)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        monkeypatch.setenv("TTY_INTERACTIVE", "1")
        with terminal.progress_bar("work", True) as progress:
            assert progress is not None
            for done in range(60):
                progress("overlaps", done, 60)
                time.sleep(0.005)
        shown = capfd.readouterr()
        assert ("overlaps" in shown.err) is seen
        assert shown.out == ""


def test_overlaps_and_similarities_from_elsewhere_are_handed_on(tmp_path: Path) -> None:
    """Ninety pixels are too few to read overlaps: with those given, every vector comes back, by
    whatever attack takes them."""
    sim = simulate(Scheme(2), 12, m=90, d=90, rng=0)
    np.save(tmp_path / "encodings.npy", sim.encodings.values)
    W = np.zeros((90, 12), np.int64)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    np.save(tmp_path / "overlaps.npy", W @ W.T)
    for name, option in (("line-graph", "--overlaps"), ("cliques", "--similarity")):
        out = tmp_path / name
        args = (
            "attack",
            tmp_path / "encodings.npy",
            "--attack",
            name,
            option,
            tmp_path / "overlaps.npy",
            "--out",
            out,
        )
        result = call(*args, "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["verified"] == 12
    refused = call(
        "attack",
        tmp_path / "encodings.npy",
        "--similarity",
        tmp_path / "overlaps.npy",
        "--out",
        tmp_path / "no",
    )
    assert refused.exit_code == 2
    assert "similarity= says nothing to attack=" in refused.stderr
