"""`unveil certify FOLDER`."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from unveil.cli import main


def call(*args):
    return CliRunner().invoke(main, list(map(str, args)))


@pytest.fixture
def run(tmp_path):
    made = (tmp_path / "run", "--n-private", 20, "--m", 120, "--d", 60, "--seed", 0)
    assert call("simulate", *made).exit_code == 0
    return tmp_path / "run"


def test_the_truth_of_a_simulation_is_verified(run):
    done = call("certify", run, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["verified"] == 20
    assert "verified" in call("certify", run).stdout


def test_vectors_from_anywhere_are_held_against_the_encodings(run, tmp_path):
    with np.load(run / "truth.npz") as truth:
        vectors, members = truth["private"].copy(), truth["selection_private"]
    vectors[0, 0] += 1
    np.save(tmp_path / "v.npy", vectors)
    np.save(tmp_path / "m.npy", members)
    claim = "--vectors", tmp_path / "v.npy", "--members", tmp_path / "m.npy"
    facts = json.loads(call("certify", run, *claim, "--json").stdout)
    assert facts["status"][0] == "unresolved"
    assert facts["verified"] == 19
    assert call("certify", run, "--vectors", tmp_path / "v.npy").exit_code == 2
    np.save(tmp_path / "v.npy", np.random.default_rng(0).standard_normal((20, 60)))
    assert call("certify", run, *claim).exit_code == 3


def test_what_an_attack_wrote_is_certified_again(run, tmp_path):
    assert call("attack", run).exit_code == 0
    assert json.loads(call("certify", run, "--json").stdout)["verified"] == 20
    assert call("certify", tmp_path).exit_code == 2
